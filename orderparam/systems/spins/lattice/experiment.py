"""Simulations of the Ising model: Metropolis updates, the clusters of Swendsen and Wang, and
Wolff's single cluster.
"""

import itertools
from functools import partial
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int8, PRNGKeyArray

from orderparam.core.needs import equal
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
# What is measured during cluster updates: series of moments, series of correlations, and the last
# configuration.

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
    """Energy and moments after each sweep, of independent replicas that start with all spins up.
    Without a field m^2 and m^4 are averaged over the signs of the clusters, which gives sum_c n_c^2
    and 3 (sum_c n_c^2)^2 - 2 sum_c n_c^4 (improved estimators, Wolff 1988). Here n_c is the
    fraction of the spins that belong to cluster c.
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
        # The averages of m^2 and m^4 over the independent signs of the clusters depend only on the
        # sizes of the clusters.
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
    """The spins after the given number of sweeps of Swendsen and Wang from random spins."""
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
    """Share of the pairs of sites at 1 .. reach steps along the diagonal that belong to one
    cluster, after each sweep.

    Without a field the mean of this share is the correlation of two such spins (improved
    estimator).
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
    """One configuration of a square lattice.

    Fields:
        spin: the spins, +1 or -1.
        energy: their energy per spin.
    """

    spin: Float[Array, "row column"]
    energy: Float[Array, ""]


class Correlation(Result):
    """Measured correlations along the diagonal.

    Fields:
        steps: number n of diagonal steps between the two sites.
        correlation, correlation_error: <s s'> of the two sites and its standard error.
        converged: whether R-hat is below 1.05 and there are at least 100 effective samples, at
            every distance.
    """

    steps: Float[Array, "step"]
    correlation: Float[Array, "step"]
    correlation_error: Float[Array, "step"]
    converged: Bool[Array, ""]


class Quench(Result):
    """Spins and energies at several times after a quench from infinite temperature.

    Fields:
        sweep: number of sweeps after the quench.
        energy, energy_error: energy per spin, the mean over 64 replicas and its standard error.
        spin: the spins of one of the replicas, +1 or -1.
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
            f"IsingLattice.shape = {system.shape}: must be even (colours of a checkerboard are "
            "updated in turn)"
        )
    if replicas < 1 or replicas % REPLICAS:
        raise ValueError(
            f"metropolis: replicas = {replicas}: must be a multiple of {REPLICAS} (one for each "
            "bit of a word)"
        )
    if every < 1 or (every > 1 and sweeps // every < 8):
        raise ValueError(
            f"metropolis: every = {every} for {sweeps} sweeps: must leave at least 8 measurements"
        )


_NO_FIELD = {"field": equal(0, why="clusters are turned without asking")}


def _square(system: IsingLattice, **_: Any) -> None:
    if len(system.shape) != 2:
        raise ValueError(
            f"IsingLattice.shape = {system.shape}: must have two directions (the picture of a "
            "square lattice)"
        )


def _quenchable(system: IsingLattice, *, sweeps: tuple[int, ...] = (), **_: Any) -> None:
    _even(system)
    _square(system)
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
    r"""Equilibrium averages of the Ising model, simulated with Metropolis updates in any dimension
    and field.

    All spins start up, and the two colours of the checkerboard are updated in turn. A flip that
    changes the energy by dE is accepted with probability $\min(1, e^{-dE/T})$. In a field the
    probability is the product of two such factors, one with the energy of the bonds and one with
    the energy in the field; detailed balance holds for each factor. Every bit of a word belongs to
    another replica, and the replicas are independent.

    Args:
        replicas: number of independent runs, a multiple of 64.
        warmup: sweeps of each replica before anything is measured.
        sweeps: sweeps of each replica while it is measured.
        every: sweeps from one measurement to the next; a measurement costs about two thirds of a
            sweep. At least 8 measurements must remain.

    Raises:
        ValueError: for a lattice with an odd length, `replicas` that are not a multiple of 64, or
            fewer than 8 measurements.

    Accuracy: probabilities are resolved to 2^-24. Near T_c the autocorrelation time grows as L^2.17
    sweeps.

    Source: Michel, Kapfer, Krauth (2014), for the factors in a field.

    >>> import jax
    >>> runs = metropolis(IsingLattice(1.0, (4, 4)), jax.random.key(0), warmup=100, sweeps=100)
    >>> round(float(runs.energy), 1)
    -2.0
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
    """Equilibrium averages of the Ising model, simulated with the clusters of Swendsen and Wang in
    any dimension and field.

    In every sweep neighbours with equal spins are joined with probability $1 - e^{-2/T}$. A cluster
    of $n_c$ sites then points up with probability $1/(1 + e^{-2 h n_c/T})$, with h = `field`. All
    spins start up. Without a field $m^2$, $m^4$ and all that follows from them are averaged over
    the signs of the clusters (improved estimators).

    Args:
        replicas: number of independent runs that are simulated together.
        warmup: sweeps of each replica before anything is measured.
        sweeps: measured sweeps of each replica; at least 8.

    Source: Swendsen, Wang (1987); Wolff (1988) for the improved estimators.

    >>> import jax
    >>> runs = swendsen_wang(IsingLattice(2.2, (4, 4)), jax.random.key(0), sweeps=100)
    >>> bool(abs(runs.energy + 1.6) < 0.2), runs.binder.shape
    (True, ())
    """
    return _clusters(system, key, "swendsen-wang", replicas, warmup, sweeps)


