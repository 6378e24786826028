"""Derivatives of the root of an equation from the implicit function theorem, independent of the
method that found the root."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import lineax
from jax import lax
from jaxtyping import Array, Float, PyTree

Vector = Float[Array, "unknown"]
Linear = Callable[[Vector], Vector]


def implicit_root(
    function: Callable[[PyTree], PyTree],
    start: PyTree,
    solve: Callable[[Callable[[PyTree], PyTree], PyTree], tuple[PyTree, Any]],
    tangent: Callable[[Callable[[PyTree], PyTree], PyTree], PyTree],
) -> tuple[PyTree, Any]:
    """The root u of function(u) = 0 found by `solve(function, start) -> (u, numbers)`, and those
    numbers, which have no derivative.

    Derivatives of u, of every order, with respect to all arrays that `function` closes over follow
    from the implicit function theorem; `tangent(linear, rhs)` solves linear(x) = rhs with the
    linearised function: for vectors `dense` or `symmetric`. Works under `vmap`. `numbers` must be
    floats (a root cannot be differentiated past an integer).
    """
    found, numbers = lax.custom_root(
        function, lax.stop_gradient(start), solve, tangent, has_aux=True
    )
    return found, lax.stop_gradient(numbers)


def dense(linear: Linear, rhs: Vector) -> Vector:
    """Solves with the full Jacobian: for tens of unknowns."""
    return jnp.linalg.solve(jax.jacfwd(linear)(jnp.zeros_like(rhs)), rhs)


def symmetric(linear: Linear, rhs: Vector) -> Vector:
    """Solves by conjugate gradients on products with a positive definite Jacobian, such as the
    Hessian at a minimum; NaN where that fails."""

    def conjugate_gradients(linear: Linear, rhs: Vector) -> Vector:
        operator = lineax.FunctionLinearOperator(
            linear, jax.eval_shape(lambda: rhs), lineax.positive_semidefinite_tag
        )
        found = lineax.linear_solve(operator, rhs, lineax.CG(rtol=1e-12, atol=1e-12), throw=False)
        return jnp.where(found.result == lineax.RESULTS.successful, found.value, jnp.nan)

    return lax.custom_linear_solve(linear, rhs, conjugate_gradients, symmetric=True)
