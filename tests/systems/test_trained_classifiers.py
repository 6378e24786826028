"""Classifiers of images of four architectures, and their kernels of infinite width."""

import jax
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq

from orderparam.systems.trained_networks import (
    ImageArchitecture,
    trained_classifier,
    wide_classifier,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4, 4, 1))
Y = np.eye(3)[RNG.integers(0, 3, size=30)] - 1 / 3
SYSTEM = ImageArchitecture(X[:12], Y[:12], X[12:], Y[12:], level=0.1)
FAMILIES = ("fully connected", "locally connected", "convolutional", "pooled")


@pytest.mark.parametrize("kernel", ["ntk", "nngp"])
def test_sharing_weights_matters_at_infinite_width_only_with_pooling(kernel):
    local, shared, pooled = (
        wide_classifier(SYSTEM.with_(family=family), kernel=kernel) for family in FAMILIES[1:]
    )
    np.testing.assert_allclose(local.test_error, shared.test_error, rtol=1e-9)
    assert abs(float(pooled.test_error) / float(shared.test_error) - 1) > 0.01


@pytest.mark.parametrize("family", FAMILIES)
def test_a_small_level_is_interpolation(family):
    system = SYSTEM.with_(family=family, level=1e-10)
    found = wide_classifier(system)
    network = system.architecture
    kernel, cross = network.kernel(X[:12]).ntk, network.kernel(X[12:], X[:12]).ntk
    outputs = np.asarray(cross) @ np.linalg.solve(np.asarray(kernel), Y[:12])
    np.testing.assert_allclose(
        found.test_error, np.mean(np.sum((outputs - Y[12:]) ** 2, axis=1)), rtol=1e-3
    )
    assert float(found.accuracy) == np.mean(outputs.argmax(axis=1) == Y[12:].argmax(axis=1))


@pytest.mark.parametrize("family", ["fully connected", "convolutional"])
def test_the_posterior_mean_has_the_temperature_of_the_level(family):
    """By a root of the training error of ridge regression, without the eigenbasis."""
    system = SYSTEM.with_(family=family)
    network, y, unit = system.architecture, Y[:12], np.eye(12)
    kernel, cross = np.asarray(network.nngp(X[:12])), np.asarray(network.nngp(X[12:], X[:12]))

    def excess(log_temperature):
        ridge = np.exp(log_temperature)
        left = ridge * np.linalg.solve(kernel + ridge * unit, y)
        return np.sum(left**2) / np.sum(y**2) - float(system.level)

    ridge = np.exp(brentq(excess, -20, 10, xtol=1e-14))
    outputs = cross @ np.linalg.solve(kernel + ridge * unit, y)
    found = wide_classifier(system, kernel="nngp")
    np.testing.assert_allclose(
        found.test_error, np.mean(np.sum((outputs - Y[12:]) ** 2, axis=1)), rtol=1e-7
    )


@pytest.mark.parametrize("family", ["fully connected", "convolutional"])
def test_gradient_flow_has_the_time_of_the_level(family):
    system = SYSTEM.with_(family=family)
    network, y = system.architecture, Y[:12]
    kernel = np.asarray(network.kernel(X[:12]).ntk)
    cross = np.asarray(network.kernel(X[12:], X[:12]).ntk)
    scale = np.linalg.norm(kernel, 2)

    def excess(log_time):
        left = expm(-np.exp(log_time) / scale * kernel) @ y
        return np.sum(left**2) / np.sum(y**2) - float(system.level)

    time = np.exp(brentq(excess, -5, 12, xtol=1e-14)) / scale
    outputs = cross @ np.linalg.solve(kernel, y - expm(-time * kernel) @ y)
    found = wide_classifier(system)
    np.testing.assert_allclose(
        found.test_error, np.mean(np.sum((outputs - Y[12:]) ** 2, axis=1)), rtol=1e-7
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_wide_networks_come_to_their_tangent_kernel(family):
    """Labels that depend on the image, of which both kernels learn different shares."""
    labels = np.eye(3)[np.argmax(X[:, 1, :3, 0], axis=1)] - 1 / 3
    system = SYSTEM.with_(
        family=family,
        channels=150,
        learning_rate=0.2,
        targets=labels[:12],
        test_targets=labels[12:],
    )
    runs = [trained_classifier(system, key) for key in jax.random.split(jax.random.key(0), 8)]
    assert all(bool(run.converged) for run in runs)
    errors = np.asarray([float(run.test_error) for run in runs])
    error = errors.std(ddof=1) / np.sqrt(8)
    exact = float(wide_classifier(system).test_error)
    assert abs(errors.mean() - exact) < 3 * error + 0.02 * exact, (errors.mean(), error, exact)
    train = np.asarray([float(run.train_error) for run in runs])
    assert np.all(train <= 0.1 * np.mean(np.sum(labels[:12] ** 2, axis=1)) * (1 + 1e-9))


def test_data_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="side, side, channel"):
        ImageArchitecture(X[:12].reshape(12, -1), Y[:12], X[12:], Y[12:])
    with pytest.raises(ValueError, match="side, side, channel"):
        SYSTEM.with_(inputs=X[:12, :, :3], test_inputs=X[12:, :, :3])
    with pytest.raises(ValueError, match="equally many"):
        SYSTEM.with_(test_targets=Y[:3])
