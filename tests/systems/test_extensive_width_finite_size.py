"""Free energies of two states where data sets differ: the potential against the prior, against the
large-dimension theory where labels are nearly Gaussian, and the fluctuations."""

import numpy as np
import pytest

from orderparam.systems.extensive_width import (
    HierarchicalTeacher,
    WeightedTeacher,
    competing_states,
    fluctuating_states,
)
from orderparam.systems.extensive_width.finite_size import _log_likelihoods, _potential, _tables
from orderparam.systems.extensive_width.selection import middle

FEATURE = HierarchicalTeacher(16, 1, decay=1.0, noise=1.0)


@pytest.fixture(scope="module")
def tables():
    return _tables(FEATURE.activation, 1.0, 1.0)


def test_without_data_the_potential_is_the_prior(tables):
    m = tables.overlap
    inner = np.abs(m) < 0.97
    np.testing.assert_allclose(
        _potential(tables, 0.0)[inner], -np.log(1 - m[inner] ** 2) / 2, atol=2e-4
    )


@pytest.mark.parametrize("ratio", [20.0, 22.0])
def test_the_minima_of_the_potential_differ_as_both_states_do(tables, ratio):
    """With much noise the labels are nearly Gaussian, as the theory of large d takes them to be."""
    v, m = _potential(tables, ratio), tables.overlap
    right = m > float(middle(FEATURE))
    theory = competing_states(FEATURE.with_(n_train=ratio * 16))
    assert v[right].min() - v[~right].min() == pytest.approx(
        float(theory.free_energy_difference) / 16, abs=0.006
    )
    assert m[right][v[right].argmin()] == pytest.approx(float(theory.learned_overlap), abs=0.03)


def test_fluctuations_are_those_of_independent_samples(tables):
    few, many = (
        _log_likelihoods(tables, samples, 3000, np.random.default_rng(0)) for samples in (20, 80)
    )
    at = np.searchsorted(tables.overlap, [0.2, 0.5, 0.9])
    difference = [found[at] - found[np.searchsorted(tables.overlap, 0.0)] for found in (few, many)]
    growth = difference[1].std(axis=1) / difference[0].std(axis=1)
    np.testing.assert_allclose(growth, 2.0, rtol=0.08)


def test_log_likelihoods_are_those_of_fields_that_grow_with_the_overlap(tables):
    """The same law by forward increments of the field, and the density by quadrature."""
    places = [np.searchsorted(tables.overlap, m) for m in (0.0, 0.5, 0.9)]
    overlaps, count, random = tables.overlap[places], 60_000, np.random.default_rng(4)
    z, weight = np.polynomial.hermite_e.hermegauss(160)
    linear = weight @ (z * np.tanh(2 * z)) / weight.sum()

    def output(field):
        return np.tanh(2 * field) - linear * field

    steps = np.sqrt(np.diff(overlaps, append=1.0))[:, None] * random.normal(size=(3, count))
    fields = np.cumsum(steps, axis=0)
    labels = output(fields[-1]) + random.normal(size=count)

    def log_density(field, m):
        hidden = np.linspace(-6, 6, 121)
        share = np.exp(-(hidden**2) / 2)
        place = output(field[:, None] + np.sqrt(1 - m) * hidden)
        gauss = np.exp(-((labels[:, None] - place) ** 2) / 2) / np.sqrt(2 * np.pi)
        return np.log(gauss @ share / share.sum())

    below = np.concatenate([np.zeros((1, count)), fields[:-1]])
    direct = np.array([log_density(*one) for one in zip(below, overlaps)])
    found = _log_likelihoods(tables, 1, 400_000, np.random.default_rng(5))[places]
    np.testing.assert_allclose(found.mean(axis=1), direct.mean(axis=1), atol=0.012)
    np.testing.assert_allclose(
        (found[1:] - found[:1]).std(axis=1), (direct[1:] - direct[:1]).std(axis=1), rtol=0.05
    )
    np.testing.assert_allclose(np.corrcoef(found), np.corrcoef(direct), atol=0.02)


def test_states_that_differ_by_thousands_of_nats_have_a_finite_difference():
    """The weight of the state that loses underflows; labels of eight features are nearly
    Gaussian."""
    steep = HierarchicalTeacher(2000, 8, decay=1.0, noise=0.04, n_train=2000 * 7.0)
    found = fluctuating_states(steep, data_sets=20)
    assert bool(found.converged)
    theory = float(competing_states(steep).free_energy_difference)
    assert theory < -1000
    np.testing.assert_allclose(found.free_energy_difference, theory, rtol=0.06)
    assert 0 < float(found.spread) < 0.1 * abs(theory)


def test_a_steep_landscape_leaves_no_doubt():
    """Far from the jump all data sets agree, and scaling labels and noise changes nothing."""
    far = fluctuating_states(FEATURE.with_(n_train=60.0 * 16), data_sets=200)
    assert float(far.preferred) > 0.95
    assert float(far.free_energy_difference) < -5
    scaled = fluctuating_states(WeightedTeacher(16, [-3.0], 9.0, 60.0 * 16), data_sets=200)
    np.testing.assert_allclose(scaled.free_energy_difference, far.free_energy_difference, rtol=1e-6)


def test_refusals():
    with pytest.raises(ValueError, match="data_sets"):
        fluctuating_states(FEATURE, data_sets=1)
    with pytest.raises(ValueError, match="n_train"):
        fluctuating_states(FEATURE.with_(n_train=0.3))


def test_what_would_fill_the_machine_is_refused():
    with pytest.raises(ValueError, match=r"n_train = 1e\+06: .* at most 50000"):
        fluctuating_states(FEATURE.with_(n_train=1e6))
    with pytest.raises(ValueError, match=r"noise: labels spread over .* too small"):
        fluctuating_states(FEATURE.with_(noise=1e-6))
    with pytest.raises(ValueError, match=r"data_sets = 1e\+12: must be between 2 and 100000"):
        fluctuating_states(FEATURE, data_sets=1e12)
    with pytest.raises(ValueError, match=r"width = 1000000000: must be an integer .* <= 1e\+06"):
        HierarchicalTeacher(16, 10**9, decay=1.0, noise=0.04)
