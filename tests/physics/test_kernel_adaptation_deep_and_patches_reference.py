"""Reference values of deep networks and networks on patches, computed by an independent prototype
or in closed form."""

import numpy as np
import pytest
from scipy.optimize import brentq

from orderparam.systems.kernel_adaptation import (
    DeepNetworkOnData,
    PatchNetwork,
    TwoLayerNetwork,
    adapted_weights,
    deep_gaussian_layers,
    exact_linear_network,
    gaussian_weights,
    hermite_target,
)
from orderparam.systems.proportional import FullyConnected, linear_layers

LINEAR = PatchNetwork(10, 2, 200, 10, 0.01, hermite_target({1: 1.0}), 0.01, activation="linear")
CUBIC = PatchNetwork(50, 1, 1000, 100, 0.01, hermite_target({1: 1.0, 3: 0.1}), 0.01, modes=(1, 3))


def test_three_layers_of_erf_units():
    random = np.random.default_rng(0)
    x = random.standard_normal((40, 12))
    y = x[:, 0] - 0.1 * (x[:, 0] ** 3 - 3 * x[:, 0])
    system = DeepNetworkOnData(x, y, x[:5], y[:5], width=80, temperature=0.1, hidden_variance=2.0)
    expected = {
        1.0: (25.88255538, 0.94673390, 1.2052250, 5.504295, 0.9144643),
        20.0: (26.77644460, 0.97971829, 2.1339831, 15.577612, 1.0607456),
    }
    for chi, values in expected.items():
        found = deep_gaussian_layers(system.scaling(chi))
        assert bool(found.converged)
        trace = np.trace(found.preactivations[0]) / 40
        reached = [found.action, found.train_learnability, found.spread, found.on_target[0], trace]
        np.testing.assert_allclose(reached, values, rtol=3e-7)


def linear(width, widths=(1.0, 1.5)) -> DeepNetworkOnData:
    random = np.random.default_rng(1)
    x = random.standard_normal((30, 12))
    y = x @ random.standard_normal(12) / np.sqrt(12) * 1.3
    return DeepNetworkOnData(
        *(x[:10], y[:10], x[10:], y[10:]),
        width=width,
        temperature=0.05,
        readout_variance=0.8,
        weight_variance=0.7,
        hidden_variance=1.6,
        relative_widths=widths,
        activation="linear",
    )


def test_linear_layers_are_those_of_the_scale_of_their_kernel():
    """The average over weights is that of `proportional`, which has a kernel for every layer."""
    system, widths = linear(20.0), np.array([20.0, 30.0])
    found = exact_linear_network(system)
    data = (system.inputs, system.targets, system.test_inputs, system.test_targets)
    known = linear_layers(
        FullyConnected(
            *data,
            width=widths,
            temperature=0.05,
            weight_variance=np.array([0.7, 1.6]),
            readout_variance=0.8,
            depth=2,
            activation="linear",
        )
    )
    x, y = system.inputs, system.targets
    prior = y @ x @ x.T @ y
    along = [y @ x @ found.covariance @ x.T @ y / prior, found.on_target[0] * (y @ y) / prior]
    reached = [found.scale, found.test_error, along[0], along[1] * 12 / 0.7 / 1.6]
    expected = [known.scales[0], known.test_bias, *known.on_target]
    np.testing.assert_allclose(reached, expected, rtol=1e-12)


@pytest.mark.parametrize("widths", [(1.0,), (1.0, 1.5)])
def test_gaussian_layers_are_exact_for_linear_units_in_mean_field_scaling(widths):
    """At T and read-out variance proportional to 1/N the scale of the kernel and the output are
    sharp as N grows, and both averages have the same limit. The exact one approaches it as 1/N,
    which two widths extrapolate."""

    def at(width):
        return linear(width, widths).scaling(width / 20)

    found = deep_gaussian_layers(at(1e12))
    near, far = exact_linear_network(at(1e5)), exact_linear_network(at(1e6))
    assert bool(found.converged)
    assert bool(near.converged)
    assert bool(far.converged)
    for field in ("mean", "train_mean", "covariance", "on_target"):
        one, ten = getattr(near, field), getattr(far, field)
        np.testing.assert_allclose(ten, getattr(found, field), atol=2e-5)
        np.testing.assert_allclose((10 * ten - one) / 9, getattr(found, field), atol=1e-8)


def test_gaussian_layers_have_the_first_correction_of_linear_units():
    """At fixed T the covariances agree to the order 1/N, so that the difference falls as 1/N^2."""
    gaps = []
    for width in (1e3, 1e4):
        found, exact = deep_gaussian_layers(linear(width)), exact_linear_network(linear(width))
        gaps.append(float(np.max(np.abs(found.covariance - exact.covariance))))
    assert gaps[0] == pytest.approx(100 * gaps[1], rel=0.1)


LOOPS = {
    (0.2, 0.5): (0.254836480, 1.449197207),
    (0.2, 1.0): (0.507236751, 2.183853077),
    (1.0, 1.0): (0.431525660, 3.595803343),
}


