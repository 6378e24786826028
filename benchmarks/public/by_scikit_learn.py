"""Gaussian-process regression by scikit-learn, with a kernel class as its documentation shows."""

import numpy as np
from answer import answer
from gaussian import TEMPERATURE, erf_kernel
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel


class Erf(Kernel):
    def __init__(self) -> None:
        """scikit-learn reads the parameters of a kernel, here none, from this signature."""

    def __call__(self, X, Y=None, eval_gradient=False):  # type: ignore[no-untyped-def]
        Y = X if Y is None else Y
        d = X.shape[1]
        first, second = (np.sum(part**2, axis=1) / d for part in (X, Y))
        return erf_kernel(np, X @ Y.T / d, first[:, None], second)

    def diag(self, X):  # type: ignore[no-untyped-def]
        square = np.sum(X**2, axis=1) / X.shape[1]
        return erf_kernel(np, square, square, square)

    def is_stationary(self) -> bool:
        return False


def regression(inputs):  # type: ignore[no-untyped-def]
    def run() -> np.ndarray:
        process = GaussianProcessRegressor(Erf(), alpha=TEMPERATURE, optimizer=None)
        process.fit(inputs["x"], inputs["y"])
        mean, deviation = process.predict(inputs["test_x"], return_std=True)
        return np.concatenate([mean, deviation**2, [process.log_marginal_likelihood_value_]])

    return run


answer("scikit-learn", {"regression": regression})
