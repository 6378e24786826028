"""Storage capacity: identities of the theories, experiments against exact laws, and refusals."""

import itertools
from types import SimpleNamespace

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from orderparam.systems.storage_capacity import (
    BinaryPatterns,
    SphericalPatterns,
    annealed_search,
    at_line_gardner_derrida,
    binary_capacity,
    capacity,
    cover,
    enumerated_solutions,
    fewest_errors,
    fewest_errors_by_programming,
    largest_margin,
    maximal_margin,
    minimal_error,
    perceptron_learning,
    separability,
    solutions,
    storage_limit,
    volume,
)
from orderparam.systems.storage_capacity.binary_experiment import _survivors
from orderparam.systems.storage_capacity.experiment import _fewest_errors
from orderparam.systems.storage_capacity.fewest_errors import programmed_errors
from orderparam.systems.storage_capacity.studies_binary import draw_binary_limits


def fractions(run, seeds=4):
    """Mean and standard error of the success fraction over seeds."""
    found = [run(jax.random.key(seed)) for seed in range(seeds)]
    errors = [float(r.success_fraction_error) for r in found]
    return np.mean([float(r.success_fraction) for r in found]), np.sqrt(
        np.sum(np.square(errors))
    ) / seeds


# -- theories ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("load", "margin"), [(0.01, 0.0), (1.0, 0.3), (1.9, 0.0), (4.0, -0.5)])
def test_the_entropy_of_solutions_is_stationary_in_their_overlap(load, margin):
    """dS/d(alpha) = int Dt ln H, the derivative at fixed overlap."""
    found = volume(SphericalPatterns(load, margin))
    slope = jax.grad(lambda a: volume(SphericalPatterns(a, margin)).entropy)(load)
    step = 1e-4 * load
    ends = [float(volume(SphericalPatterns(load + s * step, margin)).entropy) for s in (1, -1)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=1e-5)
    assert found.converged
    assert found.entropy < 0 < found.overlap < 1


def test_the_volume_shrinks_to_a_point_at_the_capacity():
    near, beyond = (volume(SphericalPatterns(load)) for load in (2 - 1e-5, 2.01))
    assert near.converged
    assert near.overlap > 1 - 1e-4
    assert not beyond.converged


def test_without_margin_every_pattern_halves_the_sphere_at_small_load():
    load = 1e-4
    np.testing.assert_allclose(
        volume(SphericalPatterns(load)).entropy, -load * np.log(2), rtol=1e-3
    )


