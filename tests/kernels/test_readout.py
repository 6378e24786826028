"""The exact posterior of a linear read-out is Gaussian-process regression with the kernel Phi
Phi^T."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from orderparam.kernels import gp_posterior
from orderparam.kernels.readout import condition_readout, log_det_and_form

_RNG = np.random.default_rng(0)
PHI, TEST, Y = (_RNG.standard_normal(shape) for shape in ((6, 9), (4, 9), (6, 2)))


def test_it_is_regression_with_the_kernel_of_the_features():
    found = condition_readout(PHI, Y, 0.3)
    for output in range(2):
        gp = gp_posterior(PHI @ PHI.T, TEST @ PHI.T, (TEST**2).sum(1), Y[:, output], 0.3)
        np.testing.assert_allclose((TEST @ found.mean)[:, output], gp.mean, rtol=1e-11)
        np.testing.assert_allclose(found.variance(TEST), gp.variance, rtol=1e-11)
        np.testing.assert_allclose(
            Y[:, output] - 0.3 * found.discrepancy[:, output], gp.fitted, rtol=1e-11
        )


def test_mean_and_covariance_of_the_weights():
    found = condition_readout(PHI, Y, 0.3)
    precision = np.eye(9) + np.asarray(PHI.T @ PHI) / 0.3
    np.testing.assert_allclose(
        np.eye(9) - found.half.T @ found.half, np.linalg.inv(precision), atol=1e-13
    )
    np.testing.assert_allclose(
        found.mean, np.linalg.solve(precision, np.asarray(PHI.T @ Y) / 0.3), rtol=1e-11
    )


def test_the_evidence_of_several_outputs_is_a_product():
    covariance = np.asarray(PHI @ PHI.T) + 0.3 * np.eye(6)
    expected = sum(
        multivariate_normal(cov=covariance).logpdf(np.asarray(Y[:, i])) for i in range(2)
    )
    assert float(condition_readout(PHI, Y, 0.3).log_evidence) == pytest.approx(expected, rel=1e-12)


def test_second_derivatives_of_determinant_and_form():
    """The derivatives that `log_det_and_form` defines are those of the expressions themselves."""

    def plain(features, labels):
        matrix = features @ features.T + 0.3 * jnp.eye(6)
        form = jnp.sum(labels * jnp.linalg.solve(matrix, labels))
        return jnp.linalg.slogdet(matrix)[1] + form / 2

    def ours(features, labels):
        log_det, form = log_det_and_form(features @ features.T + 0.3 * jnp.eye(6), labels)
        return log_det + form / 2

    for order in (jax.grad, jax.hessian):
        for argument in (0, 1):
            np.testing.assert_allclose(
                order(ours, argument)(jnp.asarray(PHI), jnp.asarray(Y)),
                order(plain, argument)(jnp.asarray(PHI), jnp.asarray(Y)),
                rtol=1e-9,
                atol=1e-12,
            )
