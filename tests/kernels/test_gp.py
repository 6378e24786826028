"""Gaussian-process posteriors and gradient-flow ensembles."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.stats

from orderparam.kernels.gp import condition, diagonalise, gp_posterior
from orderparam.kernels.gradient_flow import gradient_flow
from orderparam.networks.fully_connected import fully_connected


@pytest.fixture(scope="module")
def problem():
    """Training and test blocks of K and Theta, and targets."""
    x = jax.random.normal(jax.random.key(0), (20, 4))
    kernels = fully_connected(2, None, "erf", 1.5, 0.1).kernel(x)
    y = jnp.sin(3 * x[:12, 0])
    return kernels.nngp, kernels.ntk, y


def test_posterior_is_the_conditional_of_the_joint_gaussian(problem):
    nngp, _, y = problem
    n = len(y)
    posterior = gp_posterior(nngp[:n, :n], nngp[n:, :n], nngp[n:, n:], y, 0.2)
    inverse = np.linalg.inv(np.asarray(nngp[:n, :n]) + 0.2 * np.eye(n))
    np.testing.assert_allclose(posterior.mean, nngp[n:, :n] @ inverse @ y, rtol=1e-11)
    covariance = nngp[n:, n:] - nngp[n:, :n] @ inverse @ nngp[:n, n:]
    np.testing.assert_allclose(posterior.variance, jnp.diagonal(covariance), rtol=1e-11)
    conditioned = condition(nngp[:n, :n], y, 0.2)
    np.testing.assert_allclose(
        conditioned.covariance(nngp[n:, :n], nngp[n:, n:]), covariance, atol=1e-13
    )
    joint = scipy.stats.multivariate_normal(np.zeros(n), np.asarray(nngp[:n, :n]) + 0.2 * np.eye(n))
    np.testing.assert_allclose(posterior.log_evidence, joint.logpdf(y), rtol=1e-12)
    np.testing.assert_allclose(posterior.fitted, nngp[:n, :n] @ inverse @ y, rtol=1e-10)
    outputs = jnp.stack([y, 2 * y])
    several = jax.vmap(lambda t: gp_posterior(nngp[:n, :n], nngp[n:, :n], nngp[n:, n:], t, 0.2))(
        outputs
    )
    np.testing.assert_allclose(
        several.mean, jnp.stack([posterior.mean, 2 * posterior.mean]), rtol=1e-13
    )


def test_the_most_likely_noise_maximises_the_evidence_over_amplitude_and_noise():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    kernel = np.asarray(fully_connected(1, None, "relu", 1.0, 0.1).kernel(jnp.asarray(x)).nngp)
    y = np.linalg.cholesky(3 * kernel + 0.05 * np.eye(400)) @ rng.normal(size=400)
    noise = float(diagonalise(kernel, y).most_likely_noise())
    assert abs(noise / 0.05 - 1) < 4 * np.sqrt(2 / 400)

    def cost(logs):
        covariance = np.exp(logs[0]) * kernel + np.exp(logs[1]) * np.eye(400)
        return -scipy.stats.multivariate_normal(np.zeros(400), covariance).logpdf(y)

    best = scipy.optimize.minimize(cost, np.log([1.0, 0.1]), method="Nelder-Mead")
    np.testing.assert_allclose(noise, np.exp(best.x[1]), rtol=0.025)  # half a step of the scan


def test_eigenbasis_gives_the_same_posterior_at_every_temperature(problem):
    nngp, _, y = problem
    n = len(y)
    spectral = diagonalise(nngp[:n, :n], y)
    temperatures = jnp.array([1e-6, 1e-2, 1.0, 100.0])
    sweep = jax.vmap(lambda t: spectral.posterior(nngp[n:, :n], jnp.diagonal(nngp)[n:], t))(
        temperatures
    )
    for i, temperature in enumerate(temperatures):
        direct = gp_posterior(nngp[:n, :n], nngp[n:, :n], nngp[n:, n:], y, temperature)
        for name in ("mean", "variance", "fitted", "log_evidence", "discrepancy"):
            np.testing.assert_allclose(
                getattr(sweep, name)[i], getattr(direct, name), rtol=1e-9, atol=1e-12
            )


def test_leave_one_out_residuals_are_those_of_training_without_the_point(problem):
    nngp, _, y = problem
    n = len(y)
    residuals = diagonalise(nngp[:n, :n], y).leave_one_out(0.1)
    keep = jnp.arange(1, n)
    without = gp_posterior(nngp[1:n, 1:n], nngp[:1, keep], nngp[:1, :1], y[1:], 0.1)
    np.testing.assert_allclose(residuals[0], y[0] - without.mean[0], rtol=1e-11)


def test_repeated_input_at_zero_temperature_is_refused_by_name(problem):
    nngp, _, y = problem
    repeated = jnp.array([0, 1, 2, 1])
    kernel = nngp[repeated][:, repeated]
    with pytest.raises(ValueError, match="training points 1 and 3 are the same input"):
        condition(kernel, y[:4], 0.0)
    assert jnp.isfinite(condition(kernel, y[:4], 1e-6).log_evidence)
    rescued = condition(kernel, y[:4], 0.0, jitter=1e-6)
    assert rescued.jitter == 1e-6


def test_low_rank_kernel_at_zero_temperature_is_refused():
    features = jax.random.normal(jax.random.key(2), (6, 3))
    with pytest.raises(ValueError, match="not positive definite"):
        condition(features @ features.T, jnp.ones(6), 0.0)


def test_bad_posterior_input_is_refused(problem):
    nngp, _, y = problem
    with pytest.raises(ValueError, match=r"temperature = -0\.1"):
        condition(nngp[:12, :12], y, -0.1)
    with pytest.raises(ValueError, match="temperature = nan"):
        condition(nngp[:12, :12], y, float("nan"))
    with pytest.raises(ValueError, match="jitter"):
        condition(nngp[:12, :12], y, 0.1, jitter=-1.0)
    with pytest.raises(ValueError, match="targets has shape"):
        condition(nngp[:12, :12], y[:3], 0.1)
    with pytest.raises(ValueError, match="kernel_train has shape"):
        condition(nngp[:12], y, 0.1)
    with pytest.raises(ValueError, match="kernel_cross has shape"):
        gp_posterior(nngp[:12, :12], nngp[:12, 12:], jnp.ones(8), y, 0.1)
    with pytest.raises(ValueError, match="NaN"):
        condition(nngp[:12, :12], y.at[0].set(jnp.nan), 0.1)
    with pytest.raises(ValueError, match="eigenvalue"):
        diagonalise(-jnp.eye(12), y)


def test_gradient_flow_starts_at_the_prior_and_ends_at_interpolation(problem):
    nngp, ntk, y = problem
    n = len(y)
    blocks = (ntk[:n, :n], ntk[n:, :n], nngp[:n, :n], nngp[n:, :n], nngp[n:, n:], y)
    start, late, forever = (gradient_flow(*blocks, time) for time in (0.0, 1e9, jnp.inf))
    np.testing.assert_array_equal(start.mean, 0.0)
    np.testing.assert_allclose(start.covariance, nngp[n:, n:], rtol=1e-14)
    np.testing.assert_allclose(late.mean, ntk[n:, :n] @ jnp.linalg.solve(ntk[:n, :n], y), rtol=1e-8)
    np.testing.assert_allclose(forever.covariance, late.covariance, atol=1e-10)
    np.testing.assert_allclose(late.fitted, y, rtol=1e-10)
    assert jnp.linalg.eigvalsh(late.covariance)[0] > 0


def test_gradient_flow_solves_its_differential_equation(problem):
    nngp, ntk, y = problem
    n = len(y)
    blocks = (ntk[:n, :n], ntk[n:, :n], nngp[:n, :n], nngp[n:, :n], nngp[n:, n:], y)
    propagator = scipy.linalg.expm(-0.7 * np.asarray(ntk[:n, :n]))
    prediction = gradient_flow(*blocks, 0.7)
    np.testing.assert_allclose(prediction.fitted, y - propagator @ y, rtol=1e-10)
    step = 1e-4
    later, earlier = gradient_flow(*blocks, 0.7 + step), gradient_flow(*blocks, 0.7 - step)
    drift = ntk[n:, :n] @ (y - prediction.fitted)  # df/dt = -Theta(x, X) (f(X) - y)
    np.testing.assert_allclose((later.mean - earlier.mean) / (2 * step), drift, rtol=1e-6)


def test_gradient_flow_with_equal_kernels_is_linear_regression_on_random_features(problem):
    """With Theta = K only the read-out is trained; forever trained, it is the zero-temperature
    posterior (Lee et al. 2019)."""
    nngp, _, y = problem
    n = len(y)
    forever = gradient_flow(*(2 * (nngp[:n, :n], nngp[n:, :n])), nngp[n:, n:], y, jnp.inf)
    posterior = gp_posterior(nngp[:n, :n], nngp[n:, :n], nngp[n:, n:], y, 0.0)
    np.testing.assert_allclose(forever.mean, posterior.mean, rtol=1e-9)
    np.testing.assert_allclose(jnp.diagonal(forever.covariance), posterior.variance, rtol=1e-8)


def test_bad_flow_input_is_refused(problem):
    nngp, ntk, y = problem
    blocks = (ntk[:12, :12], ntk[12:, :12], nngp[:12, :12], nngp[12:, :12], nngp[12:, 12:])
    with pytest.raises(ValueError, match=r"time = -1\.0"):
        gradient_flow(*blocks, y, -1.0)
    with pytest.raises(ValueError, match="targets has shape"):
        gradient_flow(*blocks, y[:3], 1.0)
