"""When to stop gradient descent on the user's data, and what stopping gains over a ridge."""

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from orderparam.core.registry import tool
from orderparam.networks.architecture import Architecture

EXAMPLES, SHARE, GRID = 1500, 0.8, 97


@dataclass(frozen=True)
class BestStop:
    """Held-out errors of gradient flow at all times and of all ridges, and the best time and the
    best ridge.

    Errors are mean squares on held-out examples, summed over the columns of the target. Pairs of
    numbers are a value and its standard error, which accounts for examples that several splits
    share.

    times, flow_error: training times for the mean loss, and the error at each, averaged over
        splits.
    ridges, ridge_error: ridges for the mean loss, and the error with each, averaged over splits.
    time, earliest, latest: the best time, and the ends of the interval around it in which the error
        exceeds the smallest error by at most one standard error of the difference.
    steps: number of steps of plain gradient descent up to the best time, at the learning rate
        1/(largest eigenvalue).
    stopped, ridged, ended: error at the best time, error with the best ridge, and error after
        training to the end. The time and the ridge of a split are those that are best on the other
        splits.
    gain: (error with the best ridge - error at the best time) / error with the best ridge.
    inside: whether the best time lies inside the range searched. If not, the error is smallest at
        an end of the range.
    n_train: number of training examples in a split.
    """

    times: Float[np.ndarray, "time"]
    flow_error: Float[np.ndarray, "time"]
    ridges: Float[np.ndarray, "ridge"]
    ridge_error: Float[np.ndarray, "ridge"]
    time: float
    earliest: float
    latest: float
    steps: float
    stopped: tuple[float, float]
    ridged: tuple[float, float]
    ended: tuple[float, float]
    gain: tuple[float, float]
    inside: bool
    n_train: int


@tool
def when_to_stop(
    features: Float[np.ndarray, "example feature"],
    targets: Float[np.ndarray, "example"] | Float[np.ndarray, "example column"],
    splits: int = 16,
    seed: int = 0,
) -> BestStop:
    r"""The best time to stop gradient descent of a linear model on given features, compared with
    the best ridge, from exact training paths on random splits.

    Features are divided by the root of their number. The means over the training part are
    subtracted from features and targets, which is equivalent to an intercept without a penalty.
    With $X^T X/n = V \mathrm{diag}(s) V^T$ the weights of gradient flow on $\frac{1}{2n} |Xw -
    y|^2$ from zero at time t, and those of a ridge $\lambda$, are

    $$ V\, \mathrm{diag}\Big( \frac{1 - e^{-s t}}{s} \Big) V^T \frac{X^T y}{n}, \qquad
       V\, \mathrm{diag}\Big( \frac{1}{s + \lambda} \Big) V^T \frac{X^T y}{n} $$

    so that no steps have to be computed. A wide network with a frozen tangent kernel is a linear
    model on the features of that kernel.

    Args:
        features: (example, feature) matrix. At most 1500 examples are used, chosen at random.
        targets: target of each example, or several columns.
        splits: number of random splits into four fifths for training and one fifth held out.
        seed: seed of the choice of examples and of the splits.

    Raises:
        ValueError: for fewer than 10 examples, for fewer than 3 splits, and for features that are
            the same for all examples.

    Accuracy: statistical, with the standard errors of the result; times and ridges lie on a grid
    with 12 points to a decade.

    Source: derived here; compare Ali, Kolter, Tibshirani (2019).

    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal((60, 20))
    >>> found = when_to_stop(x, x[:, 0] + rng.standard_normal(60), splits=4)
    >>> found.n_train, found.earliest <= found.time <= found.latest
    (48, True)
    """
    values = np.asarray(features, float) / np.sqrt(features.shape[1])
    targets = np.asarray(targets, float).reshape(len(targets), -1)

    def errors(rows: np.ndarray, train: int, times: np.ndarray, ridges: np.ndarray) -> np.ndarray:
        return _errors(values, targets, rows, train, times, ridges)

    def largest(rows: np.ndarray) -> float:
        x = values[rows]
        found = float(np.linalg.norm(x - x.mean(axis=0), 2) ** 2 / len(x))
        if not found > 1e-20 * np.mean(x**2):
            raise ValueError(
                "features are the same for all examples: nothing can be learned from them"
            )
        return found

    return _best_stop(len(values), errors, largest, splits, seed)


