"""Networks scaled up together with their data, and theories on the very data that the sampler
draws."""

import jax
import numpy as np
import pytest

from orderparam.systems.kernel_adaptation import (
    ScaledNetwork,
    TwoLayerNetwork,
    gaussian_process_on_data,
    hermite_target,
    sampled_at_scale,
    solved_on_drawn_data,
)
from orderparam.systems.kernel_adaptation.two_layers.experiment import training_set

LINEAR = TwoLayerNetwork(6, 2000, 5, 0.3, hermite_target({1: 1.0}), activation="linear")


def test_scaling_keeps_signal_and_adaptation():
    system = TwoLayerNetwork(
        96, 750, 288, 0.1, hermite_target({1: 1.0}), absolute=0.3, activation="relu"
    )
    large = ScaledNetwork(system, 2.5).scaled
    np.testing.assert_allclose(
        [large.signal, large.adaptation], [system.signal, system.adaptation], rtol=1e-14
    )
    drawn = ScaledNetwork(system, 0.125).drawn
    assert (drawn.input_dim, drawn.width, drawn.n_train) == (12, 94, 36)


def test_the_output_on_drawn_data_is_exact_for_linear_units():
    """f(x) = beta . x by ridge regression on the sampler's training set: beta_1, free of the noise
    of the test points."""
    key = jax.random.key(3)
    found = solved_on_drawn_data(
        ScaledNetwork(LINEAR, 1.0), key, gaussian_process_on_data, quartets=20
    )
    x, y = (np.asarray(part) for part in training_set(LINEAR, key))
    beta = np.linalg.solve(x.T @ x + 0.3 * 6 * np.eye(6), x.T @ y)
    np.testing.assert_allclose(found.learnability, beta[:1], rtol=1e-10)


@pytest.mark.slow
def test_theory_and_sampler_see_the_same_data():
    """At this width the network is its infinitely wide limit; between data sets the output differs
    far more than that."""
    system, keys = ScaledNetwork(LINEAR, 1.0), jax.random.split(jax.random.key(1), 4)
    theory = [
        float(solved_on_drawn_data(system, key, gaussian_process_on_data).output[0]) for key in keys
    ]
    runs = [sampled_at_scale(system, key, samples=120, warmup=60) for key in keys]
    assert np.ptp(theory) > 0.1
    np.testing.assert_allclose([float(run.output[0]) for run in runs], theory, atol=0.015)
