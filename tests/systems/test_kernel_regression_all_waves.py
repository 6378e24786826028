"""Regression on a torus with all waves of the kernel: the kernel against its sum, the best ridge,
and the theory."""

import jax
import numpy as np
import pytest

from orderparam.systems.kernel_regression import (
    TorusRegression,
    all_waves_regression,
    self_consistent,
)
from orderparam.systems.kernel_regression.torus.all_waves import wave_kernel

KEY = jax.random.key(5)


def _torus(dim, relevant, n_train=64, ridge=0.1, cut=40.0):
    return TorusRegression.from_smoothness(
        dim, 2.0, 2.0, n_train, ridge, 0.1, cut=cut, target_dim=relevant
    )


@pytest.mark.parametrize(("dim", "power"), [(1, 2.5), (2, 3.0), (3, 3.5)])
def test_the_kernel_is_the_sum_of_its_waves(dim, power):
    steps = np.random.default_rng(0).integers(8192, size=(5, dim))
    reach = {1: 300, 2: 60, 3: 25}[dim]
    line = np.arange(-reach, reach + 1)
    waves = np.stack(np.meshgrid(*[line] * dim), axis=-1).reshape(-1, dim)
    weight = (1.0 + np.sum(waves**2, axis=1)) ** -power
    direct = np.cos(2 * np.pi * steps / 8192 @ waves.T) @ weight / weight.sum()
    np.testing.assert_allclose(wave_kernel(steps, power), direct, atol=2e-6)


def test_in_eight_dimensions_waves_of_one_length_are_counted():
    """Where every x_j is 0 or pi: the sum over |k|^2 = s of (-1)^k_1 is a coefficient of a product
    of eight theta series."""
    longest = 3000
    series = np.zeros((2, longest + 1))
    series[:, 0] = 1
    for k in range(1, int(longest**0.5) + 1):
        series[:, k * k] = 2, 2 * (-1) ** k
    length = (1.0 + np.arange(longest + 1)) ** -6.0

    def waves(opposite):
        found = np.eye(1, longest + 1)[0]
        for j in range(8):
            found = np.convolve(found, series[int(j < opposite)])[: longest + 1]
        return found @ length

    steps = np.zeros((3, 8), int)
    steps[1, 0], steps[2] = 4096, 4096
    direct = [waves(opposite) / waves(0) for opposite in (0, 1, 8)]
    np.testing.assert_allclose(wave_kernel(steps, 6.0), direct, atol=2e-6)


def test_the_noise_is_the_best_ridge():
    """The kernel is the covariance of the target, so that the posterior mean has this ridge."""
    best, *others = (
        float(all_waves_regression(_torus(3, 3, ridge=ridge), KEY).test_error)
        for ridge in (0.1, 0.05, 0.2)
    )
    assert best < min(others)


@pytest.mark.parametrize(("dim", "relevant"), [(1, 1), (3, 3), (3, 1), (6, 6)])
def test_errors_follow_the_theory(dim, relevant):
    system = _torus(dim, relevant, n_train=256)
    runs = [all_waves_regression(system, key).test_error for key in jax.random.split(KEY, 6)]
    expected = float(self_consistent(system).test_error)
    assert np.mean(runs) == pytest.approx(expected, rel=0.03)


def test_refusals():
    with pytest.raises(ValueError, match="cut"):
        all_waves_regression(_torus(3, 3, cut=2.0), KEY)
    with pytest.raises(ValueError, match="spectrum"):
        all_waves_regression(_torus(3, 3).with_(target_dim=1), KEY)
    with pytest.raises(ValueError, match="tests"):
        all_waves_regression(_torus(1, 1), KEY, tests=0)
    with pytest.raises(ValueError, match=r"n_train = 1e\+06: must be at most [0-9]+ with 6 inputs"):
        all_waves_regression(_torus(6, 6, n_train=1e6), KEY)
