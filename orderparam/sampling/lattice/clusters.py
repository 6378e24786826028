"""Swendsen-Wang and Wolff: clusters of equal spins joined by random bonds are flipped together."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int8

from orderparam.sampling.lattice.labels import (
    Labels,
    each,
    entry,
    joined_roots,
    root,
    roots,
    smallest_labels,
    with_entry,
)
from orderparam.sampling.lattice.random_words import Counter, below, random_words

Spins = Int8[Array, "replica *shape"]


def random_bonds(
    words: Counter, spins: Spins, temperature: Float[Array, ""]
) -> tuple[Counter, Bool[Array, "direction replica *shape"]]:
    """Bonds between each site and the next in each direction: present with probability 1 -
    exp(-2/T) where the spins are equal."""
    equal = jnp.stack([spins == jnp.roll(spins, -1, axis) for axis in range(1, spins.ndim)])
    words, drawn = random_words(words, equal.size)
    return words, equal & below(drawn, -jnp.expm1(-2 / temperature)).reshape(equal.shape)


@jax.custom_batching.sequential_vmap
def cluster_labels(bonds: Bool[Array, "direction replica *shape"]) -> Int[Array, "replica *shape"]:
    """The label of every site: the smallest number of a site in its cluster, with sites numbered
    through all replicas."""
    # One after the other is three times faster on a core, and hopeless on an accelerator.
    return jax.lax.platform_dependent(bonds, cpu=_joined_one_by_one, default=_joined_together)


def _joined_together(bonds: Bool[Array, "direction replica *shape"]) -> Array:
    shape = bonds.shape[1:]

    def seen(flat: Labels) -> Labels:
        labels = flat.reshape(shape)
        smallest = labels
        for axis, bond in enumerate(bonds, start=1):
            smallest = jnp.minimum(smallest, jnp.where(bond, jnp.roll(labels, -1, axis), labels))
            smallest = jnp.minimum(
                smallest, jnp.where(jnp.roll(bond, 1, axis), jnp.roll(labels, 1, axis), labels)
            )
        return smallest.ravel()

    return smallest_labels(seen, int(np.prod(shape))).reshape(shape)


def _joined_one_by_one(bonds: Bool[Array, "direction replica *shape"]) -> Array:
    """Hoshen and Kopelman (1976): sites are visited in order, and each is joined to the clusters of
    its neighbours that were visited before; bonds around the lattice come last."""
    shape = bonds.shape[1:]
    lengths, count = shape[1:], int(np.prod(shape))
    steps = [int(np.prod(shape[axis + 1 :])) for axis in range(1, len(shape))]
    # bit k of a site: whether it is joined to the site before it in direction k
    joined = jnp.zeros(shape, jnp.uint8)
    for k, bond in enumerate(bonds):
        inside = jnp.arange(lengths[k]).reshape(-1, *(1,) * (len(lengths) - 1 - k)) > 0
        joined |= (jnp.roll(bond, 1, k + 1) & inside).astype(jnp.uint8) << k
    code = jax.lax.optimization_barrier(joined.ravel())

    def visit(site: Array, parents: Labels) -> Labels:
        bits = entry(code, site).astype(jnp.int32)
        label = site
        for k, step in enumerate(steps):
            # most parents of neighbours are roots: the loop that looks for one seldom turns
            near = entry(parents, site - ((bits >> k) & 1) * step)
            other = root(parents, near)
            parents, label = joined_roots(parents, label, other)
        return with_entry(parents, label, site)

    parents = each(count, visit, jnp.arange(count, dtype=jnp.int32))
    for k, (step, length) in enumerate(zip(steps, lengths)):
        last = jax.lax.slice_in_dim(bonds[k], length - 1, length, axis=k + 1)
        around = jax.lax.optimization_barrier(last.ravel())

        def wrap(number: Array, parents: Labels, step=step, length=length, around=around) -> Labels:
            one = number // step * (step * length) + number % step
            far = jnp.where(entry(around, number), (length - 1) * step, 0)
            return joined_roots(parents, root(parents, one), root(parents, one + far))[0]

        parents = each(count // length, wrap, parents)
    return roots(parents).reshape(shape)


def swendsen_wang_flip(
    words: Counter,
    labels: Int[Array, "replica *shape"],
    sizes: Int[Array, "site"],
    pull: Float[Array, ""],
) -> tuple[Counter, Spins]:
    """One Swendsen-Wang update: every cluster of n_c spins is up with probability 1/(1 + exp(-2 h
    n_c/T)), pull = h/T (Swendsen, Wang 1987), which is 1/2 without a field."""
    words, drawn = random_words(words, sizes.size)
    spins = jnp.where(below(drawn, jax.nn.sigmoid(2 * pull * sizes)), 1, -1).astype(jnp.int8)
    return words, spins[labels]


def wolff_flip(
    words: Counter, spins: Spins, labels: Int[Array, "replica *shape"]
) -> tuple[Counter, Spins]:
    """One Wolff update: the cluster of one random site of each replica is flipped (Wolff 1989);
    only without a field."""
    rows = labels.reshape(len(labels), -1)
    words, drawn = random_words(words, len(rows))
    chosen = (drawn % np.uint64(rows.shape[1])).astype(jnp.int32)
    turned = rows == jnp.take_along_axis(rows, chosen[:, None], axis=1)
    return words, jnp.where(turned.reshape(spins.shape), -spins, spins)
