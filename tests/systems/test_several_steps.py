"""Several giant steps: limits of the theory, and the network against it."""

import jax
import numpy as np
import pytest

from orderparam.systems.several_steps import (
    SeveralSteps,
    correlation_steps,
    fresh_batches,
    reused_batch,
    square_loss_steps,
)

FRESH = fresh_batches


def measure(system, seeds, **options):
    """Overlaps after the last step: mean over seeds and standard error."""
    found = np.array(
        [
            correlation_steps(system, jax.random.key(seed), **options).overlap[-1]
            for seed in range(seeds)
        ]
    )
    return found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(seeds)


def test_label_noise_moves_neurons_sideways_only():
    system = SeveralSteps(4.0, 1.5, 0.3, target="z", activation="relu", steps=1)
    quiet, noisy = FRESH(system), FRESH(system.with_(noise=2.0))
    np.testing.assert_allclose(noisy.overlap, quiet.overlap, atol=1e-13)
    slope = 0.6179114221889526  # E sigma'^2 = Phi(0.3)
    np.testing.assert_allclose(
        noisy.orthogonal[1] - quiet.orthogonal[1], 1.5**2 / 4 * 2 * slope, rtol=1e-11
    )


def test_a_kinked_target_of_one_direction_is_integrated_exactly():
    """y = sign(z), one linear neuron: M grows by step sqrt(2/pi) at every step."""
    system = SeveralSteps(2.0, 0.7, target="sign(z)", activation="linear", steps=2)
    path = FRESH(system)
    np.testing.assert_allclose(
        path.overlap[:, 0], 0.7 * np.sqrt(2 / np.pi) * np.arange(3), rtol=1e-12
    )
    np.testing.assert_allclose(path.orthogonal, 1 + np.arange(3) * 0.49 / 2, rtol=1e-12)
    pushed = jax.jit(
        lambda step: jax.jvp(
            lambda s: fresh_batches(system.with_(step=s)).overlap[:, 0], (step,), (1.0,)
        )[1]
    )(0.7)
    np.testing.assert_allclose(pushed, np.sqrt(2 / np.pi) * np.arange(3), rtol=1e-12)


def test_without_a_self_term_the_second_look_is_a_fresh_one():
    """A linear neuron has sigma' = 1: what the field holds of the label does not matter."""
    system = SeveralSteps(1.5, 0.8, noise=0.4, target="z + He3(z)/2", activation="linear", steps=2)
    np.testing.assert_allclose(reused_batch(system).overlap, FRESH(system).overlap, atol=1e-12)


def test_neurons_climb_the_staircase_as_predicted():
    """Corrections are of order 1/d: extrapolated from d = 40 and 80."""
    system = SeveralSteps(6.0, 2.0, 1.0, target="z1 + z1*z2", activation="erf", steps=3)
    (small, first), (large, second) = (
        measure(system.with_(input_dim=d), 10, neurons=16, repeats=6) for d in (40, 80)
    )
    expected = np.asarray(FRESH(system).overlap[-1])
    assert abs(expected[1]) > 0.3
    assert np.all(np.abs(2 * large - small - expected) < 5 * np.hypot(2 * second, first)), (
        small,
        large,
        expected,
    )
    assert np.all(np.abs(large - expected) < 5 * second + 6 / 80)


def test_reuse_shows_a_direction_that_fresh_batches_hide():
    system = SeveralSteps(
        4.0, 2.0, target="He3(z)/sqrt(6)", activation="relu", steps=2, input_dim=64
    )
    reused, error = measure(system, 12, reuse=True, neurons=16, repeats=20)
    fresh, fresh_error = measure(system, 12, neurons=16, repeats=20)
    assert reused[0] < -5 * error[0], (reused, error)
    assert abs(fresh[0]) < 4.5 * fresh_error[0], (fresh, fresh_error)


def test_the_square_loss_finds_the_second_direction_one_step_later():
    system = SeveralSteps(
        8.0, 3.0, target="z1/3 + 2*z1*z2/3", activation="relu", steps=2, input_dim=128
    )
    path = square_loss_steps(system, jax.random.key(0), neurons=100)
    first, second = np.asarray(path.cosine_squared).T
    assert first[1] > 8 * first[0]
    assert second[1] < 4 / 128
    assert second[2] > 4 * second[1]
    assert path.train_error[1] < path.train_error[0]


def test_bad_input_is_refused_in_words():
    for options, message in (
        ({"target": "z1*z2*z3*z4"}, "more than 3"),
        ({"target": "sign(z1*z2)"}, "must be smooth"),
        ({"activation": "sign"}, "must be continuous"),
        ({"steps": 0}, "steps = 0"),
        ({"sample_ratio": 0}, "sample_ratio = 0"),
    ):
        with pytest.raises(ValueError, match=message):
            SeveralSteps(**options)
    with pytest.raises(ValueError, match="single direction"):
        reused_batch(SeveralSteps(target="z1 + z1*z2"))
