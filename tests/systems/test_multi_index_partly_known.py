"""Stairs after directions that are known in part: against sums over preimages, closed forms, and
refusals."""

import numpy as np
import pytest

from orderparam.systems.multi_index import LearnedTarget, grand_staircase, threshold

STAIRS = "z1**2 + sign(z1*z2*z3)"


def over_preimages(overlap):
    """qh d / n of z1 and the n / d at which z2, z3 are seen, for y = z1^2 + s with s = sign(z1 z2
    z3).

    A label has the four preimages z1 = +-sqrt(y - 1) with s = 1 and +-sqrt(y + 1) with s = -1, of
    weight N(z1; omega, V) / |z1|; E[z2 z3 | y, omega] = (2/pi) E[s sign(z1) | y, omega] and E[z2^2
    - 1 | y, omega] = 0.
    """
    rest = 1 - overlap
    omega = np.linspace(-6, 6, 601)[:, None] * np.sqrt(overlap)
    law = np.exp(-(np.linspace(-6, 6, 601) ** 2) / 2)
    law /= law.sum()
    t = np.linspace(-7, 7, 2800)  # none at zero
    z = omega + np.sqrt(rest) * t
    inner = np.exp(-(t**2) / 2) / np.sum(np.exp(-(t**2) / 2))
    mean_square = sign_square = 0.0
    for s in (1.0, -1.0):
        sums = np.zeros((3, *z.shape))
        for other in (1.0, -1.0):
            square = z**2 + s - other if s != other else z**2
            root = np.sqrt(np.maximum(square, 1e-300))
            for x in (root, -root):
                weight = np.where(square > 0, np.exp(-((x - omega) ** 2) / (2 * rest)) / root, 0.0)
                sums += weight * np.stack([np.ones_like(x), x - omega, other * np.sign(x)])
        mean, sign = sums[1] / sums[0], sums[2] / sums[0]
        mean_square += law @ (mean**2 @ inner) / 2
        sign_square += law @ (sign**2 @ inner) / 2
    return mean_square / rest**2, np.pi**2 / 4 / sign_square


@pytest.mark.parametrize("overlap", [0.5, 0.8, 0.95, 0.99])
def test_the_next_directions_are_seen_later_by_whom_knows_less(overlap):
    found = threshold(STAIRS, overlap=[overlap, 0, 0])
    assert found.kind == "easy"
    assert found.complete
    expected = over_preimages(overlap)[1]
    assert found.error < 0.1 * expected
    assert abs(found.sample_ratio - expected) < min(found.error, 0.01 * expected)


def test_perfect_knowledge_is_the_next_stair():
    known, stairs = threshold(STAIRS, overlap=[1, 0, 0]), threshold(STAIRS).stairs
    assert abs(known.sample_ratio - stairs[1].threshold) < min(
        known.error, 0.01 * stairs[1].threshold
    )
    np.testing.assert_allclose(
        np.abs(known.stairs[0].directions), np.abs(stairs[1].directions), atol=1e-12
    )


def test_an_overlap_may_be_that_of_any_directions():
    """The target turned by 45 degrees in (z1, z2), and z1 of the turned one known in part."""
    turned = "((z1 + z2)/sqrt(2))**2 + sign((z1 + z2)*(z1 - z2)*z3)"
    direction = np.array([1.0, 1.0, 0.0]) / np.sqrt(2)
    found = threshold(turned, overlap=0.95 * np.outer(direction, direction))
    assert abs(found.sample_ratio - over_preimages(0.95)[1]) < found.error
    seen = found.stairs[0].directions
    np.testing.assert_allclose(seen @ direction, 0.0, atol=1e-9)


def test_what_is_known_in_part_shows_trivial_directions():
    """y = z1 z2: E[z2 | y, omega1] does not vanish for any overlap of z1; and nothing shows the
    sign of three."""
    assert threshold("z1*z2", overlap=[0.3, 0]).kind == "trivial"
    assert threshold("sign(z1*z2*z3)", overlap=[0.5, 0, 0]).kind == "easy"
    assert threshold("sign(z1*z2*z3)", overlap=[0, 0, 0]).kind == "hard"


def test_a_stair_of_signs_is_that_of_fewer_signs_at_a_lower_rate():
    """sign(z1 z2 z3) with z1 known in part: E[z2 z3 | y, omega] = (2/pi) y E[sign z1 | omega], so
    that n/d is multiplied by 1 / E (1 - 2 Phi(-omega / sqrt(V)))^2 = 1 / ((2/pi) arcsin(q))."""
    found = threshold("sign(z1*z2*z3)", overlap=[0.5, 0, 0])
    expected = np.pi**2 / 4 / (2 / np.pi * np.arcsin(0.5))
    assert abs(found.sample_ratio - expected) < min(found.error, 0.01 * expected)


@pytest.mark.parametrize("sample_ratio", [1.0, 1.2])
def test_overlaps_rise_to_the_fixed_point_of_state_evolution(sample_ratio):
    """q = qh (1 + qh)^-1 with qh by sums over preimages, as if n/d were off by less than 1 %."""
    found = grand_staircase(LearnedTarget(sample_ratio, STAIRS))
    overlap = float(found.overlap[0])
    information, following = over_preimages(overlap)
    assert found.converged
    np.testing.assert_allclose(overlap / (1 - overlap) / information, sample_ratio, rtol=0.01)
    np.testing.assert_allclose(found.next_threshold, following, rtol=0.03)
    np.testing.assert_array_equal(found.overlap[1:], 0.0)


def test_the_stairs_of_an_estimate():
    """Nothing below 0.5752; z1 known beyond 1.39, but not z2 and z3 below pi^2/4; then these as
    well."""
    low, middle, high = (grand_staircase(LearnedTarget(ratio, STAIRS)) for ratio in (0.5, 1.8, 3.5))
    np.testing.assert_array_equal(low.overlap, 0.0)
    np.testing.assert_allclose(low.next_threshold, 0.5751663526, rtol=0.005)
    np.testing.assert_array_equal(middle.overlap, [1.0, 0.0, 0.0])
    np.testing.assert_allclose(middle.next_threshold, np.pi**2 / 4, rtol=0.01)
    signs = grand_staircase(LearnedTarget(3.5, "sign(z1*z2)"))
    np.testing.assert_allclose(high.overlap, [1.0, *signs.overlap], atol=0.01)
    assert np.isinf(high.next_threshold)


@pytest.mark.parametrize(
    ("overlap", "message"),
    [
        ([0.5, 0.0], "must be 3 numbers"),
        ([1.2, 0, 0], "from 0 to 1"),
        ([0.5, 0.5, 0.5], "one at least"),
        ([np.nan, 0, 0], "3"),
    ],
)
def test_what_is_no_overlap_is_refused(overlap, message):
    with pytest.raises(ValueError, match=message):
        threshold(STAIRS, overlap=overlap)
    with pytest.raises(ValueError, match="not for samples"):
        threshold(np.zeros((3000, 3)), labels=np.zeros(3000), overlap=overlap)
