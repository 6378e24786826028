"""A learning curve before it is measured: what more data, or less, would do for a kernel or a wide network on given data."""

import dataclasses
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from orderparam.analysis.exponent import straight_line
from orderparam.core.threads import one_blas_thread
from orderparam.kernels.extrapolation import Extrapolated, extrapolate
from orderparam.learning_curves.choice import TRIED, Candidate, best_ridge, compare
from orderparam.learning_curves.learners import CENTRES, MOST_ROWS, Approximate, Learner, learner
from orderparam.learning_curves.measured import Measured, measure
from orderparam.learning_curves.problem import FEWEST, Problem, from_arrays

ORDERS = 16  # random orders of the examples
NORMAL = 1.96
MATTERS = 0.1  # relative difference of errors from which grouped or ordered rows are said to matter


@dataclass(frozen=True)
class Forecast:
    """What `forecast` found. Errors are mean squares per held-out example, summed over outputs, as a share of the targets'
    variance (`unit`): 1 is what predicting the mean achieves. For classes -1 and 1 or 0 and 1 stand for them.

    predicted: data set over `n_train` (up to `reach` times the data): test_error, lower, upper (95 % interval), spread
    (standard
        deviation of its log), absolute_spread (the same in the units of the target, whose variance is known no better than the
        data tell), effective_dimension; for classes error_rate, log_loss with `_lower` and `_upper`.
    measured: held-out error of random subsets, over (n_train, seed).
    problem: the data as they were learned. arch: the network whose infinite-width limit learned. ridge: added to its Gram
    matrix.
    candidates: all kernels that were tried, by evidence. law: what the extrapolation found, see `Extrapolated`.
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

    @property
    def examples(self) -> int:
        return len(self.problem.inputs)

    @property
    def unit(self) -> float:
        """The variance of the targets over the examples, in their own units squared: what an error of 1 stands for."""
        return self.problem.variance

    def at(self, n_train: float, name: str = "test_error") -> tuple[float, float, float]:
        """Predicted error at a training-set size, with its 95 % interval. name: or error_rate, log_loss."""
        row = self._row(n_train)
        ends = ("lower", "upper") if name == "test_error" else (f"{name}_lower", f"{name}_upper")
        return float(row[name]), *(float(row[end]) for end in ends)  # type: ignore[return-value]

    def in_units(self, n_train: float) -> tuple[float, float, float]:
        """Root mean square error in the units of the target, with its 95 % interval."""
        row = self._row(n_train)
        middle, width = np.sqrt(float(row["test_error"]) * self.unit), NORMAL / 2 * float(row["absolute_spread"])
        return float(middle), float(middle * np.exp(-width)), float(middle * np.exp(width))

    def _row(self, n_train: float) -> xr.Dataset:
        first, last = float(self.predicted["n_train"][0]), float(self.predicted["n_train"][-1])
        if not first <= n_train <= last:
            raise ValueError(f"n_train = {n_train}: must be within {first:g} .. {last:g}")
        logs = self.predicted.assign_coords(n_train=np.log(self.predicted["n_train"])).clip(min=1e-300).map(np.log)
        return logs.interp(n_train=np.log(n_train)).map(np.exp)

    def rows_for(self, error: float) -> tuple[float, float, float]:
        """Examples needed for an error (share of the variance), with its interval: from where the lower end of the interval to
        where its upper end falls below. inf: not within reach of the forecast."""
        sizes = self.predicted["n_train"].values

        def reached(name: str) -> float:
            below = np.flatnonzero(self.predicted[name].values <= error)
            if not below.size:
                return float("inf")
            first = int(below[0])
            if first == 0:
                return float(sizes[0])
            logs = np.log(self.predicted[name].values[[first - 1, first]])
            share = (logs[0] - np.log(error)) / (logs[0] - logs[1])
            return float(np.exp((1 - share) * np.log(sizes[first - 1]) + share * np.log(sizes[first])))

        return reached("test_error"), reached("lower"), reached("upper")

    def gain_of_doubling(self) -> tuple[float, float, float]:
        """1 - E(2n)/E(n) at all the data, with its 95 % interval."""
        now, then = self._row(self.examples), self._row(2 * self.examples)
        change = float(np.log(then["test_error"] / now["test_error"]))
        width = NORMAL * float(np.sqrt(max(float(then["shape_spread"]) ** 2 - float(now["shape_spread"]) ** 2, 0.0)))
        return 1 - np.exp(change), 1 - np.exp(change + width), 1 - np.exp(change - width)

    def exponent(self) -> float:
        """beta in error ~ n^-beta: the mean slope over the decade that follows the data."""
        return float(np.log(self.at(self.examples)[0] / self.at(10 * self.examples)[0]) / np.log(10))

    def figure(self) -> Any:
        """The predicted curve with its interval and the measured points, in the house style."""
        from orderparam.learning_curves.report import draw_forecast

        return draw_forecast(self)

    def summary(self) -> dict[str, Any]:
        """Everything but the curves, as plain numbers and words."""
        sizes = [self.examples * k for k in (1, 2, 3, 10, 30, 100) if self.examples * k <= self.predicted["n_train"][-1]]
        keys = ("n_train", "test_error", "lower", "upper")
        gain = self.gain_of_doubling()
        return {
            "data": self.problem.name,
            "task": self.problem.task,
            "examples": self.examples,
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
            "notes": list(self.notes),
        }


def forecast(
    X: Any,
    y: Any,
    *,
    task: str | None = None,
    arch: str | Sequence[str] = TRIED,
    ridge: float | None = None,
    groups: Any = None,
    time: Any = None,
    orders: int = ORDERS,
    reach: float = 100.0,
) -> Forecast:
    """The learning curve of kernel regression on your own data, measured as far as they go and predicted beyond.

    X: (example, input), images (example, height, width[, channel]), or a data frame with whatever columns it has (see
    `orderparam.data.columns`). y: numbers, words, or (example, output) numbers. task: as in `orderparam.data.apply_task`, by
    default from y. groups: (example,) which examples belong together: held-out examples are then of other groups. time:
    (example,) when they
    are from: held-out examples then come later.
    arch: network(s) whose infinite-width limit learns; of several the one of largest evidence. ridge: beside the Gram matrix,
    by default the best by leave-one-out. reach: how far beyond the data, as a multiple.

    The measured curve is the error of random subsets of the examples on those left out, with leave-one-out as its last point.
    It is continued by `orderparam.kernels.extrapolation.extrapolate`. The interval holds what that does not know, and how the
    last point scatters between samples of this size; its coverage was measured: docs/howto/your-data.md.

    More than 2000 rows: the kernel is approximated by 800 Nyström features, and the errors are those of that approximation.
    Raises `ValueError` for fewer than 40 examples, and for whatever is wrong with the data.

    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(60, 3))
    >>> curve = op.forecast(X, X[:, 0] + random.normal(size=60), arch="fc:1:erf")
    >>> error, lower, upper = curve.at(600)
    >>> lower < error < upper
    True
    """
    return forecast_problem(from_arrays(X, y, task, groups, time), arch=arch, ridge=ridge, orders=orders, reach=reach)


def forecast_problem(
    problem: Problem,
    *,
    arch: str | Sequence[str] = TRIED,
    ridge: float | None = None,
    orders: int = ORDERS,
    reach: float = 100.0,
) -> Forecast:
    """`forecast` of a problem that was read already."""
    count = len(problem.inputs)
    if count < FEWEST:
        raise ValueError(f"{problem.name}: {count} examples: a forecast needs at least {FEWEST}")
    if ridge is not None and not 0 <= ridge < np.inf:
        raise ValueError(f"ridge = {ridge}: must be a finite number >= 0")
    if orders < 2 or not 1 <= reach <= 1e4:
        raise ValueError(f"orders = {orders}, reach = {reach}: must be at least 2, and from 1 to 10000")
    with nullcontext() if count > MOST_ROWS else one_blas_thread():  # small factorisations lose more to waiting than they gain
        return _forecast(problem, [arch] if isinstance(arch, str) else arch, ridge, orders, reach)


def _forecast(problem: Problem, archs: Sequence[str], ridge: float | None, orders: int, reach: float) -> Forecast:
    count = len(problem.inputs)
    candidates = compare(problem, archs)
    chosen = candidates[0].arch
    found = learner(chosen, problem.inputs, problem.targets)
    best, error = best_ridge(found, problem)
    used = best if ridge is None else float(ridge)
    if used != best:
        error = float(np.mean(np.sum(found.leave_one_out(used) ** 2, axis=1)))
    notes = [*problem.notes, *_remarks(found)]
    measured = measure(problem, found, used, orders if count <= MOST_ROWS else min(orders, 3))
    notes += _dependence(problem, found, measured)
    sizes = measured.curve["n_train"].values.astype(float)
    mean = np.nanmean(measured.curve["test_error"].values, axis=1)
    grid = np.unique(np.concatenate([np.geomspace(8, reach * count, 80), [count, 2 * count, 10 * count], sizes]))
    law = extrapolate(found.eigenvalues, found.power, used, sizes, mean, grid, count)
    log_error = np.log(mean[-1]) + law.log_change
    if ridge is None:  # with the best ridge, more data do no harm
        beyond = grid >= sizes[-1]
        log_error[beyond] = np.minimum.accumulate(log_error[beyond])
    predicted = _predicted(grid, log_error, law, measured)
    if problem.classes:
        predicted = predicted.assign(_class_measures(predicted, measured, sizes, mean))
    return Forecast(predicted, measured.curve, problem, chosen, used, best, error, tuple(candidates), law, tuple(notes))


def _predicted(
    grid: Float[np.ndarray, "size"], log_error: Float[np.ndarray, "size"], law: Extrapolated, measured: Measured
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
    return xr.Dataset({name: ("n_train", values) for name, values in columns.items()}, {"n_train": grid})


def _class_measures(
    predicted: xr.Dataset, measured: Measured, sizes: Float[np.ndarray, "size"], error: Float[np.ndarray, "size"]
) -> dict[str, Any]:
    """Share of wrong classes and log loss: a power of the squared error, as on the measured part of the curve."""
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
        rare = 1 / np.sqrt(max(values[-1] * sizes[-1], 0.5)) if name == "error_rate" else measured.absolute_scatter / 2
        spread = np.sqrt((power * predicted["shape_spread"]) ** 2 + rare**2 + residual**2 + (0.2 * power * change) ** 2)
        largest = 1.0 if name == "error_rate" else np.inf
        found |= {
            name: np.exp(middle),
            f"{name}_lower": np.exp(middle - NORMAL * spread),
            f"{name}_upper": np.minimum(np.exp(middle + NORMAL * spread), largest),
        }
    return found


def _remarks(found: Learner) -> list[str]:
    if isinstance(found, Approximate):
        return [
            f"{found.examples} rows are more than {MOST_ROWS}: the kernel is approximated by {CENTRES} Nyström features, all "
            "rows are used, and the errors are those of this approximation (the kernel itself may do better)"
        ]
    return []


def _dependence(problem: Problem, found: Learner, measured: Measured) -> list[str]:
    """Whether rows that belong together, or follow one another, make a difference: held-out errors against those of random
    rows."""
    if problem.groups is None and not problem.ordered:
        return []
    plain = dataclasses.replace(problem, groups=None, ordered=False)
    random = measure(plain, found, best_ridge(found)[0], 4).curve["test_error"].mean("seed")
    last = float(measured.curve["n_train"][-1])
    ours, theirs = float(np.nanmean(measured.curve["test_error"].values[-1])), float(random.interp(n_train=last))
    ratio = ours / theirs
    what = "groups" if problem.groups is not None else "later rows"
    text = f"other {what} are predicted with {ratio:.2f} times the error of random rows ({ours:.3g} against {theirs:.3g})"
    if abs(np.log(ratio)) > MATTERS:
        warnings.warn(f"{text}: they matter, and random subsets would mislead", stacklevel=2)
    return [text]
