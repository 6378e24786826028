"""The Ising model on lattices: exact solutions against one another, simulations against them, and
refusals."""

import jax
import numpy as np
import pytest
import xarray as xr
from deviations import MOMENTS, SEEDS, deviations
from PIL import Image

from orderparam.sampling.lattice.clusters import (
    _joined_one_by_one,
    _joined_together,
    cluster_labels,
)
from orderparam.sampling.lattice.labels import cluster_sizes
from orderparam.sampling.lattice.random_words import binary_digits, first_word, random_bits
from orderparam.systems.spins import (
    CRITICAL_TEMPERATURE,
    IsingLattice,
    animate,
    configuration,
    correlations,
    critical_correlation,
    enumerated,
    finite_size_scaling,
    kaufman,
    metropolis,
    onsager,
    quench,
    swendsen_wang,
    torus_correlation,
    wolff,
)
from orderparam.systems.spins.lattice.crossings import crossing
from orderparam.systems.spins.lattice.metropolis import (
    added,
    at_least,
    metropolis_series,
    replica_totals,
)

# -- exact solutions of the lattice ---------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 4), (2, 5), (5, 3), (3, 4)])
@pytest.mark.parametrize("temperature", [0.3, CRITICAL_TEMPERATURE, 8.0])
def test_kaufman_counts_every_configuration(shape, temperature):
    torus, all_states = (
        kaufman(IsingLattice(temperature, shape)),
        enumerated(IsingLattice(temperature, shape)),
    )
    for name in ("free_energy", "energy", "heat_capacity"):
        np.testing.assert_allclose(
            getattr(torus, name), getattr(all_states, name), rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize(("temperature", "states"), [(1.7, 2), (3.0, 1)])
def test_kaufman_approaches_onsager(temperature, states):
    """Up to exp(-0.5 L), and to the entropy of the two ordered states."""
    torus, infinite = (
        kaufman(IsingLattice(temperature, (64, 64))),
        onsager(IsingLattice(temperature)),
    )
    for name, shift in (
        ("free_energy", temperature * np.log(states) / 64**2),
        ("energy", 0.0),
        ("heat_capacity", 0.0),
    ):
        np.testing.assert_allclose(
            getattr(torus, name) + shift, getattr(infinite, name), rtol=1e-10, atol=1e-10
        )


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
    transfer = np.array(
        [[np.exp((s * t + field * (s + t) / 2) / temperature) for t in (1, -1)] for s in (1, -1)]
    )
    power = np.linalg.matrix_power(transfer, length)
    np.testing.assert_allclose(
        -length * ring.free_energy / temperature, np.log(np.trace(power)), rtol=1e-13
    )
    np.testing.assert_allclose(
        ring.magnetisation, (power[0, 0] - power[1, 1]) / np.trace(power), rtol=1e-12
    )


def test_cold_and_hot_lattices():
    for temperature in (1e-3, 1e-2, 0.05):
        found = kaufman(IsingLattice(temperature, (6, 8)))
        np.testing.assert_allclose([found.energy, found.heat_capacity], [-2, 0], atol=1e-9)
    hot = kaufman(IsingLattice(1e4, (6, 8)))
    np.testing.assert_allclose(hot.energy, -2e-4, rtol=1e-6)


# -- simulations ---------------------------------------------------------------------------------


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
    found = deviations(
        lambda key: run(system, key, sweeps=1000), kaufman(system), ("energy", "heat_capacity")
    )
    assert max(map(abs, found.values())) < 4, found


def test_two_algorithms_agree_on_what_no_formula_gives():
    system = IsingLattice(CRITICAL_TEMPERATURE, (16, 16))
    local, clusters = (
        metropolis(system, jax.random.key(0), sweeps=8000),
        swendsen_wang(system, jax.random.key(1), sweeps=1000),
    )
    for name in ("absolute_magnetisation", "squared_magnetisation", "susceptibility", "binder"):
        difference = float(getattr(local, name) - getattr(clusters, name))
        error = np.hypot(
            float(getattr(local, f"{name}_error")), float(getattr(clusters, f"{name}_error"))
        )
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
        for here, there, bond in zip(
            number.ravel(), np.roll(number, -1, axis).ravel(), bonds[direction].ravel(), strict=True
        ):
            if bond:
                parent[root(int(here))] = root(int(there))
    roots = np.array([root(i) for i in range(labels.size)])
    pairs = set(zip(roots.tolist(), labels.ravel().tolist(), strict=True))
    assert len(pairs) == len(set(roots.tolist())) == len(set(labels.ravel().tolist()))
    assert int(cluster_sizes(jax.numpy.asarray(labels)).sum()) == labels.size


@pytest.mark.parametrize("shape", [(2, 7, 5), (3, 1, 4), (1, 2, 2), (2, 6, 4, 3), (2, 9)])
def test_labels_one_after_the_other_are_those_of_all_sites_together(shape):
    drawn = np.random.default_rng(1).uniform(size=(4, len(shape) - 1, *shape))
    bonds = jax.numpy.asarray(
        drawn < np.array([0.0, 0.4, 0.6, 1.0]).reshape(-1, *(1,) * (drawn.ndim - 1))
    )
    together = [_joined_together(given) for given in bonds]
    np.testing.assert_array_equal([_joined_one_by_one(given) for given in bonds], together)
    np.testing.assert_array_equal(jax.vmap(cluster_labels)(bonds), together)


def test_the_same_key_gives_the_same_run():
    system = IsingLattice(2.3, (8, 8))
    one, again, other = (
        swendsen_wang(system, jax.random.key(k), sweeps=100).energy for k in (0, 0, 1)
    )
    assert one == again != other


def test_a_frozen_lattice_is_reported_without_rounding_dust():
    found = metropolis(IsingLattice(0.1, (8, 8)), jax.random.key(0), sweeps=64)
    assert found.converged
    assert (found.energy, found.heat_capacity, found.autocorrelation_time) == (-2, 0, 0)


def test_configurations_look_as_their_energy_says():
    ordered, hot = (
        configuration(IsingLattice(t, (32, 32)), jax.random.key(0), sweeps=50) for t in (1.0, 10.0)
    )
    assert abs(float(ordered.spin.mean())) > 0.99
    assert abs(float(hot.spin.mean())) < 0.2
    for found, temperature in ((ordered, 1.0), (hot, 10.0)):
        exact = kaufman(IsingLattice(temperature, (32, 32)))
        spread = np.sqrt(float(exact.heat_capacity)) * temperature / 32
        assert abs(float(found.energy - exact.energy)) < 5 * spread


def _binder(temperature, curve):
    return xr.Dataset(
        {"binder": (("temperature", "seed"), np.stack([curve, curve], 1))},
        {"temperature": temperature},
    )


def test_a_crossing_is_found_where_two_parabolas_meet():
    temperature = np.linspace(2.2, 2.34, 8)
    smaller, larger = (
        _binder(temperature, 0.61 - slope * (temperature - 2.27) + 3 * (temperature - 2.27) ** 2)
        for slope in (1.0, 3.0)
    )
    np.testing.assert_allclose(crossing(smaller, larger, 4), [2.27, 2.27], atol=1e-9)


def test_a_crossing_comes_from_temperatures_near_it():
    """A polynomial through all temperatures does not follow ratios that saturate."""
    temperature = np.linspace(2.2, 2.4, 41)
    smaller, larger = (
        _binder(temperature, 0.61 - 0.3 * np.tanh(length * (temperature - 2.27)))
        for length in (32, 64)
    )
    far, near = (crossing(smaller, larger, length) for length in (1, 64))
    np.testing.assert_allclose(near, 2.27, atol=2e-4)
    assert np.all(abs(far - 2.27) > 4 * abs(near - 2.27))


# -- 64 replicas in a word -----------------------------------------------------------------------


def test_looking_less_often_shows_the_same_states():
    """The same updates; what is seen after every fourth sweep has the same mean, and correlation
    times in sweeps agree."""
    system = IsingLattice(2.6, (16, 16))
    often, rarely = (
        metropolis(system, jax.random.key(0), sweeps=4000, every=every) for every in (1, 4)
    )
    assert abs(often.energy - rarely.energy) < 4 * rarely.energy_error
    assert 0.6 < rarely.autocorrelation_time / often.autocorrelation_time < 1.6


def test_random_bits_have_the_probability_of_their_digits_and_are_independent():
    probability = 0.1716
    _, words = random_bits(
        first_word(jax.random.key(0)), 40_000, binary_digits(jax.numpy.asarray(probability))
    )
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
    each = [
        (np.asarray(plane)[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
        for plane in planes
    ]
    total = sum(bits.astype(int) for bits in each)
    digits = added(planes)
    found = sum(
        2**k
        * ((np.asarray(d)[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).astype(int)
        for k, d in enumerate(digits)
    )
    np.testing.assert_array_equal(found, total)
    for threshold in range(8):
        above = (
            np.asarray(at_least(digits, threshold))[:, None] >> np.arange(64, dtype=np.uint64)
        ) & np.uint64(1)
        np.testing.assert_array_equal(above == 1, total >= threshold)


@pytest.mark.parametrize("sites", [1, 2, 7, 64, 100])
def test_replicas_are_counted(sites):
    words = np.random.default_rng(1).integers(2**64, size=(3, 2, sites), dtype=np.uint64)
    bits = ((words[..., None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).astype(int)
    np.testing.assert_array_equal(
        replica_totals(jax.numpy.asarray(words)), bits.sum(axis=2).reshape(3, -1)
    )


def test_replicas_of_one_word_are_independent():
    """Energies of different replicas at the same sweep are not correlated."""
    series = metropolis_series(
        *map(jax.numpy.asarray, (2.5, 0.0)), jax.random.key(0), (8, 8), 64, 100, 2000, False
    )
    energy = np.asarray(series.energy)[:, ::10]
    correlation = np.corrcoef(energy) - np.eye(64)
    # samples ten sweeps apart: a few are one
    assert np.max(np.abs(correlation)) < 5.5 * np.sqrt(3 / energy.shape[1])
    assert abs(correlation.mean()) < 0.01


# -- correlations, quench, scaling ---------------------------------------------------------------


def test_correlations_of_clusters_are_those_of_all_configurations():
    """On 4 x 4 at two diagonal steps and one, summed over all states."""
    temperature, n = 2.5, 4
    spins = (2 * ((np.arange(2**16)[:, None] >> np.arange(16)) & 1) - 1).reshape(-1, n, n)
    energy = -sum((spins * np.roll(spins, 1, axis)).sum((1, 2)) for axis in (1, 2))
    weights = np.exp(-(energy - energy.min()) / temperature)
    weights /= weights.sum()
    exact = [weights @ (spins * np.roll(spins, (r, r), (1, 2))).mean((1, 2)) for r in (1, 2)]
    found = [
        correlations(IsingLattice(temperature, (n, n)), jax.random.key(seed), sweeps=1000)
        for seed in SEEDS
    ]
    mean = np.mean([np.asarray(r.correlation) for r in found], axis=0)
    error = np.sqrt(np.sum([np.asarray(r.correlation_error) ** 2 for r in found], axis=0)) / len(
        found
    )
    assert np.all(np.abs(mean - exact) < 4 * error)


def test_critical_correlations_on_the_torus():
    """Conformal invariance leaves out O(1/r^2): 0.35 % at four steps."""
    system = IsingLattice(CRITICAL_TEMPERATURE, (16, 16))
    found = [correlations(system, jax.random.key(seed), sweeps=2000) for seed in range(8)]
    mean = np.mean([np.asarray(r.correlation) for r in found], axis=0)[3:]
    error = np.sqrt(np.sum([np.asarray(r.correlation_error) ** 2 for r in found], axis=0))[
        3:
    ] / len(found)
    wanted = np.asarray(torus_correlation(system, reach=8).correlation)[3:]
    assert np.all(np.abs(mean - wanted) < 4 * error + 0.005 * wanted)


def test_the_torus_is_the_plane_at_short_distances_and_symmetric():
    torus = torus_correlation(
        IsingLattice(CRITICAL_TEMPERATURE, (4000, 4000)), reach=3999
    ).correlation
    plane = critical_correlation(IsingLattice(CRITICAL_TEMPERATURE), reach=40).correlation
    np.testing.assert_allclose(torus[19:40], plane[19:40], rtol=0.012)  # r/L and 1/r^2
    np.testing.assert_allclose(torus, torus[::-1], rtol=1e-10)


def test_where_the_diagonal_comes_back_there_is_no_correlation_to_tell():
    small = IsingLattice(CRITICAL_TEMPERATURE, (4, 4))
    assert torus_correlation(small).correlation.shape == (2,)
    with pytest.raises(ValueError, match=r"reach = 4: must be from 0 to 3; .*shape = \(4, 4\)"):
        torus_correlation(small, reach=4)


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
    data = {
        name: (dims, y * (1 + 2e-3 * rng.standard_normal(y.shape))) for name, y in exact.items()
    }
    data |= {f"{name}_error": (dims, 2e-3 * y) for name, y in exact.items()}
    found = finite_size_scaling(xr.Dataset(data, {"length": length, "temperature": temperature}))
    wanted = {"T_c": CRITICAL_TEMPERATURE, "1/nu": 1.0, "beta/nu": 0.125, "gamma/nu": 1.75}
    for name, (value, error) in found.exponents.items():
        assert abs(value - wanted[name]) < 3.5 * error, name
    assert found.binder.sizes == (8, 16, 32, 64)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: metropolis(IsingLattice(2.0, (5, 4)), jax.random.key(0)),
            r"IsingLattice.shape = \(5, 4\): must be even",
        ),
        (
            lambda: onsager(IsingLattice(2.0, (4, 4, 4))),
            r"IsingLattice.shape = \(4, 4, 4\): must have two directions",
        ),
        (lambda: kaufman(IsingLattice(2.0, (4, 4), 0.1)), r"IsingLattice.field = 0.1: must be 0"),
        (
            lambda: wolff(IsingLattice(2.0, (4, 4), 0.1), jax.random.key(0)),
            r"IsingLattice.field = 0.1: must be 0",
        ),
        (
            lambda: enumerated(IsingLattice(2.0, (5, 5))),
            r"IsingLattice.spins = 25: must be <= 20",
        ),
        (
            lambda: configuration(IsingLattice(2.0, (4,)), jax.random.key(0)),
            r"IsingLattice.shape = \(4,\): must have two",
        ),
        (
            lambda: metropolis(IsingLattice(2.0), jax.random.key(0), replicas=8),
            r"metropolis: replicas = 8: must be a multiple of 64",
        ),
        (
            lambda: metropolis(IsingLattice(2.0), jax.random.key(0), sweeps=100, every=20),
            r"metropolis: every = 20 for 100 sweeps: must leave at least 8",
        ),
        (
            lambda: quench(IsingLattice(2.0), jax.random.key(0), sweeps=(3, 3)),
            r"quench: sweeps = \(3, 3\): must be whole numbers",
        ),
        (
            lambda: correlations(IsingLattice(2.0, (4, 4), 0.1), jax.random.key(0)),
            r"IsingLattice.field = 0.1: must be 0",
        ),
        (lambda: IsingLattice(0.0), r"IsingLattice.temperature = 0.0: must be > 0"),
        (lambda: IsingLattice(2.0, (1, 4)), r"IsingLattice.shape = 1: must be an integer >= 2"),
        (
            lambda: IsingLattice(2.0, ()),
            r"IsingLattice.shape = \(\): must have at least one direction",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_critical_correlations_hold_at_the_critical_temperature_alone():
    found = [critical_correlation(IsingLattice(t)).valid for t in (CRITICAL_TEMPERATURE, 2.2)]
    assert [bool(valid) for valid in found] == [True, False]
