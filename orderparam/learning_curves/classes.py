"""Errors of classes: error rate, log loss and calibration of the probabilities, measured and
continued beyond the data."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from orderparam.learning_curves.continuation import uncertain
from orderparam.learning_curves.estimators import NORMAL
from orderparam.learning_curves.problem import Problem
from orderparam.solve.straight_line import straight_line

CLASS_ERRORS = ("error_rate", "log_loss", "confidence")
SURE = 0.01  # smallest distance of class probabilities from 0 and 1
# bins of the expected calibration error, fewest rows of each, and draws of its law by chance
BINS, FEWEST_OF_BIN, DRAWS = 10, 20, 400


@dataclass(frozen=True)
class ClassCalibration:
    """The calibration of a classifier: whether predicted classes are right as often as their
    probabilities say.

    confidence: the mean probability; accuracy: how often it is right. error: the expected
    calibration error, the mean distance of both over bins of equally many rows with increasing
    probability. by_chance: that error for perfect probabilities, on as many rows; p_value: the
    probability that perfect ones have at least this error.
    """

    confidence: float
    accuracy: float
    error: float
    by_chance: float
    p_value: float

    @property
    def verdict(self) -> str:
        if self.p_value > 0.05:
            return "no more than chance"
        if abs(self.confidence - self.accuracy) < self.error / 3:
            return "not calibrated"
        return "overconfident" if self.confidence > self.accuracy else "underconfident"


def probabilities(
    problem: Problem, rows: np.ndarray, residuals: Float[np.ndarray, "test output"]
) -> tuple[Float[np.ndarray, "test class"], Int[np.ndarray, "test"]]:
    """The probability of every class and the true class of each row. Two classes: p = (1 + f)/2;
    more: shares of outputs; both are kept within 0.01 .. 0.99."""
    truth = problem.values[rows]
    predicted = truth - residuals * np.sqrt(problem.variance)
    if truth.shape[1] == 1:
        second = np.clip((1 + predicted[:, 0]) / 2, SURE, 1 - SURE)
        return np.stack([1 - second, second], axis=1), (truth[:, 0] > 0).astype(int)
    chances = np.clip(predicted + 1 / truth.shape[1], SURE, 1 - SURE)
    return chances / chances.sum(axis=1, keepdims=True), np.argmax(truth, axis=1)


def class_errors(
    problem: Problem, rows: np.ndarray, residuals: Float[np.ndarray, "test output"]
) -> tuple[float, float, float]:
    """Error rate, mean negative log probability of the true class, and mean probability of the
    predicted class."""
    chances, right = probabilities(problem, rows, residuals)
    loss = -np.mean(np.log(chances[np.arange(len(right)), right]))
    wrong = np.mean(chances.argmax(axis=1) != right)
    return float(wrong), float(loss), float(np.mean(chances.max(axis=1)))


def calibrated(
    problem: Problem, rows: np.ndarray, residuals: Float[np.ndarray, "test output"]
) -> ClassCalibration:
    """The calibration of held-out rows."""
    chances, right = probabilities(problem, rows, residuals)
    sure = chances.max(axis=1)
    order = np.argsort(sure, kind="stable")
    sure, hits = sure[order], (chances.argmax(axis=1) == right)[order]
    bins = np.arange(len(sure)) * min(BINS, max(1, len(sure) // FEWEST_OF_BIN)) // len(sure)

    def error(hits: np.ndarray) -> float:
        return float(np.sum(np.abs(np.bincount(bins, hits - sure))) / len(sure))

    random = np.random.default_rng(6)
    perfect = np.array([error(random.random(len(sure)) < sure) for _ in range(DRAWS)])
    found = error(hits)
    return ClassCalibration(
        float(sure.mean()),
        float(hits.mean()),
        found,
        float(perfect.mean()),
        float((1 + np.sum(perfect >= found)) / (1 + DRAWS)),
    )


def class_measures(
    predicted: xr.Dataset,
    measured: xr.Dataset,
    absolute_scatter: float,
    sizes: Float[np.ndarray, "size"],
    error: Float[np.ndarray, "size"],
) -> dict[str, Any]:
    """The share of wrong classes and the log loss, extrapolated as powers of the squared error that
    fit the measured part of the curve."""
    found: dict[str, Any] = {}
    late = sizes >= sizes[-1] / 12
    tested = float(measured.sizes["seed"] * (measured["n_train"].values[-1]))
    for name in ("error_rate", "log_loss"):
        values = np.nanmean(measured[name].values, axis=1)
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
            else absolute_scatter / 2
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


def class_measures_alike(
    predicted: xr.Dataset, measured: xr.Dataset, error: float, examples: int
) -> dict[str, Any]:
    """The share of wrong classes and the log loss of a learner that is not a kernel: both change by
    the same factor as the squared error. The variances of the error rate were fitted and scaled as
    those of `orderparam.learning_curves.continuation`, on 698 forecasts of 38 tuning tables of
    classes; those of the log loss on 256 forecasts of 27 of them, and then enlarged as much."""
    change = np.log(predicted["test_error"] / error)
    ahead = np.minimum(change, 0.0)  # larger errors, of fewer rows, were measured
    distance = np.abs(np.log(predicted["n_train"] / float(measured["n_train"][-1])))
    last = {
        name: float(np.nanmean(measured[name].values[-1])) for name in ("error_rate", "log_loss")
    }
    rate, loss = max(last["error_rate"], 0.5 / examples), max(last["log_loss"], 1e-6)
    spreads = {
        "error_rate": np.sqrt(1.3 / (examples * rate) + 1.2e-3 * distance + 1.6 * ahead**2),
        "log_loss": np.sqrt(
            28.8 * uncertain(error) / examples + 2.2e-3 * distance + 2.7 * ahead**2
        ),
    }
    found: dict[str, Any] = {}
    for name, start, largest in (("error_rate", rate, 1.0), ("log_loss", loss, np.inf)):
        middle, width = start * np.exp(change), np.exp(NORMAL * spreads[name])
        found |= {
            name: middle,
            f"{name}_lower": middle / width,
            f"{name}_upper": np.minimum(middle * width, largest),
        }
    return found
