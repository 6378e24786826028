"""Corrections of perceptron learning, and the volume of the couplings that store random
patterns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from orderparam.systems.storage_capacity import (
    SphericalPatterns,
    corrections_bound,
    largest_margin,
    measured_volume,
    perceptron_learning,
    volume,
)
from orderparam.systems.storage_capacity.experiment import _largest_margin, drawn_patterns
from orderparam.systems.storage_capacity.learning import _learnt
from orderparam.systems.storage_capacity.measured_volume import _split


def test_corrections_stay_below_the_bound_of_each_sample():
    """The proof holds for every sample, with its own largest stability and longest input."""
    system = SphericalPatterns(1.0, input_dim=20)
    for number in range(4):
        (patterns,) = drawn_patterns(system, jax.random.key(number), 1)
        largest, _ = _largest_margin(patterns)
        longest = np.max(np.linalg.norm(patterns, axis=1)) / np.sqrt(20)
        for share in (0.0, 0.5, 0.9):
            margin = share * largest
            _, corrected = _learnt(jnp.asarray(patterns[None]), margin, 100_000)
            # in units of the longest input both margins are smaller by its length
            K = largest / longest
            bound = 1 / K**2
            if share:
                t = scipy.optimize.brentq(
                    lambda t, share: (1 - share) * t - np.log1p(t), 1e-6, 1e6, args=(share,)
                )
                bound = t / (2 * share * K**2)
            assert 0 < corrected[0] / 20 <= bound


@pytest.mark.parametrize("share", [1e-9, 1e-3, 0.3, 0.99])
def test_the_bound_solves_its_equation(share):
    largest = float(largest_margin(SphericalPatterns(0.8)).margin)
    found = corrections_bound(SphericalPatterns(0.8, margin=share * largest))
    t = 2 * share * largest**2 * float(found.corrections)
    assert found.converged
    if share > 1e-6:
        np.testing.assert_allclose((1 - share) * t, np.log1p(t), rtol=1e-9)
    else:
        np.testing.assert_allclose(found.corrections * largest**2, 1, rtol=1e-8)
    beyond = corrections_bound(SphericalPatterns(0.8, margin=1.01 * largest))
    assert not beyond.valid


def test_the_mean_volume_is_exact_for_few_inputs():
    """The labels are random, so that the mean volume is 2^-p at every number of inputs."""
    found = measured_volume(
        SphericalPatterns(1.0, input_dim=4), jax.random.key(5), samples=400, walkers=100, moves=20
    )
    system, key = SphericalPatterns(1.0, input_dim=4), jax.random.key(5)
    patterns = jnp.asarray(np.stack(list(drawn_patterns(system, key, 400))))
    keys = jax.random.split(jax.random.fold_in(key, 1), 400)
    entropy, _, _ = _split(keys, patterns, jnp.zeros(()), 100, 20)
    volumes = np.exp(4 * np.asarray(entropy))
    error = np.std(volumes) / np.sqrt(400)
    assert abs(np.mean(volumes) - 2**-4) < 3.5 * error
    assert error < 0.05 * 2**-4
    np.testing.assert_allclose(found.entropy, np.mean(entropy), rtol=1e-12)


@pytest.mark.long
def test_volume_and_overlap_approach_the_theory():
    """Differences from the theory fall with the number of inputs, as 1/N."""
    theory = volume(SphericalPatterns(0.5))
    measured = [
        measured_volume(
            SphericalPatterns(0.5, input_dim=n), jax.random.key(0), samples=300, moves=2 * n
        )
        for n in (8, 16)
    ]
    for name in ("entropy", "overlap"):
        small, large = (float(getattr(one, name)) for one in measured)
        errors = [float(getattr(one, f"{name}_error")) for one in measured]
        limit, error = 2 * large - small, np.hypot(2 * errors[1], errors[0])
        assert error < 0.05
        assert abs(limit - float(getattr(theory, name))) < 3.5 * error, name


def test_what_cannot_be_is_refused():
    key = jax.random.key(0)
    with pytest.raises(ValueError, match=r"SphericalPatterns.margin = -0.2: must be >= 0"):
        perceptron_learning(SphericalPatterns(margin=-0.2), key)
    with pytest.raises(ValueError, match=r"SphericalPatterns.margin = -0.2: must be >= 0"):
        corrections_bound(SphericalPatterns(margin=-0.2))
    with pytest.raises(ValueError, match="walkers"):
        measured_volume(SphericalPatterns(), key, walkers=1)
