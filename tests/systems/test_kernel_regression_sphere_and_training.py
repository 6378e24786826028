"""Regression on the sphere with exact averages, power-law asymptotes, and noisy training against
the Gaussian process."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import orderparam as op
from orderparam.kernels import gp_posterior, power_law
from orderparam.kernels.spectra import zonal_polynomials
from orderparam.networks import fully_connected
from orderparam.sampling.curvature import largest_curvature as curvature_at
from orderparam.systems.kernel_regression import (
    KernelRegression,
    NetworkTraining,
    SphereRegression,
    gaussian_process,
    langevin,
    mean_sphere_errors,
    scaling_law,
    self_consistent,
    self_consistent_by_degree,
    sphere_regression,
)
from orderparam.systems.kernel_regression.training.experiment import _Problem
from orderparam.systems.kernel_regression.training.theory import largest_curvature

ERF = fully_connected(1, None, "erf")


@pytest.fixture(scope="module")
def ball():
    return SphereRegression.from_architecture(ERF, 6, [0, 0.8, 0, 0.2], 40, 1e-3, noise=0.1)


def test_the_kernel_on_the_sphere_is_its_zonal_series(ball):
    x = jax.random.normal(jax.random.key(0), (5, 6))
    x *= jnp.sqrt(6) / jnp.linalg.norm(x, axis=1, keepdims=True)
    weights = ball.spectrum.eigenvalues * ball.spectrum.multiplicities
    series = sum(w * p for w, p in zip(weights, zonal_polynomials(x @ x.T / 6, 6, 20)))
    np.testing.assert_allclose(ERF.nngp(x), series, atol=2 * float(ball.spectrum.tail))
    assert float(ball.spectrum.total) == pytest.approx(float(ERF.nngp(x)[0, 0]), rel=1e-12)


def test_mean_errors_are_those_of_the_single_training_sets(ball):
    key = jax.random.key(5)
    found = mean_sphere_errors(ball, key, training_sets=6)
    runs = [sphere_regression(ball, one) for one in jax.random.split(key, 6)]
    for name in ("test_error", "train_error"):
        each = np.array([getattr(run, name) for run in runs])
        np.testing.assert_allclose(getattr(found, name), each.mean(), rtol=1e-10)
        error = each.std(ddof=1) / np.sqrt(6)
        np.testing.assert_allclose(getattr(found, f"{name}_error"), error, rtol=1e-10)


def test_averages_over_the_sphere_are_those_of_many_test_points(ball):
    """The same training set, its error on 10000 random points, and the learned share of the linear
    functions."""
    key = jax.random.key(3)
    run = sphere_regression(ball, key)
    input_key, noise_key = jax.random.split(key)
    train = jax.random.normal(input_key, (40, 6))
    train /= jnp.linalg.norm(train, axis=1, keepdims=True)
    test = jax.random.normal(jax.random.key(4), (10_000, 6))
    test /= jnp.linalg.norm(test, axis=1, keepdims=True)

    def target(x):
        polynomials = list(zonal_polynomials(x[:, 0], 6, 3))
        # N_1 = 6, N_3 = 50
        return np.sqrt(0.8 * 6) * polynomials[1] + np.sqrt(0.2 * 50) * polynomials[3]

    labels = target(train) + np.sqrt(0.1) * jax.random.normal(noise_key, (40,))
    cross = ERF.nngp(np.sqrt(6) * test, np.sqrt(6) * train)
    posterior = gp_posterior(
        ERF.nngp(np.sqrt(6) * train),
        cross,
        np.full(10_000, float(ball.spectrum.total)),
        labels,
        1e-3,
    )
    squared = (posterior.mean - target(test)) ** 2
    error = float(jnp.std(squared)) / 100
    assert float(run.test_error) == pytest.approx(float(squared.mean()), abs=5 * error)
    assert float(run.posterior_variance) == pytest.approx(
        float(posterior.variance.mean()), rel=0.01
    )
    assert float(run.train_error) == pytest.approx(
        float(jnp.mean((posterior.fitted - labels) ** 2)), rel=1e-8
    )


def test_degrees_are_learned_as_the_theory_says(ball):
    grid = {"n_train": [60]}
    runs = op.sweep(sphere_regression, ball, grid, seeds=8)
    theory = op.sweep(self_consistent_by_degree, ball, grid)
    for degree, tolerance in ((1, 0.03), (3, 0.1)):
        mean = runs["learnability"].mean("seed").isel(degree=degree)
        np.testing.assert_allclose(mean, theory["learnability"].isel(degree=degree), rtol=tolerance)
    np.testing.assert_allclose(
        runs["effective_dimension"].mean("seed"), theory["effective_dimension"], rtol=0.03
    )


@pytest.mark.parametrize(
    ("capacity", "source", "noise", "exponent"),
    [
        (1.5, 0.5, 0.0, 1.0),
        (1.5, 0.5, 0.3, 1.0),
        (1.5, 1.4, 0.0, 0.8),
        (2.0, 0.3, 0.0, np.inf),
        (2.0, 1.5, 0.2, 5.0),
        (1.8, 0.7, 0.0, 4.0),
    ],
)
def test_power_laws_approach_their_asymptotes(capacity, source, noise, exponent):
    # Corrections are powers of n: halved or better from 10^5 to 10^7, and per cents at the end.
    spectrum, deviations = power_law(capacity, source, 1e13), []
    for n in (1e5, 1e7):
        temperature = 0.0 if np.isinf(exponent) else n ** (1 - exponent)
        curve = self_consistent(KernelRegression(spectrum, n, temperature, noise))
        law = scaling_law(np.array([n]), capacity, source, noise=noise, ridge_exponent=exponent)
        deviations.append(abs(float(curve.test_error) / float(law.test_error[0]) - 1))
    assert deviations[1] < max(deviations[0] / 2, 1e-4)
    assert deviations[1] < 0.03


@pytest.mark.parametrize(
    ("exponent", "noise", "expected"),
    [(1.0, 0.0, 1.0), (1.0, 0.1, 1 / 3), (3.0, 0.0, 1.5), (3.0, 0.1, 0.0)],
)
def test_exponents_of_the_four_regimes(exponent, noise, expected):
    law = scaling_law(np.array([100.0]), 1.5, 0.5, noise=noise, ridge_exponent=exponent)
    assert float(law.exponent) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"capacity": 1.0, "source": 0.5}, "capacity = 1.0: must be finite and > 1"),
        ({"capacity": 1.5, "source": 1}, "source = 1: the law has a logarithm there"),
        (
            {"capacity": 1.5, "source": 0.5, "ridge_exponent": 1.5},
            "ridge_exponent = 1.5: must be > 0 and differ",
        ),
        ({"capacity": 1.5, "source": 0.5, "noise": -0.1}, "noise = -0.1: must be finite and >= 0"),
    ],
)
def test_laws_that_do_not_exist_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        scaling_law(np.array([10.0]), **arguments)


@pytest.fixture(scope="module")
def task():
    inputs = jax.random.normal(jax.random.key(0), (10, 3))
    return NetworkTraining(
        inputs[:8], jnp.tanh(inputs[:8, 0]) - 0.5 * inputs[:8, 1], inputs[8:], ERF, 0.1, width=40
    )


def test_infinite_width_is_gaussian_process_regression(task):
    kernel = np.asarray(ERF.nngp(jnp.concatenate([task.inputs, task.test_inputs])))
    inverse = np.linalg.inv(kernel[:8, :8] + 0.1 * np.eye(8))
    posterior = gaussian_process(task)
    np.testing.assert_allclose(posterior.mean, kernel[8:, :8] @ inverse @ task.targets, rtol=1e-11)
    np.testing.assert_allclose(
        posterior.covariance, kernel[8:, 8:] - kernel[8:, :8] @ inverse @ kernel[:8, 8:], atol=1e-13
    )


def test_the_stiffest_direction_is_that_of_the_tangent_kernel(task):
    """With all weights sampled; the kernel of the read-out alone would give about half of it."""
    wide = fully_connected(1, 4000, "erf")
    problem = _Problem(wide, task.inputs, task.targets, task.test_inputs, jnp.asarray(0.1))
    density = jax.tree_util.Partial(_Problem.log_density, problem)
    found = curvature_at(density, wide.draw(jax.random.key(1), 3), jax.random.key(2))
    assert float(found) == pytest.approx(float(largest_curvature(task)), rel=0.1)
    readout = 1 + np.linalg.eigvalsh(ERF.nngp(task.inputs))[-1] / 0.1
    assert float(found) > 1.5 * readout


def test_noisy_training_of_a_network_reaches_the_gaussian_process(task):
    run = langevin(task, jax.random.key(5), chains=16, draws=120)
    assert float(run.r_hat) < 1.1
    assert 1 < float(run.inflation) < 1.15
    process = gaussian_process(task)
    # About 500 independent draws, and corrections of the order of 1/width = 1/40
    error = np.sqrt(np.asarray(process.variance) / 500)
    np.testing.assert_array_less(np.abs(run.mean - process.mean), 5 * error + 0.05)
    np.testing.assert_allclose(run.variance, process.variance, rtol=0.35)


def test_training_problems_that_make_no_sense_are_refused(task):
    for changes, message in (
        ({"curvature_step": 2.0}, "curvature_step = 2.0: must be > 0 and < 2"),
        ({"temperature": 0.0}, "temperature = 0.0: must be > 0"),
        (
            {"targets": task.targets[:3]},
            r"targets has shape \(3,\), \(train\): must have train = 8, as inputs has",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            task.with_(**changes)
    with pytest.raises(ValueError, match="takes a SphereRegression, not a KernelRegression"):
        sphere_regression(KernelRegression(power_law(1.5, 0.5), 10, 0.1), jax.random.key(0))
