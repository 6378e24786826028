"""Committees of two signs: overlaps and specialisation known to many digits, and one unit, which is
a perceptron."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr, owens_t, softmax
from scipy.stats import norm

from orderparam.systems.committee import (
    Committee,
    LargeCommittee,
    information_transition,
    large_committee,
    large_committee_transition,
    specialisation,
    state_evolution,
)

GAUSSIAN = {
    1.0: (0.23994934, 0.23994934),
    2.2: (0.40066183, 0.32987818),
    2.5: (0.50051630, 0.26520101),
}
BINARY = {
    1.0: (0.24468082, 0.24468082),
    1.65: (0.35785573, 0.30787531),
    1.8: (0.45854212, 0.24323651),
}
PARITY = {3.0: 0.24270621}


@pytest.mark.parametrize(
    ("weights", "alpha", "overlaps"),
    [("gaussian", alpha, q) for alpha, q in GAUSSIAN.items()]
    + [("binary", alpha, q) for alpha, q in BINARY.items()],
)
def test_overlaps_of_two_units(weights, alpha, overlaps):
    found = state_evolution(Committee(alpha, 2, "majority", weights))
    np.testing.assert_allclose([found.overlap, found.cross_overlap], overlaps, atol=6e-9)


def test_overlaps_of_a_parity():
    found = state_evolution(Committee(3.0, 2, "parity"))
    np.testing.assert_allclose([found.overlap, found.cross_overlap], [PARITY[3.0], 0.0], atol=6e-9)
    below = state_evolution(Committee(2.3, 2, "parity"), max_steps=1000)
    assert float(below.overlap) < 1e-3


@pytest.mark.parametrize(
    ("weights", "ratio", "overlap"), [("gaussian", 2.0524, 0.355475), ("binary", 1.58933, 0.326108)]
)
def test_where_two_units_specialise(weights, ratio, overlap):
    found = specialisation(Committee(1.0, 2, "majority", weights))
    np.testing.assert_allclose([found.sample_ratio, found.overlap], [ratio, overlap], rtol=1e-5)


@pytest.mark.parametrize("weights", ["gaussian", "binary"])
def test_where_three_units_specialise(weights):
    """A majority of three at equal fields t, z ~ N(t, 1 - (q/3) 11^T), without any of the package's
    integrals:

    the slope of P(+) in a field is the density of that unit at zero times P(one of the two others
    is +), which is 4 T(h, a) by Owen's function; its slope in a second field is the density of both
    at zero times P(third is -) - P(third is +); P(+) is the integral of its slope along t."""
    t, dt = np.linspace(-9.5, 9.5, 2001, retstep=True)
    normal = norm.pdf(t) * dt
    nodes, shares = np.polynomial.legendre.leggauss(200)

    def state(precision):
        """alpha and Q_11 of equal units, and the product of both slopes across at alpha = 1."""
        if weights == "gaussian":
            q, slope = precision / (1 + precision), 1.0
        else:  # S = (w_1 + w_2 + w_3)/sqrt(3), known up to noise, and <w_1 w_2> = (<S^2> - 1)/2
            total, chance = np.array([3, 1, -1, -3]) / np.sqrt(3), np.array([1, 3, 3, 1]) / 8
            seen = precision * total[:, None] + np.sqrt(precision) * t
            posterior = softmax(
                np.log(chance) + seen[..., None] * total - precision * total**2 / 2, axis=-1
            )
            q = chance @ ((posterior @ total) ** 2 @ normal)
            slope = chance @ ((1 - posterior @ ((total**2 - 1) / 2)) ** 2 @ normal)
        own, cross = 1 - q / 3, -q / 3

        def first(t):
            spread = np.sqrt(own - cross**2 / own)
            correlation = (cross - cross**2 / own) / spread**2
            angle = np.sqrt((1 - correlation) / (1 + correlation))
            return (
                norm.pdf(t, scale=np.sqrt(own)) * 4 * owens_t((1 - cross / own) * t / spread, angle)
            )

        field = np.sqrt(q / 3) * t
        middle, half = (field - 9.5) / 2, (field + 9.5) / 2
        up = 3 * half * (first(middle[:, None] + half[:, None] * nodes) @ shares)
        inverse = 1 / np.maximum(up, 1e-300) + 1 / np.maximum(up[::-1], 1e-300)
        both = np.exp(-(field**2) / (own + cross)) / (2 * np.pi * np.sqrt(own**2 - cross**2))
        third = (
            (1 - 2 * cross / (own + cross)) * field / np.sqrt(own - 2 * cross**2 / (own + cross))
        )
        mixed = both * (1 - 2 * ndtr(third))
        pure = -field / own * first(field) - 2 * cross / own * mixed
        information = normal @ (3 * first(field) ** 2 * inverse)
        return precision / information, q / 3, slope * (normal @ ((pure - mixed) ** 2 * inverse))

    precision = brentq(lambda x: state(x)[0] * state(x)[2] - 1, 10.0, 60.0, xtol=1e-12)
    found = specialisation(Committee(1.0, 3, "majority", weights))
    np.testing.assert_allclose([found.sample_ratio, found.overlap], state(precision)[:2], rtol=1e-8)


def test_a_parity_is_weakly_recovered_from_pi_squared_over_four_on():
    np.testing.assert_allclose(
        specialisation(Committee(1.0, 2, "parity")).sample_ratio, np.pi**2 / 4, rtol=1e-6
    )


def test_one_unit_is_the_optimal_perceptron():
    found = state_evolution(Committee(1.0, 1))
    np.testing.assert_allclose(found.overlap, 0.4862636370, atol=6e-11)
    np.testing.assert_allclose(found.classification_error, 0.2543729703, atol=1e-5)


def test_two_binary_units_are_determined_before_they_come_apart():
    np.testing.assert_allclose(
        information_transition(Committee(1.0, 2, "majority", "binary")).information,
        1.546,
        atol=6e-4,
    )


def test_message_passing_finds_two_binary_units_beyond_the_spinodal():
    found = information_transition(Committee(1.0, 2, "majority", "binary"))
    assert 1.9766 < float(found.algorithmic) < 1.9781


def test_many_units_come_apart_with_a_jump():
    """The equations solved with SciPy's adaptive quadrature, without the substitution of small
    gaps; 7.65 in the literature."""
    from scipy.integrate import quad

    def entropy(gap, ratio):
        reach = 2 / np.pi * (np.arcsin(1 - gap) + gap)
        scale = np.sqrt(reach / (1 - reach))
        mean = quad(
            lambda x: norm.pdf(x) * norm.cdf(scale * x) * norm.logcdf(scale * x),
            -12,
            12,
            epsabs=1e-13,
            limit=200,
        )[0]
        return 2 * ratio * mean + (1 - gap + np.log(gap)) / 2

    def apart(ratio):
        return brentq(
            lambda gap: entropy(gap * (1 + 1e-5), ratio) - entropy(gap * (1 - 1e-5), ratio),
            0.02,
            0.15,
            xtol=1e-12,
        )

    found = large_committee_transition(LargeCommittee(1.0))
    expected = brentq(
        lambda ratio: entropy(apart(ratio), ratio) - entropy(1.0, ratio), 7.5, 7.9, xtol=1e-8
    )
    assert float(found.unit_ratio) == pytest.approx(expected, rel=1e-7)
    assert float(found.unit_ratio) == pytest.approx(7.65, rel=0.005)
    assert float(found.overlap) == pytest.approx(1 - apart(expected), abs=1e-5)
    state = large_committee(LargeCommittee(8.0))
    assert float(state.overlap) == pytest.approx(1 - apart(8.0), abs=1e-5)
    assert not large_committee(
        LargeCommittee(0.999 * float(found.begin)), branch="specialised"
    ).valid
    assert large_committee(LargeCommittee(1.001 * float(found.begin)), branch="specialised").valid


def test_the_field_of_many_units_has_the_overlap_of_signs():
    """classification_error = arccos(sqrt(R)) / pi with R the covariance of two sums of signs."""
    state = large_committee(LargeCommittee(8.0))
    units, q = 401, float(state.overlap)
    own, cross = q + (1 - q) / units, (1 - q) / units
    covariance = 2 / np.pi * (np.arcsin(own) + (units - 1) * np.arcsin(cross))
    assert float(state.classification_error) == pytest.approx(
        np.arccos(np.sqrt(covariance)) / np.pi, rel=2e-3
    )
