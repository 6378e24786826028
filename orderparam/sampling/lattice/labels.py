"""Labels the clusters of all replicas together. Every site points to a site of its cluster, takes
the smallest label across its bonds, passes it to the site to which it points, and follows pointers
(pointer jumping). A few passes are enough at any temperature."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

Labels = Int[Array, "site"]


def smallest_labels(seen: Callable[[Labels], Labels], count: int) -> Labels:
    """The label of each of `count` sites: the smallest number of a site in its cluster.
    seen(labels) is the smallest label of a site and of its bonded neighbours."""

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
    """The number of sites with each label, which is zero for most labels."""
    return jnp.zeros(labels.size, jnp.int32).at[labels.ravel()].add(1)
