"""Spins: exact solutions against one another, simulations against exact solutions, and refusals."""

import jax
import numpy as np
import pytest
import xarray as xr

from orderparam.systems.spins import (
    CRITICAL_TEMPERATURE,
    IsingLattice,
    MeanFieldMagnet,
    configuration,
    critical_correlation,
    enumerated,
    exact_magnet,
    glauber,
    kaufman,
    landau,
    mean_field,
    metropolis,
    onsager,
    spinodal,
    swendsen_wang,
    wolff,
)
from orderparam.systems.spins.labels import cluster_sizes
from orderparam.systems.spins.lattice.clusters import cluster_labels
from orderparam.systems.spins.lattice.figures import crossing

MOMENTS = ("energy", "heat_capacity", "absolute_magnetisation", "squared_magnetisation", "susceptibility", "binder")
SEEDS = range(4)


def deviations(run, exact, names):
    """Of the mean of several seeds, in standard errors."""
    runs = [run(jax.random.key(seed)) for seed in SEEDS]
    found = {}
    for name in names:
        error = np.sqrt(sum(float(getattr(r, f"{name}_error")) ** 2 for r in runs)) / len(runs)
        found[name] = (np.mean([float(getattr(r, name)) for r in runs]) - float(getattr(exact, name))) / error
    return found


# -- the mean-field magnet -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("branch", ["stable", "metastable", "unstable"])
def test_branches_are_stationary_points_of_the_landau_function(branch):
    temperature, field = 0.6, -0.1
    found = mean_field(MeanFieldMagnet(temperature, field), branch=branch)
    m = float(found.magnetisation)
    np.testing.assert_allclose(m, np.tanh((m + field) / temperature), atol=1e-13)
    entropy = -sum(p * np.log(p) for p in ((1 + m) / 2, (1 - m) / 2))
    np.testing.assert_allclose(found.free_energy, -(m**2) / 2 - field * m - temperature * entropy, rtol=1e-12)
    assert (found.susceptibility > 0) == (branch != "unstable")
    assert (m < 0) == (branch == "stable")


def test_branches_have_the_right_derivatives():
    system = MeanFieldMagnet(0.7, 0.05)
    for branch in ("stable", "metastable"):
        found = mean_field(system, branch=branch)
        slope = jax.grad(lambda s, b=branch: mean_field(s, branch=b).free_energy)(system)
        sign = -1 if branch == "metastable" else 1
        np.testing.assert_allclose(slope.field, -found.magnetisation, rtol=1e-10)
        energy = jax.grad(lambda s, b=branch: mean_field(s, branch=b).energy)(system)
        np.testing.assert_allclose(energy.temperature, found.heat_capacity, rtol=1e-10)
        assert sign * found.magnetisation > 0


def test_the_metastable_branch_ends_at_the_spinodal():
    edge = spinodal(MeanFieldMagnet(0.6))
    fields = [factor * float(edge.spinodal_field) for factor in (1 - 1e-9, 1.01)]
    inside, outside = (mean_field(MeanFieldMagnet(0.6, field), branch="metastable") for field in fields)
    np.testing.assert_allclose(-inside.magnetisation, edge.magnetisation, rtol=1e-4)
    assert inside.valid
    assert not outside.valid
    assert np.isnan(outside.magnetisation)
    assert not spinodal(MeanFieldMagnet(1.2)).valid


def test_the_landau_function_and_its_expansion():
    found = landau(MeanFieldMagnet(0.9, 0.01))
    difference = np.asarray(found.landau_function - found.expansion)
    m = np.asarray(found.order_parameter)
    small = np.abs(m) < 0.25
    np.testing.assert_allclose(difference[small], 0.9 * (m**6 / 30 + m**8 / 56)[small], atol=1e-7)  # the next orders
    lowest = m[np.argmin(np.asarray(found.landau_function))]
    assert abs(lowest - float(mean_field(MeanFieldMagnet(0.9, 0.01)).magnetisation)) < 0.006


