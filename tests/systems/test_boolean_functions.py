"""Boolean functions: three laws, and networks that are trained."""

import itertools

import jax
import numpy as np
import pytest

from orderparam.networks.fully_connected import fully_connected
from orderparam.systems.boolean_functions import (
    BooleanTraining,
    label_posterior,
    regression_posterior,
    tangent_kernel_law,
    trained_functions,
    wide_distances,
)
from orderparam.systems.boolean_functions.studies import three_bits

NETWORK = fully_connected(1, None, "erf", weight_variance=2.0, bias_variance=1.0)


def test_every_law_adds_up_to_one():
    for law in (label_posterior, regression_posterior, tangent_kernel_law):
        assert float(law(three_bits(64)).probability.sum()) == pytest.approx(1, abs=1e-4)


def test_an_input_that_is_labelled_keeps_its_label():
    """A test input that is a training input: under the two laws that fit, its sign is its label."""
    x = np.array(list(itertools.product((-1.0, 1.0), repeat=2)))
    labels = np.array([1.0, -1.0, -1.0])
    system = BooleanTraining(x[:3], labels, np.vstack([x[1], x[3]]), NETWORK)
    for law in (regression_posterior, tangent_kernel_law):
        found = np.asarray(law(system).probability)
        np.testing.assert_allclose(found[2:], 0, atol=1e-8)


def test_an_output_that_the_training_set_fixes_has_one_sign():
    """Odd units without biases: f(-x) = -f(x), whatever the training."""
    x = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    odd = fully_connected(1, None, "erf")
    system = BooleanTraining(x[:2], np.ones(2), x[2:], odd)
    for law in (label_posterior, regression_posterior, tangent_kernel_law):
        np.testing.assert_allclose(law(system).probability, [1, 0], atol=1e-8)
    np.testing.assert_allclose(wide_distances(system).squared_distance, 0, atol=1e-12)


def test_the_readout_alone_follows_the_regression_posterior():
    system = three_bits(64, trained="readout")
    np.testing.assert_allclose(
        tangent_kernel_law(system).probability, regression_posterior(system).probability, atol=1e-12
    )
    np.testing.assert_allclose(wide_distances(system).squared_distance[1], 0, atol=1e-12)


def test_labels_turned_turn_the_functions():
    """f -> -f: patterns in reverse order."""
    system = three_bits(64)
    turned = system.with_(labels=-np.asarray(system.labels))
    for law in (label_posterior, regression_posterior, tangent_kernel_law):
        np.testing.assert_allclose(
            law(turned).probability, law(system).probability[::-1], atol=2e-4
        )


def test_wide_networks_follow_the_tangent_kernel_and_neither_posterior():
    """Eight groups of 250 networks: from the law of the tangent kernel by chance alone, from the
    posteriors by what infinite width says, and more than five standard errors from nothing."""
    system = three_bits(128, networks=250)
    runs = jax.lax.map(
        lambda key: trained_functions(system, key), jax.random.split(jax.random.key(0), 8)
    )
    assert float(runs.fitted.min()) > 0.99
    distance = np.asarray(runs.squared_distance)
    error = distance.std(axis=0, ddof=1) / np.sqrt(8)
    far = np.asarray(wide_distances(system).squared_distance)
    assert np.all(np.abs(distance.mean(axis=0) - far) < 4 * error + 0.002)
    assert np.all(distance.mean(axis=0)[1:] > distance.mean(axis=0)[0])
    assert distance.mean(axis=0)[2] > 4 * error[2]


def test_what_is_refused():
    with pytest.raises(ValueError, match="at most 10"):
        BooleanTraining(np.ones((2, 3)), np.ones(2), np.ones((11, 3)), NETWORK)
    standard = fully_connected(1, None, "erf", scaling="standard")
    with pytest.raises(ValueError, match="must be 'ntk'"):
        BooleanTraining(np.ones((2, 3)), np.ones(2), np.ones((1, 3)), standard)
    with pytest.raises(ValueError, match="power of 2"):
        label_posterior(three_bits(8), samples=100)
