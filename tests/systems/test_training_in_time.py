"""Learning in time: limits, drawn training sets, and networks of finite width."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.kernels.effective_ridge import effective_ridge
from orderparam.kernels.gradient_flow import gradient_flow
from orderparam.kernels.spectrum import Spectrum
from orderparam.networks import Architecture, Dense, Nonlinearity, Serial
from orderparam.networks.fully_connected import fully_connected
from orderparam.systems.training_in_time import (
    FeatureTraining,
    IsotropicTraining,
    NetworkDescent,
    PoolDescent,
    SpectralDescent,
    descent_error,
    drawn_descent,
    drawn_flow,
    drawn_pool_kernel,
    drawn_pool_network,
    drawn_spectral_descent,
    frozen_kernel,
    gradient_flow_error,
    gradient_flow_train_error,
    pool_error,
    spectral_descent_error,
    trained_network,
)

K = np.arange(1, 61)
X = np.eye(4)
FEATURES = Spectrum(K**-1.2, K**-1.8)
FLOW = FeatureTraining(FEATURES, 40, 10.0, 0.3)


def test_nothing_is_learned_at_time_zero_and_the_start_stays():
    early = FeatureTraining(FEATURES, 40, 1e-9, 0.3, start=0.5)
    found = gradient_flow_error(early)
    np.testing.assert_allclose(found.bias, FEATURES.total_power, rtol=1e-7)
    np.testing.assert_allclose(found.start, 0.5 * np.sum(K**-1.2), rtol=1e-7)
    assert abs(found.variance) < 1e-7


def test_a_long_time_with_weight_decay_is_ridge_regression():
    ridge = 0.02
    found = gradient_flow_error(FeatureTraining(FEATURES, 40, 1e5, 0.3, ridge))
    solved = effective_ridge(FEATURES, 40, 40 * ridge)
    unlearned = np.sum((1 - np.asarray(solved.learnability)) ** 2 * K**-1.8)
    exact = (unlearned + 0.3 * solved.spread) / solved.complement
    np.testing.assert_allclose(found.test_error, exact, rtol=1e-9)


def test_levels_are_modes_counted():
    counted = Spectrum([2.0, 0.5], [0.6, 0.4], [3, 2])
    apart = Spectrum([2.0] * 3 + [0.5] * 2, [0.2] * 3 + [0.2] * 2)
    errors = [
        gradient_flow_error(FeatureTraining(each, 4, 3.0, 0.1, 0.01, 0.2)).test_error
        for each in (counted, apart)
    ]
    np.testing.assert_allclose(*errors, rtol=1e-12)


def test_gradients_are_those_of_differences():
    def error(time, noise, decay):
        return gradient_flow_error(FeatureTraining(FEATURES, 40, time, noise, decay)).test_error

    at = np.array([10.0, 0.3, 0.02])
    slopes = jax.grad(lambda u: error(*u))(jnp.asarray(at))
    for i in range(3):
        shift = np.eye(3)[i] * at[i] * 1e-5
        difference = (error(*(at + shift)) - error(*(at - shift))) / (2 * at[i] * 1e-5)
        np.testing.assert_allclose(slopes[i], difference, rtol=1e-6)


def test_errors_of_drawn_training_sets():
    """Sixty sets: errors in the mean of a per cent and less, with and without a decay."""
    spectrum = Spectrum(np.arange(1, 101) ** -1.2, np.arange(1, 101) ** -1.8)
    for time, decay in ((3.0, 0.0), (100.0, 0.02)):
        system = FeatureTraining(spectrum, 75, time, 0.3, decay, start=0.1)
        drawn = jax.vmap(lambda key, system=system: drawn_flow(system, key))(
            jax.random.split(jax.random.key(1), 60)
        )
        for name, theory in (
            ("test_error", gradient_flow_error),
            ("train_error", gradient_flow_train_error),
        ):
            values = np.asarray(getattr(drawn, name))
            deviation = values.mean() - float(getattr(theory(system), name))
            assert abs(deviation) < 3.5 * values.std(ddof=1) / np.sqrt(60), (name, time)


def test_isotropic_flow_is_the_limit_of_small_steps():
    rate, steps = 1e-3, 4000
    descent = descent_error(IsotropicTraining(1.5, rate, noise=0.2, steps=steps))
    flow = FeatureTraining(Spectrum([1.0], [1.0], [1e4]), 1.5e4, rate * steps, 0.2)
    np.testing.assert_allclose(
        descent.test_error[-1], gradient_flow_error(flow).test_error, rtol=2e-3
    )
    np.testing.assert_allclose(
        descent.train_error[-1], gradient_flow_train_error(flow).train_error, rtol=2e-3
    )


def test_one_step_from_the_moments_of_marchenko_and_pastur():
    """Means of s, s^2 and s^3 over the law are 1, 1 + psi and 1 + 3 psi + psi^2."""
    ratio, rate, noise = 0.4, 0.3, 0.7
    psi = 1 / ratio
    found = descent_error(IsotropicTraining(ratio, rate, noise=noise, steps=1))
    test = 1 - 2 * rate + rate**2 * (1 + psi) + noise * psi * rate**2
    train = 1 - 2 * rate * (1 + psi) + rate**2 * (1 + 3 * psi + psi**2)
    train += noise * (1 - 2 * psi * rate + psi * rate**2 * (1 + psi))
    np.testing.assert_allclose(found.test_error, [1.0, test], rtol=1e-12)
    np.testing.assert_allclose(found.train_error, [1.0 + noise, train], rtol=1e-12)


def test_momentum_on_drawn_training_sets():
    system = IsotropicTraining(1.5, 0.3, 0.8, 0.2, 0.01, input_dim=150, steps=40)
    theory = descent_error(system)
    drawn = jax.vmap(lambda key: drawn_descent(system, key))(
        jax.random.split(jax.random.key(0), 32)
    )
    for name in ("test_error", "train_error"):
        values = np.asarray(getattr(drawn, name))
        error = values.std(axis=0, ddof=1) / np.sqrt(32) + 1e-9
        z = (values.mean(axis=0) - np.asarray(getattr(theory, name))) / error
        assert np.max(np.abs(z[1:])) < 4, name


def _network(width=8, **fields):
    x = np.random.default_rng(0).standard_normal((30, 6))
    y = np.sin(x[:, 0]) + 0.3 * x[:, 1]
    network = fully_connected(1, None, "erf")
    return NetworkDescent(x[:12], y[:12], x[12:], y[12:], network, width, **fields)


@pytest.mark.parametrize("antisymmetric", [True, False])
def test_small_steps_of_the_frozen_kernel_are_its_gradient_flow(antisymmetric):
    system = _network(learning_rate=1e-3, steps=2000, antisymmetric=antisymmetric)
    kernel = system.architecture.kernel
    train, cross = kernel(system.inputs), kernel(system.test_inputs, system.inputs)
    test = kernel(system.test_inputs).nngp
    flow = gradient_flow(
        train.ntk, cross.ntk, train.nngp, cross.nngp, test, system.targets, 1e-3 * 2000
    )
    spread = 0.0 if antisymmetric else jnp.diagonal(flow.covariance)
    exact = jnp.mean((flow.mean - system.test_targets) ** 2 + spread)
    np.testing.assert_allclose(frozen_kernel(system).test_error[-1], exact, rtol=2e-3)


@pytest.mark.parametrize("antisymmetric", [True, False])
def test_momentum_of_the_frozen_kernel_is_that_of_its_outputs(antisymmetric):
    """The heavy ball on the outputs themselves, by matrices, without eigenvalues."""
    system = _network(learning_rate=0.2, momentum=0.7, steps=9, antisymmetric=antisymmetric)
    kernel = system.architecture.kernel
    train, cross = kernel(system.inputs), kernel(system.test_inputs, system.inputs)
    test, y = kernel(system.test_inputs).nngp, np.asarray(system.targets)
    left = before = np.eye(12)
    response = last = np.zeros((18, 12))
    for _ in range(9):
        slope = 0.2 * np.asarray(train.ntk) @ left, 0.2 * np.asarray(cross.ntk) @ left
        left, before = left - slope[0] + 0.7 * (left - before), left
        response, last = response + slope[1] + 0.7 * (response - last), response
    mixed = np.asarray(cross.nngp) @ response.T
    start = test + response @ np.asarray(train.nngp) @ response.T - mixed - mixed.T
    spread = 0.0 if antisymmetric else np.diagonal(start)
    error = np.mean((response @ y - np.asarray(system.test_targets)) ** 2 + spread)
    kept = 0.0 if antisymmetric else np.trace(left @ np.asarray(train.nngp) @ left.T)
    found = frozen_kernel(system)
    np.testing.assert_allclose(found.test_error[-1], error, rtol=1e-11)
    np.testing.assert_allclose(
        found.train_error[-1], (np.sum((left @ y) ** 2) + kept) / 12, rtol=1e-11
    )


def test_wide_networks_follow_the_frozen_kernel():
    """Width 256: within a few per cent at all steps, from zero, and the drift is that of 1/N."""
    keys = jax.random.split(jax.random.key(0), 12)
    drifts = []
    for width in (64, 256):
        system = _network(width, learning_rate=0.1, momentum=0.5, steps=20)
        nets = jax.vmap(lambda key, system=system: trained_network(system, key))(keys)
        drifts.append(float(jnp.mean(nets.kernel_drift)))
    theory = frozen_kernel(system)
    np.testing.assert_allclose(nets.test_error[:, 0], theory.test_error[0], rtol=1e-12)
    np.testing.assert_allclose(jnp.mean(nets.test_error, axis=0), theory.test_error, rtol=0.05)
    assert 3.2 < drifts[0] / drifts[1] < 4.8


def test_what_is_refused():
    with pytest.raises(ValueError, match="tail"):
        FeatureTraining(Spectrum([1.0], [1.0], [1.0], tail=0.1), 10, 1.0)
    with pytest.raises(ValueError, match="eigenvalues that are 0"):
        FeatureTraining(Spectrum([1.0, 0.0], [1.0, 0.5]), 10, 1.0)
    with pytest.raises(ValueError, match="whole number"):
        drawn_flow(FeatureTraining(FEATURES, 40.5, 1.0), jax.random.key(0))
    standard = fully_connected(1, None, "erf", scaling="standard")
    with pytest.raises(ValueError, match="must be 'ntk'"):
        NetworkDescent(X, X[:, 0], X, X[:, 0], standard)
    layers = Serial([Dense(None), Nonlinearity("erf"), Dense(2)])
    for two in (Architecture(layers), Architecture(Serial([Dense(5), Dense(None)]))):
        with pytest.raises(ValueError, match=r"output of shape \(2,\): must be one number"):
            NetworkDescent(X, X[:, 0], X, X[:, 0], two)
        with pytest.raises(ValueError, match=r"output of shape \(2,\): must be one number"):
            PoolDescent(X, np.sign(X[:, 0]), two)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("ratio", [0.8, 3.0])
def test_descent_on_isotropic_features_is_the_integral_over_their_law(momentum, ratio):
    numbers = {"momentum": momentum, "noise": 0.2, "weight_decay": 0.01, "steps": 150}
    exact = descent_error(IsotropicTraining(ratio, 0.2, **numbers))
    one = Spectrum([1.0], [1.0], [1000])
    found = spectral_descent_error(SpectralDescent(one, 1000 * ratio, 0.2, **numbers))
    np.testing.assert_allclose(found.test_error, exact.test_error, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found.train_error, exact.train_error, rtol=1e-11, atol=1e-13)
    assert found.converged


def test_small_steps_are_gradient_flow_with_corrections_of_first_order():
    flow = FeatureTraining(FEATURES, 40, 4.0, 0.3, 0.02, 0.1)
    exact = [f(flow) for f in (gradient_flow_error, gradient_flow_train_error)]
    differences = []
    for steps in (400, 800):
        found = spectral_descent_error(
            SpectralDescent(FEATURES, 40, 4.0 / steps, 0.0, 0.3, 0.02, 0.1, steps=steps)
        )
        assert found.converged
        differences.append(
            (
                found.test_error[-1] - exact[0].test_error,
                found.train_error[-1] - exact[1].train_error,
            )
        )
    np.testing.assert_allclose(differences[0], 2 * np.array(differences[1]), rtol=0.02)
    np.testing.assert_allclose(differences[1], 0, atol=5e-3)


def test_descent_on_drawn_features_has_the_errors_of_the_theory():
    k = np.arange(1, 201)
    system = SpectralDescent(Spectrum(k**-1.2, k**-1.8), 150, 0.3, 0.5, 0.2, 1e-3, 0.05, steps=60)
    keys = jax.random.split(jax.random.key(0), 32)
    runs = [drawn_spectral_descent(system, key) for key in keys]
    exact = spectral_descent_error(system)
    for name in ("test_error", "train_error"):
        values = np.array([getattr(run, name) for run in runs])[:, [1, 5, 20, 60]]
        error = values.std(axis=0, ddof=1) / np.sqrt(len(runs))
        z = (values.mean(axis=0) - np.asarray(getattr(exact, name))[[1, 5, 20, 60]]) / error
        assert np.abs(z).max() < 3.5, (name, z)


def test_a_polynomial_that_the_contour_cannot_hold_is_not_converged():
    fast = SpectralDescent(FEATURES, 40, 0.5, 0.999, steps=2000)
    assert not spectral_descent_error(fast).converged


@pytest.mark.parametrize(
    ("momentum", "rate", "steps"),
    [(0.9, 0.8, 300), (0.99, 1.2, 300), (0.995, 0.8, 1000), (0.995, 1.2, 600), (0.998, 1.0, 600)],
)
def test_the_residual_bounds_the_error(momentum, rate, steps):
    """With momentum near 1 the polynomials are large outside the spectrum, and their squares lose
    digits before they do."""
    numbers = {"momentum": momentum, "noise": 0.2, "weight_decay": 0.01, "steps": steps}
    exact = descent_error(IsotropicTraining(3.0, rate, **numbers))
    found = spectral_descent_error(
        SpectralDescent(Spectrum([1.0], [1.0], [1000]), 3000.0, rate, **numbers)
    )
    wrong = max(
        np.max(np.abs(getattr(found, name) - getattr(exact, name)) / (1 + getattr(exact, name)))
        for name in ("test_error", "train_error")
    )
    assert wrong < 10 * float(found.residual) + 1e-11
    assert bool(found.converged) == (float(found.residual) < 1e-6)
    if momentum == 0.9:
        assert found.converged


def test_a_pool_on_which_training_diverges_is_not_converged():
    network = fully_connected(1, None, "relu")
    system = PoolDescent(X, [1, -1, 1, 1], network, n_train=8, steps=60)
    assert pool_error(system.with_(learning_rate=0.02)).converged
    assert not pool_error(system.with_(learning_rate=3.0)).converged
    assert not drawn_pool_kernel(
        system.with_(learning_rate=3.0, steps=4000), jax.random.key(0)
    ).converged


def test_descent_that_diverges_is_not_converged():
    one = Spectrum([1.0], [1.0], [1000])
    numbers = {"noise": 0.2, "steps": 200}
    assert spectral_descent_error(SpectralDescent(one, 1000.0, 0.4, **numbers)).converged
    assert not spectral_descent_error(SpectralDescent(one, 1000.0, 0.6, **numbers)).converged


def test_errors_of_many_steps_change_smoothly_with_the_rate():
    def last(rate):
        system = SpectralDescent(FEATURES, 40, rate, 0.3, 0.2, steps=30)
        return spectral_descent_error(system).test_error[-1]

    slope = (last(0.2 + 1e-5) - last(0.2 - 1e-5)) / 2e-5
    np.testing.assert_allclose(jax.grad(last)(0.2), slope, rtol=1e-6)


def test_a_wide_network_on_drawn_examples_is_its_frozen_kernel():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 5))
    network = fully_connected(1, None, "erf")
    pool = PoolDescent(x, np.sign(x[:, 0]), network, 12, 0.2, 4096, 0.1, 30, 8)
    key = jax.random.key(1)
    exact = drawn_pool_kernel(pool, key)
    np.testing.assert_allclose(
        drawn_pool_network(pool, key).test_error, exact.test_error, rtol=0.01
    )
    narrow = drawn_pool_network(pool.with_(width=16), key).test_error
    assert np.max(np.abs(narrow - exact.test_error)) > 0.01


def test_the_pool_theory_is_right_where_features_are_nearly_gaussian():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((400, 20))
    linear = fully_connected(1, None, "linear")
    pool = PoolDescent(x, np.sign(x[:, 0]), linear, 60, 0.1, learning_rate=0.01, steps=100)
    runs = [drawn_pool_kernel(pool, key) for key in jax.random.split(jax.random.key(0), 64)]
    values = np.array([run.test_error for run in runs])
    error = values.std(axis=0, ddof=1) / np.sqrt(len(runs))
    exact = np.asarray(pool_error(pool).test_error)
    assert np.abs((values.mean(axis=0) - exact) / error).max() < 3.5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": np.ones(3)}, "labels has shape"),
        ({"labels": np.array([1.0, 2.0, 1.0, 1.0])}, "labels: must be -1 or 1"),
        ({"flipped": 0.6}, "flipped"),
    ],
)
def test_a_pool_that_does_not_fit_is_refused(change, words):
    pool = PoolDescent(X, np.ones(4), fully_connected(1, None, "relu"))
    with pytest.raises(ValueError, match=words):
        pool.with_(**change)