def test_exact_sums_approach_the_limit_and_keep_the_symmetry():
    up, down, limit = exact_magnet(MeanFieldMagnet(0.8, 0.1, 4000)), exact_magnet(MeanFieldMagnet(0.8, -0.1, 4000)), mean_field(
        MeanFieldMagnet(0.8, 0.1)
    )
    np.testing.assert_allclose(up.magnetisation, -down.magnetisation, rtol=1e-10)
    np.testing.assert_allclose([up.magnetisation, up.heat_capacity], [limit.magnetisation, limit.heat_capacity], rtol=2e-3)
    np.testing.assert_allclose(up.free_energy, limit.free_energy, atol=5e-4)


@pytest.mark.parametrize(("temperature", "field", "spins"), [(1.0, 0.0, 100), (1.3, 0.2, 40)])
def test_heat_bath_dynamics(temperature, field, spins):
    system = MeanFieldMagnet(temperature, field, spins)
    found = deviations(lambda key: glauber(system, key), exact_magnet(system), MOMENTS)
    assert max(map(abs, found.values())) < 4, found


def test_heat_bath_against_the_field_stays_metastable():
    system = MeanFieldMagnet(0.6, 0.05, 1000)
    found = glauber(system, jax.random.key(0), start="against")
    assert abs(found.magnetisation - mean_field(system, branch="metastable").magnetisation) < 0.01


# -- exact solutions of the lattice --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 4), (2, 5), (5, 3), (3, 4)])
@pytest.mark.parametrize("temperature", [0.3, CRITICAL_TEMPERATURE, 8.0])
def test_kaufman_counts_every_configuration(shape, temperature):
    torus, all_states = kaufman(IsingLattice(temperature, shape)), enumerated(IsingLattice(temperature, shape))
    for name in ("free_energy", "energy", "heat_capacity"):
        np.testing.assert_allclose(getattr(torus, name), getattr(all_states, name), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("temperature", "states"), [(1.7, 2), (3.0, 1)])
def test_kaufman_approaches_onsager(temperature, states):
    """Up to exp(-0.5 L), and to the entropy of the two ordered states."""
    torus, infinite = kaufman(IsingLattice(temperature, (64, 64))), onsager(IsingLattice(temperature))
    for name, shift in (("free_energy", temperature * np.log(states) / 64**2), ("energy", 0.0), ("heat_capacity", 0.0)):
        np.testing.assert_allclose(getattr(torus, name) + shift, getattr(infinite, name), rtol=1e-10, atol=1e-10)


def test_the_torus_can_be_differentiated():
    system = IsingLattice(CRITICAL_TEMPERATURE, (16, 16))
    slope = jax.grad(lambda s: kaufman(s).energy)(system).temperature
    np.testing.assert_allclose(slope, kaufman(system).heat_capacity, rtol=1e-10)


def test_energy_and_free_energy_of_the_infinite_lattice_belong_together():
    for temperature in (1.2, 2.26, 2.2691853, 5.0):
        system = IsingLattice(temperature)
        slope = jax.grad(lambda s: onsager(s).free_energy / s.temperature)(system).temperature
        np.testing.assert_allclose(-slope * temperature**2, onsager(system).energy, rtol=1e-10)


def test_the_ring_is_solved_by_its_transfer_matrix():
    length, temperature, field = 10, 1.3, 0.2
    ring = enumerated(IsingLattice(temperature, (length,), field))
    transfer = np.array([[np.exp((s * t + field * (s + t) / 2) / temperature) for t in (1, -1)] for s in (1, -1)])
    power = np.linalg.matrix_power(transfer, length)
    np.testing.assert_allclose(-length * ring.free_energy / temperature, np.log(np.trace(power)), rtol=1e-13)
    np.testing.assert_allclose(ring.magnetisation, (power[0, 0] - power[1, 1]) / np.trace(power), rtol=1e-12)


