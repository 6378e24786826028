"""Reference numbers of networks at finite width: parity of scikit-learn's digits (even +1, odd -1),
first P train, last 500 test.

They were made with an independent dense implementation; the linear ones are exact integrals.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import load_digits

from orderparam.systems.proportional import (
    Convolutional,
    FullyConnected,
    LocallyConnected,
    branches,
    finite_width,
    infinite_width,
    integrated_width,
    kernel_corrected,
)
from orderparam.systems.proportional.model import patch_teacher

DIGITS = load_digits()
X = (DIGITS.data - DIGITS.data.mean()) / DIGITS.data.std()
Y = np.where(DIGITS.target % 2 == 0, 1.0, -1.0)
ONE_HOT = np.eye(10)[DIGITS.target]


def dense(n_train, y=Y, **options):
    return FullyConnected(X[:n_train], y[:n_train], X[-500:], y[-500:], **options)


def near(value, expected, digits=8):
    assert np.allclose(value, expected, rtol=0, atol=0.51 * 10.0**-digits), (
        f"{value} is not {expected}"
    )


@pytest.mark.parametrize(
    ("options", "scale", "action", "train", "bias", "variance"),
    [
        (
            {"width": 100, "temperature": 0.01},
            1.92244972,
            1.05099834,
            0.01168805,
            0.40973767,
            0.06332292,
        ),
        (
            {"width": 50, "temperature": 0.1},
            1.40144389,
            0.32260064,
            0.09494428,
            0.42467069,
            0.08594434,
        ),
        (
            {"width": 50, "temperature": 0.1, "activation": "linear"},
            1.04466988,
            0.69159157,
            0.13274859,
            0.51132770,
            0.06506183,
        ),
    ],
)
def test_one_hidden_layer(options, scale, action, train, bias, variance):
    result = finite_width(dense(100, **options))
    near(result.order_parameters, [scale])
    near(result.action / options["width"], action)
    near([result.train_error, result.test_bias, result.test_variance], [train, bias, variance])
    assert result.converged
    assert result.residual < 1e-12


def test_prior_variances():
    system = dense(500, width=100, temperature=0.1, weight_variance=0.5, readout_variance=2.0)
    result = finite_width(system)
    near(result.order_parameters, [2.34600999])
    near(
        [result.train_error, result.test_bias, result.test_variance],
        [0.09444221, 0.23066836, 0.03889091],
    )


def test_evidence_and_accuracy():
    result = finite_width(dense(100, width=100, temperature=0.01))
    near(result.log_evidence, -94.44377022)
    near(result.accuracy, 0.866, 12)


def test_relu_has_a_second_order_parameter():
    result = finite_width(dense(100, width=100, temperature=0.01, activation="relu"))
    near(result.order_parameters, [1.88811968])
    near(1 / result.mean_scales - 1, -0.47323165)
    near(result.action / 100, -0.08107402)
    near([result.test_bias, result.test_variance], [0.37831528, 0.06791021])


def test_units_with_a_mean_against_the_exact_integral_over_readouts():
    """phi(h) = 1 + h: given the read-out v, f is a Gaussian process of mean s = sum_i v_i / sqrt(N)
    and kernel |v|^2 x.x'/(N d).

    The posterior is an integral over s and |v|^2 - s^2 = chi^2, at any N; Q = <|v|^2>/N and kappa =
    <chi^2>/(N - 1).
    """
    x, y, temperature = X[:30], Y[:30] + 1, 0.1
    values, vectors = np.linalg.eigh(x @ x.T / 64)
    targets, mean = vectors.T @ y, vectors.T @ np.ones(30)

    def exact(width):
        s, t = np.linspace(-8, 8, 201)[:, None, None], np.linspace(-1.5, 1.5, 401)[:, None]
        chi = width * np.exp(t)
        scale = (s**2 + chi) / width
        noisy, residual = temperature + scale * values, targets - s * mean
        log = (
            (width - 1) * t / 2
            - (chi + s**2) / 2
            - np.sum(np.log(noisy) + residual**2 / noisy, -1, keepdims=True) / 2
        )
        weights = np.exp(log - log.max()) / np.sum(np.exp(log - log.max()))
        train = (
            np.sum(
                (temperature * residual / noisy) ** 2 + temperature * scale * values / noisy,
                -1,
                keepdims=True,
            )
            / 30
        )
        return [float(np.sum(weights * part)) for part in (scale, chi / (width - 1), train)]

    system = FullyConnected(
        x,
        y,
        x[:1],
        y[:1],
        width=np.array([50.0]),
        temperature=temperature,
        activation="polynomial(1, 1)",
    )
    gaps = []
    for width in (50.0, 200.0):
        result = finite_width(system.with_(width=np.array([width])))
        found = [
            float(result.order_parameters.squeeze()),
            float(result.mean_scales.squeeze()),
            float(result.train_error),
        ]
        assert found == pytest.approx(exact(width), rel=0.5 / width)
        gaps.append(abs(np.array(found) - exact(width)))
    assert np.all(gaps[0] > 2 * gaps[1])


@pytest.mark.parametrize(
    ("closure", "scales", "action", "bias", "variance"),
    [
        ("nested", [1.61746006, 1.69817867], 181.34933131, 0.38273830, 0.07878491),
        ("common", [1.63021380, 1.63021380], 179.04084647, 0.39068905, 0.08073953),
        ("linear", [1.64440339, 1.67100519], 180.30723781, 0.38387400, 0.07984436),
    ],
)
def test_two_hidden_layers(closure, scales, action, bias, variance):
    result = finite_width(dense(100, width=100, temperature=0.01, depth=2), closure=closure)
    near(result.order_parameters.squeeze(), scales)
    near(result.action, action)
    near([result.test_bias, result.test_variance], [bias, variance])


@pytest.mark.slow
def test_three_hidden_layers():
    result = finite_width(dense(100, width=100, temperature=0.01, depth=3), closure="linear")
    near(result.order_parameters.squeeze(), [1.48152407, 1.52370817, 1.60093872])
    near(result.action, 274.22907907)


@pytest.mark.slow
def test_unequal_widths_and_priors():
    options = {
        "width": np.array([50.0, 200.0]),
        "weight_variance": np.array([1.0, 2.0]),
        "readout_variance": 0.5,
    }
    result = finite_width(dense(200, temperature=0.1, depth=2, **options))
    near(result.order_parameters.squeeze(), [1.65897718, 1.30003851])
    near(result.action, 143.43139403)
    near(
        [result.train_error, result.test_bias, result.test_variance],
        [0.08477902, 0.38696171, 0.06055047],
    )


@pytest.mark.parametrize(
    ("n_train", "options", "bias"),
    [
        (50, {"width": 20, "temperature": 0.1, "activation": "linear"}, 0.6122995),
        pytest.param(100, {"width": 200, "temperature": 0.01}, 0.40827, marks=pytest.mark.slow),
    ],
)
def test_predictor_with_the_corrected_kernel(n_train, options, bias):
    near(kernel_corrected(dense(n_train, **options)).test_bias, bias, 7 if n_train == 50 else 5)


def test_ten_outputs():
    result = finite_width(dense(200, ONE_HOT, width=100, temperature=0.05))
    eigenvalues = [
        0.508928,
        0.568384,
        0.593421,
        0.630461,
        0.648624,
        0.662589,
        0.725838,
        0.754747,
        0.806099,
        0.856448,
    ]
    near(np.linalg.eigvalsh(result.order_parameters.squeeze()), eigenvalues, 6)
    near(result.order_parameters.squeeze()[0, 1], 0.02836302)
    near(result.action / 100, -32.32824)
    near(result.train_error, 0.21102642)
    near([result.test_bias / 10, result.test_variance / 10], [0.03706425, 0.02813857])
    near(result.accuracy, 0.842, 12)


def test_linear_networks_are_exact():
    result = integrated_width(dense(50, width=20, temperature=0.1, activation="linear"))
    found = [result.scale, result.train_error, result.test_bias, result.test_variance]
    near(found, [1.1705954, 0.1170219, 0.5383018, 0.1246415], 7)
    deep = integrated_width(dense(50, width=20, temperature=0.1, activation="linear", depth=2))
    near(
        [deep.scale, deep.train_error, deep.test_bias, deep.test_variance],
        [1.2472042, 0.1159815, 0.5430334, 0.1291632],
        7,
    )


@pytest.mark.parametrize("closure", ["common", pytest.param("nested", marks=pytest.mark.slow)])
def test_two_minima_at_high_temperature_and_strong_signal(closure):
    one = np.ones((1, 1))
    system = FullyConnected(
        one,
        np.array([np.sqrt(1e7 * 50)]),
        one,
        np.ones(1),
        width=50,
        temperature=1e4,
        depth=2,
        activation="linear",
    )
    found = branches(system, closure=closure)
    near(found.order_parameters[:2, 0], [180.58781637, 1.12697173])
    near(found.action[:2] / 50, [585.672298, 1002.07209], 5)
    assert jnp.isnan(found.action[2])


IMAGES = X.reshape(-1, 8, 8, 1)


@pytest.mark.parametrize(
    ("kind", "diagonal", "action", "train", "bias", "variance"),
    [
        pytest.param(
            *(Convolutional, [1.00960875, 1.10432032, 1.34878925, 1.00115906]),
            *(3.41120168, 0.10659651, 0.44719586, 0.06740627),
            marks=pytest.mark.slow,
        ),
        (
            LocallyConnected,
            [1.00925650, 1.10481826, 1.35330813, 1.00447965],
            3.42359328,
            0.10723790,
            0.44363792,
            0.06754112,
        ),
    ],
)
def test_four_patches(kind, diagonal, action, train, bias, variance):
    system = kind(
        IMAGES[:100], Y[:100], IMAGES[-500:], Y[-500:], channels=50, temperature=0.1, mask=4
    )
    result = finite_width(system)
    near(np.diag(result.order_parameters.squeeze()), diagonal)
    near(result.action / 50, action)
    near([result.train_error, result.test_bias, result.test_variance], [train, bias, variance])
    assert result.converged


@pytest.mark.parametrize(
    ("kind", "target", "first", "action"),
    [
        (Convolutional, "shared", 0.88777323, -0.87985200),
        (Convolutional, "one", 2.06142113, -0.81018724),
        pytest.param(LocallyConnected, "shared", 1.17001588, 0.74486018, marks=pytest.mark.slow),
        pytest.param(LocallyConnected, "one", 2.06365916, -0.79852081, marks=pytest.mark.slow),
    ],
)
def test_patch_teachers(kind, target, first, action):
    result = finite_width(
        kind(**patch_teacher(target, 100, 300), channels=20, temperature=0.05, mask=10)
    )
    near(result.order_parameters.squeeze()[0, 0], first)
    near(result.action / 20, action)


def test_low_temperature_reaches_the_minimum():
    system = Convolutional(
        IMAGES[:100], Y[:100], IMAGES[-500:], Y[-500:], channels=10, temperature=1e-3, mask=4
    )
    near(finite_width(system).action / 10, 8.36572907)


def test_infinite_width():
    result = infinite_width(dense(100, width=1, temperature=0.01))
    near(
        [result.train_error, result.test_bias, result.test_variance],
        [0.01606098, 0.41346043, 0.03648334],
    )
