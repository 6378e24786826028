"""Predicted learning curve for a kernel matrix of your own. The ridge is found from the training
error, or it is the ridge of smallest test error."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from orderparam.core.late import minimize_scalar
from orderparam.core.registry import tool
from orderparam.systems.kernel_regression.learning_curve import LearningCurve
from orderparam.systems.kernel_regression.pool.model import PoolRegression
from orderparam.systems.kernel_regression.pool.theory import self_consistent_on_pool

_STEPS = 60  # number of bisections
# smallest and largest ridge that are tried, in units of the mean diagonal of the kernel
_SMALLEST, _LARGEST = 1e-10, 1e6


class KernelForecast(NamedTuple):
    """Predicted errors of kernel regression on training sets that are drawn at random from a pool.

    ridge: ridge T that is added to the kernel matrix of a training set. train_error: mean square
    error on a training set of n_train examples. test_error: for each size of the training set, mean
    square error outside of it. learnability: fraction of the target that is learned from n_train
    examples. converged: whether the equations were solved at all sizes.
    """

    ridge: float
    train_error: float
    test_error: dict[int, float]
    learnability: float
    converged: bool


@tool
def predict_given_kernel(
    kernel: Float[np.ndarray, "pool pool"],
    targets: Float[np.ndarray, "pool output"],
    n_train: int,
    sizes: Sequence[int] = (),
    train_error: float | None = None,
) -> KernelForecast:
    """Predicted errors of kernel regression on training sets that are drawn at random from a pool.

    Args:
        kernel: kernel matrix K of all examples of the pool.
        targets: targets of all examples; errors are summed over the outputs.
        n_train: number of examples in a training set, less than the number in the pool.
        sizes: further sizes of the training set at which errors are predicted.
        train_error: training error at n_train from which the ridge is found. None: the ridge is
            that of the smallest test error at n_train.

    Raises:
        ValueError: for a matrix that is not a kernel, and for a size that leaves no example to test
            on.

    Accuracy: as `self_consistent_on_pool`: an average over training sets, best for kernels of many
        modes.

    Source: Canatar, Bordelon and Pehlevan (2021), by `self_consistent_on_pool`.
    """
    scale = float(np.mean(np.diag(kernel)))
    pool = PoolRegression.from_kernel(kernel, targets, n_train, scale)

    def at(ridge: float, size: int) -> LearningCurve:
        return self_consistent_on_pool(pool.with_(temperature=float(ridge), n_train=float(size)))

    low, high = np.log(_SMALLEST * scale), np.log(_LARGEST * scale)
    if train_error is None:
        ridge = _smallest(lambda u: float(at(np.exp(u), n_train).test_error), low, high)
    else:
        for _ in range(_STEPS):
            middle = (low + high) / 2
            below = float(at(np.exp(middle), n_train).train_error) < train_error
            low, high = (middle, high) if below else (low, middle)
        ridge = float(np.exp(high))
    curve = {size: at(ridge, size) for size in sorted({n_train, *sizes})}
    return KernelForecast(
        ridge,
        float(curve[n_train].train_error),
        {size: float(one.test_error) for size, one in curve.items()},
        float(curve[n_train].target_learnability),
        all(bool(one.converged) for one in curve.values()),
    )


def _smallest(error: Callable[[float], float], low: float, high: float) -> float:
    """Ridge of the smallest error. The best point of a grid in ln(ridge) is refined between its two
    neighbours."""
    grid = np.linspace(low, high, 33)
    best = int(np.argmin([error(u) for u in grid]))
    ends = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    return float(np.exp(minimize_scalar(error, bounds=ends, method="bounded").x))
