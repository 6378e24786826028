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
from orderparam.systems.kernel_adaptation.pooled.model import convolved, drawn_layers, output

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
