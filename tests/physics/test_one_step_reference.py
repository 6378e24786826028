"""One giant gradient step against independently computed values, to the digits known.

They come from plain fixed-point iterations in NumPy, with 300 Gauss-Legendre nodes for the
projection on the spike (square loss) or 150-node Gauss-Hermite rules (several groups), and from the
closed form of random features (no spike).
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.losses import RealLabels, SignLabels
from orderparam.systems.one_step import (
    OneStep,
    SpikedFeatures,
    best_linear,
    first_layer,
    no_step_asymptotics,
    spectral_density,
    spiked_asymptotics,
)
from orderparam.systems.one_step.theory import spiked

# labels; n/d, p/d, ridge, overlap, spike, bulk norm: test error, train error, V1, V2, m, zeta, psi,
# q1, q2
SQUARE = [
    (
        RealLabels("sin"),
        (2, 1, 0.1, 0.8, 1.5, 1),
        (
            0.1174621574,
            0.0524098771,
            2.02007028,
            3.75166845,
            0.81996328,
            -0.00526087,
            0.42236894,
            0.36276331,
            0.38097045,
        ),
    ),
    (
        RealLabels("tanh"),
        (1, 0.5, 0.01, 0.6, 1, 1.2),
        (
            0.3216865849,
            0.0819515989,
            2.53135726,
            4.02542894,
            0.82169912,
            -0.0043077,
            0.33351767,
            0.63474616,
            0.92944793,
        ),
    ),
    (
        SignLabels(),
        (1.5, 2, 0.1, 0.9, 2, 1),
        (
            0.3811776584,
            0.0774185426,
            4.16478404,
            7.12020792,
            1.07772883,
            0.03959936,
            0.45534378,
            0.80745798,
            0.47041559,
        ),
    ),
]


def of(curve, *names):
    return np.array([float(np.ravel(getattr(curve, name))[0]) for name in names])


def tanh_features(numbers, labels, loss="square"):
    n, p, ridge, overlap, spike, norm = numbers
    return SpikedFeatures(n, p, overlap, spike, norm, ridge=ridge, labels=labels, loss=loss)


ORDER = (
    "linear_response",
    "rest_response",
    "mean_weight",
    "spike_weight",
    "teacher_weight",
    "linear_power",
    "rest_power",
)


@pytest.mark.parametrize(("labels", "numbers", "values"), SQUARE)
def test_least_squares_on_spiked_features(labels, numbers, values):
    curve = spiked_asymptotics(tanh_features(numbers, labels))
    assert bool(curve.converged)
    np.testing.assert_allclose(
        of(curve, "test_error", "train_error"), values[:2], rtol=0, atol=6e-11
    )
    np.testing.assert_allclose(of(curve, *ORDER), values[2:], rtol=0, atol=2e-8)


def test_without_a_spike_there_are_random_features():
    """Whatever the overlap: p/d = 2, n/p = 1.5 in the closed form of random features."""
    for overlap in (0.0, 0.7):
        system = SpikedFeatures(
            3, 2, overlap, 0.0, ridge=0.01, activation="erf", labels=RealLabels(noise=0.1)
        )
        curve = spiked_asymptotics(system)
        found = of(curve, "test_error", "train_error", "self_overlap", "teacher_overlap")
        np.testing.assert_allclose(
            found, (0.3554511257, 0.0673028614, 1.0440453837, 0.8942971290), rtol=1e-9
        )


def test_two_signs_let_relu_features_learn_an_even_function():
    """The first from quadrature with nodes at the kink of relu, to three digits."""
    numbers = {"ridge": 0.1, "activation": "relu", "labels": RealLabels("abs")}
    both = spiked_asymptotics(SpikedFeatures(2, 1, 0.9, (1.5, -1.5), **numbers))
    one = spiked_asymptotics(SpikedFeatures(2, 1, 0.9, 1.5, **numbers))
    np.testing.assert_allclose(of(both, "test_error", "train_error"), (0.1594, 0.0593), atol=2e-4)
    np.testing.assert_allclose(of(one, "test_error", "train_error"), (0.580, 0.456), atol=6e-4)


@pytest.mark.slow
def test_three_groups_of_neurons():
    target = RealLabels(lambda z: jnp.sin(2 * z))
    spikes, norms, fractions = (0.5, 2.0, -1.0), (1.0, 1.1, 1.0), (0.4, 0.4, 0.2)
    curve = spiked_asymptotics(
        SpikedFeatures(2, 1, 0.9, spikes, norms, ridge=0.05, labels=target, fractions=fractions)
    )
    np.testing.assert_allclose(
        of(curve, "test_error", "train_error"), (0.34242025, 0.13146620), atol=6e-9
    )
    np.testing.assert_allclose(curve.rest_response, (1.43990683, 2.13545793, 0.88017803), atol=6e-9)


# n/d, p/d, ridge, overlap, spike, bulk norm: classification error, train and test loss, m, zeta,
# V1, V2, q1, q2
SIGNS = [
    (
        (2, 1, 0.05, 0.7, 1, 1.1),
        (
            0.2020450,
            0.22124104,
            0.4315952,
            4.3270976,
            -0.00753396,
            7.4143624,
            11.4288082,
            6.6479705,
            5.6460915,
        ),
    ),
    (
        (1.5, 2, 0.01, 0.9, 2, 1),
        (
            0.12502264,
            0.05031544,
            0.30479604,
            5.532480,
            -0.0198696,
            57.106000,
            81.498845,
            13.775750,
            6.829371,
        ),
    ),
]


@pytest.mark.slow
def test_logistic_regression_on_spiked_features():
    for numbers, values in SIGNS:
        curve = spiked_asymptotics(tanh_features(numbers, SignLabels(), "logistic"))
        assert bool(curve.converged)
        names = (
            "classification_error",
            "train_loss",
            "test_loss",
            *ORDER[2:4],
            *ORDER[:2],
            *ORDER[5:],
        )
        np.testing.assert_allclose(of(curve, *names), values, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_hinge_loss_on_spiked_features():
    curve = spiked_asymptotics(
        SpikedFeatures(
            1.5, 2, 0.9, 2, 1, ridge=0.2, activation="tanh", labels=SignLabels(), loss="hinge"
        )
    )
    assert bool(curve.converged)
    found = of(curve, "classification_error", "train_loss", "test_loss", "mean_weight")
    np.testing.assert_allclose(found[:3], (0.1270, 0.0787, 0.3039), atol=1e-4)
    assert found[3] == pytest.approx(1.840, abs=1e-3)


TANH = OneStep(2, 1, 1.0, 1.0, ridge=0.01, activation="tanh", labels=RealLabels("tanh"))
SIGN = OneStep(2, 1, 1.0, 3.0, ridge=0.1, activation="tanh", labels=SignLabels())


@pytest.mark.parametrize(
    ("system", "batch", "values"),
    [
        (TANH, 1, (0.52844939, 0.69425601, 1.01904518)),
        (SIGN, 2, (1.93727102, 0.74839772, 1.19952358)),
        (SIGN, 8, (1.58581267, 0.91426260, 1.05342973)),
    ],
)
def test_spike_overlap_and_bulk_after_the_step(system, batch, values):
    layer = first_layer(system.with_(batch_ratio=batch))
    np.testing.assert_allclose(
        of(layer, "spikes", "spike_overlap", "bulk_norms"), values, atol=6e-9
    )


@pytest.mark.parametrize(
    ("system", "errors", "untrained", "linear"),
    [
        (
            TANH,
            {0.25: 0.22211257, 4.0: 0.07453806, 64.0: 0.04156225, 1e6: 0.03885996},
            0.20572635,
            0.02741533,
        ),
        (
            SIGN,
            {0.25: 0.98121318, 4.0: 0.48488912, 64.0: 0.33090397, 1e6: 0.31903453},
            0.75526262,
            0.36338023,
        ),
    ],
)
def test_larger_batches_and_the_best_linear_predictor(system, errors, untrained, linear):
    """The values are those for rows whose norms do not depend on their overlap with the spike."""

    def at(batch):
        features = spiked(system.with_(batch_ratio=batch))
        return float(spiked_asymptotics(features.with_(norm_slopes=0.0)).test_error)

    found = [at(batch) for batch in errors]
    np.testing.assert_allclose(found, list(errors.values()), rtol=0, atol=6e-9)
    assert float(no_step_asymptotics(system).test_error) == pytest.approx(untrained, abs=6e-9)
    assert float(best_linear(system).test_error) == pytest.approx(linear, abs=6e-9)


def test_spectral_density_of_random_features():
    """At a finite distance 1e-4 from the real axis, as the reference."""
    system = SpikedFeatures(2, 1, 0.5, 0.0, ridge=1.0)
    density = jax.jit(lambda value: spectral_density(system, value, 1e-4).density)
    values = {0.05: 2.937252, 0.2: 0.9148576, 1.0: 0.2369115, 2.0: 0.1125913}
    np.testing.assert_allclose(
        [float(density(value)) for value in values], list(values.values()), atol=6e-7
    )
