"""Committees: the evidence of every label, message passing against state evolution, refusals."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import wofz
from scipy.stats import multivariate_normal

import orderparam as op
from orderparam.channels import DensityLabels
from orderparam.gaussian.symmetric import _SPACING, _products, field_rule
from orderparam.systems import generalised_linear
from orderparam.systems.committee import (
    Committee,
    LargeCommittee,
    information_transition,
    large_committee,
    large_committee_transition,
    leading_eigenvectors,
    message_passing,
    specialisation,
    spectral,
    state_evolution,
)
from orderparam.systems.committee.channel import evidence, label_counts, normal_cdf
from orderparam.systems.committee.theory import Modes, _labels


def test_the_normal_distribution_of_complex_numbers():
    rng = np.random.default_rng(0)
    h = rng.uniform(-9, 9, 2000) + 1j * rng.uniform(-5, 5, 2000)
    exact = np.exp(-(h**2) / 2) * wofz(-1j * h / np.sqrt(2)) / 2
    size = np.maximum(1, np.abs(np.exp(-(h**2) / 2)))
    assert np.max(np.abs(np.asarray(normal_cdf(jnp.asarray(h))) - exact) / size) < 1e-13


@pytest.mark.parametrize(("own", "common"), [(0.8, 0.2), (1.0, 0.35), (0.9, -0.3), (0.1, 0.04)])
@pytest.mark.parametrize("rule", ["majority", "parity"])
def test_evidence_of_two_units_is_the_bivariate_normal_distribution(own, common, rule):
    fields = np.random.default_rng(1).standard_normal((5, 2))
    covariance = own * np.eye(2) - common
    value, gradient = evidence(
        jnp.asarray(fields), jnp.asarray(own), jnp.asarray(common), label_counts(2, rule)
    )
    law = multivariate_normal(np.zeros(2), covariance)
    both, none = law.cdf(fields), law.cdf(-fields)
    exact = np.stack(
        [none, 1 - both - none, both] if rule == "majority" else [1 - both - none, both + none],
        axis=-1,
    )
    np.testing.assert_allclose(value, exact, atol=1e-9)
    slope = jax.vmap(
        jax.jacfwd(
            lambda w: evidence(w, jnp.asarray(own), jnp.asarray(common), label_counts(2, rule))[0]
        )
    )
    np.testing.assert_allclose(gradient, slope(jnp.asarray(fields)), atol=1e-12)


@pytest.mark.parametrize("common", [0.2, 0.3, 0.33])
def test_evidence_of_three_units_known_together(common):
    """At equal fields P(m) sums to one, and P(all +) is the trivariate distribution, up to a nearly
    singular V."""
    fields = np.array([[0.3] * 3, [-1.0] * 3])
    covariance = np.eye(3) - common
    value, _ = evidence(jnp.asarray(fields), jnp.asarray(1.0), jnp.asarray(common), np.eye(4))
    exact = multivariate_normal(np.zeros(3), covariance, abseps=1e-8, maxpts=10**6).cdf(fields)
    np.testing.assert_allclose(value[:, 3], exact, atol=2e-6)
    np.testing.assert_allclose(jnp.sum(value, axis=1), 1.0, atol=1e-8)


def test_specialisation_is_where_equal_units_become_unstable():
    """The slope at q_d = 0 is that of the equations at a small q_d, for three units."""
    system = Committee(1.0, 3)
    found = specialisation(system)
    same = 3 * float(found.overlap)
    small = 1e-6
    slope = (
        float(
            _labels(system, Modes(jnp.asarray(same), jnp.asarray(small)), field_rule(3)[0])[
                0
            ].orthogonal
        )
        / small
    )
    np.testing.assert_allclose(float(found.sample_ratio) * slope, 1.0, rtol=3e-5)


def test_five_units_say_how_accurate_they_are():
    """Of equal units, which integrals over one field give to 1e-8, and of units apart, by the
    estimate of the rule itself."""
    exact, found = (
        state_evolution(Committee(3.0, 5), start="symmetric"),
        state_evolution(Committee(3.0, 5)),
    )
    assert found.converged
    assert float(exact.overlap_error) == 0
    assert (
        abs(float(found.overlap) - float(exact.overlap))
        < float(found.overlap_error)
        < 1e-3 * float(found.overlap)
    )
    apart = state_evolution(Committee(30.0, 5), start="informed")
    assert apart.converged
    assert float(apart.overlap) > 0.9 > 0.01 > float(apart.cross_overlap)
    assert float(apart.overlap_error) < 0.01 * float(apart.overlap)


@pytest.mark.parametrize("hidden", [2, 3, 5])
def test_well_known_units_are_averaged_over_nodes_that_lie_close_where_their_signs_change(hidden):
    """At q_d = 0.95, against the same rule with steps shorter by a third."""
    system, modes = Committee(1.0, hidden), Modes(jnp.asarray(0.99), jnp.asarray(0.95))
    spacing, tolerance = _SPACING[hidden], {2: 1e-8, 3: 3e-5, 5: 3e-3}[hidden]
    rules = (
        field_rule(hidden)[0],
        _products(hidden, spacing.scale, spacing.steps[0] / 1.5, spacing.least[0]),
    )
    found, finer = (_labels(system, modes, rule)[0] for rule in rules)
    np.testing.assert_allclose(found, finer, rtol=tolerance)


def test_evidence_of_five_units_agrees_with_drawn_fields():
    hidden, own, common = 5, 0.7, 0.1
    fields = np.array([0.5, -0.2, 0.1, 0.9, -0.6])
    root = np.linalg.cholesky(own * np.eye(hidden) - common)
    z = fields + np.random.default_rng(2).standard_normal((400_000, hidden)) @ root.T
    value, _ = evidence(
        jnp.asarray(fields), jnp.asarray(own), jnp.asarray(common), label_counts(hidden, "majority")
    )
    drawn = np.mean(np.sign(z).sum(axis=1) > 0)
    np.testing.assert_allclose(jnp.sum(value), 1.0, rtol=1e-12)
    assert abs(float(value[1]) - drawn) < 4.5 * np.sqrt(drawn * (1 - drawn) / len(z))


@pytest.mark.parametrize(
    "system",
    [Committee(1.5, 2, "majority", "binary", 600), Committee(1.2, 3, "majority", "gaussian", 600)],
)
def test_message_passing_follows_state_evolution(system):
    theory = state_evolution(system)
    runs = [message_passing(system, jax.random.key(seed)) for seed in range(4)]
    assert all(run.converged for run in runs)
    for name in ("overlap", "cross_overlap", "error", "classification_error"):
        values = [float(getattr(run, name)) for run in runs]
        error = np.std(values, ddof=1) / 2
        assert abs(np.mean(values) - float(getattr(theory, name))) < 4 * error + 0.015, name


def test_there_is_no_specialised_state_of_many_units_before_it_begins():
    """Which is no failure of the solver."""
    begin = float(large_committee_transition(LargeCommittee(8.0)).begin)
    for ratio, exists in ((begin * (1 - 1e-9), False), (begin * (1 + 1e-9), True)):
        found = large_committee(LargeCommittee(ratio), branch="specialised")
        assert bool(found.valid) == exists == bool(np.isfinite(found.overlap))
        assert found.converged
    alike = large_committee(LargeCommittee(begin / 2), branch="unspecialised")
    assert alike.valid
    assert float(alike.overlap) == 0


def test_a_transition_is_found_where_the_specialised_state_begins():
    begin = float(large_committee_transition(LargeCommittee(8.0)).begin)
    over = {"unit_ratio": (begin / 2, begin * 2)}
    chosen = op.transition(
        functools.partial(large_committee, branch="specialised"),
        LargeCommittee(8.0),
        over,
        order="overlap",
    )
    assert chosen.location == pytest.approx(begin, rel=1e-8)


def test_units_come_apart_only_beyond_specialisation():
    below, above = (state_evolution(Committee(ratio), max_steps=1500) for ratio in (1.9, 2.3))
    np.testing.assert_allclose(below.overlap, below.cross_overlap, atol=1e-4)
    assert float(above.overlap) > float(above.cross_overlap) + 0.1
    same = state_evolution(Committee(2.3), start="symmetric")
    assert float(same.overlap) == pytest.approx(float(same.cross_overlap), abs=1e-12)
    assert float(same.free_entropy) < float(above.free_entropy)


def test_a_direction_of_a_parity_of_two_is_one_index():
    """Given u = (z_1 + z_2)/sqrt(2) the label is + where |(z_1 - z_2)/sqrt(2)| < |u|: with
    probability 2 Phi(|u|) - 1."""

    def law(label, u):
        inside = jnp.clip(jax.scipy.special.erf(jnp.abs(u) / np.sqrt(2)), 1e-300, 1 - 1e-16)
        return jnp.where(label > 0, jnp.log(inside), jnp.log1p(-inside))

    one = generalised_linear.GeneralisedLinear(4.0, DensityLabels(law, [-1.0, 1.0]), "gaussian")
    found, known = spectral(Committee(4.0, 2, "parity")), generalised_linear.spectral(one)
    np.testing.assert_allclose(
        [found.overlap, found.eigenvalue], [known.cosine**2, known.eigenvalue], rtol=1e-6
    )


def test_eigenvectors_of_a_parity_stand_out_from_pi_squared_over_four_on():
    below, above = (
        float(spectral(Committee(ratio * np.pi**2 / 4, 2, "parity")).overlap)
        for ratio in (0.99, 1.01)
    )
    assert below == 0 < above
    system = Committee(5.0, 2, "parity", "gaussian", 250)
    theory, runs = (
        spectral(system),
        [leading_eigenvectors(system, jax.random.key(seed)) for seed in range(64)],
    )
    assert all(run.converged for run in runs)
    for name in ("overlap", "eigenvalue"):
        values = [float(getattr(run, name)) for run in runs]
        assert (
            abs(np.mean(values) - float(getattr(theory, name))) < 4 * np.std(values, ddof=1) / 8
        ), name
    assert float(theory.overlap) < float(state_evolution(system).overlap)


def test_parities_of_three_and_more_show_nothing_of_equal_units():
    assert all(
        np.isinf(specialisation(Committee(1.0, units, "parity")).sample_ratio) for units in (3, 4)
    )


def test_four_binary_units_specialise():
    """13.303745932: by nodes half as far apart."""
    found = specialisation(Committee(1.0, 4, "majority", "binary"))
    np.testing.assert_allclose(found.sample_ratio, 13.30374593, rtol=1e-8)


def test_what_cannot_be_done_is_refused_by_name():
    with pytest.raises(ValueError, match=r"Committee\.rule = 'majority': must be 'parity'"):
        spectral(Committee(1.0))
    with pytest.raises(ValueError, match=r"Committee\.hidden = 9"):
        Committee(1.0, 9)
    with pytest.raises(ValueError, match=r"Committee\.hidden = 1"):
        specialisation(Committee(1.0, 1))
    with pytest.raises(ValueError, match=r"Committee\.weights"):
        information_transition(Committee(1.0))
    with pytest.raises(ValueError, match="sample_ratio"):
        message_passing(Committee(1e-4, 2, "majority", "gaussian", 100), jax.random.key(0))
