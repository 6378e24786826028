"""Diffusion models: limits, exact references, and trajectories that go back."""

import jax
import numpy as np
import pytest
from scipy import integrate, stats

from orderparam.systems.diffusion import (
    StoredData,
    StoredGaussians,
    TwoClasses,
    cloned_classes,
    data_times,
    drawn_weights,
    half_weight_time,
    own_weight,
    returned_trajectories,
    speciation,
)

SHARED = StoredGaussians(20, 500, 0.385186)


def runs(experiment, system, count, name, **options):
    """Mean of an observable over seeds, and its standard error."""
    values = [
        float(getattr(experiment(system, jax.random.key(seed), **options), name))
        for seed in range(count)
    ]
    return np.mean(values), np.std(values, ddof=1) / np.sqrt(count)


def test_clones_agree_at_once_and_by_chance_at_last():
    for share in (0.5, 0.2):
        system = TwoClasses([30.0, 0.0], [1.0, 0.5], 0.1, class_share=share)
        np.testing.assert_allclose(speciation(system).same_class, 1.0, atol=1e-12)
        late = speciation(system.with_(time=25.0))
        np.testing.assert_allclose(late.same_class, share**2 + (1 - share) ** 2, rtol=1e-12)
    one = TwoClasses([1.0], [1.0], 1.0, class_share=1.0)
    np.testing.assert_allclose(speciation(one).same_class, 1.0, rtol=1e-12)


def test_the_choice_of_a_class_is_the_integral_over_all_of_space():
    """One dimension, unequal classes: the squared posteriors under the density of x."""
    system = TwoClasses([1.3], [0.4], 0.6, class_share=0.3)
    a, noise = np.exp(-0.6), -np.expm1(-1.2)
    spread = np.sqrt(a**2 * 0.4 + noise)

    def integrand(x):
        parts = np.array([0.3, 0.7]) * stats.norm.pdf(x, [1.3 * a, -1.3 * a], spread)
        return np.sum(parts**2) / np.sum(parts)

    exact = integrate.quad(integrand, -8, 8, epsabs=1e-13, epsrel=1e-13, limit=200)[0]
    np.testing.assert_allclose(speciation(system).same_class, exact, rtol=1e-11)


def test_the_speciation_time_is_that_of_the_covariance():
    system = TwoClasses([1.0, 2.0], [0.5, 0.3], 1.0, class_share=0.3)
    covariance = np.diag([0.5, 0.3]) + 4 * 0.3 * 0.7 * np.outer([1, 2], [1, 2])
    exact = np.log(np.linalg.eigvalsh(covariance)[-1]) / 2
    np.testing.assert_allclose(speciation(system).speciation_time, exact, rtol=1e-12)


def test_cloned_trajectories_meet_the_theory():
    """Unequal shares, unequal variances; 2 % resolution and better."""
    for time in (0.4, 1.0, 1.7):
        system = TwoClasses([2.0, 0.5, 0.0], [0.5, 1.0, 0.2], time, class_share=0.3)
        mean, error = runs(cloned_classes, system, 16, "same_class", pairs=2000)
        assert error < 0.005
        assert abs(mean - speciation(system).same_class) < 3.7 * error


def test_steps_have_an_error_of_second_order():
    """Twelve steps err by 0.011, fifty by less than what can be seen."""
    system = TwoClasses([4.0], [1.0], float(np.log(16) / 2), steps=12)
    exact = speciation(system).same_class
    mean, error = runs(cloned_classes, system, 16, "same_class", pairs=20_000)
    assert mean - exact > 6 * error
    mean, error = runs(cloned_classes, system.with_(steps=50), 16, "same_class", pairs=20_000)
    assert abs(mean - exact) < 3.7 * error


def test_one_example_has_all_the_weight():
    found = own_weight(StoredGaussians(7, 1, 0.8))
    np.testing.assert_allclose(found.own_weight, 1.0, atol=1e-10)
    assert np.isinf(found.collapse_time)


def test_late_all_examples_weigh_the_same_and_early_one_alone():
    for count, time in ((2, 12.0), (30, 12.0), (10_000, 50.0)):
        late = own_weight(StoredGaussians(10, count, time)).own_weight
        np.testing.assert_allclose(late, 1 / count, atol=1e-8)
        early = own_weight(StoredGaussians(20, count, 1e-6)).own_weight
        np.testing.assert_allclose(early, 1.0, atol=1e-9)


def test_two_examples_by_an_independent_integral():
    """w = sigma(e_1 - e_2), and e_1 - e_2 = (delta^2 r/2 + sqrt(r) delta g) for the distance delta
    of two examples, delta^2 = 2 chi^2_d."""
    dimension, time = 6, 0.7
    a, noise = np.exp(-time), -np.expm1(-2 * time)
    r = a**2 / noise
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / weights.sum()

    def integrand(y):
        odds = r * y + np.sqrt(2 * r * y) * nodes
        return stats.chi2.pdf(y, dimension) * (weights @ (1 / (1 + np.exp(-odds))))

    exact = integrate.quad(integrand, 0, 100, epsabs=1e-12, epsrel=1e-12, limit=300)[0]
    found = own_weight(StoredGaussians(dimension, 2, time)).own_weight
    np.testing.assert_allclose(found, exact, rtol=1e-9)


