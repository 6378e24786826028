"""Attention as an index model: limits, drawn averages, message passing, and layers that were
trained."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.systems.attention import (
    SeenSequence,
    TiedAttention,
    attention_state,
    recovered_vector,
    sequence_passing,
    trained_state,
)
from orderparam.systems.attention.experiment import drawn_sequences, objective
from orderparam.systems.attention.model import attention_cost, own_attention, target_attention
from orderparam.systems.attention.theory import nearest_fields

LAYER = TiedAttention(2.0)


def test_attention_shows_the_fields_up_to_one_sign():
    """Two tokens: h = +-(u1, -u2)/sqrt(u1 + u2) of the logits u of the diagonal."""
    h = jax.random.normal(jax.random.key(0), (20, 2))
    weights = jax.nn.softmax(h[:, :, None] * h[:, None, :], axis=-1)
    own = jnp.diagonal(weights, axis1=1, axis2=2)
    np.testing.assert_allclose(own_attention(h), own, rtol=1e-12)
    u = jnp.log(own / (1 - own))
    found = u * jnp.array([1, -1]) / jnp.sqrt(u.sum(axis=1, keepdims=True))
    found *= jnp.sign(found[:, :1] * h[:, :1])
    np.testing.assert_allclose(found, h, rtol=1e-7)


@pytest.mark.parametrize("tokens", [1, 2, 3, 5])
def test_state_evolution_is_the_average_over_drawn_fields(tokens):
    """E|g|^2 = q/((1 - q) alpha) with g of message passing, whose average has another form."""
    ratio = 0.5 * (1 / tokens + 1 / (tokens * (tokens + 1)))
    q = float(recovered_vector(SeenSequence(ratio, tokens)).overlap)
    rng = np.random.default_rng(0)
    known = np.sqrt(q) * rng.standard_normal((400_000, tokens))
    h = known + np.sqrt(1 - q) * rng.standard_normal(known.shape)
    bias = np.tanh(np.sum(h * known, axis=1, keepdims=True) / (1 - q))
    squares = np.sum((h * bias - known) ** 2, axis=1) / (1 - q) ** 2
    expected = q / ((1 - q) * ratio)
    error = squares.std() / np.sqrt(len(squares))
    assert error < 0.01 * expected
    assert abs(squares.mean() - expected) < 4 * error


def test_the_thresholds():
    for tokens in (1, 2, 3, 7):
        weak = 1 / (tokens * (tokens + 1))
        near = recovered_vector(SeenSequence(weak * (1 + 1e-5), tokens))
        np.testing.assert_allclose(near.weak_threshold, weak, rtol=1e-12)
        assert near.converged
        assert 1e-7 < near.overlap < 1e-4
        assert recovered_vector(SeenSequence(weak * (1 - 1e-5), tokens)).overlap == 0
        full = float(near.full_threshold)
        before, after = (
            recovered_vector(SeenSequence(full * (1 + step), tokens)).overlap
            for step in (-1e-5, 1e-5)
        )
        assert after == 1
        assert before < 0.9 if tokens == 1 else before > 1 - 3e-3
        if tokens > 1:
            np.testing.assert_allclose(full, 1 / tokens, rtol=1e-12)


def test_the_slope_of_the_overlap_is_that_of_differences():
    slope = jax.grad(lambda ratio: recovered_vector(SeenSequence(ratio, 2)).overlap)(0.3)
    low, high = (recovered_vector(SeenSequence(0.3 + h, 2)).overlap for h in (-1e-5, 1e-5))
    np.testing.assert_allclose(slope, (high - low) / 2e-5, rtol=1e-7)


@pytest.mark.parametrize(("tokens", "ratio"), [(2, 0.4), (3, 0.27)])
def test_message_passing_meets_state_evolution(tokens, ratio):
    system = SeenSequence(ratio, tokens, input_dim=1000)
    runs = [sequence_passing(system, jax.random.key(seed)) for seed in range(16)]
    found = np.array([run.overlap for run in runs if run.converged])
    assert len(found) >= 14
    error = found.std(ddof=1) / np.sqrt(len(found))
    assert error < 0.03
    assert abs(found.mean() - recovered_vector(system).overlap) < 4 * error


def test_nothing_is_found_below_the_threshold():
    system = SeenSequence(0.1, 2, input_dim=1000)
    runs = [sequence_passing(system, jax.random.key(seed)).overlap for seed in range(4)]
    assert np.mean(runs) < 0.1


def test_trained_fields_are_the_lowest_of_many_starts():
    key, other, third = jax.random.split(jax.random.key(1), 3)
    mean, teacher = 0.3 * jax.random.normal(key, (400, 2)), jax.random.normal(other, (400, 2)) / 2
    wanted, variance = target_attention(LAYER, teacher), jnp.asarray(14.0)

    def cost(h):
        pull = jnp.sum((h - mean) ** 2, axis=-1) / (2 * variance)
        return pull + attention_cost(LAYER, wanted, own_attention(h))

    found = nearest_fields(LAYER, mean, variance, wanted, teacher)
    slopes = jax.grad(lambda h: jnp.sum(cost(h)))(found)
    np.testing.assert_allclose(slopes, 0, atol=1e-6)
    starts = 1.5 * jax.random.normal(third, (20, *mean.shape))
    slope = jax.grad(lambda h: jnp.sum(cost(h)))
    ends = jax.jit(lambda h: jax.lax.fori_loop(0, 300, lambda _, h: h - 0.5 * slope(h), h))(starts)
    assert jnp.all(cost(found) < cost(ends) + 1e-6)


def test_more_points_change_states_by_no_more_than_is_said():
    for branch, size in (("semantic", 0.002), ("positional", 0.01)):
        fine, coarse = (
            attention_state(LAYER, branch=branch, log2_points=points) for points in (15, 14)
        )
        np.testing.assert_allclose(fine.self_overlap, coarse.self_overlap, rtol=size)
        np.testing.assert_allclose(fine.cavity_variance, coarse.cavity_variance, rtol=size)
        for name in ("free_energy", "test_error"):
            rtol = min(size, 0.003)
            np.testing.assert_allclose(getattr(fine, name), getattr(coarse, name), rtol=rtol)


def test_targets_without_contents_leave_the_positional_state_alone():
    """Even a layer that starts at the contents ends at the positions."""
    system = LAYER.with_(positional_share=1.0, input_dim=300)
    found = attention_state(system, branch="positional", log2_points=11)
    other = attention_state(system, branch="semantic", log2_points=11)
    assert found.free_energy < 0.7 * other.free_energy
    assert other.teacher_overlap < 0.005
    runs = [trained_state(system, jax.random.key(seed), branch="semantic") for seed in range(4)]
    for run in runs:
        assert run.converged
        assert abs(run.teacher_overlap) < 0.03
        np.testing.assert_allclose(abs(run.positional_overlap), found.positional_overlap, rtol=0.1)
    error = np.mean([run.test_error for run in runs])
    np.testing.assert_allclose(error, found.test_error, rtol=0.05)


def test_the_global_minimum_changes_at_a_known_place():
    """1.25(1) by linear interpolation; both crossings with the states on either side."""
    gaps = {}
    for ratio in (0.9, 1.2, 1.3):
        states = [
            attention_state(LAYER.with_(sample_ratio=ratio), branch=branch)
            for branch in ("semantic", "positional")
        ]
        assert all(state.converged for state in states)
        gaps[ratio] = float(states[0].free_energy - states[1].free_energy)
        assert (states[0].test_error < states[1].test_error) or ratio == 0.9
    assert gaps[0.9] > gaps[1.2] > 0 > gaps[1.3]
    crossing = 1.2 + 0.1 * gaps[1.2] / (gaps[1.2] - gaps[1.3])
    np.testing.assert_allclose(crossing, 1.25, atol=0.015)


def test_gradient_descent_ends_in_the_minima_that_are_found():
    """Plain full-batch descent from the same starts; one run in twelve ends in a neighbour."""
    system = LAYER.with_(input_dim=100)

    @jax.jit
    def descended(start, tokens, targets):
        slope = jax.grad(lambda weights: objective(system, weights, tokens, targets))
        weights = jax.lax.fori_loop(0, 3000, lambda _, w: w - 2.0 * slope(w), start)
        return objective(system, weights, tokens, targets) / 100

    ratios = []
    for seed in range(4):
        tokens, targets, teacher = drawn_sequences(system, jax.random.key(seed))
        for branch, start in (("semantic", teacher), ("positional", jnp.ones(100))):
            found = trained_state(system, jax.random.key(seed), branch=branch)
            ratios.append(descended(start, tokens, targets) / found.free_energy)
    np.testing.assert_allclose(ratios, 1, rtol=0.01)
    assert np.sum(np.abs(np.array(ratios) - 1) < 1e-8) >= 7


def test_trained_layers_meet_both_states():
    """At d = 400 objectives lie a few percent above the limit, as 1/d."""
    for branch in ("semantic", "positional"):
        theory = float(attention_state(LAYER, branch=branch).free_energy)
        means, errors = [], []
        for d in (200, 400):
            system = LAYER.with_(input_dim=d)
            runs = [trained_state(system, jax.random.key(s), branch=branch) for s in range(16)]
            values = np.array([run.free_energy for run in runs if run.converged]) / theory
            assert len(values) >= 14
            means.append(values.mean())
            errors.append(values.std(ddof=1) / np.sqrt(len(values)))
        limit = 2 * means[1] - means[0]
        error = np.hypot(2 * errors[1], errors[0])
        assert error < 0.05
        assert abs(limit - 1) < 3.5 * error
        assert 1 < means[1] < 1.06


def test_bad_input_is_refused_by_name():
    with pytest.raises(ValueError, match="tokens"):
        SeenSequence(0.3, 0)
    with pytest.raises(ValueError, match="positional_share"):
        TiedAttention(1.0, 1.5)
    with pytest.raises(ValueError, match="sample_ratio"):
        sequence_passing(SeenSequence(1e-4, 2, input_dim=20), jax.random.key(0))