@pytest.mark.parametrize(
    "theory", [adapted_weights, pytest.param(gaussian_weights, marks=pytest.mark.slow)]
)
def test_linear_patches_with_fluctuations(theory):
    """N = 10 a, S = 50 a, C = 1000 a. The weights stay Gaussian: both theories agree."""
    for (size, reduced), values in LOOPS.items():
        n_train = reduced * (500 * size**2) ** 0.75
        system = LINEAR.with_(
            patch_dim=50 * size, patches=10 * size, channels=1000 * size, n_train=n_train
        )
        found = theory(system, fluctuations=True)
        np.testing.assert_allclose(
            [found.total_learnability, found.eigenvalue_ratio], values, rtol=2e-8
        )


def test_large_linear_patches_learn_from_the_critical_number_of_examples_on():
    """1 - P_c/P, P_c ~ d^(3/4), from above by an amount that falls as a^(-1/2)."""
    errors = []
    for size in (20.0, 200.0):
        system = LINEAR.with_(patch_dim=50 * size, patches=10 * size, channels=1000 * size)
        assert float(system.critical_examples) == pytest.approx(
            (500 * size**2) ** 0.75 * 70.710678 / 500**0.75
        )
        found = adapted_weights(
            system.with_(n_train=2 * system.critical_examples), fluctuations=True
        )
        errors.append(float(found.total_learnability) - 0.5)
    assert 0 < errors[0] < 0.02
    assert errors[0] / errors[1] == pytest.approx(np.sqrt(10), rel=0.05)


def test_the_action_with_fluctuations_is_a_free_energy():
    """d(action)/dy = -tau, whatever else depends on y."""
    system = LINEAR.with_(channels=20)
    up, down = (
        adapted_weights(system.with_(target=factor * LINEAR.target), fluctuations=True)
        for factor in (1.001, 0.999)
    )
    slope = (up.action - down.action) / 0.002
    assert float(slope) == pytest.approx(
        -float(adapted_weights(system, fluctuations=True).tau[0]), rel=1e-5
    )


def test_linear_patches_without_fluctuations_at_strong_adaptation():
    """In the mean-field limit the fluctuations are smaller by 1/chi; without them 1/s_* = S/v -
    (g/C) tau^2."""
    gaps = []
    for chi in (100.0, 1e6):
        g = temperature = 1 / chi
        found = adapted_weights(
            LINEAR.with_(readout_variance=2 * g, temperature=temperature, channels=2 * chi),
            fluctuations=True,
        )
        lam = temperature / 10

        def closed(log_s, g=g, lam=lam, channels=2 * chi):
            return 1 / np.exp(log_s) - 10 + g / channels / (lam + g * np.exp(log_s)) ** 2

        star = np.exp(brentq(closed, -5, 3, xtol=1e-14))
        gaps.append(abs(float(found.total_learnability) - g * star / (g * star + lam)))
    assert gaps[0] > 1e-4
    assert gaps[1] < 2e-4 * gaps[0]


def test_linear_patches_with_a_self_consistent_ridge():
    for n_train, learned, ratio in (
        (10, 0.3034228115, 1.5819676636),
        (40, 0.8130879046, 3.1193738575),
    ):
        found = adapted_weights(LINEAR.with_(n_train=n_train), ridge_kind="self-consistent")
        np.testing.assert_allclose(
            [found.total_learnability, found.eigenvalue_ratio], [learned, ratio], rtol=1e-8
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("system", "options", "expected"),
    [
        (
            TwoLayerNetwork(20, 100, 400, 0.2, hermite_target({1: 1.0, 3: -0.3}), 0.015, 0.5),
            {"ridge_kind": "self-consistent", "fluctuations": True},
            (0.74108980, -0.08936089, 0.02228546, -0.00716105, 5.7635885, 5.6681783),
        ),
        (
            PatchNetwork(15, 3, 100, 60, 0.01, hermite_target({1: 1.0, 3: 0.1}), 0.01),
            {"ridge_kind": "self-consistent", "fluctuations": True},
            (0.66364043, -0.07919933, 0.01768744, -0.00496829, 5.8456650, 7.1756835),
        ),
        (
            TwoLayerNetwork(
                20, 100, 400, 0.2, hermite_target({1: 1.0, 3: -0.1}), 0.05, 0.8, activation="tanh"
            ),
            {"fluctuations": True},
            (0.85294331, -0.07067154, 0.01334267, -0.00349388, 3.5149436, 3.5740109),
        ),
    ],
)
def test_what_surrounds_the_weights(system, options, expected):
    """Output, spread and ratio of eigenvalues, by plain iteration of weights, kernel and ridge on
    another grid."""
    found = adapted_weights(system, **options)
    assert bool(found.converged)
    np.testing.assert_allclose(
        [*found.output, found.spread, found.eigenvalue_ratio], expected, rtol=5e-8, atol=1e-8
    )


def test_erf_patches():
    """Learnability, f_1/y_1, f_3/y_3 and the ratio of the weights' variances along and across
    w_*."""
    expected = {
        (1, 100): (0.646100118, 0.690684377, -0.096970863, 2.85449547),
        (1, 1600): (0.922962281, 0.968781583, 0.15930726, 4.77479659),
        (10, 400): (0.638410453, 0.686695779, -0.166344986, 7.82666931),
    }
    for (patches, n_train), values in expected.items():
        found = adapted_weights(CUBIC.with_(patches=patches, n_train=n_train))
        across = (50 * float(found.norm) - float(found.spread)) / 49
        np.testing.assert_allclose(
            [found.total_learnability, *found.learnability, float(found.spread) / across],
            values,
            rtol=2e-8,
        )
