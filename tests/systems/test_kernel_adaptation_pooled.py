"""Pooled convolutional classifiers, layer by layer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import signal

from orderparam.systems.kernel_adaptation import (
    PooledClassifier,
    pooled_layers,
    pruned_pooled_classifier,
)
from orderparam.systems.kernel_adaptation.pooled.experiment import _laws, excess_kurtosis
from orderparam.systems.kernel_adaptation.pooled.model import (
    convolved,
    drawn_layers,
    output,
    trained_layers,
)

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.standard_normal((12, 8, 8, 2))
CLASSES = np.eye(3)[np.arange(12) % 3] - 1 / 3
POOLED = PooledClassifier(IMAGES, CLASSES, IMAGES[:6], CLASSES[:6], channels=64)


def test_a_convolution_is_that_of_scipy():
    filters = RANDOM.standard_normal((18, 1))
    ours = convolved(1, jnp.asarray(filters), jnp.asarray(IMAGES[:1]))
    kernel = filters.reshape(3, 3, 2)
    exact = sum(
        signal.correlate2d(IMAGES[0, :, :, c], kernel[:, :, c], mode="same") for c in range(2)
    )
    np.testing.assert_allclose(ours.reshape(8, 8), exact / 3.0, rtol=1e-6, atol=1e-9)


def test_untrained_layers_obey_the_layer_wise_prediction():
    """Within four of the standard errors over 48 networks."""
    found = []
    for seed in range(48):
        first, second = jax.random.split(jax.random.key(seed))
        found.append(_laws(POOLED, drawn_layers(POOLED, first), second))
    for field, exact in (
        ("label_variance", 1.0),
        ("random_variance", 1.0),
        ("label_kurtosis", 0.0),
        ("random_kurtosis", 0.0),
    ):
        values = np.array([getattr(one, field) for one in found])
        error = np.std(values, axis=0, ddof=1) / np.sqrt(len(values))
        assert np.all(np.abs(np.mean(values, axis=0) - exact) < 4 * error), field
    densities = np.mean([one.density for one in found], axis=0)
    np.testing.assert_allclose(densities.sum(axis=1) * 8 / densities.shape[1], 1.0, atol=0.01)


def test_the_kurtosis_has_no_bias_at_few_channels():
    values = RANDOM.uniform(size=(200_000, 6))
    assert float(excess_kurtosis(jnp.asarray(values))) == pytest.approx(-1.2, abs=0.03)


def test_training_fits_the_training_set():
    found = pooled_layers(POOLED.with_(channels=16), jax.random.key(0), steps=200)
    assert float(found.train_accuracy) == 1.0


def test_the_output_starts_at_zero():
    layers = drawn_layers(POOLED, jax.random.key(0))
    assert float(jnp.max(jnp.abs(output(layers, jnp.asarray(IMAGES, jnp.float32), 1.0)))) == 0.0


def test_images_of_another_shape_are_refused():
    with pytest.raises(ValueError, match="multiple of 4"):
        POOLED.with_(inputs=np.ones((2, 6, 6, 1)), test_inputs=np.ones((2, 6, 6, 1)))


def test_keeping_every_direction_changes_nothing():
    found = pruned_pooled_classifier(POOLED, jax.random.key(0), steps=20)
    for field in ("accuracy", "random_accuracy", "magnitude_accuracy"):
        np.testing.assert_allclose(getattr(found, field)[:, -1], found.full_accuracy)
    np.testing.assert_allclose(found.trace[:, -1], 1.0, rtol=1e-6)
    np.testing.assert_allclose(np.sum(found.eigenvalues, axis=1), 1.0, rtol=1e-6)


def test_kernel_distances_and_movement_are_those_of_the_formulas():
    """The first layer, by sums over all pixels and windows."""
    system = POOLED.with_(channels=5)
    draw_key = jax.random.split(jax.random.key(3))[0]
    start = drawn_layers(system, draw_key)
    end, _ = trained_layers(system, start, 20, 0.02)
    found = pooled_layers(system, jax.random.key(3), steps=20)
    padded = np.pad(IMAGES, ((0, 0), (1, 1), (1, 1), (0, 0)))
    seen = np.array(
        [
            [padded[:, i + row, j + column] for row in range(3) for column in range(3)]
            for i in range(8)
            for j in range(8)
        ]
    )  # (pixel, place in the window, example, colour)
    predicted = np.einsum("pwmc,pwnc->mn", seen, seen) / (64 * 9 * 2)
    for filters, distance in (
        (start.filters[0], found.kernel_distance_before[0]),
        (end.filters[0], found.kernel_distance[0]),
    ):
        h = np.einsum("pwmc,wck->pmk", seen, np.asarray(filters).reshape(9, 2, 5)) / np.sqrt(18)
        learned = np.einsum("pmk,pnk->mn", h, h) / (64 * 5)
        exact = np.linalg.norm(learned - predicted) / np.linalg.norm(predicted)
        np.testing.assert_allclose(distance, exact, rtol=1e-5)
    for number, (one, other) in enumerate(zip(start.filters, end.filters)):
        exact = np.linalg.norm(other - one) / np.linalg.norm(one)
        np.testing.assert_allclose(found.moved[number], exact, rtol=1e-5)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"test_inputs": IMAGES[:, :4, :4]}, "test_inputs has images of shape"),
        (
            {"targets": np.eye(4)[np.arange(12) % 3], "test_targets": np.eye(4)[np.arange(6) % 4]},
            "a class without training examples",
        ),
        ({"channels": 3}, "channels = 3"),
        ({"temperature": float("nan")}, "temperature"),
        ({"chi": 10**400}, "chi"),
        ({"inputs": "text"}, "inputs"),
        ({"inputs": np.empty((0, 8, 8, 2))}, "inputs"),
    ],
)
def test_what_is_no_classifier_is_refused_by_name(changed, words):
    with pytest.raises(ValueError, match=words):
        POOLED.with_(**changed)
