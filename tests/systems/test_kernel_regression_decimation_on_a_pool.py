"""Renormalisation with a position-dependent ridge on a pool: its limits, and a pool on which a
uniform ridge fails."""

import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.data import centre, load, normalise, parity
from orderparam.networks import fully_connected
from orderparam.systems.kernel_regression import (
    PoolRegression,
    cavity,
    local_renormalization,
    renormalization_group,
)

SIZE = 400


def at(pool, n_train, temperature, noise=0.0):
    return pool.with_(n_train=n_train, temperature=temperature, noise=noise)


def measured(pool, repeats=40):
    """Held-out error and its standard error over random training sets."""
    random, errors = np.random.default_rng(0), []
    kernel, targets, count = np.asarray(pool.kernel), np.asarray(pool.targets), int(pool.n_train)
    for _ in range(repeats):
        order = random.permutation(SIZE)
        chosen, rest = order[:count], order[count:]
        labels = targets[chosen] + np.sqrt(float(pool.noise)) * random.normal(size=count)
        dual = np.linalg.solve(
            kernel[np.ix_(chosen, chosen)] + float(pool.temperature) * np.eye(count), labels
        )
        errors.append(np.mean((kernel[np.ix_(rest, chosen)] @ dual - targets[rest]) ** 2))
    return np.mean(errors), np.std(errors, ddof=1) / np.sqrt(repeats)


@pytest.fixture(scope="module")
def digits():
    data = load("digits", count=SIZE)
    kernel = fully_connected(1, None, "relu").nngp(normalise(centre(data)).inputs)
    return PoolRegression.from_kernel(kernel, parity(data.labels).values, 10.0, 1.0)


@pytest.fixture(scope="module")
def patchy():
    """Twenty learnable modes; 4000 tiny ones whose variance is 0.05 on one half of the pool and
    1.95 on the other."""
    random = np.random.default_rng(1)
    features = random.normal(size=(SIZE, 20))
    local = np.where(random.random(SIZE) < 0.5, 0.05, 1.95)
    tiny = random.normal(size=(SIZE, 4000)) * np.sqrt(local / 4000)[:, None]
    kernel = (features / np.arange(1, 21)) @ features.T + tiny @ tiny.T
    return PoolRegression.from_kernel(kernel, features.sum(axis=1) / np.sqrt(20), 80.0, 1e-3), local


@pytest.mark.parametrize(
    ("n_train", "temperature", "noise"), [(50, 0.1, 0.0), (200, 0.1, 0.2), (40, 2.0, 0.0)]
)
def test_few_modes_and_a_local_ridge_replace_the_whole_pool_of_digits(
    digits, n_train, temperature, noise
):
    system = at(digits, n_train, temperature, noise)
    whole, part = cavity(system), local_renormalization(system, threshold=0.01)
    for name in (
        "test_error",
        "population_error",
        "train_error",
        "posterior_variance",
        "effective_dimension",
    ):
        assert float(getattr(part, name)) == pytest.approx(float(getattr(whole, name)), rel=0.01), (
            name
        )
    np.testing.assert_allclose(part.point_error, whole.point_error, rtol=0.05, atol=0.01)
    assert bool(part.valid)
    assert bool(part.converged)
    mean, error = measured(system)
    # The cavity theory itself is a few per cent low on digits.
    assert float(part.test_error) == pytest.approx(mean, abs=4 * error + 0.05 * mean)


def test_a_pool_on_which_a_uniform_ridge_is_wrong_by_far(patchy):
    pool, _ = patchy
    system = at(pool, 80, 1e-3)
    mean, error = measured(system)
    local = local_renormalization(system, threshold=0.1)
    uniform = renormalization_group(system, threshold=0.1, residual="self_consistent_on_pool")
    assert float(local.test_error) == pytest.approx(mean, abs=4 * error + 0.2 * mean)
    assert float(uniform.test_error) > 5 * mean


def test_the_local_ridge_is_the_variance_that_was_integrated_out(patchy):
    pool, local = patchy
    curve = local_renormalization(at(pool, 20, 1e-3), threshold=0.3)
    assert int(curve.mode_count) <= 20
    assert np.corrcoef(curve.local_ridge, local)[0, 1] > 0.9
    eigenvalues = np.asarray(pool.spectrum.eigenvalues)[int(curve.mode_count) :]
    assert float(jnp.mean(curve.local_ridge)) == pytest.approx(1e-3 + eigenvalues.sum(), rel=1e-10)
    power = np.asarray(pool.spectrum.target_power)[int(curve.mode_count) :]
    assert float(jnp.mean(curve.local_noise)) == pytest.approx(power.sum(), rel=1e-9)
    assert float(curve.ridge_variation) > 0.3


def test_without_unlearnable_modes_it_is_the_cavity_theory(digits):
    system = at(digits, 300, 1e-6)
    whole, part = cavity(system), local_renormalization(system, threshold=1e-6)
    assert int(part.mode_count) == SIZE
    np.testing.assert_allclose(part.point_error, whole.point_error, rtol=1e-6, atol=1e-10)
    assert float(part.neglected) == 0


def test_a_cut_off_that_throws_away_learned_modes_is_told(digits):
    system = at(digits, 50, 0.1)
    neglected = [
        float(local_renormalization(system, threshold=threshold).neglected)
        for threshold in (0.01, 0.1, 0.3)
    ]
    assert neglected == sorted(neglected)
    assert not bool(local_renormalization(system, threshold=0.3).valid)
    with pytest.raises(ValueError, match=r"threshold = 1\.5: must be between 0 and 1"):
        local_renormalization(system, threshold=1.5)
