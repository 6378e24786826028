"""The learning curve measured on the examples at hand, on examples that were not trained on; and how far to trust it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from orderparam.learning_curves.learners import Exact, Learner
from orderparam.learning_curves.problem import Problem

POINTS = 14  # sizes
UNKNOWN = 60  # examples that the prior of the scatter counts as
PRIOR_SCATTER = 6.0  # variance of squared errors a priori, relative to their mean squared: rare large ones may not have been seen
BEYOND_RESIDUALS = 1.5  # scatter of the error over pools, relative to that of its residuals alone: training sets scatter too
SURE = 0.01  # probabilities of classes are kept this far from 0 and 1


@dataclass(frozen=True)
class Measured:
    """Held-out errors. curve: data set over (n_train, seed): test_error as a share of the targets' variance, for each output
    output_error, for classes also error_rate and log_loss. Its last size uses all examples: leave-one-out (leave-group-out).

    scatter: standard deviation of the log of the last point over pools of this size, where the error is taken as a share of the
    variance; absolute_scatter: in the units of the target.
    """

    curve: xr.Dataset
    scatter: float
    absolute_scatter: float


def measure(problem: Problem, learner: Learner, ridge: float, orders: int) -> Measured:
    count = learner.examples
    groups = problem.groups
    sizes = np.unique(np.geomspace(8, 0.9 * count, POINTS).astype(int))
    names = ["test_error", *(["error_rate", "log_loss"] if problem.classes else [])]
    values = {name: np.full((len(sizes) + 1, orders), np.nan) for name in names}
    outputs = np.full((len(sizes) + 1, orders, learner.targets.shape[1]), np.nan)

    def enter(where: int, order: int, rows: np.ndarray, residuals: np.ndarray) -> None:
        outputs[where, order] = np.mean(residuals**2, axis=0)
        values["test_error"][where, order] = outputs[where, order].sum()
        if problem.classes:
            rate, loss = class_errors(problem, rows, residuals)
            values["error_rate"][where, order], values["log_loss"][where, order] = rate, loss

    rows, residuals, largest = np.arange(count), np.zeros(0), 0
    for number, order in enumerate(_orders(problem, orders)):
        possible = [int(size) for size in sizes if size < len(order)]
        found = learner.curve(ridge, order, possible)
        for where, (tested, errors) in enumerate(zip(found.rows, found.residuals)):
            if groups is not None:
                fresh = ~np.isin(groups[tested], groups[order[: possible[where]]])
                tested, errors = tested[fresh], errors[fresh]
            if len(tested):
                enter(where, number, tested, errors)
            if len(tested) and possible[where] > largest:
                rows, residuals, largest = tested, errors, possible[where]
    if not problem.ordered and (groups is None or isinstance(learner, Exact)):
        residuals = learner.leave_one_out(ridge) if groups is None else learner.leave_group_out(ridge, groups)  # type: ignore[union-attr]
        rows = np.arange(count)
        enter(-1, 0, rows, residuals)
        everything = np.append(sizes, count - 1)
    else:
        everything = sizes
        values = {name: found[:-1] for name, found in values.items()}
        outputs = outputs[:-1]
    data = {name: (("n_train", "seed"), found) for name, found in values.items()}
    curve = xr.Dataset(
        {**data, "output_error": (("n_train", "seed", "output"), outputs)},
        {"n_train": everything, "seed": np.arange(orders), "output": np.arange(outputs.shape[2])},
    )
    curve = curve.isel(n_train=np.isfinite(values["test_error"]).any(axis=1))
    squares = np.sum(residuals**2, axis=1)
    own = np.sum((problem.targets - problem.targets.mean(axis=0)) ** 2, axis=1)[rows]
    clusters = _clusters(problem, rows)
    relative = squares / squares.mean()
    shared = max(1 - squares.mean(), 0.1)  # an error as large as the variance scatters with it: their ratio is known
    return Measured(curve, scatter(relative - own / own.mean(), clusters, shared), scatter(relative - 1, clusters))


def class_errors(problem: Problem, rows: np.ndarray, residuals: Float[np.ndarray, "test output"]) -> tuple[float, float]:
    """Share of wrong classes and mean -log probability of the right one. Two classes: the sign, p = (1 + f)/2; more: the largest
    output, and shares of outputs; probabilities are kept within 0.01 .. 0.99."""
    truth = problem.values[rows]
    predicted = truth - residuals * np.sqrt(problem.variance)
    if truth.shape[1] == 1:
        agreement = predicted[:, 0] * truth[:, 0]
        return float(np.mean(agreement <= 0)), float(-np.mean(np.log(np.clip((1 + agreement) / 2, SURE, 1 - SURE))))
    right = np.argmax(truth, axis=1)
    chances = np.clip(predicted + 1 / truth.shape[1], SURE, 1 - SURE)
    chances /= chances.sum(axis=1, keepdims=True)
    return float(np.mean(np.argmax(predicted, axis=1) != right)), float(-np.mean(np.log(chances[np.arange(len(right)), right])))


def _orders(problem: Problem, orders: int) -> Iterator[Int[np.ndarray, "row"]]:
    """Random orders of the examples; of whole groups; or stretches of time, each from a later start, so that what is held out
    comes after what is learned."""
    count = len(problem.values)
    if problem.ordered:
        yield from (np.arange(start, count) for start in np.linspace(0, count // 2, orders).astype(int))
        return
    for number in range(orders):
        random = np.random.default_rng([1, number]).permutation(count)
        if problem.groups is not None:
            place = np.random.default_rng([2, number]).permutation(int(problem.groups.max()) + 1)
            random = random[np.argsort(place[problem.groups[random]], kind="stable")]
        yield random


def _clusters(problem: Problem, rows: Int[np.ndarray, "row"]) -> Int[np.ndarray, "row"]:
    """What scatters independently: examples, groups, or ten stretches of time."""
    if problem.groups is not None:
        return np.unique(problem.groups[rows], return_inverse=True)[1]
    if problem.ordered:
        return np.sort(np.arange(len(rows)) * 10 // len(rows))
    return np.arange(len(rows))


def scatter(influence: Float[np.ndarray, "row"], clusters: Int[np.ndarray, "row"], shared: float = 1.0) -> float:
    """Standard deviation, over pools, of a mean whose single contributions are given, from the squared sums over clusters, with
    a prior, times `shared`, for tails that were not seen."""
    count = len(influence)
    sums = np.bincount(clusters, influence)
    return float(BEYOND_RESIDUALS * np.sqrt((np.sum(sums**2) + shared * PRIOR_SCATTER * UNKNOWN) / (count * (count + UNKNOWN))))
