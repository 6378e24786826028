"""Giant steps of a layer: drawn networks, one neuron, rotated targets, and what is refused."""

import jax
import numpy as np
import pytest

from orderparam.systems.several_steps import (
    GiantLayer,
    SeveralSteps,
    fresh_batches,
    hidden_power,
    layer_error,
    layer_steps,
)


def test_one_neuron_follows_the_recursion_of_one_neuron():
    one = fresh_batches(
        SeveralSteps(4.0, 1.5, 0.7, 0.2, target="z1 + z1*z2", activation="erf_scaled", steps=3)
    )
    layer = GiantLayer([1.5], [0.7], 4.0, 0.2, target="z1 + z1*z2", steps=3)
    found = layer_error(layer, samples=40_000, runs=16)
    own = np.asarray(one.orthogonal + np.sum(one.overlap**2, axis=1))
    spread = np.asarray(found.overlap_uncertainty[1:, 0])
    assert np.max(np.abs(found.overlap[1:, 0] - one.overlap[1:]) / spread) < 3.5
    assert np.max(spread) < 0.02
    spread = np.asarray(found.self_overlap_uncertainty[1:, 0, 0])
    assert np.max(np.abs(found.self_overlap[1:, 0, 0] - own[1:]) / spread) < 3.5
    assert np.max(spread / own[1:]) < 0.02


@pytest.mark.parametrize("loss", ["correlation", "square"])
def test_networks_follow_the_theory_and_stay_above_the_bound(loss):
    step, bias = np.resize([1.0, -1.0, 2.0, -2.0], 8), np.linspace(-1.5, 1.5, 8)
    system = GiantLayer(step, bias, 8.0, 0.1, 800, "z1 + z1*z2", loss=loss, steps=2)
    theory = layer_error(system, runs=8)
    runs = [layer_steps(system, jax.random.key(seed)) for seed in range(16)]
    for name in ("test_error", "overlap", "self_overlap"):
        values = np.array([getattr(run, name) for run in runs])
        error = np.hypot(values.std(0, ddof=1) / 4, getattr(theory, f"{name}_uncertainty"))[1:]
        away = np.abs(values.mean(0)[1:] - getattr(theory, name)[1:])
        # a network of finite dimension is off by a few 1/d in its overlaps
        assert np.max(away / (error + 3 / 800)) < 4
    errors = np.array([run.test_error for run in runs])
    bound = np.asarray(hidden_power(system).bound)
    assert np.all(errors.mean(0) > bound - 3 * errors.std(0, ddof=1) / 4)
    assert np.all(
        np.asarray(theory.test_error) > bound - 3 * np.asarray(theory.test_error_uncertainty)
    )


def test_a_rotated_target_has_the_same_bound():
    plain = hidden_power(GiantLayer([1.0], [0.5], target="z1 + z1*z2", steps=2))
    turned = "(0.6*z1 + 0.8*z2) + (0.6*z1 + 0.8*z2)*(0.8*z1 - 0.6*z2)"
    rotated = hidden_power(GiantLayer([1.0], [0.5], target=turned, steps=2))
    np.testing.assert_allclose(rotated.bound, plain.bound, atol=1e-10)
    np.testing.assert_allclose(rotated.nonlinear_bound, plain.nonlinear_bound, atol=1e-10)


def test_a_direction_of_a_high_exponent_stays_hidden():
    found = hidden_power(GiantLayer([1.0], [0.5], target="z1 + He3(z2)/sqrt(6)", steps=3))
    np.testing.assert_allclose(found.bound, [2, 1, 1, 1], atol=1e-12)


def test_what_is_refused():
    with pytest.raises(ValueError, match="smooth"):
        GiantLayer([1.0], [0.0], activation="relu")
    with pytest.raises(ValueError, match="neuron"):
        GiantLayer([1.0], [0.0, 1.0])
    with pytest.raises(ValueError, match="samples = 5"):
        layer_error(GiantLayer([1.0], [0.0]), samples=5)
    with pytest.raises(ValueError, match="input_dim"):
        layer_steps(GiantLayer([1.0, 1.0], [0.0, 0.0], input_dim=4), jax.random.key(0))
