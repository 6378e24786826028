"""Similarity of representations: sums against matrices that are formed, closed forms, nulls."""

import numpy as np
import pytest
from scipy import stats

from orderparam.observables import alignment, difference, similarity
from orderparam.observables import hsic as h


def _formed(K, L):
    K, L = K.copy(), L.copy()
    np.fill_diagonal(K, 0)
    np.fill_diagonal(L, 0)
    return h.combined(len(K), np.sum(K * L), K.sum(), L.sum(), K.sum(0) @ L.sum(0))


@pytest.mark.parametrize("shapes", [((12, 5), (12, 5)), ((9, 20), (9, 20)), ((9, 4, 3), (9, 4, 6))])
def test_sums_are_those_of_the_matrices(shapes):
    rng = np.random.default_rng(0)
    x, y = (h.Activations.of(rng.normal(size=shape) ** 2) for shape in shapes)
    K, L = (one.columns @ one.columns.T for one in (x, y))

    def left(A, i):
        return np.delete(np.delete(A, i, 0), i, 1)

    def own(one, a):
        return one.values[:, a] @ one.values[:, a].T

    both = h.sums(x.narrow, y.narrow)
    n, neurons = len(K), range(x.neurons)
    assert both.value == pytest.approx(_formed(K, L), abs=1e-12)
    assert both.without == pytest.approx([_formed(left(K, i), left(L, i)) for i in range(n)])
    assert h.of_neurons(x, y) == pytest.approx([_formed(own(x, a), L) for a in neurons], abs=1e-12)
    alone = [_formed(own(x, a), own(y, a)) for a in neurons]
    assert h.own_terms(x, y) == pytest.approx(alone, abs=1e-12)
    without = [
        sum(_formed(left(own(x, a), i), left(own(y, a), i)) for a in neurons) for i in range(n)
    ]
    assert h.own_terms_without(x, y) == pytest.approx(without, abs=1e-12)


def _linear(rng, n, p, spectrum):
    inputs = rng.normal(size=(n, len(spectrum[0])))
    weights = [np.sqrt(s)[:, None] * rng.normal(size=(len(s), p)) for s in spectrum]
    return [inputs @ w for w in weights]


def test_the_intervals_of_linear_features_hold_their_closed_form():
    decay = 1 / np.arange(1, 31.0)
    spectra = decay, np.roll(decay, 1)
    truth = spectra[0] @ spectra[1] / (decay @ decay)
    found = [
        similarity(
            *_linear(np.random.default_rng(seed), 200, 50, spectra), estimand="neurons", draws=0
        )
        for seed in range(100)
    ]
    values = np.array([one.value for one in found])
    assert abs(values.mean() - truth) < 4 * values.std() / 10
    assert sum(one.low <= truth <= one.high for one in found) >= 90


def test_the_alignment_of_linear_features():
    decay = 1 / np.arange(1, 11.0)
    truth = decay[1] / np.sqrt(decay @ decay)
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        inputs = rng.normal(size=(300, 10))
        x = inputs @ (np.sqrt(decay)[:, None] * rng.normal(size=(10, 100)))
        found.append(alignment(x, inputs[:, 1], draws=0))
    values = np.array([one.value for one in found])
    assert abs(values.mean() - truth) < 4 * values.std() / 40**0.5
    assert sum(one.low <= truth <= one.high for one in found) >= 35


def test_independent_representations_have_no_similarity_and_uniform_p_values():
    p, values = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        one = similarity(rng.normal(size=(40, 6)), rng.normal(size=(40, 9)) ** 2, draws=99)
        p.append(one.p_value)
        values.append(one.value)
    assert abs(np.mean(values)) < 4 * np.std(values) / 200**0.5
    assert np.var(values) == pytest.approx(2 / (40 * 37), rel=0.3)
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_beyond_a_thousand_examples_the_law_has_the_exact_variance():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(1500, 3)), rng.normal(size=(1500, 2))
    null = similarity(x, y).null
    assert null.variance == pytest.approx(2 / (1500 * 1497))
    orders = [rng.permutation(1500) for _ in range(300)]
    drawn = np.array([similarity(x, y[order], draws=0).value for order in orders])
    assert np.mean(drawn > null.quantile(0.9)) == pytest.approx(0.1, abs=4 * 0.3 / 300**0.5)


def test_rotations_and_scales():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 50, 6)) + rng.normal(size=(50, 6))
    rotation = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    plain = similarity(x, y, draws=0)
    turned = similarity(3 * x @ rotation + 1, y[:, ::-1], draws=0)
    assert turned.value == pytest.approx(plain.value, rel=1e-10)
    assert (turned.low, turned.high) == pytest.approx((plain.low, plain.high), rel=1e-9)


def test_a_layer_against_itself_with_its_neurons_paired():
    rng = np.random.default_rng(2)
    x = np.maximum(rng.normal(size=(60, 4)) @ rng.normal(size=(4, 30)), 0)
    assert similarity(x, x, estimand="neurons", paired=True).value == pytest.approx(1, abs=1e-12)
    assert similarity(x, x, estimand="neurons", draws=0).value > 1.1  # equal neurons left in


def test_two_seeds_of_one_kernel_agree_where_the_plain_number_does_not():
    found, plain = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        inputs = rng.normal(size=(150, 10))
        x, y = (np.maximum(inputs @ rng.normal(size=(10, 40)), 0) for _ in range(2))
        found.append(similarity(x, y, estimand="neurons", draws=0).value)
        plain.append(similarity(x, y, draws=0).value)
    assert np.mean(found) == pytest.approx(1, abs=4 * np.std(found) / 30**0.5)
    assert np.mean(plain) < 0.95


def test_a_denominator_that_may_be_zero_leaves_the_ratio_open():
    rng = np.random.default_rng(0)
    found = similarity(rng.normal(size=(25, 6)), rng.normal(size=(25, 5)), estimand="neurons")
    assert np.isnan(found.value)
    assert "denominator" in found.note


def test_channels_are_neurons():
    rng = np.random.default_rng(3)
    found = []
    for _ in range(10):
        images = rng.normal(size=(50, 12))
        patches = np.stack([images[:, i : i + 5] for i in range(8)], axis=2)  # (n, 5, position)
        x, y = (np.einsum("nip,ic->ncp", patches, rng.normal(size=(5, 32))) for _ in range(2))
        found.append(similarity(x, y, estimand="neurons", draws=0).value)
    assert np.mean(found) == pytest.approx(1, abs=4 * np.std(found) / 10**0.5)


def test_a_difference_has_an_interval_of_its_own():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(200, 5))
    early = alignment(x, x[:, 0] + x[:, 1], estimand="examples", draws=0)
    late = alignment(x * [3, 3, 1, 1, 1], x[:, 0] + x[:, 1], estimand="examples", draws=0)
    found = difference("gain", late, early)
    assert found.low > 0
    assert found.value == pytest.approx(late.value - early.value)
    assert found.high - found.low < np.hypot(late.high - late.low, early.high - early.low)
    same = difference("none", early, early)
    assert (same.low, same.high) == (0, 0)


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        (np.ones((7, 3)), np.ones((7, 3)), "at least 8"),
        (np.ones((9, 3)), np.eye(9), "same for every example"),
        (np.full((9, 3), np.nan), np.eye(9), "not finite"),
        (np.eye(9), np.eye(10), "same examples"),
        (np.array([["a"]] * 9), np.eye(9), "real numbers"),
    ],
)
def test_bad_input_is_named(x, y, said):
    with pytest.raises(ValueError, match=said):
        similarity(x, y)
