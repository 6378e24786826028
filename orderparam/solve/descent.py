"""Minima of a function of many unknowns, by L-BFGS."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

TOLERANCE = 1e-8
_MAX_STEPS = 600

Unknowns = Float[Array, "unknown"]


def descend(
    value: Callable[[Unknowns], Float[Array, ""]], start: Unknowns
) -> tuple[Unknowns, Float[Array, ""], Float[Array, ""]]:
    """The minimum next to `start`, the value there, and the largest entry of the gradient: below 1e-8 where it was found.

    The unknowns and the curvature should be of order one. Works under `vmap`; never raises.
    """
    optimiser = optax.lbfgs(memory_size=20)
    value_and_gradient = optax.value_and_grad_from_state(value)

    def step(carry: tuple) -> tuple:
        unknowns, state, count, _ = carry
        reached, gradient = value_and_gradient(unknowns, state=state)
        updates, state = optimiser.update(gradient, state, unknowns, value=reached, grad=gradient, value_fn=value)
        return optax.apply_updates(unknowns, updates), state, count + 1, jnp.max(jnp.abs(optax.tree.get(state, "grad")))

    def unfinished(carry: tuple) -> Array:
        *_, count, size = carry
        return (size > TOLERANCE / 10) & (count < _MAX_STEPS)

    found, *_ = jax.lax.while_loop(unfinished, step, (start, optimiser.init(start), 0, jnp.asarray(jnp.inf)))
    action, gradient = jax.value_and_grad(value)(found)
    return found, action, jnp.max(jnp.abs(gradient))
