"""The Ising model simulated: Metropolis updates, clusters of Swendsen and Wang, Wolff's single cluster."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.systems.spins.lattice.clusters import cluster_series, last_configuration
from orderparam.systems.spins.lattice.metropolis import metropolis_series
from orderparam.systems.spins.lattice.model import IsingLattice
from orderparam.systems.spins.measurement import Measured, measured


class Configuration(Result):
    """The spins of a square lattice, +-1, and their energy per spin."""

    spin: Float[Array, "row column"]
    energy: Float[Array, ""]


def _even(system: IsingLattice, **_: Any) -> None:
    if any(length % 2 for length in system.shape):
        raise ValueError(f"IsingLattice.shape = {system.shape}: must be even (colours of a checkerboard are updated in turn)")


def _no_field(system: IsingLattice, **_: Any) -> None:
    if system.field != 0:
        raise ValueError(f"IsingLattice.field = {float(system.field):g}: must be 0 (Wolff's cluster is turned without asking)")


def _square(system: IsingLattice, **_: Any) -> None:
    if len(system.shape) != 2:
        raise ValueError(f"IsingLattice.shape = {system.shape}: must have two directions (the picture of a square lattice)")


@experiment(check=_even)
def metropolis(system: IsingLattice, key: PRNGKeyArray, *, replicas: int = 8, warmup: int = 500, sweeps: int = 2000) -> Measured:
    """Metropolis updates from all spins up, one colour of the checkerboard after the other; any dimension and field.

    Near T_c correlations last about L^2.17 sweeps. Probabilities are resolved to 2^-32.
    """
    series = metropolis_series(system.temperature, system.field, key, system.shape, replicas, warmup, sweeps)
    return measured(series, system.temperature, jnp.asarray(float(system.spins)))


@experiment
def swendsen_wang(system: IsingLattice, key: PRNGKeyArray, *, replicas: int = 8, warmup: int = 50, sweeps: int = 500) -> Measured:
    """All clusters are turned independently in every sweep, from all spins up; any dimension and field.

    Without a field m^2, m^4 and what follows from them are averaged over the signs of the clusters.
    """
    return _clusters(system, key, "swendsen-wang", replicas, warmup, sweeps)


@experiment(check=_no_field)
def wolff(system: IsingLattice, key: PRNGKeyArray, *, replicas: int = 8, warmup: int = 200, sweeps: int = 2000) -> Measured:
    """One cluster is turned at a time, that of a random site: a `sweep` is one cluster, and times are counted in clusters."""
    return _clusters(system, key, "wolff", replicas, warmup, sweeps)


@experiment(check=_square)
def configuration(system: IsingLattice, key: PRNGKeyArray, *, sweeps: int = 200) -> Configuration:
    """A square lattice after so many sweeps of Swendsen and Wang from random spins."""
    spins = last_configuration(system.temperature, system.field, key, system.shape, sweeps).astype(float)
    bonds = spins * (jnp.roll(spins, -1, 0) + jnp.roll(spins, -1, 1))
    return Configuration(spins, -jnp.mean(bonds + system.field * spins))


def _clusters(system: IsingLattice, key: PRNGKeyArray, method: Any, replicas: int, warmup: int, sweeps: int) -> Measured:
    series = cluster_series(system.temperature, system.field, key, system.shape, method, replicas, warmup, sweeps)
    return measured(series, system.temperature, jnp.asarray(float(system.spins)))
