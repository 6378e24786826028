"""Labels the clusters of all replicas together: all sites at once, or one site after the other.

At once: every site points to a site of its cluster, takes the smallest label across its bonds,
passes it to the site to which it points, and follows pointers (pointer jumping). A few passes are
enough at any temperature.

One after the other: every site has a parent of its cluster with a smaller number, and the site that
is its own parent is the root (union and find). Loops over single entries become one piece of
compiled code only where they read and write by slices of length one and contain no branches.
"""

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


def each(count: int, visit: Callable[[Array, Labels], Labels], parents: Labels) -> Labels:
    """The parents after visit(0, .), ..., visit(count - 1, .)."""
    return jax.lax.fori_loop(jnp.int32(0), jnp.int32(count), visit, parents)


def entry(values: Array, site: Array) -> Array:
    """values[site], for a site of the lattice."""
    return jax.lax.dynamic_index_in_dim(values, site, keepdims=False)


def with_entry(values: Labels, value: Array, site: Array) -> Labels:
    """The values with another one at this site."""
    return jax.lax.dynamic_update_index_in_dim(values, value, site, 0)


def root(parents: Labels, site: Array) -> Array:
    """The root of the cluster of a site."""
    return jax.lax.while_loop(
        lambda site: entry(parents, site) != site, lambda site: entry(parents, site), site
    )


def joined_roots(parents: Labels, one: Array, other: Array) -> tuple[Labels, Array]:
    """The parents where the larger of two roots has the smaller one as its parent, and the smaller
    one."""
    low = jnp.minimum(one, other)
    return with_entry(parents, low, jnp.maximum(one, other)), low


def roots(parents: Labels) -> Labels:
    """The root of every site, where parents have smaller numbers."""

    def visit(site: Array, parents: Labels) -> Labels:
        return with_entry(parents, entry(parents, entry(parents, site)), site)

    return each(len(parents), visit, parents)


def cluster_sizes(labels: Int[Array, "*shape"]) -> Int[Array, "site"]:
    """The number of sites with each label, which is zero for most labels."""
    return jnp.zeros(labels.size, jnp.int32).at[labels.ravel()].add(1)
