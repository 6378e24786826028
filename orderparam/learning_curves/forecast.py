"""Forecasts of learning curves: the error of a learner with more, or fewer, rows than the data at
hand."""

import dataclasses
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from orderparam.kernels.extrapolation import Extrapolated, extrapolate, extrapolate_other
from orderparam.learning_curves.choice import TRIED, Candidate, best_ridge
from orderparam.learning_curves.choice import compare as compare_kernels
from orderparam.learning_curves.comparison import Compared, compare_learners, half_of_the_columns
from orderparam.learning_curves.estimators import checked, named
from orderparam.learning_curves.learners import LARGEST, MOST_ROWS, TESTED, Exact, Learner, learner
from orderparam.learning_curves.measured import LONGEST, Measured, measure, measure_estimator
from orderparam.learning_curves.problem import FEWEST, Problem, from_arrays
from orderparam.learning_curves.report import draw_forecast, in_a_sentence
from orderparam.running.threads import one_blas_thread
from orderparam.solve.straight_line import straight_line

ORDERS = 16  # number of random orders of the examples
NORMAL = 1.96
# relative difference of errors above which grouped or ordered rows are reported to matter
MATTERS = 0.1


@dataclass(frozen=True)
class Forecast:
    """The result of `forecast`. Errors are mean squares per held-out example, summed over outputs,
    as a share of the targets' variance (`unit`): predicting the mean has the error 1. Classes are
    represented by -1 and 1, or by 0 and 1.

    predicted: data set over `n_train` (up to `reach` times the data): test_error, lower, upper (95
        % interval), spread (standard deviation of its log), absolute_spread (the same in the units
        of the target, whose variance is known no better than the data tell), effective_dimension
        (of the kernel); for classes error_rate, log_loss with `_lower` and `_upper`.
    measured: held-out error of random subsets, over (n_train, seed). problem: the data as they were
    learned. learner: what learned, in words. estimator: the estimator that did, None for the
    network of infinite width `arch` with `ridge` added to its Gram matrix. leave_one_out: the last
    measured error: leave-one-out (leave-group-out), of later rows, on folds or held-out rows.
    candidates: all kernels that were tried, by evidence. law: what the extrapolation found, see
    `Extrapolated`. compared: learners on the same folds, the smallest error first; empty where none
    was asked for. columns_halved: the error with half of the columns over that with all, with its
    interval, or None. best: the forecast of the best learner, where that is another one.
    """

    predicted: xr.Dataset
    measured: xr.Dataset
    problem: Problem
    arch: str
    ridge: float
    best_ridge: float
    leave_one_out: float
    candidates: tuple[Candidate, ...]
    law: Extrapolated
    notes: tuple[str, ...]
    learner: str = ""
    estimator: Any = None
    compared: tuple[Compared, ...] = ()
    columns_halved: tuple[float, float, float] | None = None
    best: "Forecast | None" = None

    @property
    def examples(self) -> int:
        return len(self.problem.inputs)

    @property
    def unit(self) -> float:
        """The variance of the targets over the examples, in the square of their unit: the unit of
        all errors."""
        return self.problem.variance

    def at(self, n_train: float, name: str = "test_error") -> tuple[float, float, float]:
        """Predicted error at a training-set size, with its 95 % interval. name: test_error,
        error_rate or log_loss."""
        row = self._row(n_train)
        ends = ("lower", "upper") if name == "test_error" else (f"{name}_lower", f"{name}_upper")
        return float(row[name]), *(float(row[end]) for end in ends)  # type: ignore[return-value]

    def in_units(self, n_train: float) -> tuple[float, float, float]:
        """Root mean square error in the units of the target, with its 95 % interval."""
        row = self._row(n_train)
        middle, width = (
            np.sqrt(float(row["test_error"]) * self.unit),
            NORMAL / 2 * float(row["absolute_spread"]),
        )
        return float(middle), float(middle * np.exp(-width)), float(middle * np.exp(width))

    def _row(self, n_train: float) -> xr.Dataset:
        first, last = float(self.predicted["n_train"][0]), float(self.predicted["n_train"][-1])
        if not first <= n_train <= last:
            raise ValueError(f"n_train = {n_train}: must be within {first:g} .. {last:g}")
        logs = (
            self.predicted.assign_coords(n_train=np.log(self.predicted["n_train"]))
            .clip(min=1e-300)
            .map(np.log)
        )
        return logs.interp(n_train=np.log(n_train)).map(np.exp)

    def curve(self, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A measure over all predicted sizes, with the ends of its 95 % interval: test_error (share
        of the variance), r2, rmse (in the target's unit), and for classes error_rate, log_loss.
        Raises `ValueError` for one that these data do not have."""
        data = self.predicted
        if name in ("test_error", "r2"):
            found = tuple(data[one].values for one in ("test_error", "lower", "upper"))
            return found if name == "test_error" else tuple(1 - one for one in found)  # type: ignore[return-value]
        if name == "rmse" and not self.problem.classes and len(self.problem.names) == 1:
            middle, width = (
                np.sqrt(data["test_error"].values * self.unit),
                NORMAL / 2 * data["absolute_spread"].values,
            )
            return middle, middle * np.exp(-width), middle * np.exp(width)
        if name in data and name in ("error_rate", "log_loss"):
            return data[name].values, data[f"{name}_lower"].values, data[f"{name}_upper"].values
        measures = [
            "test_error",
            "r2",
            *(["error_rate", "log_loss"] if self.problem.classes else ["rmse"]),
        ]
        raise ValueError(
            f"measure {name!r}: of {self.problem.name} must be one of {', '.join(measures)}"
        )

    def rows_for(self, error: float, name: str = "test_error") -> tuple[float, float, float]:
        """The number of examples needed for an error, with its interval, whose ends are the sizes
        where the lower and the upper end of the interval fall below that error. name: a measure of
        `curve`; for r2 the value that is to be reached. inf: not within the reach of the
        forecast."""
        sizes = self.predicted["n_train"].values
        curves = self.curve("test_error" if name == "r2" else name)
        wanted = 1 - error if name == "r2" else error

        def reached(curve: np.ndarray) -> float:
            below = np.flatnonzero(curve <= wanted)
            if not below.size:
                return float("inf")
            first = int(below[0])
            if first == 0:
                return float(sizes[0])
            logs = np.log(np.maximum(curve[[first - 1, first]], 1e-300))
            share = (logs[0] - np.log(wanted)) / (logs[0] - logs[1])
            return float(
                np.exp((1 - share) * np.log(sizes[first - 1]) + share * np.log(sizes[first]))
            )

        middle, low, high = (reached(curve) for curve in curves)
        return middle, low, high

    def sentence(self, reach: float | None = None, name: str | None = None) -> str:
        """The answer in words: the error now, with twice the rows, and the rows that an error
        needs. reach, name: that error, a measure of `curve` (default: error_rate for classes,
        test_error for numbers)."""
        return in_a_sentence(self, reach, name)

    def gain_of_doubling(self) -> tuple[float, float, float]:
        """1 - E(2n)/E(n) at all the data, with its 95 % interval."""
        now, then = self._row(self.examples), self._row(2 * self.examples)
        change = float(np.log(then["test_error"] / now["test_error"]))
        width = NORMAL * float(
            np.sqrt(max(float(then["shape_spread"]) ** 2 - float(now["shape_spread"]) ** 2, 0.0))
        )
        return 1 - np.exp(change), 1 - np.exp(change + width), 1 - np.exp(change - width)

    def exponent(self) -> float:
        """beta in error ~ n^-beta: the mean slope over the decade that follows the data."""
        return float(
            np.log(self.at(self.examples)[0] / self.at(10 * self.examples)[0]) / np.log(10)
        )

    def figure(self) -> Any:
        """A figure of the predicted curve with its interval, and of the measured points."""
        return draw_forecast(self)

    def summary(self) -> dict[str, Any]:
        """Everything but the curves, as plain numbers and words."""
        sizes = [
            self.examples * k
            for k in (1, 2, 3, 10, 30, 100)
            if self.examples * k <= self.predicted["n_train"][-1]
        ]
        keys = ("n_train", "test_error", "lower", "upper")
        gain = self.gain_of_doubling()
        return {
            "data": self.problem.name,
            "task": self.problem.task,
            "examples": self.examples,
            "learner": self.learner,
            "sentence": self.sentence(),
            "arch": self.arch,
            "ridge": self.ridge,
            "best_ridge": self.best_ridge,
            "unit": f"variance of {', '.join(self.problem.names)} over the {self.examples} examples",
            "variance": self.unit,
            "leave_one_out": self.leave_one_out,
            "forecast": [dict(zip(keys, (n, *self.at(n)))) for n in sizes],
            "gain_of_doubling": gain[0],
            "gain_interval": gain[1:],
            "exponent": self.exponent(),
            "floor": self.law.floor * self.leave_one_out,
            "floor_interval": [share * self.leave_one_out for share in self.law.floor_interval],
            "probability_of_no_floor": self.law.without_floor,
            "candidates": [dataclasses.asdict(one) for one in self.candidates],
            "columns": [dataclasses.asdict(one) for one in self.problem.columns],
            "compared": [
                {
                    "name": one.name,
                    "error": one.error,
                    "error_rate": one.error_rate,
                    "examples": one.examples,
                }
                for one in self.compared
            ],
            "columns_halved": self.columns_halved,
            "notes": list(self.notes),
        }


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
        raise ValueError(f"{problem.name}: {count} examples: a forecast needs at least {FEWEST}")
    if ridge is not None and not 0 <= ridge < np.inf:
        raise ValueError(f"ridge = {ridge}: must be a finite number >= 0")
    if orders < 2 or not 1 <= reach <= 1e4:
        raise ValueError(
            f"orders = {orders}, reach = {reach}: must be at least 2, and from 1 to 10000"
        )
    if estimator is not None and (arch is not None or ridge is not None):
        raise ValueError(
            "estimator: give an estimator, or the arch and ridge of a network, not both"
        )
    given = named(estimator) if isinstance(estimator, str) else estimator
    asked = {} if given is None else {_name(given): checked(given, _name(given))}
    # for an estimator only: one network shows how hard the target is
    tried = TRIED if compare or given is None else TRIED[:1]
    archs = tried if arch is None else [arch] if isinstance(arch, str) else arch
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
    halved = half_of_the_columns(problem, result.estimator, network.ridge, network.arch)
    better = found[table[0].name] if table[0].name != wanted else None
    return dataclasses.replace(result, columns_halved=halved, best=better)


@dataclass(frozen=True)
class _Network:
    """The kernel of a wide network on a problem, and its ridge."""

    problem: Problem
    candidates: tuple[Candidate, ...]
    learner: Learner
    best_ridge: float
    ridge: float
    chosen: bool

    @classmethod
    def of(cls, problem: Problem, archs: Sequence[str], ridge: float | None) -> "_Network":
        candidates = tuple(compare_kernels(problem, archs))
        found = learner(candidates[0].arch, problem.inputs, problem.targets)
        best, _ = best_ridge(found, problem)
        return cls(
            problem,
            candidates,
            found,
            best,
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
    notes = list(problem.notes)
    if estimator is None:
        measured = measure(problem, found, used, _orders_of(count, orders))
        notes += [*_remarks(found), *_dependence(problem, found, measured)]
    else:
        measured = measure_estimator(problem, estimator, None if row is None else row.residuals)
    sizes = measured.curve["n_train"].values.astype(float)
    mean = np.nanmean(measured.curve["test_error"].values, axis=1)
    grid = np.unique(
        np.concatenate([np.geomspace(8, reach * count, 80), [count, 2 * count, 10 * count], sizes])
    )
    if estimator is None:
        law = extrapolate(
            found.eigenvalues, found.power, used, sizes, mean, grid, len(found.eigenvalues)
        )
    else:
        law = extrapolate_other(found.eigenvalues, found.power, used, sizes, mean, grid)
        if sizes[-1] < 0.75 * count:
            notes.append(
                f"{name} learned up to {int(sizes[-1])} of the {count} rows: a fit with more takes longer than {LONGEST:g} s"
            )
    log_error = np.log(mean[-1]) + law.log_change
    if not network.chosen:  # with the best ridge the error never grows with more data
        beyond = grid >= sizes[-1]
        log_error[beyond] = np.minimum.accumulate(log_error[beyond])
    predicted = _predicted(grid, log_error, law, measured)
    if problem.classes:
        predicted = predicted.assign(_class_measures(predicted, measured, sizes, mean))
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
    )


def _predicted(
    grid: Float[np.ndarray, "size"],
    log_error: Float[np.ndarray, "size"],
    law: Extrapolated,
    measured: Measured,
) -> xr.Dataset:
    spread = np.hypot(law.spread, measured.scatter)
    columns = {
        "test_error": np.exp(log_error),
        "lower": np.exp(log_error - NORMAL * spread),
        "upper": np.exp(log_error + NORMAL * spread),
        "spread": spread,
        "shape_spread": law.spread,
        "absolute_spread": np.hypot(law.spread, measured.absolute_scatter),
        "effective_dimension": law.dimension,
    }
    return xr.Dataset(
        {name: ("n_train", values) for name, values in columns.items()}, {"n_train": grid}
    )


def _class_measures(
    predicted: xr.Dataset,
    measured: Measured,
    sizes: Float[np.ndarray, "size"],
    error: Float[np.ndarray, "size"],
) -> dict[str, Any]:
    """The share of wrong classes and the log loss, extrapolated as powers of the squared error that
    fit the measured part of the curve."""
    found: dict[str, Any] = {}
    late = sizes >= sizes[-1] / 12
    tested = float(measured.curve.sizes["seed"] * (measured.curve["n_train"].values[-1]))
    for name in ("error_rate", "log_loss"):
        values = np.nanmean(measured.curve[name].values, axis=1)
        floor = 0.5 / tested if name == "error_rate" else 1e-6
        x, y = np.log(error[late]), np.log(np.maximum(values[late], floor))
        line = straight_line(x, y)
        residual = (line.chi_squared / len(x)) ** 0.5
        power = float(np.clip(line.slope, 0.0, 2.5))
        change = np.log(predicted["test_error"] / error[-1])
        middle = np.log(max(values[-1], floor)) + power * change
        rare = (
            1 / np.sqrt(max(values[-1] * sizes[-1], 0.5))
            if name == "error_rate"
            else measured.absolute_scatter / 2
        )
        spread = np.sqrt(
            (power * predicted["shape_spread"]) ** 2
            + rare**2
            + residual**2
            + (0.2 * power * change) ** 2
        )
        largest = 1.0 if name == "error_rate" else np.inf
        found |= {
            name: np.exp(middle),
            f"{name}_lower": np.exp(middle - NORMAL * spread),
            f"{name}_upper": np.minimum(np.exp(middle + NORMAL * spread), largest),
        }
    return found


def _orders_of(count: int, orders: int) -> int:
    """The number of random orders, smaller for many rows: their factorisations cost the cube, and
    each tests more rows."""
    return int(np.clip(orders * (MOST_ROWS / min(count, LARGEST)) ** 2, 2, orders))


def _remarks(found: Learner) -> list[str]:
    if isinstance(found, Exact):
        return []
    if found.factorisable:
        return [
            f"ridge and modes of the kernel are those of {MOST_ROWS} random rows; errors are measured on all {found.examples}"
        ]
    return [
        f"the kernel learned up to {LARGEST} of the {found.examples} rows, exactly; what all of them bring is forecast"
    ]


def _dependence(problem: Problem, found: Learner, measured: Measured) -> list[str]:
    """Compares the error on held-out groups, or on later rows, with that on random rows, both with
    their standard errors.

    Few later rows are tested, and squared errors are skewed: where their mean is small by chance,
    so is its standard error. Without drift they scatter as random rows do, so the scatter is taken
    from the more numerous random rows; stretches of time whose errors are correlated count less.
    """
    if problem.groups is None and not problem.ordered:
        return []
    plain = dataclasses.replace(problem, groups=None, ordered=False)
    orders = _orders_of(found.examples, ORDERS)
    random = measure(plain, found, best_ridge(found)[0], orders)
    last = float(measured.curve["n_train"][-1])
    ours = float(np.nanmean(measured.curve["test_error"].values[-1]))
    theirs = float(random.curve["test_error"].mean("seed").interp(n_train=last))
    errors = ours * measured.doubt, theirs * random.doubt
    if problem.ordered:
        each = errors[1] * np.sqrt(random.tested)  # variance of one random row
        drawn = orders * min(found.examples - last, TESTED) / found.examples
        different = found.examples * (1 - np.exp(-drawn))
        # the start at the first row; later starts test parts of the same rows
        ours = float(measured.curve["test_error"].values[-1, 0])
        later = each / np.sqrt(measured.tested) * max(measured.together, 1.0)
        errors = later, each / np.sqrt(different)
    what = "other groups" if problem.groups is not None else "later rows"
    text = f"held-out {what}: error {ours:.3g} ± {errors[0]:.1g}; random rows: {theirs:.3g} ± {errors[1]:.1g}: "
    if abs(ours - theirs) < NORMAL * np.hypot(*errors):
        return [f"{text}no significant difference"]
    text += f"a significant difference, by a factor {ours / theirs:.2f}"
    if abs(np.log(ours / theirs)) > MATTERS:
        warnings.warn(f"{text}: an error measured on random rows would mislead", stacklevel=2)
    return [text]
