"""Boolean functions: three laws, and networks that are trained."""

import itertools

import jax
import numpy as np
import pytest

from orderparam.gaussian.orthants import orthant_probabilities, patterns
from orderparam.networks.fully_connected import fully_connected
from orderparam.systems.boolean_functions import (
    BooleanTraining,
    frozen_kernel_law,
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


def test_every_batch_leads_to_the_law_of_the_tangent_kernel():
    """Square loss: all steps lie in the span of the training inputs, whatever the batches."""
    exact = np.asarray(tangent_kernel_law(three_bits(64)).probability)
    for fields in ({}, {"batch": 2, "learning_rate": 0.4}, {"trained": "readout"}):
        system = three_bits(64, steps=150, **fields)
        if fields.get("trained"):
            exact = np.asarray(regression_posterior(system).probability)
        found = frozen_kernel_law(system, samples=4096)
        np.testing.assert_allclose(found.probability, exact, atol=3e-3)


def test_few_steps_leave_the_prior_and_cross_entropy_is_not_the_square_loss():
    still = three_bits(64, loss="logistic", steps=1, learning_rate=1e-9)
    prior = three_bits(64)
    alone = np.asarray(frozen_kernel_law(still).probability)
    kernel = prior.architecture.kernel(prior.test_inputs).nngp
    exact, _ = orthant_probabilities(np.zeros(4), kernel, patterns(4))
    np.testing.assert_allclose(alone, exact, atol=3e-3)
    trained = frozen_kernel_law(three_bits(64, loss="logistic"))
    square = tangent_kernel_law(prior)
    distance = np.abs(np.asarray(trained.likely - square.likely))
    assert distance.max() > 10 * float(trained.likely_uncertainty.max())


def test_likely_functions_and_the_rest_make_one():
    for law in (label_posterior, regression_posterior, tangent_kernel_law, frozen_kernel_law):
        found = law(three_bits(64))
        assert found.likely.shape == (9,)
        assert float(found.likely.sum()) == pytest.approx(1, abs=1e-4)
    assert float(tangent_kernel_law(three_bits(64)).likely[-1]) < 0.05


def test_the_slope_of_a_batch_is_that_of_all_on_average():
    system = three_bits(64, loss="logistic", batch=3)
    outputs = np.array([0.5, -1.0, 2.0, 0.1])
    keys = jax.random.split(jax.random.key(0), 20_000)
    mean = jax.vmap(lambda key: system.slope(outputs, key))(keys).mean(axis=0)
    loss = lambda f: np.sum(np.logaddexp(0, -np.asarray(system.labels) * f))  # noqa: E731
    unit = 1e-6 * np.eye(4)
    slope = [(loss(outputs + one) - loss(outputs - one)) / 2e-6 for one in unit]
    np.testing.assert_allclose(mean, slope, atol=0.01)
    with pytest.raises(ValueError, match="batch = 5: must be at most 4"):
        three_bits(64, batch=5)