def test_only_the_ratio_of_signal_to_noise_counts():
    one = own_weight(StoredGaussians(12, 40, 0.5)).own_weight
    signal = 1 / np.expm1(1.0)
    time = np.log1p(3.0 / signal) / 2
    other = own_weight(StoredGaussians(12, 40, time, variance=3.0)).own_weight
    np.testing.assert_allclose(one, other, rtol=1e-12)


def test_the_excess_entropy_vanishes_at_the_collapse():
    time = own_weight(SHARED).collapse_time
    found = own_weight(SHARED.with_(time=time))
    np.testing.assert_allclose(found.excess_entropy, 0.0, atol=1e-12)
    assert own_weight(SHARED.with_(time=0.9 * time)).excess_entropy > 0


def test_drawn_weights_and_trajectories_meet_the_theory():
    for time in (0.25, 0.4, 0.6):
        system = SHARED.with_(time=time)
        exact = float(own_weight(system).own_weight)
        for experiment in (drawn_weights, returned_trajectories):
            mean, error = runs(experiment, system, 16, "own_weight")
            assert error < 0.03 * exact
            assert abs(mean - exact) < 3.7 * error


def test_the_half_time_is_where_the_weight_is_half():
    mean, error = runs(half_weight_time, SHARED, 16, "collapse_time")
    assert error < 0.02 * mean
    low, high = (
        own_weight(SHARED.with_(time=mean + shift * error)).own_weight for shift in (3.7, -3.7)
    )
    assert low < 0.5 < high


def test_equal_levels_have_the_isotropic_time():
    """The covariance of a pool of signed unit vectors is a multiple of one."""
    pool = StoredData(np.concatenate([np.eye(6), -np.eye(6)]), np.zeros(12), 10, 0.5)
    found = data_times(pool)
    assert found.converged
    exact = np.log1p(1 / 6 / np.expm1(2 * np.log(10) / 6)) / 2
    np.testing.assert_allclose(found.collapse_time, exact, rtol=1e-12)
    np.testing.assert_allclose(found.isotropic_time, exact, rtol=1e-12)


def test_weights_of_a_pool_are_those_of_all_its_examples():
    """Far examples of four classes: at small times clones stay where they were, at late times all
    weigh the same."""
    examples = 5 * np.concatenate([np.eye(2), -np.eye(2)])
    pool = StoredData(examples, np.array([0.0, 0.0, 1.0, 2.0]), 4, 0.01)
    key = jax.random.key(0)
    for experiment in (drawn_weights, returned_trajectories):
        early = experiment(pool, key)
        np.testing.assert_allclose([early.own_weight, early.same_class], 1.0, atol=1e-12)
    late = drawn_weights(pool.with_(time=20.0), key)
    np.testing.assert_allclose([late.own_weight, late.same_class], [1 / 4, 6 / 16], rtol=1e-6)


def test_a_pool_is_centred_and_scaled():
    rng = np.random.default_rng(0)
    x = 3 + rng.standard_normal((40, 3)) * [1.0, 0.0, 2.0]
    pool = StoredData.from_pool(x, np.arange(40) % 2, 10, 0.5)
    assert pool.examples.shape == (40, 2)
    np.testing.assert_allclose(np.mean(pool.examples, axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.mean(np.asarray(pool.examples) ** 2), 1, rtol=1e-12)
    classes = pool.two_classes(0, 1)
    means = [np.asarray(pool.examples)[one::2].mean(0) for one in (0, 1)]
    distance = np.sum((means[0] - means[1]) ** 2) / 4
    np.testing.assert_allclose(np.sum(np.asarray(classes.mean) ** 2), distance, rtol=1e-12)
    total = np.sum(np.asarray(classes.variances)) + distance
    np.testing.assert_allclose(total, 2, rtol=1e-12)  # within and between classes


def test_gradients_are_those_of_differences():
    def weight(time):
        return own_weight(StoredGaussians(8, 30, time)).own_weight

    slope = jax.grad(weight)(0.5)
    np.testing.assert_allclose(slope, (weight(0.5 + 1e-5) - weight(0.5 - 1e-5)) / 2e-5, rtol=1e-6)


def test_what_is_refused():
    key = jax.random.key(0)
    with pytest.raises(ValueError, match=r"StoredGaussians.input_dim"):
        StoredGaussians(2, 10, 0.5)
    with pytest.raises(ValueError, match="whole number"):
        drawn_weights(StoredGaussians(20, 10.5, 0.5), key)
    with pytest.raises(ValueError, match="all equal"):
        StoredData.from_pool(np.ones((4, 2)), np.zeros(4), 2, 0.5)
    with pytest.raises(ValueError, match=r"n_train = 5: the pool has 4"):
        StoredData.from_pool(np.eye(4), np.zeros(4), 5, 0.5)
    pool = StoredData.from_pool(np.eye(4), np.zeros(4), 4, 0.5)
    with pytest.raises(ValueError, match=r"n_train = 5: the pool has 4"):
        drawn_weights(pool.with_(n_train=5), key)
