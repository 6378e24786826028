"""Fixed points of a map of a few unknowns by Newton's method, with damped iterations where a Newton
step fails."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PyTree

from orderparam.solve.implicit import Vector, dense, implicit_root
from orderparam.solve.solved import Solved

_PLAIN_STEPS = 4  # number of damped iterations before the first Newton step
_ENOUGH = 0.7  # a Newton step must reduce the residual to this fraction, or it is undone


def newton_fixed_point(
    function: Callable[[PyTree, PyTree], PyTree],
    start: PyTree[Float[Array, "..."]],
    args: PyTree[Any] = None,
    *,
    damping: float = 0.3,
    tolerance: float = 1e-12,
    max_steps: int = 200,
) -> Solved:
    """The fixed point y = function(y, args): a few damped iterations, y <- damping * y + (1 -
    damping) * function(y, args), then Newton steps.

    A Newton step that does not shorten the residual, or leads where the function is not a number,
    is undone and replaced by a damped iteration. Stops when every entry of |function(y, args) - y|,
    of which `residual` is the largest, is below tolerance * (1 + |y|). Needs one Jacobian a step:
    meant for tens of unknowns; `fixed_point` needs none. Derivatives of every order with respect to
    `args` follow from the implicit function theorem. Works under `vmap` and `jit`. Never raises:
    look at `converged`.
    """
    flat_start, restore = ravel_pytree(start)

    def flat(y: Vector, args: PyTree) -> Vector:
        return ravel_pytree(function(restore(y), args))[0]

    def size(y: Vector, change: Vector) -> Float[Array, ""]:
        largest = jnp.max(jnp.abs(change) / (1 + jnp.abs(y)))
        return jnp.where(jnp.isfinite(largest), largest, jnp.inf)

    def solve(residual: Callable[[Vector], Vector], first: Vector) -> tuple[Vector, Array]:
        def value_and_slopes(y: Vector) -> tuple[Vector, Float[Array, "unknown unknown"]]:
            value, push = jax.linearize(residual, y)
            # columns one after another: the function may be large, the unknowns are few
            return value, lax.map(push, jnp.eye(y.size)).T

        def step(state: tuple) -> tuple:
            trial, plain, base, change, reached, count = state
            trial_change, slopes = value_and_slopes(trial)
            trial_reached = size(trial, trial_change)
            accepted = (plain & jnp.isfinite(trial_reached)) | (trial_reached < _ENOUGH * reached)
            base, change = (
                jnp.where(accepted, trial, base),
                jnp.where(accepted, trial_change, change),
            )
            reached = jnp.where(accepted, trial_reached, reached)
            newton = trial - jnp.linalg.solve(slopes, trial_change)
            use_newton = accepted & (count >= _PLAIN_STEPS)
            following = jnp.where(use_newton, newton, base + (1 - damping) * change)
            return following, ~use_newton, base, change, reached, count + 1

        def unfinished(state: tuple) -> Bool[Array, ""]:
            return (state[4] > tolerance) & (state[5] < max_steps)

        infinity = jnp.asarray(jnp.inf)
        initial = (first, jnp.asarray(True), first, jnp.zeros_like(first), infinity, jnp.asarray(0))
        _, _, base, change, reached, count = lax.while_loop(unfinished, step, initial)
        return base, jnp.stack([jnp.max(jnp.abs(change)), reached, count.astype(float)])

    found, (residual, reached, steps) = implicit_root(
        lambda y: flat(y, args) - y, flat_start, solve, dense
    )
    return Solved(restore(found), residual, reached <= tolerance, steps.astype(int))


def largest_fixed_point(
    function: Callable[[Float[Array, ""], PyTree], Float[Array, ""]],
    start: Float[Array, ""],
    args: PyTree[Any] = None,
    *,
    max_steps: int = 400,
) -> Solved:
    """The largest y in [0, start] with y = function(y, args), for an increasing function that is
    concave at and above it, with 0 = function(0, args) and function(start, args) <= start: order
    parameters of ferromagnets.

    Newton steps converge to it monotonically from above, and end where they only change y by
    rounding, also at a critical point, where slope and curvature of function(y) - y vanish. There y
    is as accurate as `function`, which should have a small relative error at small y. Where the
    slope of function(y) - y is not negative, which happens where there is no fixed point above 0, a
    plain iteration replaces the Newton step. residual: |function(y) - y|. Derivatives with respect
    to `args` follow from the implicit function theorem. Never raises: look at `converged`.
    """
    eps = jnp.finfo(jnp.float64).eps

    def solve(
        change: Callable, first: Float[Array, ""]
    ) -> tuple[Float[Array, ""], Float[Array, "2"]]:
        def step(state: tuple) -> tuple:
            y, _, count = state
            down, slope = jax.jvp(change, (y,), (jnp.ones_like(y),))
            # A tangent never leads past a root above 0.
            following = jnp.maximum(y - down / jnp.where(slope < 0, slope, -1.0), 0.0)
            following = jnp.where(following < jnp.finfo(jnp.float64).tiny, 0.0, following)
            done = ~(down < 0) | (y - following <= 2 * eps * y)
            return jnp.where(done, y, following), done, count + 1

        def unfinished(state: tuple) -> Bool[Array, ""]:
            return ~state[1] & (state[2] < max_steps)

        y, done, count = lax.while_loop(
            unfinished, step, (first, jnp.asarray(False), jnp.asarray(0))
        )
        return y, jnp.stack([done.astype(float), count.astype(float)])

    def change(y: Float[Array, ""]) -> Float[Array, ""]:
        return function(y, args) - y

    start = jnp.asarray(start, jnp.float64)
    found, (done, count) = implicit_root(
        change, start, solve, lambda linear, y: y / linear(jnp.ones_like(y))
    )
    residual = jnp.abs(lax.stop_gradient(change(found)))
    return Solved(found, residual, (done > 0) & jnp.isfinite(residual), count.astype(int))
