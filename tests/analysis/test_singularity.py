"""Exponents of functions whose exponents are known: with corrections to scaling, logarithms, shifts
and roundings."""

import numpy as np
import pytest

from orderparam.analysis.phases.singularity import power_law

H = 0.03 * 2.0 ** -np.arange(28)

POWERS = [
    (0.5, lambda h: np.sqrt(h) * (1 + 3 * h + 20 * h**2)),
    (0.125, lambda h: h**0.125 * (1 - 3 * h)),
    (2.0, lambda h: h**2 * (1 + 3 * np.sqrt(h) + 20 * h**2)),
    (1.0, lambda h: h * (1 - h**0.3)),
    (1 / 3, lambda h: np.cbrt(h) * (1 + 3 * np.cbrt(h))),
    (-1.0, lambda h: (1 + 5 * h) / h),
    (1.0, lambda h: h + 1e-9 + h**2),  # the place is off by 1e-9
]
LOGARITHMS = [
    (1.0, lambda h: h / np.log(0.2 / h)),
    (1.0, lambda h: h * np.log(3 / h) * (1 + h)),
    (1.0, lambda h: h / (np.log(3 / h) + np.log(np.log(3 / h)))),
    (0.5, lambda h: np.sqrt(h * np.log(0.2 / h))),
]


@pytest.mark.parametrize(("exponent", "function"), POWERS)
def test_an_exponent_is_inside_its_interval(exponent, function):
    found = power_law(H, function(H), np.full(len(H), 1e-9), 2e-9)
    assert abs(found.exponent - exponent) <= found.error < 0.02
    assert not found.logarithm


@pytest.mark.parametrize(("exponent", "function"), LOGARITHMS)
def test_a_logarithm_is_told_and_covered(exponent, function):
    found = power_law(H, function(H), np.full(len(H), 1e-9), 1e-12)
    assert abs(found.exponent - exponent) <= found.error < 0.03
    assert found.logarithm


def test_the_place_is_corrected():
    found = power_law(H, (H + 1e-6) * (1 + H), np.full(len(H), 1e-9), 1e-5)
    assert abs(found.shift - 1e-6) < max(found.shift_error, 1e-9)
    assert found.shift_error < 1e-7


def test_noisy_or_few_values_determine_nothing():
    assert not power_law(H[:5], H[:5], np.full(5, 1e-9), 1e-12).determined
    rng = np.random.default_rng(0)
    noisy = H * (1 + 0.02 * rng.standard_normal(len(H)))
    found = power_law(H, noisy, np.full(len(H), 0.02), 1e-12)
    assert abs(found.exponent - 1) <= found.error
