"""Damped fixed-point iteration, differentiated through the fixed point and not through the iteration."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax
import optimistix
from jaxtyping import Array, Bool, Float, Int, PyTree


class FixedPoint(eqx.Module):
    """The last iterate y, the largest entry of |function(y) - y|, whether it met the tolerance, and the number of steps taken."""

    value: PyTree[Float[Array, "..."]]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]
    steps: Int[Array, ""]


def fixed_point(
    function: Callable[[PyTree, PyTree], PyTree],
    start: PyTree[Float[Array, "..."]],
    args: PyTree[Any] = None,
    *,
    damping: float = 0.0,
    tolerance: float = 1e-12,
    max_steps: int = 1000,
) -> FixedPoint:
    """y = function(y, args), by y <- damping * y + (1 - damping) * function(y, args).

    Stops when every entry moves by less than tolerance * (1 + |y|). Take logarithms of positive unknowns. Derivatives with
    respect to `args` follow from the implicit function theorem, by GMRES on products with the Jacobian. Never raises: look at
    `converged`.
    """

    def damped(y: PyTree, args: PyTree) -> PyTree:
        return jax.tree.map(lambda old, new: damping * old + (1 - damping) * new, y, function(y, args))

    solution = optimistix.fixed_point(
        damped,
        optimistix.FixedPointIteration(rtol=tolerance, atol=tolerance),
        start,
        args,
        max_steps=max_steps,
        adjoint=optimistix.ImplicitAdjoint(linear_solver=lineax.GMRES(rtol=1e-12, atol=1e-12)),
        throw=False,
    )
    frozen, frozen_args = jax.lax.stop_gradient((solution.value, args))
    changes = jax.tree.map(lambda new, old: jnp.max(jnp.abs(new - old)), function(frozen, frozen_args), frozen)
    residual = jax.tree.reduce(jnp.maximum, changes)
    return FixedPoint(
        solution.value, residual, solution.result == optimistix.RESULTS.successful, solution.stats["num_steps"]
    )
