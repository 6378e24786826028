"""The Ising model simulated: Metropolis updates, clusters of Swendsen and Wang, Wolff's single
cluster.
"""

import itertools
from functools import partial
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int8, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.sampling import estimate
from orderparam.sampling.lattice.clusters import (
    Spins,
    cluster_labels,
    random_bonds,
    swendsen_wang_flip,
    wolff_flip,
)
from orderparam.sampling.lattice.labels import cluster_sizes
from orderparam.sampling.lattice.random_words import Counter, first_word
from orderparam.systems.spins.lattice.metropolis import REPLICAS, metropolis_series, quenched_series
from orderparam.systems.spins.lattice.model import IsingLattice
from orderparam.systems.spins.measurement import MeasuredSpins, Series, measured

# ------------------------------------------------------------------------------------------------
# What is measured while clusters of spins are turned: series of averages, correlations, the last configuration.

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

    Without a field m^2 and m^4 are averaged over the signs of the clusters (improved estimators,
    Wolff 1988): sum_c n_c^2 and 3 (sum_c n_c^2)^2 - 2 sum_c n_c^4, with n_c the share of all spins.
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
        energy = (
            -sum(
                jnp.sum(spins * jnp.roll(spins, -1, axis), axis=sites, dtype=jnp.int32)
                for axis in sites
            )
            / n
        )
        m = jnp.sum(spins, axis=sites, dtype=jnp.int32) / n
        squares, fourths = (
            jnp.sum((sizes.reshape(replicas, n) / n) ** power, axis=1) for power in (2, 4)
        )
        second = jnp.where(field == 0, squares, m**2)
        fourth = jnp.where(field == 0, 3 * squares**2 - 2 * fourths, m**4)
        return (spins, words), jnp.stack([energy - field * m, m, jnp.abs(m), second, fourth])

    start = jnp.ones((replicas, *shape), jnp.int8)
    _, kept = jax.lax.scan(sweep, (start, first_word(key)), length=warmup + sweeps)
    return Series(*jnp.moveaxis(kept[warmup:], (0, 1, 2), (2, 0, 1)))


