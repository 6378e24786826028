"""In-context learning against numbers and formulas computed elsewhere."""

import itertools

import numpy as np
import pytest

from orderparam.systems.in_context import (
    LinearAttention,
    StructuredTasks,
    context_ridge,
    linear_attention,
)

# (tau, alpha, kappa, rho, lambda): errors on fresh and on training tasks, nu, and the error on
# fresh tasks in contexts of twice the length with noise 0.5
REFERENCE = {
    (2, 1, 0.5, 0.01, 0): (1.23399254, 0.60956141, 0, 1.61951177),
    (0.5, 1, 1, 0.01, 0): (1.27057530, 1.01311648, 1.79183412, 1.67042812),
    (3, 2, 2, 1, 0): (2.38240781, 2.15767078, 0, 1.48887588),
    (1, 1, 0.5, 0.25, 0.1): (2.28742694, 1.60139763, 0.47484600, 2.20243012),
    (2, 1, 4, 1, 0.05): (3.17728708, 3.06834959, 0.09689184, 1.93194384),
}


@pytest.mark.parametrize("numbers", REFERENCE)
def test_errors_of_linear_attention(numbers):
    samples, context, tasks, noise, ridge = numbers
    icl, idg, nu, shifted = REFERENCE[numbers]
    system = LinearAttention(context, tasks, samples, noise, ridge)
    found = linear_attention(system)
    other = linear_attention(system.with_(test_context_ratio=2 * context, test_noise=0.5))
    assert found.converged
    # eight decimals are given
    values = (found.icl_error, found.idg_error, found.effective_ridge, other.icl_error)
    np.testing.assert_allclose(values, (icl, idg, nu, shifted), rtol=0, atol=6e-9)


def test_the_published_closed_form_without_a_ridge():
    """Lu et al., the error on fresh tasks for fewer sequences than unknowns, tau < 1."""
    for tau, alpha, kappa, rho in itertools.product(
        (0.2, 0.5, 0.9), (0.5, 3.0), (0.3, 2.0, 10.0), (0.01, 0.5)
    ):
        x, ratio = (1 + rho) / alpha, kappa / tau
        half = x + 1 - 1 / ratio
        mu = 2 * x / (half + np.sqrt(half**2 + 4 * x / ratio))
        expected = tau * (1 + x) / (1 - tau) * (1 - tau * (1 - mu) ** 2 - (1 - rho / x) * mu)
        expected += 1 + rho - 2 * tau * (1 - mu)
        found = linear_attention(LinearAttention(alpha, kappa, tau, rho)).icl_error
        np.testing.assert_allclose(found, expected, rtol=1e-10)


# kappa: errors on fresh tasks of endless training at alpha = 10 and 1e4, noise 0.1, to the given
# digits
TRANSITION = {
    0.25: (0.87602, 0.8501),
    0.5: (0.65285, 0.6001),
    0.9: (0.37088, 0.20012),
    1.0: (0.32973, 0.10535),
    1.1: (0.29931, 0.10013),
    2.0: (0.21857, 0.10011),
    10.0: (0.2003, 0.10011),
}


@pytest.mark.parametrize("kappa", TRANSITION)
def test_the_transition_in_the_number_of_tasks(kappa):
    for alpha, expected, digits in zip((10.0, 1e4), TRANSITION[kappa], (1.1e-5, 5e-5)):
        found = linear_attention(LinearAttention(alpha, kappa, 1e7, 0.1)).icl_error
        np.testing.assert_allclose(found, expected, atol=digits)


def test_long_contexts_and_endless_training_have_a_corner_at_as_many_tasks_as_dimensions():
    for kappa in (0.3, 0.8, 1.5):
        found = linear_attention(LinearAttention(1e7, kappa, np.inf, 0.1))
        np.testing.assert_allclose(found.icl_error, 0.1 + max(1 - kappa, 0), atol=1e-5)
        np.testing.assert_allclose(found.idg_error, 0.1, atol=1e-5)


@pytest.mark.parametrize(
    ("context", "noise", "error"),
    [(1.0, 0.1, 0.37015621), (2.0, 0.5, 0.78077641), (0.5, 0.01, 0.51962237)],
)
def test_the_bayes_estimate_in_one_context(context, noise, error):
    system = LinearAttention(context, 1.0, 1.0, noise)
    np.testing.assert_allclose(context_ridge(system).icl_error, error, rtol=1e-8)
    rest = noise + context - 1
    gain = (-rest + np.sqrt(rest**2 + 4 * noise)) / (2 * noise)
    np.testing.assert_allclose(context_ridge(system).icl_error, noise * (1 + gain), rtol=1e-12)


@pytest.mark.parametrize("ridge", [0.0, 0.2])
def test_structured_tasks_against_a_drawn_second_moment(ridge):
    """The equations with the matrix R_k of 1,600 drawn tasks in 400 dimensions in place of its
    limit."""
    d, samples, context, kappa, noise = 400, 2.0, 2.0, 4.0, 0.2
    variances = np.arange(1, d + 1) ** -1.0
    variances *= d / variances.sum()
    fresh = variances[::-1]
    rng = np.random.default_rng(0)
    tasks = rng.standard_normal((int(kappa * d), d)) * np.sqrt(variances)
    second = tasks.T @ tasks / len(tasks)
    system = StructuredTasks(
        context, kappa, samples, noise, ridge, task_variances=variances, test_variances=fresh
    )
    found = linear_attention(system)
    nu = float(found.effective_ridge)
    own = second + (np.trace(second) / d + noise) / context * np.eye(d)
    inverse = np.linalg.inv(own + nu * np.eye(d))
    gamma = second @ inverse
    unexplained = noise + np.trace(second - 2 * gamma @ second + gamma @ own @ gamma.T) / d
    rest = samples - np.trace(own @ own @ inverse @ inverse) / d
    idg = unexplained * samples / rest
    blurred = np.diag(fresh + (fresh.mean() + noise) / context)
    icl = noise + np.trace(np.diag(fresh) - 2 * gamma * fresh + gamma @ blurred @ gamma.T) / d
    icl += unexplained * np.trace(blurred @ own @ inverse @ inverse) / d / rest
    np.testing.assert_allclose(found.idg_error, idg, rtol=0.01)
    np.testing.assert_allclose(found.icl_error, icl, rtol=0.01)
