"""Predictions and measurements for a design matrix of your own: how well each method estimates a
linear model from this number of rows.

The theories that are used here assume rows with independent Gaussian entries. The report compares
the spectrum of the data with this assumption. Columns are shifted and scaled to mean zero and
variance 1/d, and real labels are shifted to mean zero.
"""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Float
from scipy.stats import chi2

from orderparam.channels import Likelihood, ProbitLabels, RealLabels
from orderparam.core.late import brentq, minimize_scalar
from orderparam.core.names import near
from orderparam.core.registry import tool
from orderparam.data.dataset import real_array
from orderparam.priors import MixturePrior, Prior, prior
from orderparam.systems.generalised_linear.bayes.experiment import gamp
from orderparam.systems.generalised_linear.bayes.model import GeneralisedLinear
from orderparam.systems.generalised_linear.bayes.theory import (
    Thresholds,
    state_evolution,
    thresholds,
)
from orderparam.systems.generalised_linear.penalised.experiment import estimator
from orderparam.systems.generalised_linear.penalised.model import PenalisedFit
from orderparam.systems.generalised_linear.penalised.theory import best_penalty, penalised_fit

KINDS = ("linear", "signs")
_HELD_OUT, _SPLITS, _FEWEST = 0.2, 5, 20
_LARGEST = 100_000_000  # entries of the design
_LEAST_NOISE, _MOST_NOISE = 1e-3, 1e4  # noise in units of the variance of the fields


@dataclass(frozen=True)
class DesignReport:
    """Result of `assess_design`; prints as a short report.

    Fields:
        rows: n.
        columns: d.
        kind: "linear" or "signs".
        prior: law of a weight, with E w^2 = 1.
        noise: variance of the label noise, in units of the variance of the fields.
        noise_interval: 95 % likelihood interval of the noise where it was estimated, else None.
        spectrum_distance: largest difference between the distribution of the eigenvalues of the
            covariance and that of Gaussian entries (Marchenko, Pastur 1967).
        spectrum_scatter: the distance `spectrum_distance` for a random Gaussian design of this
            shape.
        thresholds: thresholds of the model.
        optimal: fraction of the weights' variance that the optimal estimator leaves unexplained.
        by_passing: fraction of the weights' variance that message passing leaves unexplained.
        predicted: method -> error on held-out rows at n = 0.8 rows: mean square error over variance
            for real labels, P(wrong) for signs.
        measured: method -> the measured error and its standard error, over the splits on which the
            method converged; the standard error of a single split is infinite, that is, not known.
        unconverged: method -> number of splits on which it did not converge.
    """

    rows: int
    columns: int
    kind: str
    prior: Prior
    noise: float
    noise_interval: tuple[float, float] | None
    spectrum_distance: float
    spectrum_scatter: float
    thresholds: Thresholds
    optimal: float
    by_passing: float
    predicted: dict[str, float]
    measured: dict[str, tuple[float, float]] = field(default_factory=dict)
    unconverged: dict[str, int] = field(default_factory=dict)

    @property
    def is_gaussian(self) -> bool:
        return self.spectrum_distance < 3 * self.spectrum_scatter + 0.01

    def __str__(self) -> str:
        where = self.thresholds
        ratio = self.rows / self.columns
        fits = (
            "as of Gaussian entries"
            if self.is_gaussian
            else "NOT that of Gaussian entries: predictions are for orientation"
        )
        guessed = (
            ""
            if self.noise_interval is None
            else " (estimated, {:.2g} to {:.2g} with 95 %)".format(*self.noise_interval)
        )
        lines = [
            f"{self.rows} rows, {self.columns} columns: n/d = {ratio:.4g}; {self.kind}, "
            f"{type(self.prior).__name__}, noise {self.noise:.3g} of the signal{guessed}",
            (
                f"  spectrum: {fits} (distance {self.spectrum_distance:.3f}, drawn Gaussian "
                f"{self.spectrum_scatter:.3f})"
            ),
        ]
        if bool(where.first_order):
            determined, found = (ratio > float(x) for x in (where.information, where.algorithmic))
            state = (
                "both hold"
                if found
                else "determined, but found by no fast algorithm known"
                if determined
                else "neither holds"
            )
            places = (
                f"determined from n/d = {float(where.information):.4g}, found from "
                f"{float(where.algorithmic):.4g}"
            )
            lines.append(f"  weights are {places}: {state}")
        elif np.isfinite(float(where.algorithmic)):
            lines.append(
                f"  weights are known exactly from n/d = {float(where.algorithmic):.4g} on"
            )
        else:
            lines.append(
                "  no transition: weights are known better with every row, and never exactly"
            )
        unknown = f"at best {self.optimal:.4g}, message passing {self.by_passing:.4g}"
        lines.append(f"  share of the weights' variance that stays unknown: {unknown}")
        unit = "mean square error / variance" if self.kind == "linear" else "wrong"
        for name, value in self.predicted.items():
            seen = self.measured.get(name)
            tail = "" if seen is None else f", measured {seen[0]:.4g}"
            if seen is not None:
                one = not np.isfinite(seen[1])
                tail += " on one split, without an error" if one else f" +- {seen[1]:.2g}"
            if failed := self.unconverged.get(name, 0):
                rest = "nothing is measured" if failed == _SPLITS else "these are left out"
                tail += (
                    f" ({name} did not converge on {failed} of {_SPLITS} splits of these rows: "
                    f"{rest})"
                )
            lines.append(f"  {name}: {unit} {value:.4g}{tail}")
        return "\n".join(lines)


