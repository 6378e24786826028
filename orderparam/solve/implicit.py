"""Derivatives of the root of an equation from the implicit function theorem, independent of the
method that found the root."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
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
    linearised function: for vectors `dense` or `symmetric`. Works under `vmap`.
    """
    # `function` is traced once, here, and linearised once for a derivative: a root inside a root
    # would otherwise be compiled as often as the product of the uses at each level.
    start = lax.stop_gradient(start)
    once = eqx.filter_closure_convert(function, start)
    solver = eqx.filter_closure_convert(lambda first: solve(once, first), start)
    found, numbers = _solved(once, solver, start, tangent)
    return found, lax.stop_gradient(numbers)


@eqx.filter_custom_jvp
def _solved(
    function: Callable[[PyTree], PyTree],
    solver: Callable[[PyTree], tuple[PyTree, Any]],
    start: PyTree,
    tangent: Callable[[Callable[[PyTree], PyTree], PyTree], PyTree],
) -> tuple[PyTree, Any]:
    """The root and the numbers. The arrays that functions close over are their leaves."""
    return solver(start)


@_solved.def_jvp
def _implicit(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    """The derivative of the root is -(df/du)^{-1} (df/dargs)."""
    function, _, _, tangent = primals
    found, numbers = _solved(*primals)
    change = tangents[0]
    here, fixed = eqx.partition(
        function, jax.tree.map(lambda one: one is not None, change, is_leaf=lambda one: one is None)
    )

    def value(u: PyTree, here: PyTree) -> PyTree:
        return eqx.combine(here, fixed)(u)

    _, linear = jax.linearize(value, found, here)
    moved = linear(jax.tree.map(jnp.zeros_like, found), change)
    still = jax.tree.map(jnp.zeros_like, here)
    slope = tangent(lambda u: linear(u, still), moved)
    return (found, numbers), (
        jax.tree.map(jnp.negative, slope),
        jax.tree.map(lambda _: None, numbers),
    )


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
