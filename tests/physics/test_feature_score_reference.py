"""A score on random features: values computed once by other programs."""

import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.systems.diffusion import FeatureScore, score_losses, score_spectrum
from orderparam.systems.diffusion.score_theory import resolvent

# t -> s^2 and v^2 of tanh
POWERS = {
    0.01: (0.0255417764, 0.0018735496),
    0.1: (0.0138414537, 0.0135738723),
    0.5: (0.0011242895, 0.0262910366),
}


@pytest.mark.parametrize("time", POWERS)
def test_powers_of_tanh(time):
    powers = FeatureScore(2.0, 8.0, time).powers
    np.testing.assert_allclose(np.sqrt(powers.linear), 0.6057055096, rtol=0, atol=6e-11)
    found = powers.example, powers.rest
    np.testing.assert_allclose(found, POWERS[time], rtol=0, atol=6e-11)


# (t, p/d, n/d, ridge) -> training and test loss
LOSSES = {
    (0.1, 4.0, 2.0, 0.01): (0.627598, 1.211951),
    (0.1, 4.0, 2.0, 1.0): (0.832620, 0.858235),
    (0.1, 8.0, 0.5, 0.1): (0.333781, 2.027176),
    (0.5, 3.0, 4.0, 0.1): (0.380811, 0.409349),
}


@pytest.mark.parametrize("case", LOSSES)
def test_losses_along_the_ridge(case):
    time, features, samples, ridge = case
    found = score_losses(FeatureScore(samples, features, time, ridge=ridge))
    assert found.converged
    losses = found.train_loss, found.test_loss
    np.testing.assert_allclose(losses, LOSSES[case], rtol=0, atol=6e-7)


def test_edges_and_resolvent():
    system = FeatureScore(2.0, 8.0, 0.1)
    found = score_spectrum(system)
    edges = found.smallest, found.gap_start, found.gap_end, found.largest
    np.testing.assert_allclose(edges, [0.015377, 0.107621, 0.570993, 8.934711], rtol=0, atol=6e-7)
    np.testing.assert_allclose(found.frozen_share, 0.625, rtol=1e-14)
    at, _ = resolvent(system.powers, jnp.asarray([-0.3 + 0.1j]))
    np.testing.assert_allclose(at.trace / at.slope, -2.70612 - 1.02877j, rtol=0, atol=6e-6)
