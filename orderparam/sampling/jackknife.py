"""Errors of derived quantities of correlated series: the scatter when one block is left out
(Quenouille 1956).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

BLOCKS = 8  # of a replica


def jackknife(
    function: Callable[[Float[Array, "moment"]], Float[Array, "observable"]],
    blocks: Float[Array, "block moment"],
) -> tuple[Float[Array, "observable"], Float[Array, "observable"]]:
    """function(mean over blocks) without its bias of order 1/blocks, and its standard error."""
    count = blocks.shape[0]
    without = jax.vmap(function)((jnp.sum(blocks, axis=0) - blocks) / (count - 1))
    mean = jnp.mean(without, axis=0)
    error = jnp.sqrt((count - 1) * jnp.mean((without - mean) ** 2, axis=0))
    return count * function(jnp.mean(blocks, axis=0)) - (count - 1) * mean, error


def blocked_jackknife(
    function: Callable[[Float[Array, "moment"]], Float[Array, "observable"]],
    moments: Float[Array, "replica sweep moment"],
) -> tuple[Float[Array, "observable"], Float[Array, "observable"]]:
    """`jackknife` over 8 blocks of every replica."""
    replicas, sweeps, kinds = moments.shape
    length = sweeps // BLOCKS
    kept = moments[:, sweeps - length * BLOCKS :]
    return jackknife(function, kept.reshape(replicas * BLOCKS, length, kinds).mean(axis=1))
