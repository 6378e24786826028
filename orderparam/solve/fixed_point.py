"""Damped fixed-point iteration, differentiated through the fixed point and not through the
iteration."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import lineax
import optimistix
from jax import lax
from jax.custom_batching import sequential_vmap
from jaxtyping import Array, Float, PyTree

from orderparam.solve.implicit import implicit_root
from orderparam.solve.solved import Solved


def _gmres(linear: Callable[[PyTree], PyTree], rhs: PyTree) -> PyTree:
    """The y with linear(y) = rhs, or NaN where it is not found: an error raised here would spoil a
    complete batch."""
    operator = lineax.FunctionLinearOperator(linear, jax.eval_shape(lambda: rhs))
    found = lineax.linear_solve(operator, rhs, lineax.GMRES(rtol=1e-12, atol=1e-12), throw=False)
    return jax.tree.map(
        lambda leaf: jnp.where(found.result == lineax.RESULTS.successful, leaf, jnp.nan),
        found.value,
    )


def fixed_point(
    function: Callable[[PyTree, PyTree], PyTree],
    start: PyTree[Float[Array, "..."]],
    args: PyTree[Any] = None,
    *,
    damping: float = 0.0,
    tolerance: float = 1e-12,
    max_steps: int = 1000,
    sequential: bool = False,
) -> Solved:
    """The fixed point y = function(y, args), by the iteration y <- damping * y + (1 - damping) *
    function(y, args).

    residual: the largest entry of |function(y) - y|. Stops when every entry moves by less than
    tolerance * (1 + |y|). Take logarithms of positive unknowns. Derivatives with respect to `args`
    follow from the implicit function theorem, by GMRES on products with the Jacobian; NaN where
    that fails. Never raises: look at `converged`.

    sequential: under `vmap`, iterate one point after the other, so that a converged point costs
    nothing; useful for functions with hundreds of nodes whose numbers of steps differ.
    """

    def damped(y: PyTree, args: PyTree) -> PyTree:
        return jax.tree.map(
            lambda old, new: damping * old + (1 - damping) * new, y, function(y, args)
        )

    def change(y: PyTree) -> PyTree:
        return jax.tree.map(lambda new, old: new - old, function(y, args), y)

    def solve(_: Callable, first: PyTree) -> tuple[PyTree, tuple]:
        solver = optimistix.FixedPointIteration(rtol=tolerance, atol=tolerance)

        def iterated(first: PyTree, args: PyTree, *closed: Array) -> tuple[PyTree, tuple]:
            found = optimistix.fixed_point(
                lambda y, inner: pure(y, inner, *closed),
                solver,
                first,
                args,
                max_steps=max_steps,
                throw=False,
            )
            success, steps = found.result == optimistix.RESULTS.successful, found.stats["num_steps"]
            return found.value, (success.astype(float), steps.astype(float))

        # arrays that the function closes over must become arguments, so that they are split as well
        pure, closed = jax.closure_convert(damped, first, args) if sequential else (damped, [])
        return (sequential_vmap(iterated) if sequential else iterated)(first, args, *closed)

    def tangent(linear: Callable[[PyTree], PyTree], rhs: PyTree) -> PyTree:
        return lax.custom_linear_solve(linear, rhs, _gmres, _gmres)

    value, (success, steps) = implicit_root(
        change, jax.tree.map(jnp.asarray, start), solve, tangent
    )
    changes = jax.tree.map(lambda part: jnp.max(jnp.abs(part)), lax.stop_gradient(change(value)))
    residual = jax.tree.reduce(jnp.maximum, changes)
    return Solved(value, residual, success > 0, steps.astype(int))
