"""Runs a stochastic process over a long logarithmic grid of times without storing its
trajectory."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree


def record(
    advance: Callable[[PyTree, Array, Int[Array, ""]], PyTree],
    observe: Callable[[PyTree], PyTree],
    state: PyTree[Array],
    key: Array,
    steps: Int[Array, "record"],
    block: int,
) -> PyTree[Array]:
    """Stacked values of observe(state) after each of the increasing numbers of `steps`.

    advance(state, key, count) takes the first `count` of at most `block` steps. Keys are folded in
    with the block's number, so that memory is that of one block whatever the length of the run.
    """

    def segment(carry: tuple, count: Array) -> tuple:
        def one(i: Array, carry: tuple) -> tuple:
            state, blocks = carry
            now = jnp.minimum(block, count - i * block)
            return advance(state, jax.random.fold_in(key, blocks), now), blocks + 1

        carry = jax.lax.fori_loop(0, (count + block - 1) // block, one, carry)
        return carry, observe(carry[0])

    lengths = jnp.diff(steps, prepend=0)
    return jax.lax.scan(segment, (state, jnp.zeros((), jnp.int64)), lengths)[1]


def geometric_steps(
    first: Float[Array, ""] | float,
    last: Float[Array, ""] | float,
    records: int,
    per_time: Float[Array, ""] | float,
) -> Float[Array, "record"]:
    """Whole numbers of steps, with `per_time` steps in a unit of time, at times evenly spaced in
    their logarithm from `first` to `last`."""
    logs = jnp.linspace(
        jnp.log(jnp.asarray(first, jnp.float64)), jnp.log(jnp.asarray(last, jnp.float64)), records
    )
    return jnp.round(jnp.exp(logs) * per_time)