@tool
def when_to_stop_network(
    architecture: Architecture,
    inputs: Float[np.ndarray, "example input"],
    targets: Float[np.ndarray, "example"] | Float[np.ndarray, "example column"],
    splits: int = 16,
    seed: int = 0,
) -> BestStop:
    r"""The best time to stop gradient descent of a wide network on given data, compared with the
    best ridge, from exact training paths on random splits.

    The tangent kernel of infinite width and the targets are centred on the training part, which is
    equivalent to an intercept without a penalty. Let $K = V \mathrm{diag}(n s) V^T$ be the centred
    kernel of the n training examples. The loss is half the mean square. The outputs at new examples
    are, at time t of gradient flow from zero and with a ridge $\lambda$ respectively,

    $$ K_* V\, \mathrm{diag}\Big( \frac{1 - e^{-s t}}{n s} \Big) V^T y, \qquad
       K_* V\, \mathrm{diag}\Big( \frac{1}{n (s + \lambda)} \Big) V^T y $$

    Args:
        architecture: the network; its widths are not used.
        inputs: (example, input) matrix. At most 1500 examples are used, chosen at random.
        targets: target of each example, or several columns.
        splits: number of random splits into four fifths for training and one fifth held out.
        seed: seed of the choice of examples and of the splits.

    Raises:
        ValueError: for fewer than 10 examples, for fewer than 3 splits, and for inputs that are the
            same for all examples.

    Accuracy: statistical, with the standard errors of the result; times and ridges lie on a grid
    with 12 points to a decade.

    Source: Jacot, Gabriel, Hongler (2018); compare Ali, Kolter, Tibshirani (2019).

    >>> from orderparam.networks.fully_connected import parse
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal((60, 20))
    >>> y = x[:, 0] + rng.standard_normal(60)
    >>> found = when_to_stop_network(parse("fc:1:relu"), x, y, splits=4)
    >>> found.n_train, found.earliest <= found.time <= found.latest
    (48, True)
    """
    rows = np.sort(np.random.default_rng(seed).permutation(len(inputs))[:EXAMPLES])
    kernel = np.asarray(architecture.kernel(jnp.asarray(inputs, float)[rows]).ntk)
    columns = np.asarray(targets, float).reshape(len(targets), -1)[rows]

    def errors(order: np.ndarray, train: int, times: np.ndarray, ridges: np.ndarray) -> np.ndarray:
        return _kernel_errors(kernel, columns, order, train, times, ridges)

    def largest(order: np.ndarray) -> float:
        means = kernel.mean(axis=0)
        found = float(np.linalg.norm(kernel - means - means[:, None] + means.mean(), 2) / len(rows))
        if not found > 1e-12 * np.mean(np.diag(kernel)):
            raise ValueError(
                "inputs are the same for all examples: nothing can be learned from them"
            )
        return found

    return _best_stop(len(rows), errors, largest, splits, seed)


Errors = Callable[[np.ndarray, int, np.ndarray, np.ndarray], np.ndarray]


