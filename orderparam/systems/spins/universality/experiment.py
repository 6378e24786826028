"""Cluster simulations of the Potts model and of the scalar field near their critical points."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.sampling.lattice.labels import smallest_labels
from orderparam.sampling.lattice.random_words import Counter, below, first_word, random_words
from orderparam.systems.spins.scalar_field.experiment import Sweep, even_lengths
from orderparam.systems.spins.scalar_field.model import ScalarField
from orderparam.systems.spins.universality.measurement import (
    ClusterMoments,
    CriticalMoments,
    cluster_moments,
    critical_moments,
)
from orderparam.systems.spins.universality.model import PottsLattice

Step = tuple[int, int]


@experiment
def critical_potts(
    system: PottsLattice,
    key: PRNGKeyArray,
    *,
    replicas: int = 4,
    warmup: int = 100,
    sweeps: int = 1000,
) -> CriticalMoments:
    r"""Averages of the Potts model near its critical point, simulated with the clusters of Swendsen
    and Wang.

    Bonds join equal spins with probability $p = 1 - e^{-K}$, and every cluster takes a random
    state. A configuration of b bonds and c clusters has the weight $p^b (1 - p)^{-b} q^c$ up to a
    constant, so that $b / p$ gives the derivative with respect to K. All spins start in one state.

    Args:
        replicas: number of independent runs that are simulated together.
        warmup: sweeps of each replica before anything is measured.
        sweeps: measured sweeps of each replica; at least 8.

    Source: Swendsen, Wang (1987); Fortuin, Kasteleyn (1972); Wolff (1988).

    >>> import jax
    >>> runs = critical_potts(PottsLattice(0.88, 8), jax.random.key(0), sweeps=200)
    >>> bool(abs(runs.binder - 0.61) < 0.03)
    True
    """
    moments, bonds = potts_series(
        system.coupling,
        key,
        system.length,
        system.states,
        system.steps,
        replicas,
        warmup,
        sweeps,
    )
    conjugate = bonds / -jnp.expm1(-system.coupling)
    return critical_moments(moments, conjugate, system.length, system.states - 1)


def _even_square(system: ScalarField, **_: object) -> None:
    even_lengths(system)
    system.check_square()


@experiment(check=_even_square)
def critical_field(
    system: ScalarField,
    key: PRNGKeyArray,
    *,
    replicas: int = 4,
    warmup: int = 100,
    sweeps: int = 1000,
) -> CriticalMoments:
    r"""Averages of the scalar field near its critical point, simulated with local updates and
    clusters.

    The updates are those of `field_clusters`. The derivative with respect to the mass follows from
    the covariance with $-\frac12 \sum_x \phi_x^2$.

    Args:
        replicas: number of independent runs that are simulated together.
        warmup: sweeps of each replica before anything is measured.
        sweeps: measured sweeps of each replica; at least 8.

    Raises:
        ValueError: unless the lattice is a square of even length.

    Source: Brower, Tamayo (1989); Wolff (1988).

    >>> import jax
    >>> runs = critical_field(ScalarField(-3.82, 1.0, (8, 8)), jax.random.key(0), sweeps=300)
    >>> bool(abs(runs.binder - 0.59) < 0.06)
    True
    """
    moments, squared = scalar_series(
        system.mass, system.coupling, key, system.shape, replicas, warmup, sweeps
    )
    return critical_moments(moments, -system.sites / 2 * squared, system.shape[0])


def step_labels(
    bonds: Bool[Array, "bond replica row column"], steps: tuple[Step, ...]
) -> Int[Array, "replica row column"]:
    """The label of the cluster of every site; bonds[i] tells which sites are joined to the site
    that is steps[i] away."""
    shape = bonds.shape[1:]

    def seen(flat: Array) -> Array:
        labels = flat.reshape(shape)
        smallest = labels
        for bond, (down, right) in zip(bonds, steps):
            ahead = jnp.roll(labels, (-down, -right), (1, 2))
            behind = jnp.roll(jnp.where(bond, labels, labels.size), (down, right), (1, 2))
            smallest = jnp.minimum(smallest, jnp.where(bond, ahead, labels))
            smallest = jnp.minimum(smallest, behind)
        return smallest.ravel()

    return smallest_labels(seen, int(np.prod(shape))).reshape(shape)


@partial(jax.jit, static_argnames=("length", "states", "steps", "replicas", "warmup", "sweeps"))
def potts_series(
    coupling: Float[Array, ""],
    key: PRNGKeyArray,
    length: int,
    states: int,
    steps: tuple[Step, ...],
    replicas: int,
    warmup: int,
    sweeps: int,
) -> tuple[ClusterMoments, Float[Array, "replica sweep"]]:
    """Moments and numbers of bonds after each sweep, of replicas that start in the ordered
    state."""
    shape = (replicas, length, length)

    def sweep(
        carry: tuple[Array, Counter], _: None
    ) -> tuple[tuple[Array, Counter], tuple[ClusterMoments, Array]]:
        spins, words = carry
        equal = jnp.stack(
            [spins == jnp.roll(spins, (-down, -right), (1, 2)) for down, right in steps]
        )
        words, drawn = random_words(words, equal.size)
        bonds = equal & below(drawn, -jnp.expm1(-coupling)).reshape(equal.shape)
        labels = step_labels(bonds, steps)
        words, drawn = random_words(words, spins.size)
        spins = (drawn % np.uint64(states)).astype(jnp.int8)[labels]
        found = cluster_moments(jnp.ones(shape), labels, states - 1)
        return (spins, words), (found, jnp.sum(bonds, axis=(0, 2, 3), dtype=float))

    start = (jnp.zeros(shape, jnp.int8), first_word(key))
    _, kept = jax.lax.scan(sweep, start, length=warmup + sweeps)
    return jax.tree.map(lambda part: part[warmup:].T, kept)


@partial(jax.jit, static_argnames=("shape", "replicas", "warmup", "sweeps"))
def scalar_series(
    mass: Float[Array, ""],
    coupling: Float[Array, ""],
    key: PRNGKeyArray,
    shape: tuple[int, int],
    replicas: int,
    warmup: int,
    sweeps: int,
) -> tuple[ClusterMoments, Float[Array, "replica sweep"]]:
    """Moments and the mean of phi^2 after each sweep, of replicas whose field starts at zero."""
    update = Sweep(mass, coupling, shape)

    def sweep(
        carry: tuple[Array, Counter], _: None
    ) -> tuple[tuple[Array, Counter], tuple[ClusterMoments, Array]]:
        field, words, labels, _accepted = update(*carry)
        # The field has one sign within a cluster, so that the sums of |phi| with random signs are
        # the sums of the field.
        found = cluster_moments(jnp.abs(field), labels)
        return (field, words), (found, jnp.mean(field**2, axis=(1, 2)))

    start = (jnp.zeros((replicas, *shape)), first_word(key))
    _, kept = jax.lax.scan(sweep, start, length=warmup + sweeps)
    return jax.tree.map(lambda part: part[warmup:].T, kept)
