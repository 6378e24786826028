"""The learning curve of a kernel measured on given examples, at every size from one factorisation.

With the examples in some order, K + T = L L^T and z = L^-1 y, the leading m x m block of L is the
factor of the first m examples, so that the residual of example j > m after training on the first m
is

    r_j(m) = y_j - sum_{i <= m} L_ji z_i

and its posterior variance

    V_j(m) = K_jj - sum_{i <= m} L_ji^2,

for every m at once: one Cholesky factorisation for each order, O(n^2) for each size. (The chain
rule of Gaussian conditioning.)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl
from jaxtyping import Float, Int


@dataclass(frozen=True)
class HeldOut:
    """Predictions for the examples outside the training set, in one order: for each size the rows
    and their residuals."""

    sizes: Int[np.ndarray, "size"]
    rows: list[Int[np.ndarray, "test"]]
    residuals: list[Float[np.ndarray, "test output"]]


def held_out(
    kernel: Float[np.ndarray, "example example"],
    targets: Float[np.ndarray, "example output"],
    temperature: float,
    order: Int[np.ndarray, "row"],
    sizes: Sequence[int],
) -> HeldOut:
    """Trains on the first m rows of `order` for each size m and predicts the others. No mean of the
    targets is fitted. Raises `ValueError` when K + T is not positive definite (equal inputs without
    a ridge)."""
    factor = factorised(kernel[np.ix_(order, order)], temperature)
    labels = targets[order]
    explained = sl.solve_triangular(factor, labels, lower=True, check_finite=False)
    residuals = [labels[m:] - factor[m:, :m] @ explained[:m] for m in sizes]
    return HeldOut(np.asarray(sizes), [order[m:] for m in sizes], residuals)


def factorised(
    kernel: Float[np.ndarray, "example example"], temperature: float
) -> Float[np.ndarray, "example example"]:
    """The Cholesky factor L with L L^T = K + T. Raises `ValueError` when that is not positive
    definite to working precision."""
    ridged = np.array(kernel, order="F")
    ridged[np.diag_indices_from(ridged)] += temperature
    try:
        return sl.cholesky(ridged, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        raise ValueError(
            f"temperature = {temperature:g}: the training kernel plus the temperature is not "
            "positive definite (equal inputs, or a temperature below rounding); raise it"
        ) from None