def _best_stop(
    examples: int,
    errors_of: Errors,
    largest_rate: Callable[[np.ndarray], float],
    splits: int,
    seed: int,
) -> BestStop:
    """The result of `when_to_stop` from the held-out errors of any model that is linear in its
    weights.

    errors_of: function that returns the held-out errors. Its arguments are an order of the rows,
        the number of rows at the beginning of this order that are used for training, the times and
        the ridges.
    largest_rate: function of some rows that returns the largest eigenvalue of their covariance.
    """
    if splits < 3:
        raise ValueError(f"splits = {splits}: must be >= 3, to choose on the others")
    if examples < 10:
        raise ValueError(f"{examples} examples: must be at least 10, to hold some out")
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(examples)[:EXAMPLES]
    n_train = round(SHARE * len(chosen))
    largest = largest_rate(chosen)
    times = np.geomspace(1e-2, 1e6, GRID) / largest
    ridges = 1 / times
    orders = [chosen[rng.permutation(len(chosen))] for _ in range(splits)]
    errors = np.stack([errors_of(order, n_train, times, ridges) for order in orders])
    flow, ridge, end = errors[:, :GRID], errors[:, GRID:-1], errors[:, -1]

    stopped, ridged = (_chosen_on_the_others(each) for each in (flow, ridge))
    # Splits share examples and are not independent. In the variance of the mean the factor 1/splits
    # is therefore increased by the ratio of held-out to training examples (Nadeau, Bengio 2003).
    share = 1 / splits + (len(chosen) - n_train) / n_train

    def estimate(values: np.ndarray) -> tuple[float, float]:
        return float(values.mean()), float(np.sqrt(values.var(ddof=1) * share))

    mean = flow.mean(axis=0)
    best = int(np.argmin(mean))
    beyond = flow - flow[:, [best]]
    as_good = beyond.mean(axis=0) <= np.sqrt(beyond.var(axis=0, ddof=1) * share)
    # the times around the best time, without a gap, that are as good as the best
    worse = np.flatnonzero(~as_good)
    first = worse[worse < best].max(initial=-1) + 1
    last = worse[worse > best].min(initial=GRID) - 1
    gain = estimate((ridged - stopped) / ridged.mean())
    return BestStop(
        times,
        mean,
        ridges,
        ridge.mean(axis=0),
        float(times[best]),
        float(times[first]),
        float(times[last]),
        float(times[best] * largest),
        estimate(stopped),
        estimate(ridged),
        estimate(end),
        gain,
        0 < best < GRID - 1,
        n_train,
    )


def _errors(
    x: np.ndarray,
    y: np.ndarray,
    order: np.ndarray,
    n_train: int,
    times: np.ndarray,
    ridges: np.ndarray,
) -> np.ndarray:
    """Held-out errors at all times, with all ridges, and after training to the end."""
    train, test = order[:n_train], order[n_train:]
    middle, level = x[train].mean(axis=0), y[train].mean(axis=0)
    left, scale, right = np.linalg.svd((x[train] - middle) / np.sqrt(n_train), full_matrices=False)
    kept = scale > 1e-10 * scale[0]
    left, scale, right = left[:, kept], scale[kept], right[kept]
    rates = scale[:, None] ** 2
    learned = np.concatenate(
        [-np.expm1(-rates * times), rates / (rates + ridges), np.ones_like(rates)], axis=1
    )
    # w = V (learned/scale) U^T y / sqrt(n)
    inner = left.T @ (y[train] - level) / np.sqrt(n_train) / scale[:, None]
    return _held_out((x[test] - middle) @ right.T, learned, inner, y[test] - level)


def _kernel_errors(
    kernel: np.ndarray,
    y: np.ndarray,
    order: np.ndarray,
    n_train: int,
    times: np.ndarray,
    ridges: np.ndarray,
) -> np.ndarray:
    """Held-out errors as in `_errors`, for a kernel between all examples."""
    train, test = order[:n_train], order[n_train:]
    block, cross = kernel[np.ix_(train, train)], kernel[np.ix_(test, train)]
    means, level = block.mean(axis=0), y[train].mean(axis=0)
    block = block - means - means[:, None] + means.mean()
    cross = cross - cross.mean(axis=1)[:, None] - means + means.mean()
    rates, modes = np.linalg.eigh(block / n_train)
    kept = rates > 1e-14 * rates[-1]
    rates, modes = rates[kept][:, None], modes[:, kept]
    learned = np.concatenate(
        [-np.expm1(-rates * times), rates / (rates + ridges), np.ones_like(rates)], axis=1
    )
    inner = modes.T @ (y[train] - level) / (n_train * rates)
    return _held_out(cross @ modes, learned, inner, y[test] - level)


def _held_out(
    seen: np.ndarray, learned: np.ndarray, inner: np.ndarray, left: np.ndarray
) -> np.ndarray:
    """Mean squared errors on held-out examples, summed over the columns, for every time and
    ridge."""
    squares = np.zeros(learned.shape[1])
    for column in range(left.shape[1]):
        outputs = seen @ (learned * inner[:, [column]])
        squares += np.mean((outputs - left[:, [column]]) ** 2, axis=0)
    return squares


def _chosen_on_the_others(errors: Float[np.ndarray, "split choice"]) -> np.ndarray:
    """Error on every split with the time or ridge that is best on all other splits."""
    others = errors.sum(axis=0) - errors
    return errors[np.arange(len(errors)), np.argmin(others, axis=1)]
