"""Forecasts of learning curves: the error of a learner with more, or fewer, rows than the data at
hand."""

import dataclasses
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from orderparam.core.bounds import checked_option
from orderparam.core.text import counted
from orderparam.kernels.extrapolation import Extrapolated, extrapolate
from orderparam.learning_curves.choice import TRIED, Candidate, best_ridge
from orderparam.learning_curves.choice import compare as compare_kernels
from orderparam.learning_curves.classes import class_measures, class_measures_alike
from orderparam.learning_curves.comparison import Compared, compare_learners, half_of_the_columns
from orderparam.learning_curves.continuation import continued, law_of, moderated
from orderparam.learning_curves.drift import dependence, later_inputs
from orderparam.learning_curves.estimators import NORMAL, checked, named
from orderparam.learning_curves.learners import LARGEST, MOST_ROWS, Exact, Learner, learner
from orderparam.learning_curves.measured import (
    LONGEST,
    ORDERS,
    Measured,
    measure,
    measure_estimator,
    orders_of,
)
from orderparam.learning_curves.problem import FEWEST, Problem, from_arrays
from orderparam.learning_curves.result import Forecast
from orderparam.running.threads import one_blas_thread

SMALLEST = 1e-12  # measured errors below it, such as 0, are taken for it
FEW_ROWS = 3  # with half of the variance of the target; of 40 rows of a Gaussian target 5 have it


def forecast(
    X: Any,
    y: Any,
    *,
    task: str | None = None,
    estimator: Any = None,
    arch: str | Sequence[str] | None = None,
    ridge: float | None = None,
    groups: Any = None,
    time: Any = None,
    orders: int = ORDERS,
    reach: float = 100.0,
    compare: bool = True,
) -> Forecast:
    """The learning curve of a learner on your own data, measured up to their size and predicted
    beyond.

    The measured curve is the error, on the remaining examples, of learners trained on random
    subsets; its last point is the leave-one-out error (for an estimator, the error on five folds).
    It is continued by `orderparam.kernels.extrapolation`. The interval includes the uncertainty of
    this extrapolation and the scatter of the last point between samples of this size; its coverage
    was measured: docs/howto/your-data.md. The kernel of a network is exact on up to 8000 rows, from
    which more rows are predicted. An estimator learns all rows, as long as one fit takes less than
    half a minute.

    Args:
        X: (example, input), images (example, height, width[, channel]), or a data frame with any
            columns (see `orderparam.data.columns`).
        y: Numbers, words, or (example, output) numbers.
        task: As in `orderparam.data.apply_task`, by default from y.
        estimator: The learner, an estimator of scikit-learn or its import path ("sklearn.svm.SVR").
        arch: Instead of it, one or several networks, whose infinite-width limit is the learner; of
            several the one with the largest evidence. Without `estimator`, `arch` and `ridge` the
            best of the compared learners is used.
        ridge: Added to the Gram matrix of the network, by default the one with the smallest
            leave-one-out error.
        groups: (example,) labels of examples that belong together: held-out examples are then from
            other groups.
        time: (example,) times of the examples: held-out examples are then later ones.
        orders: Number of random orders of the rows in a network's curve.
        reach: The largest predicted size, as a multiple of the data.
        compare: True tries boosted trees, a forest, ridge regression and the network on the same
            folds; where another learner than the requested one is best, its forecast is `.best`.

    Raises:
        ValueError: for fewer than 40 examples, and for any fault of the data or the estimator.

    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(60, 3))
    >>> curve = op.forecast(X, X[:, 0] + random.normal(size=60), arch="fc:1:erf", compare=False)
    >>> error, lower, upper = curve.at(600)
    >>> lower < error < upper
    True
    """
    problem = from_arrays(X, y, task, groups, time)
    return forecast_problem(
        problem,
        estimator=estimator,
        arch=arch,
        ridge=ridge,
        orders=orders,
        reach=reach,
        compare=compare,
    )


