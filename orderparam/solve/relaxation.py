"""The rest point of a flow, by implicit Euler steps that grow into Newton steps."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PyTree

from orderparam.solve.implicit import dense, implicit_root
from orderparam.solve.solved import Solved

_LONGER = 2.0  # factor by which the time step grows or shrinks
# the step grows when the curvature of the field moves its end by less than this share of its length
_STRAIGHT = 0.5
# and it is undone and shortened when the curvature moves its end by more than this share
_BENT = 1.0


def rest_point(
    field: Callable[[PyTree, PyTree], PyTree],
    start: PyTree[Float[Array, "..."]],
    args: PyTree[Any] = None,
    *,
    first_step: float | Float[Array, ""] = 1.0,
    tolerance: float = 1e-14,
    max_steps: int = 200,
) -> Solved:
    """y with field(y, args) = 0 to which dy/dt = field(y, args) relaxes from `start`; residual:
    largest entry of |field|.

    Pseudo-transient continuation (Kelley and Keyes 1998): y <- y + (1/dt - J)^-1 field(y), J the
    Jacobian, dt from `first_step` on as long as the field is straight over a step. It follows the
    flow, so that it stays on course along nearly flat directions, where Newton's method fails, and
    ends as Newton's method. If the start is the state of a flow at time t, use first_step = t,
    because algebraic relaxation has the rate 1/t. From a start close to a saddle it converges to
    the saddle, which the flow would leave: check the eigenvalues of J.

    Stops when no entry of |field| exceeds `tolerance`. One Jacobian a step: for tens of unknowns.
    Derivatives with respect to `args` follow from the implicit function theorem, at a rest point
    that is isolated. Works under `vmap` and `jit`. Never raises: look at `converged`.
    """
    flat_start, restore = ravel_pytree(start)

    def flat(y: Array) -> Array:
        return ravel_pytree(field(restore(y), args))[0]

    def solve(velocity: Callable[[Array], Array], first: Array) -> tuple[Array, Array]:
        def step(state: tuple) -> tuple:
            y, speed, dt, count = state
            change = jnp.linalg.solve(jnp.eye(y.size) / dt - jax.jacfwd(velocity)(y), speed)
            trial = y + change
            trial_speed = velocity(trial)
            bend = jnp.max(jnp.abs(change - dt * trial_speed)) / jnp.max(jnp.abs(change))
            accepted = bend <= _BENT  # not where any entry is NaN
            dt = jnp.where(bend <= _STRAIGHT, _LONGER * dt, jnp.where(accepted, dt, dt / _LONGER))
            return (
                jnp.where(accepted, trial, y),
                jnp.where(accepted, trial_speed, speed),
                dt,
                count + 1,
            )

        def unfinished(state: tuple) -> Bool[Array, ""]:
            return (jnp.max(jnp.abs(state[1])) > tolerance) & (state[3] < max_steps)

        begin = (first, velocity(first), jnp.asarray(first_step, first.dtype), jnp.asarray(0))
        y, speed, _, count = lax.while_loop(unfinished, step, begin)
        return y, jnp.stack([jnp.max(jnp.abs(speed)), count.astype(y.dtype)])

    found, (residual, steps) = implicit_root(flat, flat_start, solve, dense)
    return Solved(restore(found), residual, residual <= tolerance, steps.astype(int))
