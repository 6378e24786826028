"""Spins: exact solutions against one another, simulations against exact solutions, and refusals."""

import jax
import numpy as np
import pytest
import xarray as xr
from PIL import Image

from orderparam.sampling.lattice.clusters import cluster_labels
from orderparam.sampling.lattice.labels import cluster_sizes
from orderparam.sampling.lattice.random_words import binary_digits, first_word, random_bits
from orderparam.systems.spins import (
    CRITICAL_TEMPERATURE,
    IsingLattice,
    MeanFieldMagnet,
    PottsGraph,
    RegularPotts,
    ScalarField,
    animate,
    best_gaussian_field,
    cavity,
    configuration,
    correlations,
    critical_correlation,
    enumerated,
    exact_magnet,
    field_clusters,
    finite_size_scaling,
    glauber,
    graph_clusters,
    kaufman,
    landau,
    lattice_edges,
    mean_field,
    metropolis,
    onsager,
    potts_enumerated,
    quench,
    random_edges,
    regular_edges,
    regular_graph_clusters,
    spinodal,
    swendsen_wang,
    torus_correlation,
    transfer_matrix,
    wolff,
)
from orderparam.systems.spins.lattice.figures import crossing
from orderparam.systems.spins.lattice.metropolis import added, at_least, metropolis_series, replica_totals

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
    up, down, limit = (
        exact_magnet(MeanFieldMagnet(0.8, 0.1, 4000)),
        exact_magnet(MeanFieldMagnet(0.8, -0.1, 4000)),
        mean_field(MeanFieldMagnet(0.8, 0.1)),
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


# -- 64 replicas in a word ------------------------------------------------------------------------------------------------------


def test_random_bits_have_the_probability_of_their_digits_and_are_independent():
    probability = 0.1716
    _, words = random_bits(first_word(jax.random.key(0)), 40_000, binary_digits(jax.numpy.asarray(probability)))
    bits = (np.asarray(words)[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    spread = np.sqrt(probability * (1 - probability) / len(bits))
    assert np.all(np.abs(bits.mean(axis=0) - probability) < 5 * spread)
    together = np.corrcoef(bits.astype(float), rowvar=False) - np.eye(64)
    assert np.max(np.abs(together)) < 5.5 / np.sqrt(len(bits))
    later = np.corrcoef(bits[1:, 0].astype(float), bits[:-1, 0].astype(float))[0, 1]
    assert abs(later) < 5 / np.sqrt(len(bits))


def test_words_are_added_and_compared_bit_by_bit():
    rng = np.random.default_rng(0)
    planes = [jax.numpy.asarray(rng.integers(2**64, size=10, dtype=np.uint64)) for _ in range(6)]
    each = [(np.asarray(plane)[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1) for plane in planes]
    total = sum(bits.astype(int) for bits in each)
    digits = added(planes)
    found = sum(
        2**k * ((np.asarray(d)[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).astype(int)
        for k, d in enumerate(digits)
    )
    np.testing.assert_array_equal(found, total)
    for threshold in range(8):
        above = (np.asarray(at_least(digits, threshold))[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
        np.testing.assert_array_equal(above == 1, total >= threshold)


@pytest.mark.parametrize("sites", [1, 2, 7, 64, 100])
def test_replicas_are_counted(sites):
    words = np.random.default_rng(1).integers(2**64, size=(3, 2, sites), dtype=np.uint64)
    bits = ((words[..., None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).astype(int)
    np.testing.assert_array_equal(replica_totals(jax.numpy.asarray(words)), bits.sum(axis=2).reshape(3, -1))


def test_replicas_of_one_word_are_independent():
    """Energies of different replicas at the same sweep are not correlated."""
    series = metropolis_series(*map(jax.numpy.asarray, (2.5, 0.0)), jax.random.key(0), (8, 8), 64, 100, 2000, False)
    energy = np.asarray(series.energy)[:, ::10]
    correlation = np.corrcoef(energy) - np.eye(64)
    assert np.max(np.abs(correlation)) < 5.5 * np.sqrt(3 / energy.shape[1])  # samples ten sweeps apart: a few are one
    assert abs(correlation.mean()) < 0.01


# -- correlations, quench, scaling ---------------------------------------------------------------------------------------------


def test_correlations_of_clusters_are_those_of_all_configurations():
    """On 4 x 4 at two diagonal steps and one, summed over all states."""
    temperature, n = 2.5, 4
    spins = (2 * ((np.arange(2**16)[:, None] >> np.arange(16)) & 1) - 1).reshape(-1, n, n)
    energy = -sum((spins * np.roll(spins, 1, axis)).sum((1, 2)) for axis in (1, 2))
    weights = np.exp(-(energy - energy.min()) / temperature)
    weights /= weights.sum()
    exact = [weights @ (spins * np.roll(spins, (r, r), (1, 2))).mean((1, 2)) for r in (1, 2)]
    found = [correlations(IsingLattice(temperature, (n, n)), jax.random.key(seed), sweeps=1000) for seed in SEEDS]
    mean = np.mean([np.asarray(r.correlation) for r in found], axis=0)
    error = np.sqrt(np.sum([np.asarray(r.correlation_error) ** 2 for r in found], axis=0)) / len(found)
    assert np.all(np.abs(mean - exact) < 4 * error)


def test_critical_correlations_on_the_torus():
    """Conformal invariance leaves out O(1/r^2): 0.35 % at four steps."""
    system = IsingLattice(CRITICAL_TEMPERATURE, (16, 16))
    found = [correlations(system, jax.random.key(seed), sweeps=2000) for seed in range(8)]
    mean = np.mean([np.asarray(r.correlation) for r in found], axis=0)[3:]
    error = np.sqrt(np.sum([np.asarray(r.correlation_error) ** 2 for r in found], axis=0))[3:] / len(found)
    wanted = np.asarray(torus_correlation(system, reach=8).correlation)[3:]
    assert np.all(np.abs(mean - wanted) < 4 * error + 0.005 * wanted)


def test_the_torus_is_the_plane_at_short_distances_and_symmetric():
    torus = torus_correlation(IsingLattice(CRITICAL_TEMPERATURE, (4000, 4000)), reach=3999).correlation
    plane = critical_correlation(IsingLattice(CRITICAL_TEMPERATURE), reach=40).correlation
    np.testing.assert_allclose(torus[19:40], plane[19:40], rtol=0.012)  # r/L and 1/r^2
    np.testing.assert_allclose(torus, torus[::-1], rtol=1e-10)


def test_a_quench_orders_and_is_drawn(tmp_path):
    found = quench(IsingLattice(1.5, (32, 32)), jax.random.key(0), sweeps=(0, 5, 50))
    assert np.all(np.diff(found.energy) < 0)
    assert abs(float(found.energy[0])) < 5 * np.sqrt(2 / (32**2 * 64))
    np.testing.assert_array_equal(np.abs(found.spin), 1)
    spin = np.asarray(found.spin[2])
    own = -np.mean(spin * (np.roll(spin, 1, 0) + np.roll(spin, 1, 1)))
    assert abs(own - float(found.energy[2])) < 10 * 8 * float(found.energy_error[2])  # one of 64
    animate(found, tmp_path / "quench.gif")
    with Image.open(tmp_path / "quench.gif") as picture:
        assert (picture.n_frames, picture.size) == (3, (96, 96))


def test_scaling_finds_what_was_put_in():
    """Values that scale exactly with the exponents of the plane, with errors of 0.2 %."""
    rng = np.random.default_rng(0)
    length, temperature = np.array([8.0, 16.0, 32.0, 64.0]), np.linspace(2.24, 2.3, 7)
    u = (temperature - CRITICAL_TEMPERATURE) * length[:, None]
    exact = {
        "binder": 0.61 - 0.08 * u - 0.01 * u**2,
        "absolute_magnetisation": length[:, None] ** -0.125 * (1.0 - 0.15 * u - 0.01 * u**2),
        "squared_magnetisation": length[:, None] ** -0.25 * (1.1 - 0.3 * u + 0.02 * u**2),
    }
    dims = ("length", "temperature")
    data = {name: (dims, y * (1 + 2e-3 * rng.standard_normal(y.shape))) for name, y in exact.items()}
    data |= {f"{name}_error": (dims, 2e-3 * y) for name, y in exact.items()}
    found = finite_size_scaling(xr.Dataset(data, {"length": length, "temperature": temperature}))
    wanted = {"T_c": CRITICAL_TEMPERATURE, "1/nu": 1.0, "beta/nu": 0.125, "gamma/nu": 1.75}
    for name, (value, error) in found.exponents.items():
        assert abs(value - wanted[name]) < 3.5 * error, name
    assert found.binder.sizes == (8, 16, 32, 64)


# -- graphs --------------------------------------------------------------------------------------------------------------------


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
    found = deviations(lambda key: graph_clusters(system, key, sweeps=1000), potts_enumerated(system), MOMENTS)
    assert max(map(abs, found.values())) < 4, found


def test_the_bethe_lattice_orders_where_it_is_known_to():
    """tanh(1/2T) = 1/(c - 1) for two states, here 1/T = ln(1 + q/(c - 2)); the order vanishes as a square root."""
    edge = 1 / np.log(1 + 2 / (4 - 2))
    orders = [float(cavity(RegularPotts(edge * (1 - d), 100, 4)).absolute_magnetisation) for d in (1e-3, 4e-3)]
    np.testing.assert_allclose(orders[1] / orders[0], 2, rtol=0.01)
    assert cavity(RegularPotts(1.01 * edge, 100, 4)).absolute_magnetisation < 1e-6


def test_branches_of_the_bethe_lattice_have_the_right_energies():
    """dln Z/d(1/T) at both branches of a first-order transition."""
    for branch in ("ordered", "disordered"):
        system = RegularPotts(1.05, 100, 4, 6)
        slope = jax.grad(lambda t, b=branch: cavity(RegularPotts(t, 100, 4, 6), branch=b).free_energy / t)(1.05)
        np.testing.assert_allclose(-slope * 1.05**2, cavity(system, branch=branch).energy, rtol=1e-9)


@pytest.mark.parametrize("states", [2, 3])
def test_random_regular_graphs_against_the_cavity_method(states):
    """In the ordered phase, where corrections are O(1/N)."""
    system = RegularPotts(0.8, 2000, 4, states)
    found = deviations(
        lambda key: regular_graph_clusters(system, key, sweeps=100), cavity(system), ("energy", "absolute_magnetisation")
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


# -- the scalar field ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mass", "coupling"), [(-1.0, 0.2), (1.0, 0.5)])
def test_a_field_on_a_ring_against_its_transfer_matrix(mass, coupling):
    system = ScalarField(mass, coupling, (6,))
    found = deviations(lambda key: field_clusters(system, key), transfer_matrix(system), ("squared_field", "fourth_field"))
    assert max(map(abs, found.values())) < 4, found


def test_the_transfer_matrix_of_two_sites_is_a_double_integral():
    mass, coupling = -0.7, 0.3
    phi = np.linspace(-6, 6, 1201)
    potential = mass / 2 * phi**2 + coupling * phi**4
    weight = np.exp(-((phi[:, None] - phi) ** 2) - potential[:, None] - potential)  # two bonds join them
    wanted = np.sum(weight * phi**2) / np.sum(weight)
    np.testing.assert_allclose(transfer_matrix(ScalarField(mass, coupling, (2,))).squared_field, wanted, rtol=1e-10)


def test_the_best_gaussian_field_is_right_at_weak_coupling():
    """To first order in u: <phi^2> falls by 12 u <phi^2> sum_k 1/(r + k^2)^2 / N."""
    mass, coupling, n = 1.0, 1e-6, 8
    momenta = mass + 2 - 2 * np.cos(2 * np.pi * np.arange(n) / n)
    free = np.mean(1 / momenta)
    wanted = free - 12 * coupling * free * np.mean(1 / momenta**2)
    found = best_gaussian_field(ScalarField(mass, coupling, (n,)))
    np.testing.assert_allclose(found.squared_field, wanted, rtol=1e-9)
    np.testing.assert_allclose(
        transfer_matrix(ScalarField(mass, 1e-4, (n,))).squared_field,
        best_gaussian_field(ScalarField(mass, 1e-4, (n,))).squared_field,
        rtol=1e-5,
    )


def test_signs_of_a_field_are_symmetric():
    found = field_clusters(ScalarField(-2.0, 0.25, (4, 4)), jax.random.key(0))
    assert found.absolute_magnetisation > 1
    assert 0.6 < found.binder < 2 / 3


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
        (
            lambda: metropolis(IsingLattice(2.0), jax.random.key(0), replicas=8),
            r"metropolis: replicas = 8: must be a multiple of 64",
        ),
        (
            lambda: quench(IsingLattice(2.0), jax.random.key(0), sweeps=(3, 3)),
            r"quench: sweeps = \(3, 3\): must be whole numbers",
        ),
        (lambda: correlations(IsingLattice(2.0, (4, 4), 0.1), jax.random.key(0)), r"IsingLattice.field = 0.1: must be 0"),
        (lambda: potts_enumerated(PottsGraph(1.0, lattice_edges((5, 5)))), r"PottsGraph.edges join 25 sites: at most"),
        (lambda: PottsGraph(1.0, [[0.0, -1.0]]), r"PottsGraph.edges = -1.0: must be an integer and >= 0"),
        (lambda: regular_graph_clusters(RegularPotts(1.0, 5, 3), jax.random.key(0)), r"RegularPotts.degree = 3 for 5 sites"),
        (lambda: transfer_matrix(ScalarField(1.0, 0.1)), r"ScalarField.shape = \(16, 16\): must have one direction"),
        (lambda: field_clusters(ScalarField(1.0, 0.1, (3, 4)), jax.random.key(0)), r"ScalarField.shape = \(3, 4\): must be even"),
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
