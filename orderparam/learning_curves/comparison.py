"""Comparison of several learners on the same folds, and of the same learner on half of the columns:
the possible gains other than more rows."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float

from orderparam.learning_curves.estimators import NORMAL, compared, residuals
from orderparam.learning_curves.learners import Learner, learner
from orderparam.learning_curves.measured import Fold, class_errors, folds_of
from orderparam.learning_curves.problem import Problem

MOST_COMPARED = 4000  # training rows of the comparison
HALVED = 1600  # training rows of the comparison with half of the columns
HALVES = 4  # random halves of the columns
FEWEST_COLUMNS = 4

Missed = Callable[[np.ndarray, np.ndarray], Float[np.ndarray, "test output"]]


@dataclass(frozen=True)
class Compared:
    """The held-out errors of a learner on the folds: the squared error as a share of the variance
    and, for classes, the error rate (otherwise nan).

    estimator: None for the kernel of a wide network. squares: the squared error of each tested row;
    all learners are tested on the same rows.
    """

    name: str
    error: float
    error_rate: float
    examples: int
    estimator: Any = field(repr=False)
    squares: Float[np.ndarray, "test"] = field(repr=False)
    residuals: list[np.ndarray] = field(repr=False)

    def against(self, other: "Compared") -> tuple[float, float, float]:
        """This error divided by the other one's, with its 95 % interval from the differences row by
        row."""
        change = np.log(self.error / other.error)
        difference = self.squares / self.squares.mean() - other.squares / other.squares.mean()
        width = NORMAL * float(difference.std()) / np.sqrt(len(difference))
        return float(np.exp(change)), float(np.exp(change - width)), float(np.exp(change + width))


def compare_learners(
    problem: Problem, found: Learner, ridge: float, arch: str, asked: dict[str, Any]
) -> list[Compared]:
    """Errors of the kernel, of the learners that `estimators.compared` names, and of the learner
    asked for, on the same folds, sorted by increasing error."""

    def kernel(train: np.ndarray, test: np.ndarray) -> Float[np.ndarray, "test output"]:
        return found.curve(ridge, np.concatenate([train, test]), [len(train)]).residuals[0]

    folds = folds_of(problem, MOST_COMPARED)
    table = [_judged(problem, f"network {arch}", None, kernel, folds)]
    others = {
        name: estimator
        for name, estimator in compared(problem).items()
        if not any(_alike(estimator, one) for one in asked.values())
    }
    for name, estimator in {**others, **asked}.items():
        table.append(_judged(problem, name, estimator, _fits(problem, estimator), folds))
    return sorted(table, key=lambda one: one.error)


def _alike(one: Any, other: Any) -> bool:
    """True for two estimators of one class whose settings differ at most in the seed and in the
    number of processes, which changes no result."""
    settings = [
        {
            name: str(value)
            for name, value in estimator.get_params().items()
            if name not in ("random_state", "n_jobs")
        }
        for estimator in (one, other)
    ]
    return type(one) is type(other) and settings[0] == settings[1]


def half_of_the_columns(
    problem: Problem, estimator: Any, ridge: float, arch: str, judged: Compared | None = None
) -> tuple[float, float, float] | None:
    """The error with a random half of the columns, divided by that with all of them, with a 95 %
    interval (of four halves, which are two pairs of complements). None for fewer than four columns.

    judged: this learner as `compare_learners` judged it, for its error with all columns.
    """
    starts = np.cumsum([0, *(one.inputs for one in problem.columns if one.inputs)])
    columns = [np.arange(a, b) for a, b in pairwise(starts)]
    # for images every eighth pixel
    columns = columns or [np.arange(problem.inputs.shape[1])[i::8] for i in range(8)]
    if len(columns) < FEWEST_COLUMNS or starts[-1] not in (0, problem.inputs.shape[1]):
        return None
    train, test = folds_of(problem, HALVED)[0]
    logs = []
    for half in range(HALVES):
        order = np.random.default_rng([5, half // 2]).permutation(len(columns))
        order = order[::-1] if half % 2 else order
        kept = np.sort(np.concatenate([columns[i] for i in order[: -(-len(columns) // 2)]]))
        logs.append(np.log(_error(problem, estimator, ridge, arch, kept, train, test)))
    if judged is not None and len(train) == judged.examples and not problem.ordered:
        whole = _mean_square(judged.residuals[0])  # the same rows
    else:
        everything = np.sort(np.concatenate(columns))
        whole = _error(problem, estimator, ridge, arch, everything, train, test)
    change = np.array(logs) - np.log(whole)
    middle, width = float(change.mean()), NORMAL * float(change.std(ddof=1))
    return float(np.exp(middle)), float(np.exp(middle - width)), float(np.exp(middle + width))


def _error(
    problem: Problem,
    estimator: Any,
    ridge: float,
    arch: str,
    kept: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
) -> float:
    part = replace(problem, inputs=problem.inputs[:, kept], columns=(), encoding=None, dataset=None)
    if estimator is not None:
        missed = residuals(part, estimator, train, test)
    else:
        rows = np.concatenate([train, test])
        found = learner(arch, part.inputs[rows], part.targets[rows])
        missed = found.curve(ridge, np.arange(len(rows)), [len(train)]).residuals[0]
    return _mean_square(missed)


def _mean_square(missed: Float[np.ndarray, "test output"]) -> float:
    return float(np.mean(np.sum(missed**2, axis=1)))


def _fits(problem: Problem, estimator: Any) -> Missed:
    return lambda train, test: residuals(problem, estimator, train, test)


def _judged(
    problem: Problem, name: str, estimator: Any, missed: Missed, folds: list[Fold]
) -> Compared:
    found = [missed(train, test) for train, test in folds]
    together = np.concatenate(found)
    rate = (
        class_errors(problem, np.concatenate([test for _, test in folds]), together)[0]
        if problem.classes
        else np.nan
    )
    squares = np.sum(together**2, axis=1)
    return Compared(name, float(squares.mean()), rate, len(folds[0][0]), estimator, squares, found)
