"""Derived quantities of correlated series, such as variances and ratios: their values without bias
(Quenouille 1956) and their errors.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.sampling.estimate import estimate

BLOCKS = 8  # number of blocks of a replica


def jackknife(
    function: Callable[[Float[Array, "moment"]], Float[Array, "observable"]],
    blocks: Float[Array, "block moment"],
) -> tuple[Float[Array, "observable"], Float[Array, "observable"]]:
    """The value of function(mean over blocks) without its bias of order 1/blocks, and its standard
    error."""
    count = blocks.shape[0]
    without = jax.vmap(function)((jnp.sum(blocks, axis=0) - blocks) / (count - 1))
    mean = jnp.mean(without, axis=0)
    error = jnp.sqrt((count - 1) * jnp.mean((without - mean) ** 2, axis=0))
    return count * function(jnp.mean(blocks, axis=0)) - (count - 1) * mean, error


def blocked_jackknife(
    function: Callable[[Float[Array, "moment"]], Float[Array, "observable"]],
    moments: Float[Array, "replica sweep moment"],
) -> tuple[Float[Array, "observable"], Float[Array, "observable"]]:
    """The value of `jackknife` over 8 blocks of every replica, and its standard error.

    To first order a derived quantity is the mean of its own series, gradient . moments. Its error
    follows from the effective sample size of that series (`estimate`). The scatter of 8 blocks of
    one replica would determine the error only to 25 %, and would be too small where the series is
    correlated over more than a block.
    """
    replicas, sweeps, kinds = moments.shape
    length = sweeps // BLOCKS
    kept = moments[:, sweeps - length * BLOCKS :]
    value, _ = jackknife(function, kept.reshape(replicas * BLOCKS, length, kinds).mean(axis=1))
    mean = jnp.mean(moments, axis=(0, 1))
    gradient = jax.jacfwd(function)(mean)
    return value, estimate((moments - mean) @ gradient.T).standard_error
