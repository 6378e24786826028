"""Gaussian-process regression, and kernels renormalised at finite width, in NumPy and SciPy."""

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import brentq

Kernels = tuple[np.ndarray, np.ndarray, np.ndarray]


def erf_kernels(x: np.ndarray, test: np.ndarray, weight: float, bias: float) -> Kernels:
    """K of one hidden layer of erf units on the training set, between test and training points,
    and of each test point with itself."""
    dimension = x.shape[1]
    first, second = (bias + weight * np.sum(part**2, axis=1) / dimension for part in (x, test))

    def mean(covariance: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        angle = np.arcsin(2 * covariance / np.sqrt((1 + 2 * a) * (1 + 2 * b)))
        return bias + weight * 2 / np.pi * angle

    inside = bias + weight / dimension * (x @ x.T)
    across = bias + weight / dimension * (test @ x.T)
    return (
        mean(inside, first[:, None], first),
        mean(across, second[:, None], first),
        mean(second, second, second),
    )


def posterior(kernels: Kernels, y: np.ndarray, temperature: float) -> np.ndarray:
    """Means, variances and log evidence, from one factorisation."""
    inside, across, diagonal = kernels
    noisy = inside + temperature * np.eye(len(y))
    factor = cholesky(noisy, lower=True, overwrite_a=True, check_finite=False)
    columns = np.column_stack([y, across.T])
    half = solve_triangular(factor, columns, lower=True, overwrite_b=True, check_finite=False)
    target, rest = half[:, 0], half[:, 1:]
    evidence = -(target @ target) / 2 - np.log(np.diag(factor)).sum()
    evidence -= len(y) / 2 * np.log(2 * np.pi)
    return np.concatenate([target @ rest, diagonal - np.sum(rest**2, axis=0), [evidence]])


def finite_widths(
    kernels: Kernels, y: np.ndarray, test_y: np.ndarray, temperature: float, widths: np.ndarray
) -> np.ndarray:
    """Test errors of networks with one hidden layer at each width: one eigendecomposition, and a
    root in the logarithm of the scale Q for each width."""
    inside, across, diagonal = kernels
    values, vectors = np.linalg.eigh(inside)
    values = np.maximum(values, 0.0)
    seen, rows = vectors.T @ y, across @ vectors
    power, squares = seen**2, rows**2
    errors = np.empty(len(widths))
    for i, width in enumerate(widths):

        def stationarity(log_scale: float, width: float = width) -> float:
            scaled = np.exp(log_scale) * values
            whole = scaled + temperature
            return np.exp(log_scale) - 1 + np.sum(scaled / whole * (1 - power / whole)) / width

        scale = np.exp(brentq(stationarity, -12.0, 6.0, xtol=1e-13))
        whole = scale * values + temperature
        mean = rows @ (scale * seen / whole)
        variance = scale * diagonal - squares @ (scale**2 / whole)
        errors[i] = np.mean((test_y - mean) ** 2 + variance)
    return errors