@tool
def assess_design(
    design: Float[ArrayLike, "row column"],
    labels: Float[ArrayLike, "row"] | None = None,
    *,
    weights: str | Prior = "gaussian",
    kind: str | None = None,
    noise: float | None = None,
    seed: int = 0,
) -> DesignReport:
    """Predicted and measured errors of several methods for a linear model on rows of your own.

    The report says whether this number of rows determines the weights, and whether a fast algorithm
    finds them. It predicts the errors of the optimal estimator and of message passing, and, at
    their best penalties, of logistic regression for signs and of ridge regression and the Lasso for
    real labels. If labels are given it also measures these errors on held-out rows.

    Args:
        design: (row, column) matrix of finite numbers.
        labels: label of each row; None (the default) for predictions alone.
        weights: prior of the weights, "gaussian" by default.
        kind: "linear" (y = w.x + noise) or "signs" (y = sign(w.x + noise)); by default "signs"
            where the labels take two values, otherwise "linear".
        noise: variance of the noise in units of that of w.x; by default estimated from the labels
            by likelihood, and 0.1 without labels.
        seed: seed of the splits and of the drawn Gaussian design; 0 by default.

    Raises:
        ValueError: for a design that is no matrix of finite numbers, has constant columns or fewer
            than 20 rows, and for labels that do not fit.

    Source: derived here, from `thresholds`, `state_evolution` and `penalised_fit`.
    """
    x = real_array("design", design)
    if x.ndim != 2 or min(x.shape) < 2:
        raise ValueError(
            f"design has shape {x.shape}: must be (rows, columns), at least two columns"
        )
    rows, columns = x.shape
    if rows < _FEWEST:
        raise ValueError(f"design has {rows} rows: must be at least {_FEWEST}")
    if x.size > _LARGEST:
        raise ValueError(f"design has {x.size} entries: must be at most {_LARGEST}")
    spread = x.std(axis=0)
    if np.any(spread <= 1e-12 * (1 + np.abs(x).max(axis=0))):
        raise ValueError(f"design: column {int(np.argmin(spread))} is constant; leave it out")
    y = None if labels is None else real_array("labels", labels)
    kind = _kind(kind, y, rows)
    x = (x - x.mean(axis=0)) / spread / np.sqrt(columns)
    if y is not None:
        y = _prepared(y, kind)
    chosen = _unit(prior(weights))
    interval = None
    if noise is None and y is not None:
        size, *ends = _noise(x, y, kind)
        interval = ends[0], ends[1]
    else:
        size = 0.1 if noise is None else float(noise)
    if not np.isfinite(size) or size < 0:
        raise ValueError(f"noise = {size}: must be a finite number >= 0")
    law: Likelihood = RealLabels("linear", size) if kind == "linear" else ProbitLabels(0.0, size)
    system = GeneralisedLinear(rows / columns, law, chosen)
    best, reached = (state_evolution(system, start=start) for start in ("informed", "uninformed"))
    where = thresholds(system)
    if bool(where.first_order) and rows / columns < float(where.information):
        best = reached
    fits = _fits(kind, law, chosen, (1 - _HELD_OUT) * rows / columns)
    passing = state_evolution(system.with_(sample_ratio=(1 - _HELD_OUT) * rows / columns))
    predicted = {"message passing": _error(kind, passing.error, passing.classification_error, size)}
    for name, fit in fits.items():
        found = penalised_fit(fit)
        predicted[name] = _error(kind, found.error, found.classification_error, size)
    measured, unconverged = (
        ({}, {}) if y is None else _measured(x, y, kind, law, chosen, fits, seed)
    )
    key = jax.random.key(seed)
    drawn = np.asarray(jax.random.normal(key, x.shape))
    drawn = (drawn - drawn.mean(axis=0)) / drawn.std(axis=0) / np.sqrt(columns)
    return DesignReport(
        rows, columns, kind, chosen, size, interval, spectrum_distance(x), spectrum_distance(drawn),
        where,
        float(best.error), float(reached.error), predicted, measured, unconverged,
    )  # fmt: skip


