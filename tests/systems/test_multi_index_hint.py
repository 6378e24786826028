"""A parity of which one direction is known in part: the stair that the hint opens, in theory and in
drawn problems."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.systems.multi_index import (
    HintedParity,
    LearnedTarget,
    climbed_staircase,
    first_seen,
    grand_staircase,
    leading_eigenvectors,
    message_passing,
    spectral,
    state_evolution,
    threshold,
)
from orderparam.systems.multi_index.experiment import _square_and_sign
from orderparam.systems.multi_index.hinted_parity import _parity


def measured(experiment, system, seeds):
    values = [float(experiment(system, jax.random.key(seed)).overlap) for seed in range(seeds)]
    return np.mean(values), np.std(values, ddof=1) / np.sqrt(seeds)


@pytest.mark.parametrize("hint", [0.3, 0.7, 1.0])
def test_both_algorithms_see_the_other_directions_from_the_threshold_of_any_target(hint):
    """The n/d of `threshold`, by sampling, of the closed form, and where the theories of both
    algorithms leave zero."""
    found = threshold("sign(z1*z2*z3)", overlap=[hint, 0, 0])
    assert abs(found.sample_ratio - first_seen(hint)) < min(found.error, 0.02 * first_seen(hint))
    for theory in (state_evolution, spectral):
        below, above = (
            theory(HintedParity(first_seen(hint) * (1 + side * 0.03), hint)) for side in (-1, 1)
        )
        assert below.converged
        assert above.converged
        assert below.overlap < 1e-6
        assert above.overlap > 0.02


def test_the_whole_first_direction_leaves_a_parity_of_two():
    """Q = 0.24270621 and 0.64384102 at n/d = 3 and 4: what the specification's quadrature of
    sign(z1 z2) has."""
    for ratio, overlap in ((3.0, 0.24270621), (4.0, 0.64384102)):
        found = state_evolution(HintedParity(ratio, 1.0))
        np.testing.assert_allclose([found.overlap, found.hinted_overlap], [overlap, 1.0], atol=2e-6)


@pytest.mark.parametrize("hint", [0.5, 0.3, 0.1, 2e-3, 1e-4, 1e-6])
def test_weak_hints_open_nothing_below_the_threshold_and_nearly_all_above(hint):
    """From Q = 1/3 on downwards overlaps jump; what the nodes do not resolve is said."""
    for share in (0.3, 0.7, 0.97, 1.0):
        below = state_evolution(HintedParity(share * first_seen(hint), hint))
        assert (float(below.overlap), float(below.hinted_overlap), bool(below.converged)) == (
            0.0,
            hint,
            True,
        )
    for share in (1.2, 10.0, 1e3, 1e5):
        above = state_evolution(HintedParity(share * first_seen(hint), hint))
        assert 0.9 < float(above.overlap) <= 1.0
        assert bool(above.converged) == (float(above.overlap) < 1 - 1.1e-7)


def test_far_beyond_the_threshold_the_error_falls_with_the_square():
    errors = [
        (1 - float(state_evolution(HintedParity(ratio, 1.0)).overlap)) * ratio**2
        for ratio in (300.0, 1000.0, 3000.0)
    ]
    np.testing.assert_allclose(errors, 1.92, rtol=0.02)


@pytest.mark.parametrize(("hint", "above"), [(0.8, 1.4), (1.0, 1.8)])
def test_drawn_problems_follow_theory_on_both_sides_of_the_threshold(hint, above):
    for experiment, theory, seeds, floor in (
        (message_passing, state_evolution, 6, 0.02),
        (leading_eigenvectors, spectral, 6, 0.12),
    ):
        low, high = (HintedParity(first_seen(hint) * share, hint, 400) for share in (0.6, above))
        # an eigenvector of a bulk at d = 400 has an overlap with everything
        assert measured(experiment, low, 3)[0] < floor
        mean, error = measured(experiment, high, seeds)
        assert abs(mean - float(theory(high).overlap)) < 4 * error + 0.01  # 1/d


def test_a_weak_hint_is_enough_for_all_three_directions():
    """At Q = 0.5 and 1.7 times the threshold message passing knows the first direction as well as
    the others, nearly fully."""
    system = HintedParity(1.7 * first_seen(0.5), 0.5, 300)
    theory, runs = (
        state_evolution(system),
        [message_passing(system, jax.random.key(seed)) for seed in range(4)],
    )
    assert theory.hinted_overlap > 0.97
    assert all(run.converged for run in runs)
    hinted = [float(run.hinted_overlap) for run in runs]
    assert abs(np.median(hinted) - float(theory.hinted_overlap)) < 0.02


def test_message_passing_does_not_end_before_its_overlap_is_that_of_the_theory():
    """On the way the overlap exceeds the theory, here by 0.004."""
    system = HintedParity(16.3, 0.5, 250)
    runs = [message_passing(system, jax.random.key(seed)).overlap for seed in range(4)]
    assert abs(np.mean(runs) - float(state_evolution(system).overlap)) < 0.001


def test_estimates_that_are_too_long_are_not_converged():
    """Where 1 - q is some 1/d message passing leaves overlaps that no estimate can have."""
    run = message_passing(HintedParity(100.0, 0.5, 20), jax.random.key(0))
    assert run.overlap > 1.2
    assert not run.converged


def test_message_passing_climbs_one_stair_after_the_other():
    """y = z1^2 + sign(z1 z2 z3): a part of z1 at n/d = 1.2, all of it and nothing else at 1.8, the
    others, by their parity, at 4."""
    for ratio in (1.2, 1.8, 4.0):
        system = LearnedTarget(ratio, input_dim=500)
        runs = np.array(
            [climbed_staircase(system, jax.random.key(seed)).overlap for seed in range(7)]
        )
        error = np.std(runs, axis=0, ddof=1) / np.sqrt(7)
        np.testing.assert_array_less(
            np.abs(runs.mean(axis=0) - grand_staircase(system).overlap), 4 * error + 0.01
        )
        assert np.max(error) < 0.04


@pytest.mark.parametrize("target", ["parity", "square and sign"])
def test_slopes_of_messages_are_their_derivatives(target):
    omega, v = jax.random.normal(jax.random.key(0), (50, 3)), jnp.asarray([0.3, 0.6, 0.9])
    if target == "parity":
        data = (
            jnp.asarray(0.4),
            jax.random.normal(jax.random.key(1), (50,)),
            jnp.sign(omega[:, 0] + 0.1),
        )
        gradient = _parity
    else:
        data, gradient = (
            (omega[:, 1] ** 2 + jnp.sign(omega[:, 2]), jnp.asarray(1e-3)),
            _square_and_sign,
        )
    # rows do not depend on one another
    jacobian = jax.jacobian(lambda x: gradient(x, v, data)[0].sum(axis=0))(omega)
    np.testing.assert_allclose(
        gradient(omega, v, data)[1], jnp.einsum("knk->nk", jacobian), rtol=1e-9, atol=1e-11
    )


def test_what_cannot_be_done_is_refused_by_name():
    with pytest.raises(ValueError, match=r"HintedParity\.hint = 0"):
        HintedParity(1.0, 0.0)
    for experiment in (message_passing, leading_eigenvectors):
        with pytest.raises(ValueError, match=r"HintedParity\.sample_ratio = 0\.001"):
            experiment(HintedParity(0.001, 0.5, 100), jax.random.key(0))
    with pytest.raises(ValueError, match=r"LearnedTarget\.target = 'z1\*z2'"):
        climbed_staircase(LearnedTarget(1.0, "z1*z2"), jax.random.key(0))
    with pytest.raises(ValueError, match=r"sample_ratio"):  # the target is the same without spaces
        climbed_staircase(LearnedTarget(1e-9, "z1**2+sign(z1*z2*z3)"), jax.random.key(0))
    with pytest.raises(ValueError, match="max_steps = 0"):
        grand_staircase(LearnedTarget(1.0), max_steps=0)
    for option, value in (("damping", 1.5), ("tolerance", 0.0), ("max_steps", 0)):
        with pytest.raises(ValueError, match=f"^{option} = {value:g}: must be"):
            message_passing(HintedParity(6.0, 0.8, 100), jax.random.key(0), **{option: value})
    for hint in (-0.5, 1.2):
        with pytest.raises(ValueError, match=f"hint = {hint}"):
            first_seen(hint)
    assert first_seen(0.0) == np.inf
