"""The result of a forecast: the predicted curve with its interval, and what it says."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import xarray as xr

from orderparam.kernels.extrapolation import Extrapolated
from orderparam.learning_curves.choice import Candidate
from orderparam.learning_curves.classes import ClassCalibration
from orderparam.learning_curves.comparison import Compared
from orderparam.learning_curves.drift import NewRows, new_rows
from orderparam.learning_curves.estimators import NORMAL
from orderparam.learning_curves.problem import Problem
from orderparam.learning_curves.report import draw_forecast, in_a_sentence

LEAST_GAIN = -0.05  # of twice the rows


@dataclass(frozen=True)
class Forecast:
    """The result of `forecast`. Errors are mean squares per held-out example, summed over outputs,
    as a share of the targets' variance (`unit`): predicting the mean has the error 1. Classes are
    represented by -1 and 1, or by 0 and 1.

    predicted: data set over `n_train` (up to `reach` times the data): test_error, lower, upper (95
        % interval, whose upper end does not rise with n_train beyond the data, unless `ridge` was
        given), spread (standard deviation of its log), absolute_spread, absolute_upper (the same in
        the units of the target, whose variance is known no better than the data tell),
        effective_dimension (of the kernel);
        for classes error_rate, log_loss with `_lower` and `_upper`.
    measured: held-out error of random subsets, over (n_train, seed). problem: the data as they were
    learned. learner: what learned, in words. estimator: the estimator that did, None for the
    network of infinite width `arch` with `ridge` added to its Gram matrix. leave_one_out: the last
    measured error: leave-one-out (leave-group-out), of later rows, on folds or held-out rows.
    candidates: all kernels that were tried, by evidence. law: what the extrapolation found, see
    `Extrapolated`. compared: learners on the same folds, the smallest error first; empty where none
    was asked for. columns_halved: the error with half of the columns over that with all, with its
    interval, or None. best: the forecast of the best learner, where that is another one.
    calibration: of the last measured point's probabilities, for classes. doubt: standard error of
    that point, relative to it; tested: the number of its rows.
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
    calibration: ClassCalibration | None = None
    doubt: float = float("nan")
    tested: int = 0

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
        return row[name], row[ends[0]], row[ends[1]]

    def in_units(self, n_train: float) -> tuple[float, float, float]:
        """Root mean square error in the units of the target, with its 95 % interval."""
        row = self._row(n_train)
        middle = np.sqrt(row["test_error"] * self.unit)
        low = middle * np.exp(-NORMAL / 2 * row["absolute_spread"])
        return float(middle), float(low), float(np.sqrt(row["absolute_upper"] * self.unit))

    def _row(self, n_train: float) -> dict[str, float]:
        """All predicted measures at a size, interpolated in logarithms."""
        sizes = self.predicted["n_train"].values
        if not sizes[0] <= n_train <= sizes[-1]:
            raise ValueError(f"n_train = {n_train}: must be within {sizes[0]:g} .. {sizes[-1]:g}")
        return {
            str(name): float(
                np.exp(
                    np.interp(
                        np.log(n_train), np.log(sizes), np.log(np.maximum(one.values, 1e-300))
                    )
                )
            )
            for name, one in self.predicted.data_vars.items()
        }

    def curve(self, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A measure over all predicted sizes, with the ends of its 95 % interval: test_error (share
        of the variance), r2, rmse (in the target's unit), and for classes error_rate, log_loss.
        Raises `ValueError` for one that these data do not have."""
        data = self.predicted
        if name in ("test_error", "r2"):
            found = tuple(data[one].values for one in ("test_error", "lower", "upper"))
            return found if name == "test_error" else tuple(1 - one for one in found)  # type: ignore[return-value]
        if name == "rmse" and not self.problem.classes and len(self.problem.names) == 1:
            middle = np.sqrt(data["test_error"].values * self.unit)
            low = middle * np.exp(-NORMAL / 2 * data["absolute_spread"].values)
            return middle, low, np.sqrt(data["absolute_upper"].values * self.unit)
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
        """1 - E(2n)/E(n) at all the data, with its 95 % interval. Its lower end is at least -5 %:
        in 2 % of the tuning forecasts the error of more rows was larger by more than that."""
        now, then = self._row(self.examples), self._row(2 * self.examples)
        change = np.log(then["test_error"] / now["test_error"])
        width = NORMAL * float(
            np.sqrt(max(then["shape_spread"] ** 2 - now["shape_spread"] ** 2, 0.0))
        )
        least = max(1 - np.exp(change + width), min(LEAST_GAIN, 1 - np.exp(change)))
        return float(1 - np.exp(change)), float(least), float(1 - np.exp(change - width))

    @property
    def floor_interval(self) -> tuple[float, float]:
        """At least a 95 % interval of the error that remains with any number of examples: the
        interval of its share of the present error, times the ends of the present error's own."""
        _, low, high = self.at(self.examples)
        least, most = self.law.floor_interval
        return least * low, most * high

    def exponent(self) -> float:
        """beta in error ~ n^-beta: the mean slope over the decade that follows the data."""
        return float(
            np.log(self.at(self.examples)[0] / self.at(10 * self.examples)[0]) / np.log(10)
        )

    def new_rows(self, frame: Any) -> NewRows:
        """Compares new rows of a table (a data frame with the same columns, with or without the
        target) with those that were learned: a forecast holds for rows of the same law."""
        return new_rows(self, frame)

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
            "unit": f"variance of {', '.join(self.problem.names)} over the {self.examples} "
            "examples",
            "variance": self.unit,
            "leave_one_out": self.leave_one_out,
            "forecast": [dict(zip(keys, (n, *self.at(n)))) for n in sizes],
            "gain_of_doubling": gain[0],
            "gain_interval": gain[1:],
            "exponent": self.exponent(),
            "floor": self.law.floor * self.leave_one_out,
            "floor_interval": list(self.floor_interval),
            "probability_of_no_floor": self.law.without_floor,
            "candidates": [asdict(one) for one in self.candidates],
            "columns": [asdict(one) for one in self.problem.columns],
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
            "calibration": None if self.calibration is None else asdict(self.calibration),
            "notes": list(self.notes),
        }
