"""The parts of the expected error at each row, against the algebra of Gaussian vectors, against a
row that is really left out, and against the theory per mode under another law of inputs."""

import numpy as np
import pytest

from orderparam.kernels.row_errors import left_out_parts, new_parts
from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.learning_from_models import ModelChain, generation_errors

RIDGE = 0.3


@pytest.fixture
def kernel():
    x = np.random.default_rng(0).normal(size=(30, 4))
    return x @ x.T / 4 + np.exp(-((x[:, None] - x[None]) ** 2).sum(-1) / 8)


def test_parts_are_those_of_gaussian_targets_and_of_noise(kernel):
    beside, own = kernel[20:, :20], np.diag(kernel)[20:]
    inverse = np.linalg.inv(kernel[:20, :20] + RIDGE * np.eye(20))
    found = new_parts(inverse, RIDGE, beside, own)
    miss = np.hstack([-beside @ inverse, np.eye(10)])  # of the prediction, by targets
    np.testing.assert_allclose(found.target, np.diag(miss @ kernel @ miss.T), rtol=1e-9)
    np.testing.assert_allclose(found.noise, np.diag(miss @ miss.T), rtol=1e-12)


def test_a_row_left_out_is_a_new_row_of_the_others(kernel):
    everything = left_out_parts(np.linalg.inv(kernel + RIDGE * np.eye(30)), RIDGE)
    for row in (0, 17):
        rest = np.delete(np.arange(30), row)
        inverse = np.linalg.inv(kernel[np.ix_(rest, rest)] + RIDGE * np.eye(29))
        one = new_parts(inverse, RIDGE, kernel[[row]][:, rest], kernel[[row], [row]])
        np.testing.assert_allclose(everything.target[row], one.target[0], rtol=1e-9)
        np.testing.assert_allclose(everything.noise[row], one.noise[0], rtol=1e-9)


def test_the_mean_over_shifted_rows_is_the_theory_per_mode():
    """Gaussian features of variances k^-1.5 in training and k^-0.8 in tests, 16 training sets."""
    count, noise, ridge, modes = 300, 0.2, 0.05, np.arange(1.0, 401)
    variances, shifted = modes**-1.5, modes**-0.8
    random = np.random.default_rng(3)
    errors = []
    for _ in range(16):
        x = random.normal(size=(count, 400)) * np.sqrt(variances)
        new = random.normal(size=(400, 400)) * np.sqrt(shifted)
        inverse = np.linalg.inv(x @ x.T + ridge * np.eye(count))
        parts = new_parts(inverse, ridge, new @ x.T, np.sum(new**2, axis=1))
        errors.append(np.mean(noise * (parts.noise - 1) + parts.target))
    chain = ModelChain(
        Spectrum(variances, variances),  # a target drawn from the prior has the power of the kernel
        shifted,
        n_train=count,
        ridge=ridge,
        noise=noise,
        generations=1,
    )
    theory = float(generation_errors(chain).test_error[0])
    mean, error = np.mean(errors), np.std(errors, ddof=1) / 4
    assert error < 0.01 * theory
    assert abs(mean - theory) < 3 * error + 0.005 * theory
