"""Weight spectra: the exact law against matrices that are drawn, counts, overlaps, tails."""

import numpy as np
import pytest

from orderparam.observables import power_law_tail, spiked, weight_spectrum


def _with_spikes(rng, n, p, strengths):
    u, v = (np.linalg.qr(rng.normal(size=(size, len(strengths))))[0] for size in (n, p))
    return rng.normal(size=(n, p)) + np.sqrt(n) * (u * strengths) @ v.T, u, v


@pytest.mark.parametrize(("n", "p"), [(30, 10), (25, 25), (20, 2), (15, 1)])
@pytest.mark.parametrize("strength", [0.0, 1.3])
def test_the_law_of_the_largest_singular_value_is_exact(n, p, strength):
    rng = np.random.default_rng(n + p)
    w = rng.normal(size=(3000, n, p))
    w[:, 0, 0] += strength * np.sqrt(n)
    largest = np.linalg.norm(w, 2, axis=(1, 2)) / np.sqrt(n)
    for share in (0.1, 0.5, 0.9):
        value = np.quantile(largest, share)
        drawn = spiked.strengths(value, n, p, rng)
        noise = spiked.probability(value, n, p, rng)
        beyond = np.mean(drawn <= strength) if strength else noise
        assert beyond == pytest.approx(1 - share, abs=4 * np.sqrt(0.25 * (1 / 3000 + 1 / 2000)))


def test_the_edge_is_that_of_tracy_and_widom():
    n = p = 400
    rng = np.random.default_rng(0)
    a, b = np.sqrt(n - 0.5), np.sqrt(p - 0.5)
    centre, scale = (a + b) ** 2, (a + b) * (1 / a + 1 / b) ** (1 / 3)
    for quantile, level in ((0.9793, 0.05), (-1.2686, 0.5)):
        value = np.sqrt((centre + scale * quantile) / n)
        assert spiked.probability(value, n, p, rng, 4000) == pytest.approx(level, abs=0.03)


@pytest.mark.parametrize("strength", [1.2, 2.0])
def test_outliers_lie_where_theory_puts_them(strength):
    rng = np.random.default_rng(1)
    aspect, seen = 0.5, []
    for _ in range(8):
        w, u, v = _with_spikes(rng, 400, 200, [strength])
        left, s, right = np.linalg.svd(w, full_matrices=False)
        seen.append((s[0] / 20, (left[:, 0] @ u[:, 0]) ** 2, (right[0] @ v[:, 0]) ** 2))
    value, long, short = np.mean(seen, axis=0)
    error = np.std(seen, axis=0) / np.sqrt(8)
    assert value == pytest.approx(spiked.outlier(strength, aspect), abs=4 * error[0] + 0.005)
    expected = spiked.overlaps(strength, aspect)
    assert (long, short) == pytest.approx(expected, abs=4 * error[1:].max() + 0.01)
    assert spiked.overlaps(0.8, aspect) == (0, 0)


@pytest.mark.parametrize("strengths", [[], [2.0], [2.0, 1.5], [3.0, 2.5, 2.0, 1.5, 1.2]])
def test_outliers_are_counted(strengths):
    rng = np.random.default_rng(len(strengths))
    w = _with_spikes(rng, 200, 50, strengths)[0] if strengths else rng.normal(size=(200, 50))
    found = weight_spectrum(0.3 * w.T)
    assert len(found.outliers) == len(strengths)
    assert found.noise == pytest.approx(0.3, rel=0.03)
    for outlier, strength in zip(found.outliers, strengths):
        assert outlier.strength.low < strength < outlier.strength.high


def test_heavy_tails_are_no_outliers():
    rng = np.random.default_rng(0)
    found = [weight_spectrum(rng.standard_t(3, size=(60, 30)), seed=i) for i in range(10)]
    assert sum(len(one.outliers) > 0 for one in found) <= 1
    assert all(one.null == "the same entries in random order" for one in found)


def test_what_training_added_is_seen_beside_the_start():
    rng = np.random.default_rng(2)
    start = rng.normal(size=(100, 60))
    added = 2.5 * 10 * np.outer(np.full(100, 0.1), rng.permuted(np.repeat([1, -1], 30)) / 60**0.5)
    found = weight_spectrum(start + added, start)
    assert len(found.initial.outliers) == 0
    (outlier,) = found.outliers
    assert outlier.shift_overlap == pytest.approx(
        (outlier.long_overlap, outlier.short_overlap), abs=0.1
    )
    assert weight_spectrum(start, start).change is None
    change = found.change.outliers  # of rank one, without a bulk
    assert len(change) == 1
    assert np.isfinite(change[0].strength.value)


def test_singular_values_know_no_order_and_no_rotation():
    rng = np.random.default_rng(3)
    w = _with_spikes(rng, 60, 30, [2.0])[0]
    rotation = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    plain, turned = weight_spectrum(w), weight_spectrum(w[::-1] @ rotation)
    assert turned.singular_values == pytest.approx(plain.singular_values, rel=1e-10)


@pytest.mark.parametrize("aspect", [1, 4])
@pytest.mark.parametrize("spikes", [0, 1, 5])
def test_no_power_law_is_claimed_of_noise_and_spikes(aspect, spikes):
    rng = np.random.default_rng(10 * aspect + spikes)
    for _ in range(3):
        w = _with_spikes(rng, 64 * aspect, 64, [3.0] * spikes or [0.0])[0]
        found = power_law_tail(weight_spectrum(w))
        assert np.isnan(found.exponent.value)
        assert "no power law" in found.exponent.note


def test_a_power_law_is_found_where_there_is_one():
    rng = np.random.default_rng(0)
    scales = (1 + rng.pareto(1.0, size=200)) ** 0.5  # population eigenvalues x^-2
    spectrum = weight_spectrum(rng.normal(size=(400, 200)) * scales)
    assert len(spectrum.outliers) >= 10
    found = power_law_tail(spectrum)
    assert found.exponent.low < 2 < found.exponent.high


@pytest.mark.parametrize(
    ("weights", "said"),
    [(np.ones((1, 4)), "two rows"), (np.ones((4, 4)), "equal"), (np.full((4, 4), np.inf), "finite"),
     (np.ones(4), "matrix")],
)  # fmt: skip
def test_bad_weights_are_named(weights, said):
    with pytest.raises(ValueError, match=said):
        weight_spectrum(weights)