def test_cold_and_hot_lattices():
    for temperature in (1e-3, 1e-2, 0.05):
        found = kaufman(IsingLattice(temperature, (6, 8)))
        np.testing.assert_allclose([found.energy, found.heat_capacity], [-2, 0], atol=1e-9)
    hot = kaufman(IsingLattice(1e4, (6, 8)))
    np.testing.assert_allclose(hot.energy, -2e-4, rtol=1e-6)


# -- simulations ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "shape", "temperature", "field"),
    [
        (metropolis, (4, 4), CRITICAL_TEMPERATURE, 0.0),
        (metropolis, (4, 4), 2.0, 0.3),
        (metropolis, (8,), 1.0, 0.1),
        (metropolis, (2, 2, 4), 4.0, 0.0),
        (swendsen_wang, (4, 4), CRITICAL_TEMPERATURE, 0.0),
        (swendsen_wang, (4, 4), 2.0, 0.3),
        (swendsen_wang, (3, 5), 3.0, 0.0),
        (swendsen_wang, (2, 2, 4), 4.0, -0.1),
        (wolff, (4, 4), CRITICAL_TEMPERATURE, 0.0),
    ],
)
def test_small_lattices_against_all_configurations(run, shape, temperature, field):
    system = IsingLattice(temperature, shape, field)
    found = deviations(lambda key: run(system, key, sweeps=1000), enumerated(system), MOMENTS)
    assert max(map(abs, found.values())) < 4, found


@pytest.mark.parametrize("length", [8, 16])
@pytest.mark.parametrize("temperature", [2.0, CRITICAL_TEMPERATURE, 2.5])
@pytest.mark.parametrize("run", [metropolis, swendsen_wang])
def test_tori_against_kaufman(run, length, temperature):
    system = IsingLattice(temperature, (length, length))
    found = deviations(lambda key: run(system, key, sweeps=1000), kaufman(system), ("energy", "heat_capacity"))
    assert max(map(abs, found.values())) < 4, found


def test_two_algorithms_agree_on_what_no_formula_gives():
    system = IsingLattice(CRITICAL_TEMPERATURE, (16, 16))
    local, clusters = metropolis(system, jax.random.key(0), sweeps=8000), swendsen_wang(system, jax.random.key(1), sweeps=1000)
    for name in ("absolute_magnetisation", "squared_magnetisation", "susceptibility", "binder"):
        difference = float(getattr(local, name) - getattr(clusters, name))
        error = np.hypot(float(getattr(local, f"{name}_error")), float(getattr(clusters, f"{name}_error")))
        assert abs(difference) < 4 * error, name
    assert local.autocorrelation_time > 3 * clusters.autocorrelation_time


def test_errors_are_those_of_the_scatter_over_runs():
    system = IsingLattice(2.5, (8, 8))
    runs = [swendsen_wang(system, jax.random.key(seed), sweeps=200) for seed in range(60)]
    for name in MOMENTS:
        scatter = np.std([float(getattr(r, name)) for r in runs], ddof=1)
        claimed = np.sqrt(np.mean([float(getattr(r, f"{name}_error")) ** 2 for r in runs]))
        assert 0.7 < claimed / scatter < 1.4, name


def test_clusters_are_the_connected_components():
    bonds = np.random.default_rng(0).uniform(size=(2, 3, 12, 10)) < 0.45
    labels = np.asarray(cluster_labels(jax.numpy.asarray(bonds)))
    number = np.arange(labels.size).reshape(labels.shape)
    parent = list(range(labels.size))

    def root(i):
        while parent[i] != i:
            i = parent[i]
        return i

    for direction, axis in enumerate((1, 2)):
        for here, there, bond in zip(number.ravel(), np.roll(number, -1, axis).ravel(), bonds[direction].ravel(), strict=True):
            if bond:
                parent[root(int(here))] = root(int(there))
    roots = np.array([root(i) for i in range(labels.size)])
    pairs = set(zip(roots.tolist(), labels.ravel().tolist(), strict=True))
    assert len(pairs) == len(set(roots.tolist())) == len(set(labels.ravel().tolist()))
    assert int(cluster_sizes(jax.numpy.asarray(labels)).sum()) == labels.size


