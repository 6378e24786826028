"""When to stop on own features: exact paths, and what is known of isotropic and of sparse
spectra."""

import numpy as np
import pytest

from orderparam.networks.fully_connected import fully_connected
from orderparam.systems.training_in_time import when_to_stop, when_to_stop_network
from orderparam.systems.training_in_time.own_data import _errors, _kernel_errors


def draw(noise, examples=400, features=60, decay=0.0, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((examples, features)) * np.arange(1, features + 1) ** (-decay / 2)
    return x, x @ rng.standard_normal(features) + noise * rng.standard_normal(examples)


def test_paths_are_those_of_small_steps_and_of_ridge_regression():
    x, y = draw(1.0, 40, 12)
    order, times, ridges = np.arange(40), np.array([0.7, 5.0]), np.array([0.3, 2.0])
    found = _errors(x, y[:, None], order, 30, times, ridges)
    train, level = x[:30] - x[:30].mean(axis=0), y[:30].mean()
    test = x[30:] - x[:30].mean(axis=0)

    def error(w):
        return np.mean((test @ w + level - y[30:]) ** 2)

    covariance, pull = train.T @ train / 30, train.T @ (y[:30] - level) / 30
    w, step, reached = np.zeros(12), 1e-4, {}
    for k in range(1, 50_001):
        w = w - step * (covariance @ w - pull)
        reached[k] = w
    np.testing.assert_allclose(found[0], error(reached[7000]), rtol=1e-3)
    np.testing.assert_allclose(found[1], error(reached[50_000]), rtol=1e-3)
    for i, ridge in enumerate(ridges):
        exact = error(np.linalg.solve(covariance + ridge * np.eye(12), pull))
        np.testing.assert_allclose(found[2 + i], exact, rtol=1e-9)
    np.testing.assert_allclose(found[4], error(np.linalg.solve(covariance, pull)), rtol=1e-9)


def test_paths_of_a_kernel_are_those_of_its_features():
    x, y = draw(1.0, 40, 12)
    rest = (np.random.default_rng(1).permutation(40), 30, np.array([0.7, 50.0]), np.array([0.3]))
    by_features = _errors(x, y[:, None], *rest)
    np.testing.assert_allclose(_kernel_errors(x @ x.T, y[:, None], *rest), by_features, rtol=1e-9)


def test_a_linear_network_is_told_what_its_features_are_told():
    """The tangent kernel of one linear hidden layer is twice that of the inputs: half the time."""
    x, y = draw(5.0)
    found = when_to_stop_network(fully_connected(1, None, "linear"), x, y, splits=4)
    features = when_to_stop(x, y, splits=4)
    np.testing.assert_allclose(found.flow_error, features.flow_error, rtol=1e-8)
    assert found.time == pytest.approx(features.time / 2)
    assert found.gain == pytest.approx(features.gain, abs=1e-8)


def test_noise_asks_for_stopping_and_its_absence_does_not():
    noisy, clean = when_to_stop(*draw(10.0)), when_to_stop(*draw(0.0))
    assert noisy.inside
    assert noisy.stopped[0] < noisy.ended[0]
    assert noisy.time < clean.time
    assert clean.stopped[0] < 1e-6
    assert noisy.earliest <= noisy.time <= noisy.latest


def test_the_best_ridge_of_isotropic_features_is_not_beaten():
    """Bayes: the ridge cannot lose by more than chance; stopping loses a few per cent at the
    most."""
    gain, error = when_to_stop(*draw(5.0), splits=32).gain
    assert gain < 3 * error + 0.005
    assert gain > -0.08


def test_columns_add_up_and_a_shift_changes_nothing():
    x, y = draw(1.0)
    one = when_to_stop(x, y, splits=4)
    two = when_to_stop(x + 3.0, np.stack([y + 1, y], axis=1), splits=4)
    np.testing.assert_allclose(two.flow_error, 2 * one.flow_error, rtol=1e-8)
    assert two.time == pytest.approx(one.time)


def test_what_is_refused():
    x, y = draw(1.0, 12, 3)
    with pytest.raises(ValueError, match="splits = 2"):
        when_to_stop(x, y, splits=2)
    with pytest.raises(ValueError, match="at least 10"):
        when_to_stop(x[:9], y[:9])
    with pytest.raises(ValueError, match="the same for all"):
        when_to_stop(np.ones((12, 3)), y)
    network = fully_connected(1, None, "erf")
    with pytest.raises(ValueError, match="the same for all"):
        when_to_stop_network(network, np.ones((12, 3)), y)
    with pytest.raises(ValueError, match="at least 10"):
        when_to_stop_network(network, x[:9], y[:9])
