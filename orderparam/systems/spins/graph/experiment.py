"""Cluster simulations of the Potts model on a graph."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.sampling.lattice.labels import smallest_labels
from orderparam.sampling.lattice.random_words import Counter, below, first_word, random_words
from orderparam.systems.spins.graph.model import PottsGraph, RegularPotts, regular_edges
from orderparam.systems.spins.graph.theory import order_parameters
from orderparam.systems.spins.measurement import MeasuredSpins, Series, measured


def _feasible(system: RegularPotts, **_: object) -> None:
    if system.size("sites") * system.degree % 2 or system.degree >= system.size("sites"):
        allowed = "such that sites * degree is even, and smaller than sites"
        raise ValueError(
            f"RegularPotts.degree = {system.degree} for {system.size('sites')} sites: must be "
            f"{allowed}"
        )


@experiment
def graph_clusters(
    system: PottsGraph, key: PRNGKeyArray, *, replicas: int = 8, warmup: int = 50, sweeps: int = 500
) -> MeasuredSpins:
    """Equilibrium averages of the Potts model on a given graph, simulated with the clusters of
    Swendsen and Wang.

    In every sweep an edge joins its two sites, if their spins are equal, with probability $1 -
    e^{-1/T}$, and every cluster of joined sites takes a random state. All spins start in state 0.
    The magnetisations are defined as in `potts_enumerated`.

    Args:
        replicas: number of independent runs that are simulated together.
        warmup: sweeps of each replica before anything is measured.
        sweeps: measured sweeps of each replica; at least 8.

    Source: Swendsen, Wang (1987).

    >>> import jax
    >>> system = PottsGraph(2.0, regular_edges(8, 3, np.random.default_rng(0)), states=3)
    >>> runs = graph_clusters(system, jax.random.key(0), sweeps=100)
    >>> runs.energy.shape, bool(runs.converged)
    ((), True)
    """
    return _measured(
        np.asarray(system.edges, int),
        system.temperature,
        system.states,
        key,
        replicas,
        warmup,
        sweeps,
    )


@experiment(check=_feasible)
def regular_graph_clusters(
    system: RegularPotts,
    key: PRNGKeyArray,
    *,
    replicas: int = 4,
    warmup: int = 50,
    sweeps: int = 500,
) -> MeasuredSpins:
    """Equilibrium averages of the Potts model on one random graph of equal degree, simulated with
    the clusters of Swendsen and Wang.

    The graph is drawn from the key, so that an average over seeds is an average over graphs. The
    updates are those of `graph_clusters`.

    Args:
        replicas: number of independent runs on the same graph.
        warmup: sweeps of each replica before anything is measured.
        sweeps: measured sweeps of each replica; at least 8.

    Raises:
        ValueError: unless `sites` * `degree` is even and `degree` is smaller than `sites`.

    Source: Swendsen, Wang (1987).

    >>> import jax
    >>> system = RegularPotts(0.5, sites=64)
    >>> runs = regular_graph_clusters(system, jax.random.key(0), replicas=8, sweeps=100)
    >>> bool(runs.absolute_magnetisation > 0.9)
    True
    """
    graph_key, run_key = jax.random.split(key)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(graph_key)))
    edges = regular_edges(system.size("sites"), system.degree, rng)
    return _measured(edges, system.temperature, system.states, run_key, replicas, warmup, sweeps)


def _measured(
    edges: np.ndarray,
    temperature: Float[Array, ""] | float,
    states: int,
    key: PRNGKeyArray,
    replicas: int,
    warmup: int,
    sweeps: int,
) -> MeasuredSpins:
    sites = int(edges.max()) + 1
    temperature = jnp.asarray(temperature)
    series = potts_series(
        temperature, jnp.asarray(edges), key, sites, states, replicas, warmup, sweeps
    )
    return measured(series, temperature, jnp.asarray(float(sites)))


@partial(jax.jit, static_argnames=("sites", "states", "replicas", "warmup", "sweeps"))
def potts_series(
    temperature: Float[Array, ""],
    edges: Int[Array, "edge 2"],
    key: PRNGKeyArray,
    sites: int,
    states: int,
    replicas: int,
    warmup: int,
    sweeps: int,
) -> Series:
    """The moments of independent replicas after each sweep; the sites of all replicas are numbered
    in one sequence."""
    one, two = ((jnp.arange(replicas)[:, None] * sites + end).ravel() for end in edges.T)

    def sweep(carry: tuple[Array, Counter], _: None) -> tuple[tuple[Array, Counter], Array]:
        spins, words = carry
        words, drawn = random_words(words, one.size)
        bond = (spins[one] == spins[two]) & below(drawn, -jnp.expm1(-1 / temperature))
        # A slot without a bond compares the label of site 0 with itself.
        here, there = jnp.where(bond, one, 0), jnp.where(bond, two, 0)

        def seen(labels: Array) -> Array:
            return labels.at[here].min(labels[there]).at[there].min(labels[here])

        labels = smallest_labels(seen, spins.size)
        words, drawn = random_words(words, spins.size)
        spins = (drawn % np.uint64(states)).astype(jnp.int32)[labels]
        energy = -jnp.sum((spins[one] == spins[two]).reshape(replicas, -1), axis=1) / sites
        shares = jnp.stack(
            [jnp.mean((spins == state).reshape(replicas, -1), axis=1) for state in range(states)],
            axis=-1,
        )
        return (spins, words), jnp.stack([energy, *order_parameters(shares, states)])

    start = jnp.zeros(replicas * sites, jnp.int32)
    _, kept = jax.lax.scan(sweep, (start, first_word(key)), length=warmup + sweeps)
    return Series(*jnp.moveaxis(kept[warmup:], (0, 1, 2), (2, 0, 1)))