def spectrum_distance(x: Float[np.ndarray, "row column"]) -> float:
    """Largest difference between two distribution functions: that of the non-zero eigenvalues of
    x^T x d/n, and its limit for large matrices with entries N(0, 1/d).
    """
    rows, columns = x.shape
    gram = x.T @ x if columns <= rows else x @ x.T
    values = (
        np.sort(np.linalg.eigvalsh(gram))[-min(rows - 1, columns) :] * columns / max(rows, columns)
    )
    ratio = min(rows, columns) / max(rows, columns)
    low, high = (1 - np.sqrt(ratio)) ** 2, (1 + np.sqrt(ratio)) ** 2
    # s = sin^2 takes the square roots at both ends of the law out of the sum
    angle = (np.arange(4000) + 0.5) / 4000 * np.pi / 2
    place = low + (high - low) * np.sin(angle) ** 2
    mass = (np.sin(angle) * np.cos(angle)) ** 2 / place
    reached = np.interp(values, place, np.cumsum(mass) / np.sum(mass), left=0.0, right=1.0)
    steps = np.arange(1, len(values) + 1) / len(values)
    return float(max(np.max(steps - reached), np.max(reached - steps + 1 / len(values))))


def _kind(kind: str | None, y: np.ndarray | None, rows: int) -> str:
    if kind is not None and kind not in KINDS:
        raise ValueError(
            f"kind = {kind!r}: must be one of {', '.join(KINDS)}{near(kind, list(KINDS))}"
        )
    if y is None:
        return kind or "linear"
    if y.shape != (rows,):
        raise ValueError(f"labels have shape {y.shape}: must be one for each of the {rows} rows")
    values = np.unique(y)
    if len(values) < 2:
        raise ValueError("labels are all the same: there is nothing to learn")
    if kind == "signs" and len(values) != 2:
        raise ValueError(f"labels take {len(values)} values: signs must take two")
    return kind or ("signs" if len(values) == 2 else "linear")


def _prepared(y: np.ndarray, kind: str) -> np.ndarray:
    if kind == "signs":
        return np.where(y == np.max(y), 1.0, -1.0)
    return (y - y.mean()) / y.std()


def _unit(law: Prior) -> Prior:
    """The prior scaled to E w^2 = 1."""
    shares, means, variances = law.components
    power = law.power
    return (
        law
        if abs(float(power) - 1) < 1e-12
        else MixturePrior(shares, means / jnp.sqrt(power), variances / power)
    )


