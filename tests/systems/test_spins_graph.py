"""Potts spins on graphs: exact solutions against one another, simulations against them, and
refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from deviations import MOMENTS, deviations

from orderparam.systems.spins import (
    CRITICAL_TEMPERATURE,
    IsingLattice,
    PottsGraph,
    RegularPotts,
    cavity,
    enumerated,
    graph_clusters,
    lattice_edges,
    potts_enumerated,
    random_edges,
    regular_edges,
    regular_graph_clusters,
)
from orderparam.systems.spins.graph.experiment import potts_series
from orderparam.systems.spins.measurement import measured


def test_two_states_are_the_ising_model_at_twice_the_temperature():
    ising = enumerated(IsingLattice(CRITICAL_TEMPERATURE, (4, 4)))
    potts = potts_enumerated(PottsGraph(CRITICAL_TEMPERATURE / 2, lattice_edges((4, 4))))
    np.testing.assert_allclose(2 * potts.energy + 2, ising.energy, rtol=1e-12)
    for name in ("heat_capacity", "absolute_magnetisation", "squared_magnetisation", "binder"):
        np.testing.assert_allclose(getattr(potts, name), getattr(ising, name), rtol=1e-10)


def test_the_potts_ring_is_solved_by_its_transfer_matrix():
    q, n, temperature = 3, 8, 0.6
    weight = np.exp(1 / temperature)
    wanted = np.log((weight + q - 1) ** n + (q - 1) * (weight - 1) ** n)
    ring = potts_enumerated(PottsGraph(temperature, lattice_edges((n,)), q))
    np.testing.assert_allclose(-n * ring.free_energy / temperature, wanted, rtol=1e-12)
    limit = cavity(RegularPotts(temperature, 100, 2, q))
    np.testing.assert_allclose(limit.free_energy, -temperature * np.log(weight + q - 1), rtol=1e-10)


@pytest.mark.parametrize(("states", "temperature"), [(2, 0.7), (3, 0.6)])
def test_clusters_on_a_graph_against_all_configurations(states, temperature):
    system = PottsGraph(temperature, random_edges(8, 11, np.random.default_rng(2)), states)
    found = deviations(
        lambda key: graph_clusters(system, key, sweeps=1000), potts_enumerated(system), MOMENTS
    )
    assert max(map(abs, found.values())) < 4, found


@pytest.mark.parametrize("replicas", [1, 4])
def test_errors_on_small_graphs_are_those_of_the_scatter(replicas):
    """The deviations of 400 runs from all configurations have the size that their errors say."""
    edges, temperature = regular_edges(8, 3, np.random.default_rng(0)), 2.0
    exact = potts_enumerated(PottsGraph(temperature, edges, states=3))

    def run(key):
        series = potts_series(
            jnp.asarray(temperature), jnp.asarray(edges), key, 8, 3, replicas, 50, 500 // replicas
        )
        return measured(series, jnp.asarray(temperature), jnp.asarray(8.0))

    runs = jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(1), 400))
    for name in MOMENTS:
        away = (getattr(runs, name) - getattr(exact, name)) / getattr(runs, f"{name}_error")
        assert 0.88 < np.sqrt(np.mean(away**2)) < 1.12, name


def test_the_bethe_lattice_orders_where_it_is_known_to():
    """tanh(1/2T) = 1/(c - 1) for two states, here 1/T = ln(1 + q/(c - 2)); the order vanishes as a
    square root."""
    edge = 1 / np.log(1 + 2 / (4 - 2))
    orders = [
        float(cavity(RegularPotts(edge * (1 - d), 100, 4)).absolute_magnetisation)
        for d in (1e-3, 4e-3)
    ]
    np.testing.assert_allclose(orders[1] / orders[0], 2, rtol=0.01)
    assert cavity(RegularPotts(1.01 * edge, 100, 4)).absolute_magnetisation < 1e-6


def test_branches_of_the_bethe_lattice_have_the_right_energies():
    """dln Z/d(1/T) at both branches of a first-order transition."""
    for branch in ("ordered", "disordered"):
        system = RegularPotts(1.05, 100, 4, 6)
        slope = jax.grad(
            lambda t, b=branch: cavity(RegularPotts(t, 100, 4, 6), branch=b).free_energy / t
        )(1.05)
        np.testing.assert_allclose(
            -slope * 1.05**2, cavity(system, branch=branch).energy, rtol=1e-9
        )


@pytest.mark.parametrize("states", [2, 3])
def test_random_regular_graphs_against_the_cavity_method(states):
    """In the ordered phase, where corrections are O(1/N)."""
    system = RegularPotts(0.8, 2000, 4, states)
    found = deviations(
        lambda key: regular_graph_clusters(system, key, sweeps=100),
        cavity(system),
        ("energy", "absolute_magnetisation"),
    )
    assert max(map(abs, found.values())) < 5, found


def test_graphs_are_what_they_are_called():
    rng = np.random.default_rng(0)
    edges = regular_edges(50, 5, rng)
    assert np.all(np.bincount(edges.ravel()) == 5)
    for graph in (edges, random_edges(9, 36, rng)):
        pairs = {tuple(sorted(pair)) for pair in graph.tolist()}
        assert len(pairs) == len(graph)
        assert all(a < b for a, b in pairs)
    assert np.all(np.bincount(lattice_edges((4, 5, 3)).ravel()) == 6)
    with pytest.raises(ValueError, match="degree = 3 of 5 sites"):
        regular_edges(5, 3, rng)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: potts_enumerated(PottsGraph(1.0, lattice_edges((5, 5)))),
            r"PottsGraph.edges join 25 sites: at most",
        ),
        (lambda: PottsGraph(1.0, [[0, 1], [2, 2]]), r"PottsGraph.edges join site 2 to itself"),
        (
            lambda: PottsGraph(1.0, [[0.0, -1.0]]),
            r"PottsGraph.edges = -1.0: must be an integer and >= 0",
        ),
        (
            lambda: regular_graph_clusters(RegularPotts(1.0, 5, 3), jax.random.key(0)),
            r"RegularPotts.degree = 3 for 5 sites",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
