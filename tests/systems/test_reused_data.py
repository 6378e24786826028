"""Training on re-used data: identities, limits, drawn data, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.channels import RealLabels
from orderparam.gaussian.marchenko_pastur import spectral_rule
from orderparam.losses import SmoothHinge
from orderparam.systems.generalised_linear import PenalisedFit, penalised_fit
from orderparam.systems.reused_data import (
    ReusedCommittee,
    ReusedData,
    closed_dynamics,
    committee_dynamics,
    sampled_dynamics,
    trained_committee,
    trained_student,
)
from orderparam.systems.reused_data.causal import causal_sweep
from orderparam.systems.reused_data.model import LearningTask
from orderparam.systems.several_steps import SeveralSteps, fresh_batches, reused_batch
from orderparam.systems.training_in_time import IsotropicTraining, descent_error

SETTING = {"weight_decay": 0.05, "momentum": 0.5, "temperature": 0.2, "teacher_overlap": 0.2}


def test_sampling_is_exact_for_regression_with_whole_batches():
    """Whitened samples have the exact averages of everything linear, whatever their number."""
    system = ReusedData(1.3, 0.2, 0.3, steps=20, **SETTING)
    closed, sampled = closed_dynamics(system), sampled_dynamics(system, samples=60, runs=2)
    for name in ("overlap", "self_overlap", "test_error", "train_loss", "correlation", "response"):
        np.testing.assert_allclose(getattr(sampled, name), getattr(closed, name), atol=1e-9)


def test_mini_batches_of_regression_are_sampled_within_their_errors():
    system = ReusedData(1.5, 0.2, 0.1, 0.1, 0.25, teacher_overlap=0.2, steps=20)
    closed, sampled = closed_dynamics(system), sampled_dynamics(system, samples=1000, runs=16)
    for name in ("overlap", "self_overlap", "train_loss"):
        spread = np.asarray(getattr(sampled, f"{name}_uncertainty"))[1:]
        away = np.asarray(getattr(sampled, name) - getattr(closed, name))[1:]
        assert np.max(abs(away) / (spread + 1e-12)) < 3.5
        assert np.max(spread) < 0.015


def test_steps_are_those_of_the_marchenko_pastur_integrals():
    """The mean loss over examples has alpha times the learning rate of the summed loss."""
    for momentum in (0.0, 0.8):
        ratio, rate, noise, decay, steps = 1.25, 0.2, 0.3, 0.1, 40
        integrals = descent_error(
            IsotropicTraining(ratio, rate, momentum, noise, decay, steps=steps)
        )
        found = closed_dynamics(
            ReusedData(
                ratio,
                rate / ratio,
                noise,
                decay * ratio,
                momentum=momentum,
                self_overlap=0.0,
                steps=steps,
            )
        )
        np.testing.assert_allclose(found.test_error, integrals.test_error, rtol=1e-11)
        np.testing.assert_allclose(2 * found.train_loss, integrals.train_error, rtol=1e-11)


def test_small_batches_are_one_pass():
    """E <- E (1 - 2c + c^2 (1 + 1/a)) + c^2 noise/a for fresh batches of a d examples and a rate c
    over the batch; the difference is linear in the share of the batch."""
    batch, rate, noise, steps = 0.5, 0.3, 0.2, 20
    error, expected = 2.0, []
    for _ in range(steps + 1):
        expected.append(error)
        error = error * (1 - 2 * rate + rate**2 * (1 + 1 / batch)) + rate**2 * noise / batch
    away = []
    for share in (1e-3, 1e-5):
        ratio = batch / share
        system = ReusedData(ratio, rate / ratio, noise, batch_fraction=share, steps=steps)
        away.append(np.max(np.abs(closed_dynamics(system).test_error - np.array(expected))))
    assert away[0] < 1e-3
    assert away[0] / away[1] == pytest.approx(100, rel=0.02)


def test_many_examples_are_the_population():
    """At fixed eta alpha the distance to the teacher shrinks by 1 - eta alpha, up to 1/alpha."""
    expected, away = 2 * 0.7 ** (2 * np.arange(11)), []
    for ratio in (1e4, 1e6):
        found = closed_dynamics(ReusedData(ratio, 0.3 / ratio, 0.5, steps=10))
        away.append(np.max(np.abs(found.test_error - expected)))
    assert away[1] < 1e-6
    assert away[0] / away[1] == pytest.approx(100, rel=0.01)


def test_the_end_of_ridge_regression_is_the_minimum_of_its_loss():
    found = closed_dynamics(ReusedData(1.5, 0.3, 0.2, 0.5, steps=150))
    fit = penalised_fit(PenalisedFit(1.5, "square", RealLabels("linear", 0.2), ridge=0.5))
    np.testing.assert_allclose(found.overlap[-1], fit.teacher_overlap, rtol=1e-8)
    np.testing.assert_allclose(found.self_overlap[-1], fit.self_overlap, rtol=1e-8)


@pytest.mark.parametrize("task", ["logistic", "hinge"])
def test_the_end_of_a_convex_loss_is_its_minimum(task):
    loss = {"logistic": "logistic", "hinge": SmoothHinge(0.5)}[task]
    # steps of the hinge are stable below 2 (1 + momentum) over its largest curvature, 15 + ridge
    rate = {"logistic": 0.4, "hinge": 0.15}[task]
    system = ReusedData(3.0, rate, 0.0, 0.5, momentum=0.6, task=task, steps=60)
    found = sampled_dynamics(system, samples=1000, runs=8)
    fit = penalised_fit(PenalisedFit(3.0, loss, "sign", ridge=0.5))
    for name, other in (("overlap", "teacher_overlap"), ("self_overlap", "self_overlap")):
        spread = float(getattr(found, f"{name}_uncertainty")[-1])
        value = float(getattr(found, name)[-1])
        assert abs(value - float(getattr(fit, other))) < 3 * spread
        assert spread < 0.02 * value


def test_langevin_steps_of_ridge_regression_reach_their_stationary_law():
    """Along a curvature s, t steps spread by 2 eta T (1 - g^2t)/(1 - g^2), g = 1 - eta s."""
    ratio, rate, decay, temperature, steps = 2.0, 0.1, 0.3, 0.4, 40
    cold = closed_dynamics(ReusedData(ratio, rate, 0.1, decay, steps=steps))
    hot = closed_dynamics(ReusedData(ratio, rate, 0.1, decay, temperature=temperature, steps=steps))
    nodes, mass = spectral_rule(1 / ratio)
    kept = (1 - rate * (ratio * nodes + decay)) ** 2
    spread = [
        2 * rate * temperature * mass @ ((1 - kept**t) / (1 - kept)) for t in range(steps + 1)
    ]
    np.testing.assert_allclose(hot.self_overlap - cold.self_overlap, spread, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(hot.overlap, cold.overlap, rtol=1e-12)


def test_one_step_is_that_of_a_fresh_batch_and_two_are_those_of_a_batch_used_twice():
    """The correlation loss -y f with a cubic target of erf neurons."""
    ratio, step, target = 3.0, 5.0, "He3(z)/sqrt(6)"

    def slope(h, y):
        return -y * jnp.sqrt(2 / jnp.pi) * jnp.exp(-(h**2) / 2)

    problem = LearningTask(
        1,
        lambda teacher, noise: (teacher[0] ** 3 - 3 * teacher[0]) / jnp.sqrt(6.0),
        slope,
        lambda h, y: -y * h[0],
        lambda m, q: q[0, 0],
    )
    system = ReusedData(ratio, step / ratio, steps=2)
    keys = jax.random.split(jax.random.key(0), 16)
    path = jax.jit(
        lambda keys: jax.lax.map(lambda key: causal_sweep(system, problem, key, 4000, 2), keys)
    )(keys)
    overlap, own = np.asarray(path.overlap)[:, :, 0, 0], np.asarray(path.self_overlap)[:, :, 0, 0]
    mean, error = overlap.mean(0), overlap.std(0, ddof=1) / 4
    giant = SeveralSteps(ratio, step, target=target, activation="erf_scaled", steps=1)
    fresh = fresh_batches(giant)
    assert abs(mean[1] - float(fresh.overlap[1, 0])) < 3 * error[1]
    spread = own[:, 1].std(ddof=1) / 4
    assert (
        abs(own[:, 1].mean() - float(fresh.orthogonal[1] + fresh.overlap[1, 0] ** 2)) < 3 * spread
    )
    twice = float(reused_batch(giant).overlap[2, 0])
    assert abs(mean[2] - twice) < 3 * error[2]
    assert abs(twice) > 8 * error[2]


@pytest.mark.parametrize("task", ["regression", "logistic"])
def test_gradients_are_those_of_differences(task):
    names = ("sample_ratio", "noise", "learning_rate", "weight_decay", "momentum", "temperature")
    base = ReusedData(2.0, 0.3, 0.1, 0.2, 1.0, 0.4, 0.3, task=task, steps=5)

    def error(values):
        system = base.with_(**dict(zip(names, values)))
        if task == "regression":
            return closed_dynamics(system).test_error[-1]
        return sampled_dynamics(system, samples=50, runs=2).test_error[-1]

    values = jnp.array([2.0, 0.25, 0.3, 0.2, 0.4, 0.3])
    slopes, forward, step = jax.grad(error)(values), jax.jacfwd(error)(values), 1e-5
    np.testing.assert_allclose(forward, slopes, rtol=1e-9, atol=1e-12)
    for place in range(len(names)):
        if task == "logistic" and names[place] == "noise":
            continue  # a sampled sign is a step of the noise
        change = jnp.zeros(len(names)).at[place].set(step)
        difference = (error(values + change) - error(values - change)) / (2 * step)
        np.testing.assert_allclose(slopes[place], difference, rtol=1e-5, atol=1e-8)


CASES = {
    "regression": ReusedData(1.5, 0.2, 0.2, input_dim=300, steps=20, **SETTING),
    "mini-batches": ReusedData(2.0, 0.2, 0.0, 0.1, 0.3, input_dim=300, task="logistic", steps=20),
    "hinge": ReusedData(3.0, 0.2, 0.1, 0.2, input_dim=300, task="hinge", steps=20),
    "phase retrieval": ReusedData(
        4.0, 0.05, teacher_overlap=0.3, input_dim=300, task="phase retrieval", steps=20
    ),
    "phase retrieval with momentum": ReusedData(
        4.0,
        0.05,
        momentum=0.5,
        teacher_overlap=0.3,
        input_dim=300,
        task="phase retrieval",
        steps=12,  # later the loss is as small as its scatter
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_drawn_data_follow_the_theory(name):
    system = CASES[name]
    if system.task == "regression":
        found, spreads = closed_dynamics(system), {}
    else:
        found = sampled_dynamics(system, samples=2000)
        spreads = {
            n: getattr(found, f"{n}_uncertainty") for n in ("overlap", "self_overlap", "train_loss")
        }
    runs = [trained_student(system, jax.random.key(seed)) for seed in range(64)]
    for field in ("overlap", "self_overlap", "train_loss"):
        values = np.array([getattr(run, field) for run in runs])
        error = np.hypot(values.std(0, ddof=1) / 8, spreads.get(field, 0.0))[1:]
        away = values.mean(0)[1:] - np.asarray(getattr(found, field))[1:]
        assert np.max(np.abs(away) / error) < 3.5
        assert np.max(error / np.abs(values.mean(0)[1:])) < 0.05


def test_a_drawn_committee_follows_the_theory():
    start = np.array([[0.2, -0.1], [0.0, 0.15]])
    system = ReusedCommittee(4.0, start, 0.5 * np.eye(2), 0.2, 0.5, 0.1, input_dim=500, steps=10)
    found = committee_dynamics(system, samples=1000)
    runs = [trained_committee(system, jax.random.key(seed)) for seed in range(16)]
    for field in ("overlap", "self_overlap", "test_error", "train_loss"):
        values = np.array([getattr(run, field) for run in runs])
        error = np.hypot(values.std(0, ddof=1) / 4, getattr(found, f"{field}_uncertainty"))[1:]
        away = values.mean(0)[1:] - np.asarray(getattr(found, field))[1:]
        assert np.max(np.abs(away) / error) < 4
        assert np.max(error) < 0.04


def test_a_step_that_is_too_long_diverges_and_says_so():
    assert not closed_dynamics(ReusedData(2.0, 2.0, steps=60)).converged
    assert closed_dynamics(ReusedData(2.0, 0.2, steps=60)).converged


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"ReusedData.teacher_overlap = 2"):
        ReusedData(2.0, teacher_overlap=2.0)
    with pytest.raises(ValueError, match="task = 'logistic'"):
        closed_dynamics(ReusedData(2.0, task="logistic"))
    with pytest.raises(ValueError, match="samples = 10"):
        sampled_dynamics(ReusedData(2.0, steps=20), samples=10)
    with pytest.raises(ValueError, match="runs = 1"):
        sampled_dynamics(ReusedData(2.0, steps=20), runs=1)
    with pytest.raises(ValueError, match="positive definite"):
        ReusedCommittee(2.0, np.eye(2), 0.5 * np.eye(2))
    with pytest.raises(ValueError, match="product"):
        ReusedCommittee(2.0, np.array([[0.1]]), np.array([[1.0]]), product=1.0)
    with pytest.raises(ValueError, match="self_overlap"):
        ReusedCommittee(2.0, np.zeros((2, 2)), np.eye(3))
