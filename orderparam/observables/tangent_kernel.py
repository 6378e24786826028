r"""The empirical neural tangent kernel of a network, its drift in training, and how far the network
is from the linearised one.

$K(x, x') = \sum_\theta \partial_\theta f(x) \cdot \partial_\theta f(x')$, summed over outputs where
there are several. Of large networks and many examples see
`orderparam.observables.tangent_features`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from orderparam.observables.observable import Observed, jackknifed
from orderparam.observables.similarity import DRAWS, similarity

Model = Callable[[Any, Any], Any]  # f(parameters, inputs): (examples,) or (examples, outputs)
# lazy-to-rich numbers below which a network is called lazy and above which it is called rich
LAZY, RICH = 0.1, 0.3
BLOCK = 2**28  # bytes of a block of the Jacobian
SOURCE = "Jacot, Gabriel and Hongler 2018; Chizat, Oyallon and Bach 2019; Fort et al. 2020"


def tangent_kernel(
    model: Model, parameters: Any, inputs: np.ndarray, others: np.ndarray | None = None
) -> Float[np.ndarray, "example other"]:
    """The tangent kernel between inputs and others (default: the inputs again), by blocks of rows
    of the Jacobian; sums over outputs.

    >>> linear = lambda w, x: x @ w
    >>> x = np.eye(3)
    >>> tangent_kernel(linear, np.ones(3), x).tolist() == np.eye(3).tolist()
    True
    """
    outputs = np.size(jax.eval_shape(model, parameters, jnp.asarray(inputs[:1])))
    count = sum(np.size(leaf) for leaf in jax.tree.leaves(parameters))
    step = max(1, BLOCK // (8 * outputs * count))
    columns = inputs if others is None else others
    kernel = np.empty((len(inputs), len(columns)))
    for top in range(0, len(inputs), step):
        left = _jacobian(model, parameters, jnp.asarray(inputs[top : top + step]))
        for start in range(top if others is None else 0, len(columns), step):
            place = slice(top, top + step), slice(start, start + step)
            if others is None and start == top:
                kernel[place] = _products(left, left)
                continue
            right = _jacobian(model, parameters, jnp.asarray(columns[start : start + step]))
            kernel[place] = _products(left, right)
            if others is None:
                kernel[place[::-1]] = kernel[place].T
    return kernel


@eqx.filter_jit
def _jacobian(model: Model, parameters: Any, x: Any) -> Any:
    """Derivatives (examples, outputs, parameters)."""
    flat, restored = jax.flatten_util.ravel_pytree(parameters)

    # one example at a time: all at once would be quadratic in the block
    def derivative(example: Any) -> Any:
        return jax.jacrev(lambda theta: model(restored(theta), example[None]).reshape(-1))(flat)

    return jax.vmap(derivative)(x)


@jax.jit
def _products(a: Any, b: Any) -> Any:
    return jnp.einsum("iap,jap->ij", a.astype(float), b.astype(float))


class Drift(NamedTuple):
    """norm: |K_T - K_0| / |K_0|. shape: 1 - U(K_0, K_T), which does not depend on the scale of the
    kernels."""

    norm: Observed
    shape: Observed


def kernel_drift(
    initial: Float[np.ndarray, "example example"],
    trained: Float[np.ndarray, "example example"],
    *,
    draws: int = DRAWS,
) -> Drift:
    """The relative change of the tangent kernel in training, with and without the change of its
    scale.

    Args:
        initial, trained: Kernels on the same examples.
        draws: Permutations for the null hypothesis of `shape`, 0 for none.

    Accuracy: intervals are the jackknife over examples. The null hypothesis of `shape`, that the
        two kernels have nothing in common, gives 1; its p-value is that of U.

    Theory: both are 0 for infinite width at fixed scale (lazy); of order 1/width at finite width.

    Source: Jacot, Gabriel and Hongler 2018; Fort et al. 2020 (drift).

    >>> x = np.random.default_rng(0).normal(size=(20, 4))
    >>> found = kernel_drift(x @ x.T, 2 * x @ x.T)
    >>> round(float(found.norm.value), 6), bool(abs(found.shape.value) < 1e-6)
    (1.0, True)
    """
    value, left = _drift_without(np.asarray(initial), np.asarray(trained) - np.asarray(initial))
    norm = jackknifed("kernel drift", value, {"examples": left}, unbiased=False, source=SOURCE)
    u = similarity(factor(initial), factor(trained), draws=draws)
    shape = Observed(
        "kernel drift in shape", 1 - u.value, 1 - u.high, 1 - u.low, u.p_value, u.null,
        source=SOURCE, seconds=u.seconds,
    )  # fmt: skip
    return Drift(norm, shape)


def _drift_without(k: np.ndarray, change: np.ndarray) -> tuple[float, np.ndarray]:
    """|change| / |k| less its jackknife bias, of all examples and without each of them.

    The subtracted bias varies with the ratio itself, so that the scatter of the difference is not
    that of the ratio: each bias without an example is found from pairs of examples left out."""
    n, totals, rows, pairs = len(k), [], [], []
    for one in (change, k):
        squares = one**2
        totals.append(squares.sum())
        rows.append(2 * squares.sum(axis=1) - squares.diagonal())
        pairs.append(2 * squares)
    one, both = (
        np.sqrt(np.maximum(top, 0) / bottom)  # a rounded 0 may lie below it
        for top, bottom in (
            [total - row for total, row in zip(totals, rows)],
            [total - row[:, None] - row + pair for total, row, pair in zip(totals, rows, pairs)],
        )
    )
    np.fill_diagonal(both, 0)
    whole = float(np.sqrt(totals[0] / totals[1]))
    return n * whole - (n - 1) * one.mean(), (n - 1) * one - (n - 2) / (n - 1) * both.sum(axis=1)


def factor(kernel: Float[np.ndarray, "example example"]) -> Float[np.ndarray, "example column"]:
    """Columns X with X X^T = K, for estimators that take activations."""
    values, vectors = np.linalg.eigh(np.asarray(kernel, np.float64))
    return vectors * np.sqrt(np.maximum(values, 0))


def lazy_to_rich(
    start: Float[np.ndarray, "test"],
    trained: Float[np.ndarray, "test"],
    across: Float[np.ndarray, "test train"],
    kernel: Float[np.ndarray, "train train"],
    start_train: Float[np.ndarray, "train"],
    trained_train: Float[np.ndarray, "train"],
    targets: Float[np.ndarray, "train"],
    rate: float | None = None,
) -> Observed:
    r"""The lazy-to-rich number on held-out examples.

    $$ \Lambda = \frac{|f_T - f_{lin}|}{|f_{lin} - f_0|} , \quad f_{lin} = f_0 + K_0(x, X)\,
       \frac{1 - e^{-t K_0}}{K_0} (y - f_0(X)) $$

    $f_{lin}$ is the network linearised at its start and trained by gradient flow on the squared
    error until its training error equals that of the network. Below 0.1 the linear theory is wrong
    by less than 1 % of the output's power: lazy; above 0.3 rich.

    Args:
        start, trained: Outputs f_0 and f_T on held-out examples; several outputs are columns.
        across: K_0 between held-out and training examples; kernel: among the latter.
        start_train, trained_train, targets: f_0, f_T and y on the training examples.
        rate: Learning rate of gradient descent, such that a step changes the linearised outputs by
            -rate K_0 (f - y); None for gradient flow.

    Returns:
        An `Observed`; its interval is the jackknife over held-out examples, for this training.

    Raises:
        ValueError: where the network's training error is not below that of its start.

    Accuracy: for squared error and gradient flow, or descent of a given rate; with another
        optimiser or loss the linear network that is compared with is only close to the right one.

    Source: Chizat, Oyallon and Bach 2019; definition derived here.

    >>> k = np.eye(8)
    >>> zero, y = np.zeros(8), np.ones(8)
    >>> found = lazy_to_rich(zero, 0.9 * y, k, k, zero, 0.9 * y, y)
    >>> bool(found.value < 1e-6)
    True
    """
    f0, ft, f0_train, ft_train, y = (
        np.asarray(one, np.float64).reshape(len(one), -1)
        for one in (start, trained, start_train, trained_train, targets)
    )
    linear = linearised(f0, across, kernel, f0_train, ft_train, y, rate)
    top, bottom = np.sum((ft - linear) ** 2, axis=1), np.sum((linear - f0) ** 2, axis=1)
    left = np.sqrt((top.sum() - top) / (bottom.sum() - bottom))
    value = float(np.sqrt(top.sum() / bottom.sum()))
    found = jackknifed("lazy-to-rich number", value, {"examples": left}, source=SOURCE)
    return found


def linearised(
    start: Float[np.ndarray, "test output"],
    across: Float[np.ndarray, "test train"],
    kernel: Float[np.ndarray, "train train"],
    start_train: Float[np.ndarray, "train output"],
    trained_train: Float[np.ndarray, "train output"],
    targets: Float[np.ndarray, "train output"],
    rate: float | None = None,
) -> Float[np.ndarray, "test output"]:
    """The outputs of the linearised network at the training error of the network; arguments and
    errors as in `lazy_to_rich`."""
    reached, before = np.mean((trained_train - targets) ** 2), np.mean((start_train - targets) ** 2)
    if not reached < before:
        raise ValueError(
            f"the training error is {reached:.3g} and was {before:.3g} at the start: "
            "give the network after training on these targets with squared error"
        )
    values, vectors = np.linalg.eigh(np.asarray(kernel, np.float64))
    values = np.maximum(values, 1e-14 * values[-1])
    residual = vectors.T @ (targets - start_train)
    speeds = values
    if rate is not None:
        if not 0 < rate * values[-1] < 1:
            raise ValueError(f"rate = {rate}: must lie between 0 and 1/{values[-1]:.3g}")
        speeds = -np.log1p(-rate * values)

    def left_over(log_time: float) -> float:
        decayed = np.exp(-np.exp(log_time) * speeds)[:, None] * residual
        return float(np.sum(decayed**2)) / targets.size

    low, high = -np.log(speeds[-1]) - 30, -np.log(speeds[0]) + 30
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if left_over(middle) > reached else (low, middle)
    grown = -np.expm1(-np.exp(high) * speeds) / values
    return start + np.asarray(across) @ (vectors @ (grown[:, None] * residual))


def regime(number: float) -> str:
    """The word for a lazy-to-rich number."""
    return "lazy" if number < LAZY else "rich" if number > RICH else "between lazy and rich"
