"""Training of networks that adapt: its equilibrium, the examples it needs, and pruning in the
latent kernel."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.systems.kernel_adaptation import (
    Classifier,
    TwoLayerNetwork,
    examples_needed,
    gaussian_process,
    hermite_target,
    langevin_training,
    pruned_classifier,
    sampled_network,
)

TINY = TwoLayerNetwork(4, 8, 15, 0.3, hermite_target({1: 1.0, 3: -0.1}), 0.2, 0.5, modes=(1, 3))


def test_training_with_weight_decay_ends_in_the_posterior():
    key = jax.random.key(3)
    trained = [
        langevin_training(TINY, key, duration=600.0, step=0.01, start=start)
        for start in ("prior", "informed")
    ]
    posterior = sampled_network(TINY, key, samples=400)
    for one in trained:
        assert bool(one.converged)
        assert abs(float(one.output[0] - posterior.output[0])) < 0.08
        assert float(one.spread) == pytest.approx(float(posterior.spread), rel=0.25)
    with pytest.raises(ValueError, match="start"):
        langevin_training(TINY, key, start="here")
    with pytest.raises(ValueError, match="step_size"):
        langevin_training(TINY, key, step=3.0)


def test_one_learning_rate_slows_the_hidden_weights():
    """Where the data do not pull, w . w_* = +-1 falls as exp(-t), with one learning rate as exp(-r
    t), r = d s / (N v) = 0.04."""
    free = TwoLayerNetwork(20, 100, 2, 1e9, hermite_target({1: 1.0}), 0.1, 0.5)
    run = partial(
        langevin_training,
        free,
        jax.random.key(0),
        duration=1.5,
        step=0.01,
        records=5,
        start="informed",
    )
    assert float(run().specialised[-1]) < 15
    assert float(run(one_rate=True).specialised[-1]) > 97


def test_examples_that_the_linear_part_needs():
    """Fixed linear kernel: f_1/y_1 = 1/(1 + T d/(n s v)), so that n = T d/(s v) at one half."""
    system = TwoLayerNetwork(
        30, 50, 200, 0.5, hermite_target({1: 1.0}), 0.7, 0.4, activation="linear"
    )
    needed = partial(examples_needed, theory=gaussian_process, mode=0, threshold=0.5)
    found = jax.vmap(lambda d: needed(system.with_(input_dim=d)))(jnp.asarray([30.0, 90.0]))
    assert bool(jnp.all(found.converged))
    np.testing.assert_allclose(found.per_dimension, 0.5 / (0.7 * 0.4), rtol=1e-9)


def classifier(chi: float) -> Classifier:
    random = np.random.default_rng(0)
    x = jnp.asarray(random.standard_normal((60, 6)))
    y = jax.nn.one_hot(jnp.argmax(x[:, :3], axis=1), 3) - 1 / 3
    return Classifier(x[:40], y[:40], x[40:], y[40:], width=16, chi=chi)


def test_pruning():
    lazy, rich = (
        pruned_classifier(classifier(chi), jax.random.key(0), steps=300) for chi in (1e-4, 10.0)
    )
    for one in (lazy, rich):
        for name in ("accuracy", "random_accuracy", "magnitude_accuracy"):
            assert float(getattr(one, name)[-1]) == float(one.full_accuracy)
        np.testing.assert_allclose([one.trace[-1], jnp.sum(one.eigenvalues)], 1, rtol=1e-9)
        assert float(one.train_accuracy) > 0.9
    assert float(lazy.moved) < 0.03 < 0.2 < float(rich.moved)
    fixed = pruned_classifier(classifier(10.0), jax.random.key(0), steps=20, train_hidden=False)
    assert float(fixed.moved) == 0
    with pytest.raises(ValueError, match="test_inputs"):
        classifier(1.0).with_(test_targets=jnp.ones((3, 3)))
