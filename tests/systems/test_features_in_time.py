"""Features in time: limits, exact linear units, and networks of finite width."""

import jax
import numpy as np
import pytest

from orderparam.networks.fully_connected import fully_connected
from orderparam.systems.features_in_time import (
    FeatureDescent,
    best_rate,
    linear_recursion,
    particle_dynamics,
    trained_features,
    tuned_network,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((14, 4))
Y = np.sin(2 * X[:, 0])


def system(**fields):
    return FeatureDescent(X[:8], Y[:8], X[8:], Y[8:], **{"steps": 12, **fields})


def test_linear_particles_are_the_exact_moments():
    for parametrisation, rate in (("mean-field", 0.1), ("standard", 1e-3)):
        linear = system(activation="linear", parametrisation=parametrisation, learning_rate=rate)
        exact, drawn = linear_recursion(linear), particle_dynamics(linear, samples=2048, runs=4)
        for name in ("test_error", "train_error"):
            difference = np.asarray(getattr(drawn, name) - getattr(exact, name))
            assert np.max(np.abs(difference)) < 2e-3, (parametrisation, name)
        np.testing.assert_allclose(drawn.kernel_drift, exact.kernel_drift, rtol=1e-2)
        assert float(exact.kernel_drift) > 1e-4


def test_the_moments_are_those_of_a_network_that_has_them():
    """A wide linear network: its error is that of the moments to a few per cent, and closer at 16
    times the width."""
    exact = linear_recursion(system(activation="linear")).train_error[-1]
    apart = []
    for width in (64, 1024):
        one = system(activation="linear", width=width)
        runs = jax.vmap(lambda key, one=one: trained_features(one, key))(
            jax.random.split(jax.random.key(0), 16)
        )
        apart.append(abs(float(np.mean(runs.train_error[:, -1]) / exact - 1)))
    assert apart[1] < 0.03


def test_no_richness_is_the_frozen_kernel():
    """Theta of K and its derivative, by the closed forms of the activation."""
    lazy = particle_dynamics(system(richness=1e-3, activation="erf_scaled"), samples=4096)
    kernel = fully_connected(1, None, "erf_scaled", weight_variance=1.0, bias_variance=0.0)
    theta = np.asarray(kernel.kernel(X).ntk)
    delta, errors = Y.copy(), []
    for _ in range(13):
        errors.append(np.mean(delta[:8] ** 2))
        delta = delta - 0.1 * theta[:, :8] @ delta[:8]
    np.testing.assert_allclose(lazy.train_error, errors, rtol=5e-3)
    assert float(lazy.kernel_drift) < 1e-4


def test_networks_of_finite_width():
    theory = particle_dynamics(system(richness=2.0), samples=2048)
    wide = system(richness=2.0, width=1024)
    runs = jax.vmap(lambda key: trained_features(wide, key))(
        jax.random.split(jax.random.key(1), 16)
    )
    for name in ("test_error", "train_error", "kernel_drift"):
        values = np.asarray(getattr(runs, name))
        expected = np.asarray(getattr(theory, name))
        error = np.sqrt(
            values.var(axis=0, ddof=1) / 16
            + np.asarray(getattr(theory, f"{name}_uncertainty")) ** 2
        )
        assert np.all(np.abs(values.mean(axis=0) - expected) < 4 * error + 0.01 * expected), name


def test_the_best_rate_is_the_lowest():
    linear = system(activation="linear", steps=4)
    found = best_rate(linear, samples=64)
    assert found.converged

    def error(rate):
        return float(linear_recursion(linear.with_(learning_rate=rate)).train_error[-1])

    best = float(found.best_rate)
    np.testing.assert_allclose(error(best), found.best_error, rtol=1e-10)
    assert error(best) <= min(error(0.99 * best), error(1.01 * best))
    network = linear.with_(width=512)
    tuned = tuned_network(network, jax.random.key(0))
    np.testing.assert_allclose(tuned.best_rate, best, rtol=0.2)


def test_only_the_standard_rate_depends_on_the_width():
    rates = {}
    for parametrisation in ("mean-field", "ntk", "standard"):
        one = system(activation="linear", steps=4, parametrisation=parametrisation)
        rates[parametrisation] = [
            float(best_rate(one.with_(width=width), samples=64).best_rate)
            for width in (1024, 16384)
        ]
    slopes = {name: np.log(b / a) / np.log(16) for name, (a, b) in rates.items()}
    assert slopes["mean-field"] == 0
    assert abs(slopes["ntk"]) < 1e-2
    assert abs(slopes["standard"] + 1) < 2e-2


def test_what_is_refused():
    with pytest.raises(ValueError, match="power of 2"):
        particle_dynamics(system(), samples=100)
    with pytest.raises(ValueError, match="must be 'linear'"):
        linear_recursion(system())
    with pytest.raises(ValueError, match="must be even"):
        trained_features(system(width=7), jax.random.key(0))
