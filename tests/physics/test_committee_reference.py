"""Committees of two signs: overlaps and specialisation known to many digits, and one unit, which is a perceptron."""

import numpy as np
import pytest

from orderparam.systems.committee import (
    Committee,
    LargeCommittee,
    information_transition,
    large_committee,
    large_committee_transition,
    specialisation,
    state_evolution,
)

GAUSSIAN = {1.0: (0.23994934, 0.23994934), 2.2: (0.40066183, 0.32987818), 2.5: (0.50051630, 0.26520101)}
BINARY = {1.0: (0.24468082, 0.24468082), 1.65: (0.35785573, 0.30787531), 1.8: (0.45854212, 0.24323651)}
PARITY = {3.0: 0.24270621}


@pytest.mark.parametrize(
    ("weights", "alpha", "overlaps"),
    [("gaussian", alpha, q) for alpha, q in GAUSSIAN.items()] + [("binary", alpha, q) for alpha, q in BINARY.items()],
)
def test_overlaps_of_two_units(weights, alpha, overlaps):
    found = state_evolution(Committee(alpha, 2, "majority", weights))
    np.testing.assert_allclose([found.overlap, found.cross_overlap], overlaps, atol=6e-9)


def test_overlaps_of_a_parity():
    found = state_evolution(Committee(3.0, 2, "parity"))
    np.testing.assert_allclose([found.overlap, found.cross_overlap], [PARITY[3.0], 0.0], atol=6e-9)
    below = state_evolution(Committee(2.3, 2, "parity"), max_steps=1000)
    assert float(below.overlap) < 1e-3


@pytest.mark.parametrize(("weights", "ratio", "overlap"), [("gaussian", 2.0524, 0.355475), ("binary", 1.58933, 0.326108)])
def test_where_two_units_specialise(weights, ratio, overlap):
    found = specialisation(Committee(1.0, 2, "majority", weights))
    np.testing.assert_allclose([found.sample_ratio, found.overlap], [ratio, overlap], rtol=1e-5)


def test_a_parity_is_weakly_recovered_from_pi_squared_over_four_on():
    np.testing.assert_allclose(specialisation(Committee(1.0, 2, "parity")).sample_ratio, np.pi**2 / 4, rtol=1e-6)


def test_one_unit_is_the_optimal_perceptron():
    found = state_evolution(Committee(1.0, 1))
    np.testing.assert_allclose(found.overlap, 0.4862636370, atol=6e-11)
    np.testing.assert_allclose(found.classification_error, 0.2543729703, atol=1e-5)


def test_two_binary_units_are_determined_before_they_come_apart():
    np.testing.assert_allclose(information_transition(Committee(1.0, 2, "majority", "binary")).information, 1.546, atol=6e-4)


def test_message_passing_finds_two_binary_units_beyond_the_spinodal():
    found = information_transition(Committee(1.0, 2, "majority", "binary"))
    assert 1.9766 < float(found.algorithmic) < 1.9781


def test_many_units_come_apart_with_a_jump():
    """The equations solved with SciPy's adaptive quadrature, without the substitution of small gaps; 7.65 in the literature."""
    from scipy.integrate import quad
    from scipy.optimize import brentq
    from scipy.stats import norm

    def entropy(gap, ratio):
        reach = 2 / np.pi * (np.arcsin(1 - gap) + gap)
        scale = np.sqrt(reach / (1 - reach))
        mean = quad(lambda x: norm.pdf(x) * norm.cdf(scale * x) * norm.logcdf(scale * x), -12, 12, epsabs=1e-13, limit=200)[0]
        return 2 * ratio * mean + (1 - gap + np.log(gap)) / 2

    def apart(ratio):
        return brentq(lambda gap: entropy(gap * (1 + 1e-5), ratio) - entropy(gap * (1 - 1e-5), ratio), 0.02, 0.15, xtol=1e-12)

    found = large_committee_transition(LargeCommittee(1.0))
    expected = brentq(lambda ratio: entropy(apart(ratio), ratio) - entropy(1.0, ratio), 7.5, 7.9, xtol=1e-8)
    assert float(found.unit_ratio) == pytest.approx(expected, rel=1e-7)
    assert float(found.unit_ratio) == pytest.approx(7.65, rel=0.005)
    assert float(found.overlap) == pytest.approx(1 - apart(expected), abs=1e-5)
    state = large_committee(LargeCommittee(8.0))
    assert float(state.overlap) == pytest.approx(1 - apart(8.0), abs=1e-5)
    assert not large_committee(LargeCommittee(0.999 * float(found.begin)), branch="apart").converged
    assert large_committee(LargeCommittee(1.001 * float(found.begin)), branch="apart").converged


def test_the_field_of_many_units_has_the_overlap_of_signs():
    """classification_error = arccos(sqrt(R)) / pi with R the covariance of two sums of signs."""
    state = large_committee(LargeCommittee(8.0))
    units, q = 401, float(state.overlap)
    own, cross = q + (1 - q) / units, (1 - q) / units
    covariance = 2 / np.pi * (np.arcsin(own) + (units - 1) * np.arcsin(cross))
    assert float(state.classification_error) == pytest.approx(np.arccos(np.sqrt(covariance)) / np.pi, rel=2e-3)
