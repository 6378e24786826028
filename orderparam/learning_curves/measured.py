"""The learning curve measured on held-out examples of the data at hand, and its uncertainty."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from orderparam.learning_curves.classes import (
    CLASS_ERRORS,
    ClassCalibration,
    calibrated,
    class_errors,
)
from orderparam.learning_curves.continuation import law_of
from orderparam.learning_curves.estimators import residuals as left_over
from orderparam.learning_curves.learners import LARGEST, MOST_ROWS, TESTED, Exact, Learner
from orderparam.learning_curves.problem import Problem

POINTS = 14  # sizes
ORDERS = 16  # number of random orders of the examples
FEW = 5_000  # number of rows up to which every size is measured on several training sets
MOST_TESTED = 20_000  # number of held-out examples of a measured point
FOLDS = 5  # number of folds in the comparison of learners
# sizes of an estimator's curve, and training sets of each
ESTIMATOR_POINTS, ESTIMATOR_ORDERS = 6, 4
LONGEST = 30.0  # seconds that one fit may take: a curve ends where the next would take longer
UNKNOWN = 60  # weight of the prior of the scatter, as a number of examples
# prior variance of squared errors, relative to their squared mean: rare large errors may not have
# occurred
PRIOR_SCATTER = 6.0
# scatter of the error over pools, relative to that of its residuals alone: training sets scatter
# too
BEYOND_RESIDUALS = 1.5


@dataclass(frozen=True)
class Measured:
    """Held-out errors. curve: data set over (n_train, seed): test_error as a share of the targets'
    variance, for each output output_error, for classes also error_rate, log_loss and confidence
    (mean probability of the predicted class). Its last size uses all examples, leave-one-out
    (leave-group-out), of up to 8000; for an estimator four fifths of them.

    scatter: standard deviation of the log of the last point over pools of this size, where the
    error is taken as a share of the variance; absolute_scatter: in the units of the target. doubt:
    standard error of the last point, relative to it, from the scatter of its residuals only.
    tested: the rows of these residuals; together: doubt relative to that of independent rows.
    calibration: of the probabilities of these rows, for classes. share_doubt: doubt of the error as
    a share of the variance.
    """

    curve: xr.Dataset
    scatter: float
    absolute_scatter: float
    doubt: float
    tested: int
    together: float
    calibration: ClassCalibration | None = None
    share_doubt: float = 0.0


def measure(problem: Problem, learner: Learner, ridge: float, orders: int) -> Measured:
    """Errors of a learner at increasing numbers of examples, in `orders` random orders of the
    rows."""
    count = learner.examples
    groups = problem.groups
    sizes = np.unique(np.geomspace(8, min(0.9 * count, LARGEST), POINTS).astype(int))
    names = ["test_error", *(CLASS_ERRORS if problem.classes else ())]
    values = {name: np.full((len(sizes) + 1, orders), np.nan) for name in names}
    outputs = np.full((len(sizes) + 1, orders, learner.targets.shape[1]), np.nan)

    def enter(where: int, order: int, rows: np.ndarray, residuals: np.ndarray) -> None:
        outputs[where, order] = np.mean(residuals**2, axis=0)
        values["test_error"][where, order] = outputs[where, order].sum()
        if problem.classes:
            for name, value in zip(CLASS_ERRORS, class_errors(problem, rows, residuals)):
                values[name][where, order] = value

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
    if not problem.ordered and (isinstance(learner, Exact) or learner.factorisable):
        residuals = (
            learner.leave_one_out(ridge)
            if groups is None
            else learner.leave_group_out(ridge, groups)
        )
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
    return _with_scatter(problem, curve, rows, residuals)


def _with_scatter(
    problem: Problem,
    curve: xr.Dataset,
    rows: np.ndarray,
    residuals: Float[np.ndarray, "test output"],
) -> Measured:
    """The scatter of the last point, whose residuals are given, between pools of this size."""
    squares = np.maximum(np.sum(residuals**2, axis=1), np.finfo(float).tiny)
    own = np.sum((problem.targets - problem.targets.mean(axis=0)) ** 2, axis=1)[rows]
    clusters = _clusters(problem, rows)
    relative = squares / squares.mean()
    # an error as large as the variance scatters with the variance, so that their ratio is certain
    shared = max(1 - squares.mean(), 0.1)
    shares = relative - own / own.mean()
    doubt, share_doubt = (
        float(np.sqrt(np.sum(np.bincount(clusters, one) ** 2)) / len(relative))
        for one in (relative - 1, shares)
    )
    independent = float(np.sqrt(np.sum((relative - 1) ** 2)) / len(relative))
    return Measured(
        curve,
        scatter(shares, clusters, shared),
        scatter(relative - 1, clusters),
        doubt,
        len(rows),
        doubt / independent if independent > 0 else 1.0,
        calibrated(problem, rows, residuals) if problem.classes else None,
        share_doubt,
    )


Fold = tuple[Int[np.ndarray, "row"], Int[np.ndarray, "test"]]


def folds_of(problem: Problem, most: int) -> list[Fold]:
    """Training and test rows of a comparison: every row is tested once; whole groups; in time the
    last fifth. At most `most` training rows; where there are more, two folds of at most 4000 tests.
    """
    count = len(problem.values)
    if problem.ordered:
        cut = int(count * (1 - 1 / FOLDS))
        return [(np.arange(max(0, cut - most), cut), np.arange(cut, count)[:TESTED])]
    units = np.arange(count) if problem.groups is None else problem.groups
    place = np.random.default_rng(3).permutation(int(units.max()) + 1)[units]
    part = place * FOLDS // (int(units.max()) + 1)
    random = np.random.default_rng(4).permutation(count)
    folds = [(random[part[random] != fold], random[part[random] == fold]) for fold in range(FOLDS)]
    if len(folds[0][0]) <= most:
        return folds
    return [(train[:most], test[:TESTED]) for train, test in folds[:2]]


def measure_estimator(
    problem: Problem, estimator: Any, folded: list[np.ndarray] | None = None
) -> Measured:
    """The learning curve of an estimator on nested parts of the rows: every size is measured in
    several random orders, and the last one, four fifths of the rows, on folds that test every row
    once. The curve ends where a fit would take longer than 30 s.

    folded: residuals on the folds, if they were computed before.
    """
    orders = ESTIMATOR_ORDERS
    folds = folds_of(problem, len(problem.values))
    last = len(folds[0][0])
    sizes = np.unique(np.geomspace(max(8, last / 16), last, ESTIMATOR_POINTS).astype(int))
    names = ["test_error", *(CLASS_ERRORS if problem.classes else ())]
    shape = (len(sizes), max(orders, len(folds)))
    values = {name: np.full(shape, np.nan) for name in names}
    outputs = np.full((*shape, problem.values.shape[1]), np.nan)
    everything = list(_orders(problem, orders))
    slow, rows, residuals = 0.0, np.arange(0), np.zeros(0)
    for where, size in enumerate(sizes):
        if where > 1 and slow * size / sizes[where - 1] > LONGEST:
            break
        parts: list[Fold] = [
            (one[:size], one[size : size + MOST_TESTED]) for one in everything if len(one) > size
        ]
        if size == last:
            parts = folds
        # one training set of many rows is as informative as several of few rows
        if len(problem.values) > FEW:
            parts = parts[: 1 if size > FEW else 2]
        tested, errors = [], []
        for number, (train, test) in enumerate(parts):
            if problem.groups is not None:
                test = test[~np.isin(problem.groups[test], problem.groups[train])]
            if not len(test):
                continue
            started = time.perf_counter()
            reusable = (
                folded is not None
                and parts is folds
                and len(folded) == len(folds)
                and len(folded[number]) == len(test)
            )
            missed = (
                folded[number]
                if reusable and folded
                else left_over(problem, estimator, train, test)
            )
            slow = max(slow, time.perf_counter() - started)
            outputs[where, number] = np.mean(missed**2, axis=0)
            values["test_error"][where, number] = outputs[where, number].sum()
            if problem.classes:
                for name, value in zip(CLASS_ERRORS, class_errors(problem, test, missed)):
                    values[name][where, number] = value
            tested.append(test)
            errors.append(missed)
        if tested:
            unique, first = np.unique(np.concatenate(tested), return_index=True)
            rows, residuals = unique, np.concatenate(errors)[first]
    data = {name: (("n_train", "seed"), found) for name, found in values.items()}
    curve = xr.Dataset(
        {**data, "output_error": (("n_train", "seed", "output"), outputs)},
        {"n_train": sizes, "seed": np.arange(shape[1]), "output": np.arange(outputs.shape[2])},
    )
    curve = curve.isel(n_train=np.isfinite(values["test_error"]).any(axis=1))
    found = _with_scatter(problem, curve, rows, residuals)
    error = float(np.nanmean(curve["test_error"].values[-1]))
    # rows of a group, or of a stretch of time, count as fewer
    count = len(problem.values) / max(found.together, 1.0) ** 2
    own = law_of(estimator).level_scatter(error, count, found.share_doubt)
    return replace(found, scatter=own)


def orders_of(count: int, orders: int) -> int:
    """The number of random orders, smaller for many rows: their factorisations cost the cube, and
    each tests more rows."""
    return int(np.clip(orders * (MOST_ROWS / min(count, LARGEST)) ** 2, 2, orders))


def _orders(problem: Problem, orders: int) -> Iterator[Int[np.ndarray, "row"]]:
    """Random orders of the examples or of the groups; or stretches of time, each from a later
    start, so that held-out examples come after the training examples."""
    count = len(problem.values)
    if problem.ordered:
        yield from (
            np.arange(start, count) for start in np.linspace(0, count // 2, orders).astype(int)
        )
        return
    for number in range(orders):
        random = np.random.default_rng([1, number]).permutation(count)
        if problem.groups is not None:
            place = np.random.default_rng([2, number]).permutation(int(problem.groups.max()) + 1)
            random = random[np.argsort(place[problem.groups[random]], kind="stable")]
        yield random


def _clusters(problem: Problem, rows: Int[np.ndarray, "row"]) -> Int[np.ndarray, "row"]:
    """The units that scatter independently: examples, groups, or ten stretches of time."""
    if problem.groups is not None:
        return np.unique(problem.groups[rows], return_inverse=True)[1]
    if problem.ordered:
        return np.sort(np.arange(len(rows)) * 10 // len(rows))
    return np.arange(len(rows))


def scatter(
    influence: Float[np.ndarray, "row"], clusters: Int[np.ndarray, "row"], shared: float = 1.0
) -> float:
    """The standard deviation over pools of a mean with given contributions: from the squared sums
    over clusters, times `shared`, with a prior for tails that did not occur."""
    count = len(influence)
    sums = np.bincount(clusters, influence)
    return float(
        BEYOND_RESIDUALS
        * np.sqrt(
            (np.sum(sums**2) + shared * PRIOR_SCATTER * UNKNOWN) / (count * (count + UNKNOWN))
        )
    )
