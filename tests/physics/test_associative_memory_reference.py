"""Associative memory: numbers of the Hopfield model and of networks of largest stability."""

import numpy as np
import pytest
from scipy.special import erfinv

from orderparam.systems.associative_memory import (
    Hopfield,
    OptimalStability,
    basin,
    critical_loads,
    overlaps,
    phase_lines,
    replica_symmetric,
    zero_temperature,
)

RETRIEVAL = {  # load, T -> m, q, r, f; None: not tabulated
    (0.05, 0.2): (0.99887776, 0.99783041, 1.01983666, -0.50011116),
    (0.05, 0.5): (0.90410608, 0.83335796, 1.87477835, -0.51701378),
    (0.1, 0.1): (0.99675084, 0.99691584, 1.06137534, -0.50026475),
    (0.1, 0.3): (0.95301981, 0.93307009, 1.54590822, -0.50448826),
    (0.02, 0.6): (0.87929007, 0.77927808, None, -0.52852340),
}
GLASS = {  # load, T -> q, r, f
    (0.05, 0.2): (0.84143476, 19.6042727, -0.49889575),
    (0.05, 0.5): (0.59739096, None, -0.54864565),
    (0.1, 0.1): (None, None, -0.56710741),
    (0.02, 0.6): (None, None, -0.52978960),
}
GROUND = {
    0.05: 0.9999922281,
    0.08: 0.9995573816,
    0.1: 0.9979992663,
    0.12: 0.9932227318,
    0.13: 0.9872118908,
    0.1375: 0.9729527576,
}


def check(found, names, expected, atol):
    for name, value in zip(names, expected, strict=True):
        if value is not None:
            np.testing.assert_allclose(getattr(found, name), value, rtol=0, atol=atol, err_msg=name)


@pytest.mark.parametrize(("load", "temperature"), RETRIEVAL)
def test_retrieval_states(load, temperature):
    found = replica_symmetric(Hopfield(load, temperature))
    assert found.converged
    check(
        found,
        ("overlap", "self_overlap", "crosstalk", "free_energy"),
        RETRIEVAL[load, temperature],
        5.1e-9,
    )


@pytest.mark.parametrize(("load", "temperature"), GLASS)
def test_spin_glass_states(load, temperature):
    found = replica_symmetric(Hopfield(load, temperature), branch="spin glass")
    check(found, ("self_overlap", "crosstalk", "free_energy"), GLASS[load, temperature], 5.1e-8)


def test_entropies_and_stability():
    cold, warm = (replica_symmetric(Hopfield(0.05, t)) for t in (0.2, 0.5))
    np.testing.assert_allclose([cold.entropy, warm.entropy], [0.003410, 0.160384], atol=5.1e-7)
    np.testing.assert_allclose(cold.replicon, 0.000255, atol=5.1e-7)
    np.testing.assert_allclose(
        replica_symmetric(Hopfield(0.05, 0.2), branch="spin glass").replicon, 3.109, atol=5.1e-4
    )


@pytest.mark.parametrize("load", GROUND)
def test_zero_temperature(load):
    for found in (zero_temperature(Hopfield(load)), replica_symmetric(Hopfield(load))):
        np.testing.assert_allclose(found.overlap, GROUND[load], atol=5.1e-11)


def test_zero_temperature_in_full():
    found = zero_temperature(Hopfield(0.1))
    np.testing.assert_allclose(
        [found.crosstalk, found.susceptibility, found.energy, found.spin_glass_energy],
        [1.04305883, 0.02085818, -0.5001542093, -0.5706231384],
        atol=5.1e-9,
    )
    np.testing.assert_allclose(zero_temperature(Hopfield(0.05)).crosstalk, 1.00032513, atol=5.1e-9)


def test_the_capacity():
    found = critical_loads(Hopfield(0.1))
    np.testing.assert_allclose(found.retrieval_load, 0.13790556649493, atol=5.1e-15)
    np.testing.assert_allclose(found.overlap, 0.967417115, atol=1e-9)
    np.testing.assert_allclose(erfinv(found.overlap), 1.5112186, atol=5.1e-8)
    np.testing.assert_allclose(found.global_load, 0.0518543309, atol=5.1e-11)


def test_the_lines_of_the_phase_diagram():
    """T_M as far as an independent integration confirms it: the 5 digits usually given are low by
    up to 2e-5."""
    lines = {load: phase_lines(Hopfield(load)) for load in (0.01, 0.05, 0.1, 0.13)}
    retrieval = {0.01: 0.80102, 0.05: 0.54226, 0.1: 0.31543, 0.13: 0.14892}
    for load, expected in retrieval.items():
        np.testing.assert_allclose(lines[load].retrieval_temperature, expected, atol=5.1e-6)
    np.testing.assert_allclose(
        [lines[load].global_temperature for load in (0.01, 0.05)], [0.72162, 0.21638], atol=5.1e-6
    )
    np.testing.assert_allclose(lines[0.13].replicon_temperature, 0.0095, atol=5.1e-5)
    np.testing.assert_allclose(lines[0.1].glass_temperature, 1 + np.sqrt(0.1), rtol=1e-15)


def test_basins_of_largest_stability():
    found = {load: basin(OptimalStability(load)) for load in (0.3, 0.5, 1.0, 1.5)}
    edges = [found[load].basin_edge for load in (0.5, 1.0, 1.5)]
    np.testing.assert_allclose(edges, [0.6560446, 0.976414, 0.997977], atol=5.1e-7)
    slopes = [found[load].slope for load in (0.3, 0.5, 1.0)]
    np.testing.assert_allclose(slopes, [1.245850, 0.887508, 0.540693], atol=5.1e-7)
    stabilities = [found[load].stability for load in (0.5, 1.0, 1.5)]
    np.testing.assert_allclose(stabilities, [1.03431406, 0.47065535, 0.18610815], atol=5.1e-9)
    np.testing.assert_allclose(basin(OptimalStability(0.4194026738)).slope, 1, atol=1e-9)
    np.testing.assert_allclose(
        overlaps(OptimalStability(0.5, 0.5)).overlap[1], 0.47446464, atol=5.1e-9
    )


def test_one_step_at_the_load_one():
    """mpmath with 30 digits: kappa = 0.4706553526183, f(0.5) = 0.2933778967272. The 0.29337777 of
    the tables is off in its 7th digit; that of the load 0.5, from the same formula, is not."""
    np.testing.assert_allclose(
        overlaps(OptimalStability(1.0, 0.5)).overlap[1], 0.2933778967272174, rtol=1e-10
    )