@experiment(needs=_NO_FIELD)
def wolff(
    system: IsingLattice,
    key: PRNGKeyArray,
    *,
    replicas: int = 8,
    warmup: int = 200,
    sweeps: int = 2000,
) -> MeasuredSpins:
    """Equilibrium averages of the Ising model without a field, simulated with Wolff's single
    cluster.

    Every update flips the cluster of one random site; its bonds are those of `swendsen_wang`. A
    "sweep" is one cluster here, and the autocorrelation time is counted in clusters.

    Args:
        replicas: number of independent runs that are simulated together.
        warmup: clusters that each replica turns before anything is measured.
        sweeps: measured updates of each replica; at least 8.

    Raises:
        ValueError: for a field.

    Source: Wolff (1989); Wolff (1988) for the improved estimators.

    >>> import jax
    >>> runs = wolff(IsingLattice(2.2, (4, 4)), jax.random.key(0), warmup=50, sweeps=100)
    >>> bool(abs(runs.energy + 1.6) < 0.2)
    True
    """
    return _clusters(system, key, "wolff", replicas, warmup, sweeps)


@experiment(needs=_NO_FIELD)
def correlations(
    system: IsingLattice,
    key: PRNGKeyArray,
    *,
    reach: int = 0,
    replicas: int = 4,
    warmup: int = 50,
    sweeps: int = 500,
) -> Correlation:
    r"""Correlations along the diagonal of a lattice without a field, measured with the clusters of
    Swendsen and Wang.

    The correlation $\langle s s' \rangle$ is the probability that the two sites belong to the same
    cluster (improved estimator), averaged over all pairs of sites at the same distance.

    Args:
        reach: largest number of diagonal steps; 0 stands for half the shortest side.
        replicas: number of independent runs that are simulated together.
        warmup: sweeps of each replica before anything is measured.
        sweeps: measured sweeps of each replica; at least 4.

    Raises:
        ValueError: for a field.

    Source: Swendsen, Wang (1987); Wolff (1988).

    >>> import jax
    >>> correlations(IsingLattice(2.3, (8, 8)), jax.random.key(0), sweeps=50).correlation.shape
    (4,)
    """
    steps = reach or min(system.shape) // 2
    series = correlation_series(
        system.temperature, key, system.shape, replicas, warmup, sweeps, steps
    )
    found = estimate(series)
    return Correlation(
        steps=jnp.arange(1.0, steps + 1),
        correlation=found.mean,
        correlation_error=found.standard_error,
        converged=jnp.all(found.reliable | found.constant),
    )


@experiment(check=_quenchable, needs=_NO_FIELD)
def quench(
    system: IsingLattice,
    key: PRNGKeyArray,
    *,
    sweeps: tuple[int, ...] = (0, 1, 2, 5, 10, 20, 50, 100, 200),
) -> Quench:
    """Spins and energies of the square lattice at given times after a quench from infinite
    temperature to `temperature`.

    Metropolis updates are applied to 64 lattices of random spins. Below T_c domains grow as
    $t^{1/2}$, and the energy of their walls falls as $t^{-1/2}$. A flip that costs no energy is
    made with probability 1/2: if all such flips were accepted, all spins of one colour of the
    checkerboard could flip at once, and domain walls would move ballistically instead of diffusing.
    The equilibrium state is the same.

    Args:
        sweeps: numbers of sweeps after which observables are recorded, increasing.

    Raises:
        ValueError: for another dimension than two, an odd length, a field, or `sweeps` that do not
            increase.

    Source: Allen, Cahn (1979), for the growth of domains.

    >>> import jax
    >>> path = quench(IsingLattice(1.0, (16, 16)), jax.random.key(0), sweeps=(0, 10))
    >>> path.spin.shape, bool(path.energy[1] < path.energy[0])
    ((2, 16, 16), True)
    """
    energies, spins = quenched_series(system.temperature, key, system.shape, jnp.asarray(sweeps))
    error = jnp.std(energies, axis=1, ddof=1) / jnp.sqrt(energies.shape[1])
    return Quench(
        sweep=jnp.asarray(sweeps, float),
        energy=jnp.mean(energies, axis=1),
        energy_error=error,
        spin=spins.astype(float),
    )


@experiment(check=_square)
def configuration(system: IsingLattice, key: PRNGKeyArray, *, sweeps: int = 200) -> Configuration:
    """One configuration of the square lattice, drawn with the clusters of Swendsen and Wang from
    random spins.

    Args:
        sweeps: number of sweeps from the random start to the configuration.

    Raises:
        ValueError: for another dimension than two.

    Source: Swendsen, Wang (1987).

    >>> import jax
    >>> configuration(IsingLattice(2.3, (8, 8)), jax.random.key(0), sweeps=20).spin.shape
    (8, 8)
    """
    spins = last_configuration(system.temperature, system.field, key, system.shape, sweeps).astype(
        float
    )
    bonds = spins * (jnp.roll(spins, -1, 0) + jnp.roll(spins, -1, 1))
    return Configuration(spin=spins, energy=-jnp.mean(bonds + system.field * spins))


def _clusters(
    system: IsingLattice, key: PRNGKeyArray, method: Any, replicas: int, warmup: int, sweeps: int
) -> MeasuredSpins:
    series = cluster_series(
        system.temperature, system.field, key, system.shape, method, replicas, warmup, sweeps
    )
    return measured(series, system.temperature, jnp.asarray(float(system.spins)))
