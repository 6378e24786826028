"""What is measured while clusters of spins are turned: series of averages, correlations, the last configuration."""

from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int8, PRNGKeyArray

from orderparam.sampling.lattice.clusters import Spins, cluster_labels, random_bonds, swendsen_wang_flip, wolff_flip
from orderparam.sampling.lattice.labels import cluster_sizes
from orderparam.sampling.lattice.random_words import Counter, first_word
from orderparam.systems.spins.measurement import Series

Method = Literal["swendsen-wang", "wolff"]


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

    def sweep(carry: tuple[Spins, Counter], _: None) -> tuple[tuple[Spins, Counter], Array]:
        spins, words = carry
        words, bonds = random_bonds(words, spins, temperature)
        labels = cluster_labels(bonds)
        sizes = cluster_sizes(labels)
        words, spins = (
            wolff_flip(words, spins, labels)
            if method == "wolff"
            else swendsen_wang_flip(words, labels, sizes, field / temperature)
        )
        energy = -sum(jnp.sum(spins * jnp.roll(spins, -1, axis), axis=sites, dtype=jnp.int32) for axis in sites) / n
        m = jnp.sum(spins, axis=sites, dtype=jnp.int32) / n
        squares, fourths = (jnp.sum((sizes.reshape(replicas, n) / n) ** power, axis=1) for power in (2, 4))
        second = jnp.where(field == 0, squares, m**2)
        fourth = jnp.where(field == 0, 3 * squares**2 - 2 * fourths, m**4)
        return (spins, words), jnp.stack([energy - field * m, m, jnp.abs(m), second, fourth])

    start = jnp.ones((replicas, *shape), jnp.int8)
    _, kept = jax.lax.scan(sweep, (start, first_word(key)), length=warmup + sweeps)
    return Series(*jnp.moveaxis(kept[warmup:], (0, 1, 2), (2, 0, 1)))


@partial(jax.jit, static_argnames=("shape", "sweeps"))
def last_configuration(
    temperature: Float[Array, ""], field: Float[Array, ""], key: PRNGKeyArray, shape: tuple[int, ...], sweeps: int
) -> Int8[Array, "*shape"]:
    """The spins after so many sweeps of Swendsen and Wang from random ones."""
    start_key, run_key = jax.random.split(key)

    def sweep(_: int, carry: tuple[Spins, Counter]) -> tuple[Spins, Counter]:
        spins, words = carry
        words, bonds = random_bonds(words, spins, temperature)
        labels = cluster_labels(bonds)
        words, spins = swendsen_wang_flip(words, labels, cluster_sizes(labels), field / temperature)
        return spins, words

    start = jax.random.rademacher(start_key, (1, *shape), jnp.int8)
    return jax.lax.fori_loop(0, sweeps, sweep, (start, first_word(run_key)))[0][0]


@partial(jax.jit, static_argnames=("shape", "replicas", "warmup", "sweeps", "reach"))
def correlation_series(
    temperature: Float[Array, ""],
    key: PRNGKeyArray,
    shape: tuple[int, ...],
    replicas: int,
    warmup: int,
    sweeps: int,
    reach: int,
) -> Float[Array, "replica sweep step"]:
    """The share of pairs of sites 1 .. reach steps along the diagonal apart that are in one cluster, after each sweep.

    Without a field its mean is the correlation of their spins (improved estimator).
    """
    axes = tuple(range(1, 1 + len(shape)))

    def sweep(carry: tuple[Spins, Counter], _: None) -> tuple[tuple[Spins, Counter], Array]:
        spins, words = carry
        words, bonds = random_bonds(words, spins, temperature)
        labels = cluster_labels(bonds)
        words, spins = swendsen_wang_flip(words, labels, cluster_sizes(labels), jnp.zeros(()))

        def together(step: Array) -> Array:
            shifted = labels
            for axis in axes:
                shifted = jnp.roll(shifted, step, axis)
            return jnp.mean(labels == shifted, axis=axes)

        return (spins, words), jax.lax.map(together, jnp.arange(1, reach + 1))

    start = jnp.ones((replicas, *shape), jnp.int8)
    _, kept = jax.lax.scan(sweep, (start, first_word(key)), length=warmup + sweeps)
    return jnp.moveaxis(kept[warmup:], 2, 0)