def test_more_bias_stores_more_patterns():
    found = [
        float(capacity(SphericalPatterns(margin=0.2, bias=b)).capacity)
        for b in (0.0, 1e-6, 0.3, 0.6, 0.99)
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
    assert np.all(np.diff(found[1:]) > 0)


def test_errors_begin_at_the_capacity():
    edge = float(capacity(SphericalPatterns(margin=0.3)).capacity)
    below, above = (
        minimal_error(SphericalPatterns(factor * edge, 0.3)) for factor in (0.999, 1.01)
    )
    assert below.error_fraction == 0
    assert np.isinf(below.gap)
    assert 0 < above.error_fraction < 1e-3


def test_the_line_of_instability_is_where_the_criterion_is_one():
    line = float(at_line_gardner_derrida(SphericalPatterns(margin=0.7)).load)
    np.testing.assert_allclose(minimal_error(SphericalPatterns(line, 0.7)).at_value, 1, rtol=1e-9)
    assert not at_line_gardner_derrida(SphericalPatterns(margin=-0.1)).valid


def test_negative_margins_are_said_to_be_bounds():
    assert not largest_margin(SphericalPatterns(2.5)).valid
    assert not capacity(SphericalPatterns(margin=-0.1)).exact


def test_replica_symmetric_entropy_is_below_the_annealed_one_and_vanishes_at_the_capacity():
    for margin in (-0.5, 0.0, 0.7):
        edge = float(binary_capacity(BinaryPatterns(margin=margin)).capacity)
        for factor in (0.2, 0.9):
            found = solutions(BinaryPatterns(factor * edge, margin))
            assert 0 < found.entropy < found.annealed_entropy
            assert not found.frozen
        at, beyond = (solutions(BinaryPatterns(factor * edge, margin)) for factor in (1.0, 1.05))
        assert abs(at.entropy) < 1e-12
        assert beyond.frozen


def test_the_entropy_of_binary_couplings_is_stationary():
    slope = jax.grad(lambda a: solutions(BinaryPatterns(a)).entropy)(0.5)
    ends = [float(solutions(BinaryPatterns(0.5 + s * 1e-5)).entropy) for s in (1, -1)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-5, rtol=1e-7)


# -- experiments ---------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [1.6, 2.0, 2.4])
def test_linear_programming_against_cover(load):
    system = SphericalPatterns(load, input_dim=20)
    mean, error = fractions(lambda key: separability(system, key, samples=40))
    assert abs(mean - float(cover(system).success_fraction)) < 4 * error


def test_perceptron_learning_succeeds_where_it_can_and_takes_longer_nearer_to_the_capacity():
    easy, hard = (
        perceptron_learning(
            SphericalPatterns(load, input_dim=20), jax.random.key(0), max_sweeps=2000
        )
        for load in (0.8, 1.4)
    )
    assert easy.success_fraction == 1
    assert hard.sweeps > 2 * easy.sweeps
    mean, error = fractions(
        lambda key: perceptron_learning(SphericalPatterns(1.4, input_dim=20), key, max_sweeps=2000)
    )
    assert (
        abs(mean - float(cover(SphericalPatterns(1.4, input_dim=20)).success_fraction)) < 4 * error
    )


@pytest.mark.parametrize("load", [0.5, 1.0])
def test_hard_margins_approach_the_theory(load):
    """A hundred inputs lie O(1/N) off; conditions of optimality hold far below 1e-6."""
    found = [
        maximal_margin(SphericalPatterns(load, input_dim=100), jax.random.key(seed))
        for seed in range(4)
    ]
    assert max(float(r.condition) for r in found) < 1e-9
    error = np.sqrt(sum(float(r.margin_error) ** 2 for r in found)) / 4
    wanted = float(largest_margin(SphericalPatterns(load)).margin)
    assert abs(np.mean([float(r.margin) for r in found]) - wanted) < 4 * error + 1 / 100


def test_patterns_that_cannot_be_stored_have_no_margin():
    found = maximal_margin(SphericalPatterns(4.0, input_dim=10), jax.random.key(0), samples=5)
    assert found.success_fraction == 0
    assert np.isnan(found.margin)


def test_the_fewest_errors_are_those_of_all_separations():
    """For two inputs the direction of the couplings is one angle, which is scanned."""
    rng = np.random.default_rng(0)
    for p in (1, 3, 8, 15):
        patterns = rng.standard_normal((p, 2))
        angles = np.linspace(0, 2 * np.pi, 20_001)
        wrong = np.sum(np.stack([np.cos(angles), np.sin(angles)], 1) @ patterns.T < 0, axis=1)
        assert _fewest_errors(patterns) == wrong.min()


def test_exact_errors_vanish_when_the_patterns_are_separable():
    system = SphericalPatterns(2.0, input_dim=4)
    errors = [
        float(fewest_errors(system, jax.random.key(seed), samples=40).error_fraction)
        for seed in range(4)
    ]
    # of 8 patterns half of the samples are separable, and the others lack at least one
    assert 0.5 / 8 - 0.02 < np.mean(errors) < 0.5 * 2 / 8


@pytest.mark.parametrize("margin", [0.0, 0.6])
def test_solutions_are_counted(margin):
    n, p = 9, 4
    rng = np.random.default_rng(1)
    patterns = rng.integers(2**n, size=p)
    spins = 2 * ((patterns[:, None] >> np.arange(n)) & 1) - 1
    couplings = np.array(list(itertools.product((-1, 1), repeat=n)))
    stored = couplings @ spins.T >= margin * np.sqrt(n) - 1e-9
    wanted = [np.sum(np.all(stored[:, :k], axis=1)) for k in range(p + 1)]
    unlike = int(np.floor((n - margin * np.sqrt(n)) / 2 + 1e-9))
    assert _survivors(n, unlike, patterns).tolist() == wanted


def test_chunks_cover_all_couplings():
    assert _survivors(22, 22, [5, 9]).tolist() == [2**22] * 3


def test_entropies_of_small_ones_are_those_of_the_theory_at_small_load():
    found = [
        enumerated_solutions(BinaryPatterns(0.2, input_dim=19), jax.random.key(seed))
        for seed in range(4)
    ]
    mean = np.mean([float(r.entropy) for r in found])
    assert abs(mean - float(solutions(BinaryPatterns(4 / 19)).entropy)) < 0.03
    assert all(r.success_fraction == 1 for r in found)


@pytest.mark.slow
def test_all_couplings_of_thirty_inputs():
    """2^30 couplings of one sample; its entropy is one of those that samples of 20 inputs have."""
    found = enumerated_solutions(BinaryPatterns(0.5, input_dim=30), jax.random.key(0), samples=1)
    smaller = enumerated_solutions(BinaryPatterns(0.5, input_dim=20), jax.random.key(1), samples=40)
    assert found.success_fraction == 1
    assert abs(float(found.entropy - smaller.entropy)) < 3 * np.sqrt(40) * float(
        smaller.entropy_error
    )


@pytest.mark.parametrize(("inputs", "wanted", "error"), [(11, 0.893, 0.016), (15, 0.874, 0.012)])
def test_the_storage_limit_of_small_ones(inputs, wanted, error):
    """Mean p/N at which the last couplings vanish, in an independent run of the specification: one
    pattern beyond the limit."""
    found = [
        storage_limit(BinaryPatterns(input_dim=inputs), jax.random.key(seed), samples=60)
        for seed in range(4)
    ]
    mean = np.mean([float(r.capacity) for r in found])
    own = np.sqrt(sum(float(r.capacity_error) ** 2 for r in found)) / 4
    assert abs(mean - wanted) < 4 * np.hypot(own, error)


def test_annealing_finds_what_is_there():
    easy = annealed_search(
        BinaryPatterns(0.3, input_dim=51), jax.random.key(0), samples=8, sweeps=100
    )
    hopeless = annealed_search(
        BinaryPatterns(1.5, input_dim=51), jax.random.key(0), samples=8, sweeps=100
    )
    assert easy.success_fraction == 1
    assert easy.error_fraction == 0
    assert hopeless.success_fraction == 0
    assert hopeless.error_fraction > 0.02


# -- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: SphericalPatterns(bias=1.0),
            r"SphericalPatterns.bias = 1.0: must be >= 0 and < 1",
        ),
        (lambda: SphericalPatterns(0.0), r"SphericalPatterns.load = 0.0: must be > 0"),
        (lambda: volume(SphericalPatterns(bias=0.2)), r"SphericalPatterns.bias = 0.2: must be 0"),
        (
            lambda: cover(SphericalPatterns(margin=0.2)),
            r"SphericalPatterns.margin = 0.2: must be 0",
        ),
        (
            lambda: separability(SphericalPatterns(margin=0.2), jax.random.key(0)),
            r"SphericalPatterns.margin = 0.2: must be 0",
        ),
        (
            lambda: maximal_margin(SphericalPatterns(margin=-0.2), jax.random.key(0)),
            r"SphericalPatterns.margin = -0.2: must be >=",
        ),
        (
            lambda: separability(SphericalPatterns(0.001), jax.random.key(0)),
            r"SphericalPatterns.load = 0.001: is less than one",
        ),
        (
            lambda: fewest_errors(SphericalPatterns(4.0), jax.random.key(0)),
            r"SphericalPatterns.load = 4 with 50 inputs has",
        ),
        (
            lambda: enumerated_solutions(BinaryPatterns(input_dim=31), jax.random.key(0)),
            r"BinaryPatterns.input_dim = 31: must be <= 30",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_fewest_errors_by_programming_are_those_of_all_corners():
    rng = np.random.default_rng(1)
    for n, p in ((2, 9), (3, 12), (4, 16), (5, 18)):
        patterns = rng.standard_normal((p, n))
        assert programmed_errors(patterns, rng) == _fewest_errors(patterns)
    assert programmed_errors(rng.standard_normal((5, 6)), rng) == 0
    system = SphericalPatterns(4.0, input_dim=4)
    both = [
        float(measure(system, jax.random.key(2), samples=8).error_fraction)
        for measure in (fewest_errors, fewest_errors_by_programming)
    ]
    assert both[0] == both[1] > 0


@pytest.mark.parametrize(("sizes", "fitted"), [([9], False), ([9, 11], True)])
def test_errors_of_one_number_of_couplings_are_drawn_without_a_fit(sizes, fitted):
    load = {"load": [1.0, 2.0, 3.0]}
    numbers = {name: ("load", np.ones(3)) for name in ("temperature", "error_fraction")}
    errors = {name: (("load", "seed"), np.full((3, 4), 0.1)) for name in ("error_fraction",)}
    errors["error_fraction_error"] = errors["error_fraction"]
    runs = {f"runs {n}": xr.Dataset(errors, load, {"facets": {"input_dim": n}}) for n in sizes}
    comparison = SimpleNamespace(
        theories=lambda: {"theory": xr.Dataset(numbers, load)}, experiments=lambda: runs
    )
    _, axes = plt.subplots()
    draw_binary_limits(axes, comparison)
    label = axes.get_legend_handles_labels()[1][1]
    assert label.startswith(r"$\alpha$ = 2")
    assert ("±" in label) == fitted
    plt.close("all")
