"""The root of a decreasing function of one variable, by bracketed Newton steps, with implicit
derivatives."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree

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
    ) -> tuple[Float[Array, ""], tuple[Array, Array, Array]]:
        def step(state: tuple) -> tuple:
            """Value and slope at u, and the next point; at the end value and slope alone, so that
            the function stands in the program once."""
            low, high, u, last, count, *_ = state
            unfinished = (last > tolerance(u)) & (high - low > tolerance(u)) & (count < _MAX_STEPS)
            value, slope = jax.jvp(function, (u,), (jnp.ones_like(u),))
            nearer = jnp.where(value > 0, u, low), jnp.where(value > 0, high, u)
            newton = -value / slope
            target = u + newton
            trusted = (target > nearer[0]) & (target < nearer[1]) & (2 * jnp.abs(newton) <= last)
            # A finished Newton iteration lies on one end of its bracket: its last step is below
            # rounding and must be accepted. So must a short step that no longer shrinks, because it
            # is the rounding error of the function.
            short = jnp.abs(newton) / tolerance(u)
            done = (short <= 1) | (short <= _ROUNDING) & (2 * jnp.abs(newton) > last)
            new = jnp.where(trusted | done, jnp.clip(target, *nearer), 0.5 * sum(nearer))
            moved = (*nearer, new, jnp.where(done, 0.0, jnp.abs(new - u)), count + 1)
            moved = tuple(jnp.where(unfinished, *both) for both in zip(moved, state))
            return *moved, value, slope, unfinished

        nothing = jnp.zeros_like(guess)
        begin = (lower, upper, guess, upper - lower + 1.0, jnp.asarray(0), nothing, nothing)
        *_, found, _, count, value, slope, _ = lax.while_loop(
            lambda state: state[-1], step, (*begin, jnp.asarray(True))
        )
        return found, (value, slope, count)

    def at(u: Float[Array, ""]) -> Float[Array, ""]:
        return jnp.asarray(function(u, args), jnp.float64)

    root, (value, slope, steps) = implicit_root(
        at, 0.5 * (lower + upper), solve, lambda linear, y: y / linear(jnp.ones_like(y))
    )
    size = jnp.maximum(jnp.abs(lax.stop_gradient(root)), 1.0)
    close = jnp.abs(value / slope) <= _ACCURACY * size
    return Solved(root, jnp.abs(value), close, steps)