def test_the_same_key_gives_the_same_run():
    system = IsingLattice(2.3, (8, 8))
    one, again, other = (swendsen_wang(system, jax.random.key(k), sweeps=100).energy for k in (0, 0, 1))
    assert one == again != other


def test_a_frozen_lattice_is_reported_without_rounding_dust():
    found = metropolis(IsingLattice(0.1, (8, 8)), jax.random.key(0), sweeps=64)
    assert found.converged
    assert (found.energy, found.heat_capacity, found.autocorrelation_time) == (-2, 0, 0)


def test_configurations_look_as_their_energy_says():
    ordered, hot = (configuration(IsingLattice(t, (32, 32)), jax.random.key(0), sweeps=50) for t in (1.0, 10.0))
    assert abs(float(ordered.spin.mean())) > 0.99
    assert abs(float(hot.spin.mean())) < 0.2
    for found, temperature in ((ordered, 1.0), (hot, 10.0)):
        exact = kaufman(IsingLattice(temperature, (32, 32)))
        spread = np.sqrt(float(exact.heat_capacity)) * temperature / 32
        assert abs(float(found.energy - exact.energy)) < 5 * spread


def test_a_crossing_is_found_where_two_parabolas_meet():
    temperature = np.linspace(2.2, 2.34, 8)
    lines = {slope: 0.61 - slope * (temperature - 2.27) + 3 * (temperature - 2.27) ** 2 for slope in (1.0, 3.0)}
    smaller, larger = (
        xr.Dataset({"binder": (("temperature", "seed"), np.stack([y, y], 1))}, {"temperature": temperature})
        for y in lines.values()
    )
    np.testing.assert_allclose(crossing(smaller, larger), [2.27, 2.27], atol=1e-9)


# -- refusals ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metropolis(IsingLattice(2.0, (5, 4)), jax.random.key(0)), r"IsingLattice.shape = \(5, 4\): must be even"),
        (lambda: onsager(IsingLattice(2.0, (4, 4, 4))), r"IsingLattice.shape = \(4, 4, 4\): must have two directions"),
        (lambda: kaufman(IsingLattice(2.0, (4, 4), 0.1)), r"IsingLattice.field = 0.1: must be 0"),
        (lambda: wolff(IsingLattice(2.0, (4, 4), 0.1), jax.random.key(0)), r"IsingLattice.field = 0.1: must be 0"),
        (lambda: enumerated(IsingLattice(2.0, (5, 5))), r"IsingLattice.shape = \(5, 5\): must have at most 20 sites"),
        (lambda: configuration(IsingLattice(2.0, (4,)), jax.random.key(0)), r"IsingLattice.shape = \(4,\): must have two"),
        (lambda: IsingLattice(0.0), r"IsingLattice.temperature = 0.0: must be > 0"),
        (lambda: IsingLattice(2.0, (1, 4)), r"IsingLattice.shape = 1: must be an integer >= 2"),
        (lambda: IsingLattice(2.0, ()), r"IsingLattice.shape = \(\): must have at least one direction"),
        (lambda: MeanFieldMagnet(1.0, 0.0, 1), r"MeanFieldMagnet.spins = 1: must be an integer >= 2"),
        (lambda: mean_field(MeanFieldMagnet(1.0), branch="stabel"), "branch = 'stabel': must be one of"),
    ],
)
def test_what_cannot_be_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_critical_correlations_hold_at_the_critical_temperature_alone():
    found = [critical_correlation(IsingLattice(t)).valid for t in (CRITICAL_TEMPERATURE, 2.2)]
    assert [bool(valid) for valid in found] == [True, False]
