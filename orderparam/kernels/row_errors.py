r"""The expected squared error of kernel regression at one row, from the inputs alone.

With f(x) = k_x^T A y, A = (K + T)^-1, labels y = g + xi and a target g drawn from a Gaussian
process with covariance b K,

    E [g(x) + xi(x) - f(x)]^2 = s (1 + w(x)) + b (V(x) - T w(x)),
    w(x) = k_x^T A^2 k_x,    V(x) = K(x, x) - k_x^T A k_x,

with s the variance of the noise: exact for given inputs at every T. Without row i the same follows
from the inverse of all rows, V_i = 1/A_ii - T and w_i = (A^2)_ii/A_ii^2 - 1.

Averaged over many rows of a law of inputs these are the variance and the bias of the theory per
mode, `orderparam.systems.learning_from_models.generation_errors`, under that law of tests.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

LEAST = 1e-12  # share of K(x, x) below which a target part is rounding


@dataclass(frozen=True)
class RowParts:
    """The parts of the expected error at each row.

    noise: 1 + w, that of label noise of variance 1. target: V - T w, that of a target drawn with
    the covariance K.
    """

    noise: Float[np.ndarray, "row"]
    target: Float[np.ndarray, "row"]


def left_out_parts(inverse: Float[np.ndarray, "train train"], ridge: float) -> RowParts:
    """The parts at each training row when it is left out. inverse: (K + T)^-1."""
    own = np.diag(inverse)
    noise = np.einsum("ij,ij->j", inverse, inverse) / own**2
    return _parts(1 / own - ridge, noise, ridge)


def new_parts(
    inverse: Float[np.ndarray, "train train"],
    ridge: float,
    beside: Float[np.ndarray, "row train"],
    own: Float[np.ndarray, "row"],
) -> RowParts:
    """The parts at new rows. beside: K(new, training rows); own: K(x, x) of each new row."""
    weights = beside @ inverse
    variance = own - np.einsum("ij,ij->i", weights, beside)
    return _parts(variance, 1 + np.einsum("ij,ij->i", weights, weights), ridge)


def _parts(variance: np.ndarray, noise: np.ndarray, ridge: float) -> RowParts:
    target = variance - ridge * (noise - 1)
    return RowParts(noise, np.maximum(target, LEAST * max(float(np.max(variance)), LEAST)))
