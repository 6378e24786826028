"""Fixed points of a map of a few unknowns by Broyden's method: no Jacobian is needed, and a few
steps replace tens of plain iterations."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import sequential_vmap
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PyTree

from orderparam.solve.implicit import Vector, dense, implicit_root
from orderparam.solve.solved import Solved

_PLAIN_STEPS = 3  # number of damped iterations before the first secant step
_WORSE = 10.0  # a step that increases the residual above this factor is undone


def secant_fixed_point(
    function: Callable[[PyTree, PyTree], PyTree],
    start: PyTree[Float[Array, "..."]],
    args: PyTree[Any] = None,
    *,
    damping: float = 0.0,
    tolerance: float = 1e-12,
    max_steps: int = 1000,
    sequential: bool = False,
) -> Solved:
    """y = function(y, args). A few damped iterations, y <- damping * y + (1 - damping) *
    function(y, args), then steps with an approximate Jacobian that every step updates (Broyden
    1965).

    A step that increases the residual |function(y, args) - y| strongly, or leads to a y where the
    function is not a number, is undone, and damped iterations begin again from the best y. Stops
    when every entry of the residual is below tolerance * (1 + |y|); `residual` is the largest.
    Derivatives with respect to `args` follow from the implicit function theorem.
    sequential: under `vmap`, iterate one point after the other, so that a converged point costs
    nothing. Never raises: look at `converged`.
    """
    flat_start, restore = ravel_pytree(start)

    def change(y: Vector, args: PyTree) -> Vector:
        return ravel_pytree(function(restore(y), args))[0] - y

    def size(y: Vector, residual: Vector) -> Float[Array, ""]:
        largest = jnp.max(jnp.abs(residual) / (1 + jnp.abs(y)))
        return jnp.where(jnp.isfinite(largest), largest, jnp.inf)

    def solve(_: Callable, first: Vector) -> tuple[Vector, Float[Array, "3"]]:
        plain = (1 - damping) * jnp.eye(first.size)  # y <- y + inverse @ residual

        def iterated(
            first: Vector, plain: Array, args: PyTree, *closed: Array
        ) -> tuple[Vector, Array]:
            def step(state: tuple) -> tuple:
                y, residual, reached, inverse, count, since = state
                move = inverse @ residual
                trial = y + move
                found = pure(trial, args, *closed)
                attained = size(trial, found)
                accepted = jnp.isfinite(attained) & (
                    (attained < _WORSE * reached) | (since < _PLAIN_STEPS)
                )
                # The inverse maps the change of the residual, with its sign turned, to the move.
                turned = residual - found
                image = inverse @ turned
                along = move @ inverse
                scale = along @ turned
                usable = jnp.isfinite(scale) & (scale != 0) & (since >= _PLAIN_STEPS - 1)
                corrected = inverse + jnp.where(
                    usable, jnp.outer(move - image, along) / jnp.where(usable, scale, 1.0), 0.0
                )
                # undone: half a damped step from the previous y
                restarted = jnp.where(since < _PLAIN_STEPS, inverse / 2, plain)
                return (
                    jnp.where(accepted, trial, y),
                    jnp.where(accepted, found, residual),
                    jnp.where(accepted, attained, reached),
                    jnp.where(accepted, corrected, restarted),
                    count + 1,
                    jnp.where(accepted, since + 1, 0),
                )

            def unfinished(state: tuple) -> Bool[Array, ""]:
                return (state[2] > tolerance) & (state[4] < max_steps)

            begin = pure(first, args, *closed)
            none = jnp.asarray(0)
            initial = (first, begin, size(first, begin), plain, none, none)
            y, left, reached, _, count, _ = lax.while_loop(unfinished, step, initial)
            return y, jnp.stack([jnp.max(jnp.abs(left)), reached, count.astype(float)])

        # arrays that the function closes over must become arguments, so that they are split as well
        pure, closed = jax.closure_convert(change, first, args) if sequential else (change, [])
        return (sequential_vmap(iterated) if sequential else iterated)(first, plain, args, *closed)

    found, (residual, reached, steps) = implicit_root(
        lambda y: change(y, args), flat_start, solve, dense
    )
    return Solved(restore(found), residual, reached <= tolerance, steps.astype(int))
