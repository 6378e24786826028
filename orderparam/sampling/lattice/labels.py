"""Clusters of all replicas labelled together: every site points to a site of its cluster, takes the
smallest label that it sees across a bond, hands it to the site it points to, and follows pointers
(pointer jumping): a few passes at any temperature."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

Labels = Int[Array, "site"]


def smallest_labels(seen: Callable[[Labels], Labels], count: int) -> Labels:
    """The smallest number of a site of the cluster, for each of `count` sites; seen(labels) is the
    smallest label of a site and of its bonded neighbours."""

    def spread(state: tuple[Labels, Labels]) -> tuple[Labels, Labels]:
        labels, near = state
        pointers = jnp.minimum(labels.at[labels].min(near, mode="promise_in_bounds"), near)
        for _ in range(2):
            pointers = pointers.at[pointers].get(mode="promise_in_bounds")
        return pointers, seen(pointers)

    start = jnp.arange(count, dtype=jnp.int32)
    return jax.lax.while_loop(
        lambda state: jnp.any(state[0] != state[1]), spread, (start, seen(start))
    )[0]


def cluster_sizes(labels: Int[Array, "*shape"]) -> Int[Array, "site"]:
    """The number of sites that carry each label; zero for most."""
    return jnp.zeros(labels.size, jnp.int32).at[labels.ravel()].add(1)
