"""Swendsen-Wang and Wolff: clusters of equal spins joined by random bonds are flipped together."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int8

from orderparam.sampling.lattice.labels import Labels, smallest_labels
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


def cluster_labels(bonds: Bool[Array, "direction replica *shape"]) -> Int[Array, "replica *shape"]:
    """The label of every site: the number of one site of its cluster, with sites numbered through
    all replicas."""
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
