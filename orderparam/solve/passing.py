"""The iteration that all message-passing algorithms share: damped steps until the estimate comes to
rest."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

_PARTS = 4  # parts of the iteration, each damped more than the one before


class Iterated(NamedTuple):
    """The end of the iteration.

    Fields:
        state: the last state, whose first part is the estimate.
        steps: number of steps.
        residual: root mean square change of the estimate in the last step, before damping.
    """

    state: Any
    steps: Int[Array, ""]
    residual: Float[Array, ""]


def pass_messages(
    step: Callable[[Any], Any],
    start: Any,
    *,
    tolerance: Float[Array, ""],
    max_steps: int,
    damping: Callable[[Int[Array, ""]], Float[Array, ""]] | None = None,
    is_uncertain: Callable[[Any], Bool[Array, ""]] | None = None,
    least_steps: int = 0,
) -> Iterated:
    """Runs message passing until the estimate changes by at most `tolerance`.

    Damping mixes all parts of the state with their values before the step: a linearised map M
    becomes (1 - eta) M + eta, which has the same fixed points and whose oscillations decay. If a
    part were mixed before another one is computed from it, new fixed points would appear, because
    an example would no longer subtract its own previous contribution.

    Args:
        step: function state -> new state, without damping.
        start: first state, a tuple of arrays; its first part is the estimate.
        tolerance: root mean square change of the estimate, before damping, at which to stop.
        max_steps: largest number of steps.
        damping: share of the state that is kept as a function of the number of steps before; None
            for no damping.
        is_uncertain: function of the state that is true as long as anything is left to be learned;
            the iteration ends where it is false.
        least_steps: number of steps before which the iteration does not end.

    >>> found = pass_messages(
    ...     lambda state: (state[0] / 2,), (jnp.ones(3),), tolerance=1e-3, max_steps=99
    ... )
    >>> int(found.steps), float(found.residual)
    (10, 0.0009765625)
    """

    def advance(carry: tuple) -> tuple:
        old, count, _ = carry
        new = step(old)
        change = jnp.sqrt(jnp.mean((new[0] - old[0]) ** 2))
        if damping is not None:
            kept = damping(count).astype(old[0].dtype)
            new = jax.tree.map(lambda before, after: kept * before + (1 - kept) * after, old, new)
        return new, count + 1, change

    def unfinished(carry: tuple) -> Bool[Array, ""]:
        state, count, change = carry
        goes_on = (count < max_steps) & ((count < least_steps) | (change > tolerance))
        return goes_on if is_uncertain is None else goes_on & is_uncertain(state)

    begin = (start, jnp.asarray(0), jnp.asarray(jnp.inf, start[0].dtype))
    return Iterated(*jax.lax.while_loop(unfinished, advance, begin))


def growing_damping(
    damping: Float[Array, ""], max_steps: int
) -> Callable[[Int[Array, ""]], Float[Array, ""]]:
    """Damping that grows along the iteration, for runs that oscillate however long they run:
    damping^(1/k) in the k-th quarter of `max_steps`.

    >>> kept = growing_damping(jnp.asarray(0.25), 100)
    >>> float(kept(jnp.asarray(0))), float(kept(jnp.asarray(30)))
    (0.25, 0.5)
    """
    return lambda count: damping ** (1 / (1 + _PARTS * count // max_steps))