def forecast_problem(
    problem: Problem,
    *,
    estimator: Any = None,
    arch: str | Sequence[str] | None = None,
    ridge: float | None = None,
    orders: int = ORDERS,
    reach: float = 100.0,
    compare: bool = True,
) -> Forecast:
    """The `forecast` of a problem that has already been read."""
    count = len(problem.inputs)
    if count < FEWEST:
        raise ValueError(
            f"{problem.name}: {counted(count, 'example')}: a forecast needs at least {FEWEST}"
        )
    if ridge is not None:
        ridge = checked_option("ridge", ridge, ", or None for the best one", minimum=0)
    orders = int(checked_option("orders", orders, minimum=2, integer=True))
    reach = checked_option("reach", reach, ", as a multiple of your rows", minimum=1, maximum=1e4)
    if not isinstance(compare, bool | np.bool_):
        raise ValueError(f"compare = {compare!r}: must be True or False")
    if estimator is not None and (arch is not None or ridge is not None):
        raise ValueError(
            "estimator: give an estimator, or the arch and ridge of a network, not both"
        )
    given = named(estimator) if isinstance(estimator, str) else estimator
    asked = {} if given is None else {_name(given): checked(given, _name(given))}
    # for an estimator only: one network shows how hard the target is
    tried = TRIED if compare or given is None else TRIED[:1]
    archs = tried if arch is None else _names(arch)
    # threads of small factorisations lose more by waiting than they gain
    with nullcontext() if count > MOST_ROWS else one_blas_thread():
        network = _Network.of(problem, archs, ridge)
        table = (
            compare_learners(problem, network.learner, network.ridge, network.arch, asked)
            if compare
            else []
        )
        wanted = next(iter(asked), network.name if arch is not None or ridge is not None else None)
        if wanted is None:
            wanted = table[0].name if table else network.name
        found = {
            name: _one(network, name, asked, table, orders, reach)
            for name in {wanted, *(one.name for one in table[:1])}
        }
        result = found[wanted]
        if not table:
            return result
        judged = next((one for one in table if one.name == wanted), None)
        halved = half_of_the_columns(problem, result.estimator, network.ridge, network.arch, judged)
    better = found[table[0].name] if table[0].name != wanted else None
    return dataclasses.replace(result, columns_halved=halved, best=better)


def _names(arch: str | Sequence[str]) -> Sequence[str]:
    names = [arch] if isinstance(arch, str) else arch
    if (
        not isinstance(names, Sequence)
        or not names
        or not all(isinstance(one, str) for one in names)
    ):
        raise ValueError(
            f"arch = {arch!r}: must be the name of a network, such as 'fc:2:erf', or several names"
        )
    return names


@dataclass(frozen=True)
class _Network:
    """The kernel of a wide network on a problem, and its ridge."""

    problem: Problem
    candidates: tuple[Candidate, ...]
    learner: Learner
    best_ridge: float
    error: float
    ridge: float
    chosen: bool

    @classmethod
    def of(cls, problem: Problem, archs: Sequence[str], ridge: float | None) -> "_Network":
        candidates = tuple(compare_kernels(problem, archs))
        found = learner(candidates[0].arch, problem.inputs, problem.targets)
        best, error = best_ridge(found, problem)
        return cls(
            problem,
            candidates,
            found,
            best,
            error,
            best if ridge is None else float(ridge),
            ridge is not None,
        )

    @property
    def arch(self) -> str:
        return self.candidates[0].arch

    @property
    def name(self) -> str:
        return f"network {self.arch}"


def _name(estimator: Any) -> str:
    """The class of an estimator, or of the last step of a pipeline."""
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    return type(last).__name__