def _noise(x: np.ndarray, y: np.ndarray, kind: str) -> tuple[float, float, float]:
    """Ratio of noise to signal with the largest likelihood, and the ends of its interval of 95 %.

    The likelihood is that of y ~ N(0, x x^T + h) up to a factor. It gives a consistent estimate for
    independent weights of any law (Jiang, Li, Paul, Yang, Zhao 2016). For signs it is the
    likelihood of their linear part, for which E[y z]^2 = (2/pi) / (1 + noise). At the ends of the
    interval, twice the log likelihood is below its largest value by the quantile of chi squared.
    """
    rank = min(len(x) - 1, x.shape[1])
    left, singular, _ = np.linalg.svd(x, full_matrices=False)
    powers = (left.T @ y)[:rank] ** 2
    values, missing = singular[:rank] ** 2, len(x) - 1 - rank
    rest = max(float(np.sum((y - y.mean()) ** 2) - np.sum(powers)), 0.0)

    def cost(logarithm: float) -> float:
        h = np.exp(logarithm)
        size = (np.sum(powers / (values + h)) + rest / h) / (rank + missing)
        return float(
            np.log(size) + (np.sum(np.log(values + h)) + missing * logarithm) / (rank + missing)
        )

    bounds = (np.log(_LEAST_NOISE), np.log(_MOST_NOISE))
    best = minimize_scalar(cost, bounds=bounds, method="bounded")

    def beyond(logarithm: float) -> float:
        return (rank + missing) * (cost(logarithm) - best.fun) - chi2.ppf(0.95, 1)

    ends = [end if beyond(end) <= 0 else brentq(beyond, *sorted((end, best.x))) for end in bounds]
    found = np.exp([best.x, *ends])
    if kind == "signs":
        found = np.clip(2 / np.pi * (1 + found) - 1, _LEAST_NOISE, _MOST_NOISE)
    return float(found[0]), float(found[1]), float(found[2])


def _fits(kind: str, law: Likelihood, chosen: Prior, ratio: float) -> dict[str, PenalisedFit]:
    """Estimators at their best penalties for these labels."""
    if kind == "signs":
        fits = {
            "logistic regression": (PenalisedFit(ratio, "logistic", law, 0.0, 1.0, chosen), "ridge")
        }
    else:
        fits = {
            "ridge regression": (PenalisedFit(ratio, "square", law, 0.0, 1.0, chosen), "ridge"),
            "Lasso": (PenalisedFit(ratio, "square", law, 1.0, 0.0, chosen), "l1"),
        }
    return {
        name: fit.with_(**{which: float(best_penalty(fit, which=which).penalty)})
        for name, (fit, which) in fits.items()
    }


def _error(kind: str, error: Any, wrong: Any, noise: float) -> float:
    return float(wrong) if kind == "signs" else (float(error) + noise) / (1 + noise)


def _measured(
    x: np.ndarray,
    y: np.ndarray,
    kind: str,
    law: Likelihood,
    chosen: Prior,
    fits: dict[str, PenalisedFit],
    seed: int,
) -> tuple[dict[str, tuple[float, float]], dict[str, int]]:
    """Errors on a fifth of the rows after learning from the others, five times, and the number of
    times that a method did not converge.
    """
    n, d = x.shape
    scale = np.sqrt(1 + float(law.noise)) if isinstance(law, RealLabels) else 1.0
    rng = np.random.default_rng(seed)
    found: dict[str, list[float]] = {name: [] for name in ("message passing", *fits)}
    one, zero = jnp.ones(()), jnp.zeros(())
    for _ in range(_SPLITS):
        order = rng.permutation(n)
        held, kept = order[: int(_HELD_OUT * n)], order[int(_HELD_OUT * n) :]
        train = scale * y[kept]
        weights = {}
        start = jnp.asarray(1e-2 * rng.standard_normal(d))
        passed = gamp(
            jnp.asarray(x[kept]),
            jnp.asarray(train),
            jnp.ones(len(kept)),
            law,
            chosen,
            start,
            chosen.power,
            0.3 * one,
            1e-6 * one,
            zero + 1e-12,
            300,
        )
        weights["message passing"] = (
            np.asarray(passed.weights) if bool(passed.converged) else np.full(d, np.nan)
        )
        for name, fit in fits.items():
            weights[name] = np.ravel(estimator(fit, len(kept), 1e-5).fit(x[kept], train).coef_)
        for name, w in weights.items():
            field_values = x[held] @ w
            wrong = (
                np.mean(field_values * y[held] <= 0)
                if kind == "signs"
                else np.mean((y[held] - field_values / scale) ** 2)
            )
            found[name].append(float(wrong) if np.all(np.isfinite(w)) else np.nan)
    finite = {name: np.array(errors)[np.isfinite(errors)] for name, errors in found.items()}
    means = {
        name: (
            float(np.mean(errors)),
            float(np.std(errors, ddof=1) / np.sqrt(len(errors))) if len(errors) > 1 else np.inf,
        )
        for name, errors in finite.items()
        if len(errors)
    }
    return means, {
        name: _SPLITS - len(errors) for name, errors in finite.items() if len(errors) < _SPLITS
    }
