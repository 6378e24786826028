"""Swendsen-Wang and Wolff: clusters of equal spins joined by random bonds are found and turned as a whole.

All clusters of all replicas are labelled together: every site points to a site of its cluster, takes the smallest label that it
sees across a bond, hands it to the site it points to, and follows pointers (pointer jumping): a few passes at any temperature.
"""

from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int8, PRNGKeyArray

from orderparam.systems.spins.measurement import Series

Method = Literal["swendsen-wang", "wolff"]
Spins = Int8[Array, "replica *shape"]


@partial(jax.jit, static_argnames=("shape", "method", "replicas", "warmup", "sweeps"))
def cluster_series(
    temperature: Float[Array, ""],
    field: Float[Array, ""],
    key: PRNGKeyArray,
    shape: tuple[int, ...],
    method: Method,
    replicas: int,
    warmup: int,
    sweeps: int,
) -> Series:
    """Series of independent replicas that start with all spins up.

    Without a field m^2 and m^4 are averaged over the signs of the clusters (improved estimators, Wolff 1988): sum_c n_c^2 and
    3 (sum_c n_c^2)^2 - 2 sum_c n_c^4, with n_c the share of all spins.
    """
    n = int(np.prod(shape))
    sites = tuple(range(1, 1 + len(shape)))

    def sweep(spins: Spins, key: PRNGKeyArray) -> tuple[Spins, Array]:
        bond_key, flip_key = jax.random.split(key)
        labels = cluster_labels(random_bonds(spins, temperature, bond_key))
        sizes = cluster_sizes(labels)
        spins = (wolff_flip if method == "wolff" else swendsen_wang_flip)(spins, labels, sizes, field / temperature, flip_key)
        energy = -sum(jnp.sum(spins * jnp.roll(spins, -1, axis), axis=sites, dtype=jnp.int32) for axis in sites) / n
        m = jnp.sum(spins, axis=sites, dtype=jnp.int32) / n
        squares, fourths = (jnp.sum((sizes.reshape(replicas, n) / n) ** power, axis=1) for power in (2, 4))
        second = jnp.where(field == 0, squares, m**2)
        fourth = jnp.where(field == 0, 3 * squares**2 - 2 * fourths, m**4)
        return spins, jnp.stack([energy - field * m, m, jnp.abs(m), second, fourth])

    start = jnp.ones((replicas, *shape), jnp.int8)
    _, kept = jax.lax.scan(sweep, start, jax.random.split(key, warmup + sweeps))
    return Series(*jnp.moveaxis(kept[warmup:], (0, 1, 2), (2, 0, 1)))


@partial(jax.jit, static_argnames=("shape", "sweeps"))
def last_configuration(
    temperature: Float[Array, ""], field: Float[Array, ""], key: PRNGKeyArray, shape: tuple[int, ...], sweeps: int
) -> Int8[Array, "*shape"]:
    """The spins after so many sweeps of Swendsen and Wang from random ones."""
    start_key, run_key = jax.random.split(key)

    def sweep(spins: Spins, key: PRNGKeyArray) -> tuple[Spins, None]:
        bond_key, flip_key = jax.random.split(key)
        labels = cluster_labels(random_bonds(spins, temperature, bond_key))
        return swendsen_wang_flip(spins, labels, cluster_sizes(labels), field / temperature, flip_key), None

    start = jax.random.rademacher(start_key, (1, *shape), jnp.int8)
    return jax.lax.scan(sweep, start, jax.random.split(run_key, sweeps))[0][0]


def random_bonds(spins: Spins, temperature: Float[Array, ""], key: PRNGKeyArray) -> Bool[Array, "direction replica *shape"]:
    """Whether each site is bonded to the next in each direction: with probability 1 - exp(-2/T) where their spins are equal."""
    equal = jnp.stack([spins == jnp.roll(spins, -1, axis) for axis in range(1, spins.ndim)])
    level = jnp.clip(-jnp.expm1(-2 / temperature) * 2.0**32, 0, 2.0**32 - 1).astype(jnp.uint32)
    return equal & (jax.random.bits(key, equal.shape, jnp.uint32) < level)


def cluster_labels(bonds: Bool[Array, "direction replica *shape"]) -> Int[Array, "replica *shape"]:
    """The number of one of its sites, the same for all sites of a cluster; sites are numbered through all replicas."""
    shape = bonds.shape[1:]

    def smallest_seen(labels: Array) -> Array:
        seen = labels
        for axis, bond in enumerate(bonds, start=1):
            seen = jnp.minimum(seen, jnp.where(bond, jnp.roll(labels, -1, axis), labels))
            seen = jnp.minimum(seen, jnp.where(jnp.roll(bond, 1, axis), jnp.roll(labels, 1, axis), labels))
        return seen

    def spread(state: tuple[Array, Array]) -> tuple[Array, Array]:
        labels, seen = state
        pointers = labels.ravel().at[labels.ravel()].min(seen.ravel())
        pointers = jnp.minimum(pointers, seen.ravel())
        labels = pointers[pointers[pointers]].reshape(shape)
        return labels, smallest_seen(labels)

    start = jnp.arange(int(np.prod(shape)), dtype=jnp.int32).reshape(shape)
    return jax.lax.while_loop(lambda state: jnp.any(state[0] != state[1]), spread, (start, smallest_seen(start)))[0]


def cluster_sizes(labels: Int[Array, "replica *shape"]) -> Int[Array, "site"]:
    """The number of sites that carry each label; zero for most."""
    return jnp.zeros(labels.size, jnp.int32).at[labels.ravel()].add(1)


def swendsen_wang_flip(
    spins: Spins, labels: Int[Array, "replica *shape"], sizes: Int[Array, "site"], pull: Float[Array, ""], key: PRNGKeyArray
) -> Spins:
    """Every cluster is up with probability 1/(1 + exp(-2 h n_c/T)), pull = h/T (Swendsen, Wang 1987; a coin without a field)."""
    up = jax.random.uniform(key, sizes.shape, jnp.float32) < jax.nn.sigmoid(2 * pull * sizes)
    return jnp.where(up[labels], 1, -1).astype(jnp.int8)


def wolff_flip(
    spins: Spins, labels: Int[Array, "replica *shape"], sizes: Int[Array, "site"], pull: Float[Array, ""], key: PRNGKeyArray
) -> Spins:
    """The cluster of one random site of each replica is turned (Wolff 1989); only without a field."""
    rows = labels.reshape(len(labels), -1)
    chosen = jax.random.randint(key, (len(rows), 1), 0, rows.shape[1])
    turned = rows == jnp.take_along_axis(rows, chosen, axis=1)
    return jnp.where(turned.reshape(spins.shape), -spins, spins)
