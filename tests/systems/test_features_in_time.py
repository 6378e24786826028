"""Features in time: limits, exact linear units, and networks of finite width."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.networks.fully_connected import fully_connected
from orderparam.systems.features_in_time import (
    FeatureDescent,
    LinearLayersDescent,
    QuadraticDescent,
    best_rate,
    linear_layers_dynamics,
    linear_recursion,
    particle_dynamics,
    quadratic_recursion,
    trained_features,
    trained_linear_layers,
    trained_quadratic,
    tuned_network,
)
from orderparam.systems.features_in_time.quadratic import UnitMoments, moments_path

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


def quadratic(rows=60, **fields):
    x = np.random.default_rng(2).standard_normal((rows + 200, 6))
    y = (x[:, 0] ** 2 - 1) / np.sqrt(2)
    return QuadraticDescent(x[:rows], y[:rows], x[rows:], y[rows:], **{"steps": 600, **fields})


def test_a_network_obeys_the_recursion_from_its_own_moments_at_any_width():
    system, key = quadratic(width=5), jax.random.key(3)
    weights = np.sqrt(0.05) * jax.random.normal(key, (5, 6))
    own = moments_path(system, UnitMoments(jnp.mean(weights, axis=0), weights.T @ weights / 5))
    network = trained_quadratic(system, key)
    np.testing.assert_allclose(network.train_error, own.train_error, rtol=1e-9)
    np.testing.assert_allclose(network.test_error, own.test_error, rtol=1e-9)
    many = quadratic_recursion(system)
    assert np.max(np.abs(many.test_error / network.test_error - 1)) > 0.05


def test_wide_networks_have_the_delay_of_the_theory():
    system = quadratic(width=400)
    exact = quadratic_recursion(system)
    runs = [trained_quadratic(system, key) for key in jax.random.split(jax.random.key(0), 16)]
    delays = np.array([run.delay for run in runs])
    assert exact.converged
    assert float(exact.delay) > 1.2
    assert abs(delays.mean() - exact.delay) < 3.5 * delays.std(ddof=1) / 4 + 0.01 * exact.delay


def test_lazy_quadratic_units_learn_with_their_kernel_at_the_start():
    system = quadratic(laziness=1e4, steps=50)
    found = quadratic_recursion(system)
    x, rate = np.asarray(system.inputs), 0.2 / len(system.inputs)
    inner = x @ x.T
    kernel = inner * (1 + 0.3**2 * 0.05 * inner)  # E phi'(h) phi'(h') x.x'
    delta = np.asarray(system.targets)
    for _ in range(50):
        delta = delta - rate * kernel @ delta
    np.testing.assert_allclose(found.train_error[-1], np.mean(delta**2), rtol=1e-3)
    assert not found.converged


def test_without_curvature_quadratic_units_are_linear_regression():
    system = quadratic(curvature=0.0, laziness=2.0, steps=40)
    x, y = np.asarray(system.inputs), np.asarray(system.targets)
    w = np.zeros(6)
    for _ in range(40):
        w = w + 0.2 * x.T @ (y - x @ w) / len(x)
    found = quadratic_recursion(system)
    np.testing.assert_allclose(found.train_error[-1], np.mean((y - x @ w) ** 2), rtol=1e-10)


def layers(**fields):
    return LinearLayersDescent(X[:6], Y[:6], X[6:], Y[6:], **{"steps": 12, **fields})


def test_one_hidden_layer_is_the_exact_recursion():
    one = linear_layers_dynamics(layers(depth=1, richness=0.7))
    plain = FeatureDescent(X[:6], Y[:6], X[6:], Y[6:], 0.7, 0.05, activation="linear", steps=12)
    exact = linear_recursion(plain)
    np.testing.assert_allclose(one.train_error, exact.train_error, rtol=1e-12)
    np.testing.assert_allclose(one.test_error, exact.test_error, rtol=1e-12)


@pytest.mark.parametrize("depth", [2, 3])
def test_lazy_linear_layers_have_one_kernel_for_each_layer_of_weights(depth):
    found = linear_layers_dynamics(layers(depth=depth, richness=1e-4))
    kernel = X[:6] @ X[:6].T / 4
    delta = Y[:6].copy()
    for _ in range(12):
        delta = delta - 0.05 * (depth + 1) * kernel @ delta
    np.testing.assert_allclose(found.train_error[-1], np.mean(delta**2), rtol=1e-6)
    np.testing.assert_allclose(found.readout_power, 1, rtol=1e-6)


@pytest.mark.parametrize("depth", [2, 3])
def test_wide_linear_layers_have_the_errors_of_the_theory(depth):
    system = layers(depth=depth, richness=1.5, width=1000)
    exact = linear_layers_dynamics(system)
    assert exact.converged
    runs = jax.vmap(lambda key: trained_linear_layers(system, key))(
        jax.random.split(jax.random.key(0), 24)
    )
    for name in ("train_error", "test_error", "layer_power"):
        values = np.asarray(getattr(runs, name))[:, 1:]
        error = values.std(axis=0, ddof=1) / np.sqrt(24)
        z = (values.mean(axis=0) - np.asarray(getattr(exact, name))[1:]) / error
        # a bias of order 1/width is allowed beside the sampling error
        assert np.all(np.abs(z) < 3.5 + 5e-3 * values.mean(axis=0) / error), (name, z)
    power = np.asarray(runs.readout_power)
    error = power.std(ddof=1) / np.sqrt(24)
    assert abs(power.mean() - float(exact.readout_power)) < 3.5 * error + 5e-3 * power.mean()