def _one(
    network: _Network,
    name: str,
    asked: dict[str, Any],
    table: list[Compared],
    orders: int,
    reach: float,
) -> Forecast:
    """The forecast of the network or of an estimator."""
    problem, found, used = network.problem, network.learner, network.ridge
    count = len(problem.inputs)
    row = next((one for one in table if one.name == name), None)
    estimator = None if name == network.name else asked[name] if row is None else row.estimator
    notes = [*problem.notes, *_few_rows(problem)]
    if estimator is None:
        measured = measure(problem, found, used, orders_of(count, orders))
        notes += [*_remarks(found), *dependence(problem, found, measured)]
    else:
        measured = measure_estimator(problem, estimator, None if row is None else row.residuals)
    notes += later_inputs(problem, network.arch, used)
    sizes = measured.curve["n_train"].values.astype(float)
    mean = np.maximum(np.nanmean(measured.curve["test_error"].values, axis=1), SMALLEST)
    grid = np.unique(
        np.concatenate([np.geomspace(8, reach * count, 80), [count, 2 * count, 10 * count], sizes])
    )
    law = extrapolate(
        found.eigenvalues, found.power, used, sizes, mean, grid, len(found.eigenvalues)
    )
    if estimator is None:
        independent = count / max(measured.together, 1.0) ** 2
        law = moderated(law, grid, sizes[-1], independent, measured.share_doubt)
    else:
        gap = _gap(network, row, table, float(mean[-1]))
        law = continued(law_of(estimator), law, sizes, mean, grid, gap)
        if sizes[-1] < 0.75 * count:
            notes.append(
                f"{name} learned up to {int(sizes[-1])} of the {count} rows: a fit with more takes "
                f"longer than {LONGEST:g} s"
            )
    log_error = np.log(mean[-1]) + law.log_change
    never_rises = estimator is not None or not network.chosen  # the best ridge, not a given one
    if never_rises:
        beyond = grid >= sizes[-1]
        log_error[beyond] = np.minimum.accumulate(log_error[beyond])
    predicted = _predicted(grid, log_error, law, measured)
    if problem.classes:
        predicted = predicted.assign(
            class_measures(predicted, measured.curve, measured.absolute_scatter, sizes, mean)
            if estimator is None
            else class_measures_alike(predicted, measured.curve, float(mean[-1]), count)
        )
    if never_rises:
        predicted = _never_rising(predicted, float(sizes[-1]))
    return Forecast(
        predicted,
        measured.curve,
        problem,
        network.arch,
        used,
        network.best_ridge,
        float(mean[-1]),
        network.candidates,
        law,
        tuple(notes),
        name,
        estimator,
        tuple(table),
        calibration=measured.calibration,
        doubt=measured.doubt,
        tested=measured.tested,
    )


def _gap(network: _Network, own: Compared | None, table: list[Compared], error: float) -> float:
    """The log of the smallest error of other learners over that of this one: on the same folds
    where they were compared, else the leave-one-out error of the network."""
    if own is None:
        others = [network.error]
    else:
        others, error = [one.error for one in table if one is not own], own.error
    return float(np.log(max(min(others), 1e-300) / max(error, 1e-300)))


def _predicted(
    grid: Float[np.ndarray, "size"],
    log_error: Float[np.ndarray, "size"],
    law: Extrapolated,
    measured: Measured,
) -> xr.Dataset:
    spread = np.hypot(law.spread, measured.scatter)
    absolute = np.hypot(law.spread, measured.absolute_scatter)
    columns = {
        "test_error": np.exp(log_error),
        "lower": np.exp(log_error - NORMAL * spread),
        "upper": np.exp(log_error + NORMAL * spread),
        "spread": spread,
        "shape_spread": law.spread,
        "absolute_spread": absolute,
        "absolute_upper": np.exp(log_error + NORMAL * absolute),
        "effective_dimension": law.dimension,
    }
    return xr.Dataset(
        {name: ("n_train", values) for name, values in columns.items()}, {"n_train": grid}
    )


def _never_rising(predicted: xr.Dataset, last: float) -> xr.Dataset:
    """Predicted curves with upper ends that do not rise beyond the last measured size.

    If the error of more rows is never larger, each of its quantiles is never larger either.
    """
    beyond = predicted["n_train"].values >= last
    capped = {}
    for name, one in predicted.data_vars.items():
        if str(name).endswith("upper"):
            values = one.values.copy()
            values[beyond] = np.minimum.accumulate(values[beyond])
            capped[name] = ("n_train", values)
    return predicted.assign(capped)


def _few_rows(problem: Problem) -> list[str]:
    """A note where at most FEW_ROWS rows hold half of the variance of the target."""
    shares = np.sort(np.sum(problem.targets**2, axis=1))[::-1] / len(problem.targets)
    number = int(np.searchsorted(np.cumsum(shares), 0.5)) + 1
    if problem.classes or number > FEW_ROWS:
        return []
    return [
        (
            f"{shares[:number].sum():.0%} of the variance of {', '.join(problem.names)} is in "
            f"{counted(number, 'row')} of {len(shares)}: the error is mostly that of such rows, of "
            "which you have few. The logarithm of a positive target can be forecast better"
        )
    ]


def _remarks(found: Learner) -> list[str]:
    if isinstance(found, Exact):
        return []
    if found.factorisable:
        return [
            (
                f"ridge and modes of the kernel are those of {MOST_ROWS} random rows; errors are "
                f"measured on all {found.examples}"
            )
        ]
    return [
        (
            f"the kernel learned up to {LARGEST} of the {found.examples} rows, exactly; what all "
            "of them bring is forecast"
        )
    ]
