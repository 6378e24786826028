"""The root of a decreasing function of one variable, by bracketed Newton steps, with implicit
derivatives."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, PyTree

from orderparam.solve.implicit import implicit_root
from orderparam.solve.solved import Solved

# Bisection alone needs about 62 halvings from the widest bracket of a float64 logarithm (1400) down
# to rounding.
_MAX_STEPS = 128

_ROUNDING = 4  # fraction of the tolerance: steps of this length may be noise
# largest last Newton step of a root, in units of max(1, |u|)
_ACCURACY = 1e-9


def decreasing_root(
    function: Callable[[Float[Array, ""], PyTree], Float[Array, ""]],
    lower: Float[Array, ""],
    upper: Float[Array, ""],
    args: PyTree[Any] = None,
) -> Solved:
    """The u in [lower, upper] with function(u, args) = 0, for a function that decreases through
    zero there; residual: |function|.

    Newton's method; a step that leaves the bracket, or that is not at least twice as short as the
    one before, is replaced by halving the bracket ("rtsafe": Press, Teukolsky, Vetterling and
    Flannery, Numerical Recipes, section 9.4). For a positive unknown of unknown magnitude let u be
    its logarithm: the accuracy is then relative.

    Works under `vmap` and `jit`. Derivatives of every order with respect to `args` follow from the
    implicit function theorem, du = -(df/dargs) / (df/du), whatever the number of steps; those with
    respect to the bracket are zero.

    `converged` is False when the function or the bracket is not a number, when the sign does not
    change in the bracket, or when the function is so flat that rounding leaves the root uncertain
    by more than 1e-9.
    """
    lower, upper = (lax.stop_gradient(jnp.asarray(end, jnp.float64)) for end in (lower, upper))
    eps = jnp.finfo(jnp.float64).eps

    def tolerance(u: Float[Array, ""]) -> Float[Array, ""]:
        return 2 * eps * jnp.maximum(jnp.abs(u), 1.0)

    def solve(
        function: Callable, guess: Float[Array, ""]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        def step(state: tuple) -> tuple:
            low, high, u, last, count = state
            value, slope = jax.jvp(function, (u,), (jnp.ones_like(u),))
            low, high = jnp.where(value > 0, u, low), jnp.where(value > 0, high, u)
            newton = -value / slope
            target = u + newton
            trusted = (target > low) & (target < high) & (2 * jnp.abs(newton) <= last)
            # A finished Newton iteration lies on one end of its bracket: its last step is below
            # rounding and must be accepted. So must a short step that no longer shrinks, because it
            # is the rounding error of the function.
            short = jnp.abs(newton) / tolerance(u)
            done = (short <= 1) | (short <= _ROUNDING) & (2 * jnp.abs(newton) > last)
            new = jnp.where(trusted | done, jnp.clip(target, low, high), 0.5 * (low + high))
            return low, high, new, jnp.where(done, 0.0, jnp.abs(new - u)), count + 1

        def unfinished(state: tuple) -> Bool[Array, ""]:
            low, high, u, last, count = state
            return (last > tolerance(u)) & (high - low > tolerance(u)) & (count < _MAX_STEPS)

        _, _, found, _, count = lax.while_loop(
            unfinished, step, (lower, upper, guess, upper - lower + 1.0, jnp.asarray(0))
        )
        return found, count.astype(float)

    def at(u: Float[Array, ""]) -> Float[Array, ""]:
        return function(u, args)

    root, steps = implicit_root(
        at, 0.5 * (lower + upper), solve, lambda linear, y: y / linear(jnp.ones_like(y))
    )
    value, slope = lax.stop_gradient(
        jax.jvp(at, (lax.stop_gradient(root),), (jnp.ones_like(root),))
    )
    close = jnp.abs(value / slope) <= _ACCURACY * jnp.maximum(jnp.abs(root), 1.0)
    return Solved(root, jnp.abs(value), close, steps.astype(int))
