"""Orthants of Gaussian vectors: closed forms in two and three dimensions, and independence."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from orderparam.gaussian.orthants import orthant_probabilities, patterns


def test_two_and_three_dimensions_without_a_mean():
    """1/4 + asin(r)/2 pi, and 1/8 + (sum of three asins)/4 pi."""
    r = np.array([[1.0, 0.3, -0.5], [0.3, 1.0, 0.2], [-0.5, 0.2, 1.0]])
    found, error = orthant_probabilities(np.zeros(3), r, np.ones((1, 3)))
    angles = np.arcsin([0.3, -0.5, 0.2]).sum()
    assert abs(float(found[0]) - 1 / 8 - angles / (4 * np.pi)) < 6 * float(error[0])
    assert float(error[0]) < 3e-6
    pair, doubt = orthant_probabilities(np.zeros(2), r[:2, :2], patterns(2))
    same = 1 / 4 + np.arcsin(0.3) / (2 * np.pi)
    apart = np.abs(np.asarray(pair) - [same, 0.5 - same, 0.5 - same, same])
    assert np.all(apart < 6 * np.asarray(doubt))
    assert float(doubt.max()) < 3e-6


def test_independent_components_factorise_and_patterns_add_up():
    mean, variance = np.array([0.5, -1.0, 3.0]), np.array([1.0, 4.0, 0.5])
    found, _ = orthant_probabilities(mean, np.diag(variance), patterns(3))
    share = norm.cdf(patterns(3) * mean / np.sqrt(variance))
    np.testing.assert_allclose(found, share.prod(axis=1), rtol=1e-9)
    assert float(found.sum()) == pytest.approx(1, abs=1e-12)


def test_six_dimensions_against_scipy():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((6, 6))
    covariance, mean = root @ root.T, rng.standard_normal(6)
    found, error = orthant_probabilities(mean, covariance, np.ones((1, 6)))
    exact = multivariate_normal(-mean, covariance).cdf(np.zeros(6), rng=np.random.default_rng(0))
    assert abs(float(found[0]) - exact) < 5 * float(error[0]) + 5e-5
    assert float(error[0]) < 2e-4