@partial(jax.jit, static_argnames=("shape", "sweeps"))
def last_configuration(
    temperature: Float[Array, ""],
    field: Float[Array, ""],
    key: PRNGKeyArray,
    shape: tuple[int, ...],
    sweeps: int,
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
    """The share of pairs of sites 1 .. reach steps along the diagonal apart that are in one
    cluster, after each sweep.

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


class Configuration(Result):
    """The spins of a square lattice, +-1, and their energy per spin."""

    spin: Float[Array, "row column"]
    energy: Float[Array, ""]


class Correlation(Result):
    """correlation: <s s'> of two sites `steps` diagonal steps apart, with its standard error.
    converged: see `MeasuredSpins`.
    """

    steps: Float[Array, "step"]
    correlation: Float[Array, "step"]
    correlation_error: Float[Array, "step"]
    converged: Bool[Array, ""]


class Quench(Result):
    """After `sweep` sweeps: energy per spin with its standard error over 64 replicas, and the spins
    of one of them.
    """

    sweep: Float[Array, "time"]
    energy: Float[Array, "time"]
    energy_error: Float[Array, "time"]
    spin: Float[Array, "time row column"]


def _even(
    system: IsingLattice, *, replicas: int = REPLICAS, sweeps: Any = 2000, every: int = 1, **_: Any
) -> None:
    if any(length % 2 for length in system.shape):
        raise ValueError(
            f"IsingLattice.shape = {system.shape}: must be even (colours of a checkerboard are updated in turn)"
        )
    if replicas < 1 or replicas % REPLICAS:
        raise ValueError(
            f"metropolis: replicas = {replicas}: must be a multiple of {REPLICAS} (one for each bit of a word)"
        )
    if every < 1 or (every > 1 and sweeps // every < 8):
        raise ValueError(
            f"metropolis: every = {every} for {sweeps} sweeps: must leave at least 8 measurements"
        )


def _no_field(system: IsingLattice, **_: Any) -> None:
    if system.field != 0:
        raise ValueError(
            f"IsingLattice.field = {float(system.field):g}: must be 0 (clusters are turned without asking)"
        )


def _square(system: IsingLattice, **_: Any) -> None:
    if len(system.shape) != 2:
        raise ValueError(
            f"IsingLattice.shape = {system.shape}: must have two directions (the picture of a square lattice)"
        )


def _quenchable(system: IsingLattice, *, sweeps: tuple[int, ...] = (), **_: Any) -> None:
    _even(system)
    _square(system)
    _no_field(system)
    if any(later <= earlier for earlier, later in itertools.pairwise((-1, *sweeps))):
        raise ValueError(f"quench: sweeps = {sweeps}: must be whole numbers that grow")


@experiment(check=_even)
def metropolis(
    system: IsingLattice,
    key: PRNGKeyArray,
    *,
    replicas: int = REPLICAS,
    warmup: int = 500,
    sweeps: int = 2000,
    every: int = 1,
) -> MeasuredSpins:
    """Metropolis updates from all spins up, one colour of the checkerboard after the other; any
    dimension and field.

    Replicas are independent and come in multiples of 64. In a field a flip must be accepted by
    bonds and by the field, each with its own factor min(1, exp(-dE/T)). Near T_c correlations last
    about L^2.17 sweeps. Probabilities are resolved to 2^-24. every: sweeps from one measurement to
    the next; one costs about two thirds of what a sweep does.
    """
    tilted = bool(system.field != 0)
    series = metropolis_series(
        system.temperature, system.field, key, system.shape, replicas, warmup, sweeps, tilted, every
    )
    found = measured(series, system.temperature, jnp.asarray(float(system.spins)))
    return eqx.tree_at(
        lambda found: found.autocorrelation_time, found, every * found.autocorrelation_time
    )


@experiment
def swendsen_wang(
    system: IsingLattice,
    key: PRNGKeyArray,
    *,
    replicas: int = 8,
    warmup: int = 50,
    sweeps: int = 500,
) -> MeasuredSpins:
    """All clusters are turned independently in every sweep, from all spins up; any dimension and
    field.

    Without a field m^2, m^4 and what follows from them are averaged over the signs of the clusters.
    """
    return _clusters(system, key, "swendsen-wang", replicas, warmup, sweeps)


@experiment(check=_no_field)
def wolff(
    system: IsingLattice,
    key: PRNGKeyArray,
    *,
    replicas: int = 8,
    warmup: int = 200,
    sweeps: int = 2000,
) -> MeasuredSpins:
    """One cluster is turned at a time, that of a random site: a `sweep` is one cluster, and times
    are counted in clusters.
    """
    return _clusters(system, key, "wolff", replicas, warmup, sweeps)


@experiment(check=_no_field)
def correlations(
    system: IsingLattice,
    key: PRNGKeyArray,
    *,
    reach: int = 0,
    replicas: int = 4,
    warmup: int = 50,
    sweeps: int = 500,
) -> Correlation:
    """Along the diagonal, up to `reach` steps (0: half the shortest side), from the clusters of
    Swendsen and Wang.
    """
    steps = reach or min(system.shape) // 2
    series = correlation_series(
        system.temperature, key, system.shape, replicas, warmup, sweeps, steps
    )
    found = estimate(series)
    return Correlation(
        jnp.arange(1.0, steps + 1),
        found.mean,
        found.standard_error,
        jnp.all(found.reliable | found.constant),
    )


@experiment(check=_quenchable)
def quench(
    system: IsingLattice,
    key: PRNGKeyArray,
    *,
    sweeps: tuple[int, ...] = (0, 1, 2, 5, 10, 20, 50, 100, 200),
) -> Quench:
    """Metropolis updates of 64 lattices from random spins, seen after these numbers of sweeps:
    domains grow as t^(1/2) below T_c (Allen, Cahn 1979), and the energy of their walls falls as
    t^(-1/2).

    Flips that cost nothing are left to a coin: were they all made, walls would run instead of
    diffuse, as a whole colour turns at once. Equilibrium is the same.
    """
    energies, spins = quenched_series(system.temperature, key, system.shape, jnp.asarray(sweeps))
    error = jnp.std(energies, axis=1, ddof=1) / jnp.sqrt(energies.shape[1])
    return Quench(
        jnp.asarray(sweeps, float), jnp.mean(energies, axis=1), error, spins.astype(float)
    )


@experiment(check=_square)
def configuration(system: IsingLattice, key: PRNGKeyArray, *, sweeps: int = 200) -> Configuration:
    """A square lattice after so many sweeps of Swendsen and Wang from random spins."""
    spins = last_configuration(system.temperature, system.field, key, system.shape, sweeps).astype(
        float
    )
    bonds = spins * (jnp.roll(spins, -1, 0) + jnp.roll(spins, -1, 1))
    return Configuration(spins, -jnp.mean(bonds + system.field * spins))


def _clusters(
    system: IsingLattice, key: PRNGKeyArray, method: Any, replicas: int, warmup: int, sweeps: int
) -> MeasuredSpins:
    series = cluster_series(
        system.temperature, system.field, key, system.shape, method, replicas, warmup, sweeps
    )
    return measured(series, system.temperature, jnp.asarray(float(system.spins)))
