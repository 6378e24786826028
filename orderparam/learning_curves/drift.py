"""Rows that differ from those that were learned: other groups, later rows, and new rows of the
person's own, each with the significance of the difference."""

import dataclasses
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from scipy.stats import ks_2samp, norm
from sklearn.ensemble import RandomForestClassifier

from orderparam.core.text import counted
from orderparam.learning_curves.choice import best_ridge
from orderparam.learning_curves.estimators import NORMAL, residuals
from orderparam.learning_curves.learners import TESTED, Exact, Learner, learner
from orderparam.learning_curves.measured import FOLDS, ORDERS, Measured, measure, orders_of
from orderparam.learning_curves.problem import Problem, target_values
from orderparam.learning_curves.shift import ShiftForecast, shift_forecast

if TYPE_CHECKING:
    import pandas as pd

    from orderparam.data.columns import Encoding
    from orderparam.learning_curves.result import Forecast

# relative difference of errors above which grouped or ordered rows are reported to matter
MATTERS = 0.1
SIGNIFICANT = 0.05
FEWEST_NEW, MOST_NEW = 10, 2000  # rows that are compared
_SHUFFLED = 399  # orders of the rows with which the one in time is compared


@dataclass(frozen=True)
class Apart:
    """The separation of two sets of rows by a forest that sees their inputs alone.

    area: the probability that it ranks a row of the second set above one of the first, 1/2 for sets
    of the same law; error: its standard deviation for such sets; p_value: the probability that such
    sets reach this area.
    """

    area: float
    error: float

    @property
    def p_value(self) -> float:
        return float(norm.sf((self.area - 0.5) / self.error))

    @property
    def significant(self) -> bool:
        return self.p_value < SIGNIFICANT

    def __str__(self) -> str:
        verdict = "a significant difference" if self.significant else "no significant difference"
        return (
            f"a forest ranks {self.area:.0%} of pairs in the right order "
            f"(50 ± {100 * self.error:.1f} % by chance, p = {self.p_value:.2g}): {verdict}"
        )


@dataclass(frozen=True)
class NewRows:
    """New rows beside those that were learned.

    rows: their number. separation: of their inputs. columns: the columns that differ most, with the
    probability of such a difference by chance (corrected for the number of columns), where it is
    below 5 %. error, expected: the squared error on the new rows of what learned all rows, and that
    on held-out rows, as shares of the variance, each with its standard error; None without targets.
    shift: the error of a wide network there, forecast from the inputs; None where rows have groups.
    """

    rows: int
    separation: Apart
    columns: tuple[tuple[str, float], ...]
    error: tuple[float, float] | None = None
    expected: tuple[float, float] | None = None
    shift: ShiftForecast | None = None

    @property
    def p_value(self) -> float | None:
        """The probability that the errors differ as much by chance; None without targets."""
        if self.error is None or self.expected is None:
            return None
        width = np.hypot(self.error[1], self.expected[1])
        return float(2 * norm.sf(abs(self.error[0] - self.expected[0]) / width))

    @property
    def significant(self) -> bool:
        """True if the inputs or the errors differ by more than chance."""
        return self.separation.significant or (
            self.p_value is not None and self.p_value < SIGNIFICANT
        )

    def sentences(self) -> list[str]:
        """The findings on the new rows as sentences, one finding in each."""
        lines = [f"{self.rows} new rows, inputs: {self.separation}"]
        if self.columns:
            names = ", ".join(f"{name} (p = {p:.1g})" for name, p in self.columns)
            lines.append(f"columns that differ most: {names}")
        if self.error is not None and self.expected is not None and self.p_value is not None:
            differ = self.p_value < SIGNIFICANT
            verdict = "a significant difference" if differ else "no significant difference"
            lines.append(
                f"error on the new rows {self.error[0]:.3g} ± {self.error[1]:.1g}, on held-out "
                f"rows of yours {self.expected[0]:.3g} ± {self.expected[1]:.1g} (p = "
                f"{self.p_value:.2g}): {verdict}"
            )
        if self.shift is not None:
            lines.append(str(self.shift))
        return lines


def told_apart(
    first: Float[np.ndarray, "row input"], second: Float[np.ndarray, "other input"]
) -> Apart:
    """The separation of two sets of rows by a forest that is trained on one half of both sets and
    tested on the other half, and the reverse."""
    random = np.random.default_rng(7)
    sets = [random.permutation(rows)[:MOST_NEW] for rows in (first, second)]
    halves = [(one[0::2], one[1::2]) for one in sets]
    areas, variances = [], []
    for train, test in ((0, 1), (1, 0)):
        parts = [half[train] for half in halves]
        forest = RandomForestClassifier(
            100, min_samples_leaf=3, class_weight="balanced", random_state=0
        ).fit(np.concatenate(parts), np.repeat([0, 1], [len(part) for part in parts]))
        below, above = (forest.predict_proba(half[test])[:, 1] for half in halves)
        below = np.sort(below)
        lower, upper = (np.searchsorted(below, above, side) for side in ("left", "right"))
        areas.append(float(np.mean(lower + upper)) / (2 * len(below)))
        n, m = len(below), len(above)
        variances.append((n + m + 1) / (12 * n * m))  # of the statistic of Mann and Whitney
    # both directions see the same chance patterns: their areas are taken as fully correlated
    return Apart(float(np.mean(areas)), float(np.mean(np.sqrt(variances))))


def encoding_for(problem: Problem, frame: "pd.DataFrame") -> "Encoding":
    """The encoding of a problem, for new rows with which it can be compared.

    Raises `ValueError` for a problem that is not of a table, for fewer than 10 rows, and for
    columns that are missing.
    """
    if problem.encoding is None:
        raise ValueError(f"{problem.name}: new rows can be compared for tables only")
    if len(frame) < FEWEST_NEW:
        raise ValueError(f"{counted(len(frame), 'new row')}: there must be at least {FEWEST_NEW}")
    problem.encoding.check(frame)
    return problem.encoding


def new_rows(result: "Forecast", frame: "pd.DataFrame") -> NewRows:
    """Compares new rows of a table with those of a forecast.

    Raises `ValueError` for a forecast that is not of a table, for fewer than 10 rows, for columns
    that are missing, and for targets that are no class or number of the forecast.
    """
    problem = result.problem
    encoding = encoding_for(problem, frame)
    inputs = encoding(frame)
    separation = told_apart(problem.inputs, inputs)
    columns = _differing(problem, inputs)
    if len(problem.names) > 1 or problem.names[0] not in frame.columns:
        return NewRows(len(frame), separation, columns, shift=_shift(result, inputs))
    values = target_values(problem, frame[problem.names[0]])
    labelled = np.flatnonzero(np.isfinite(values).all(axis=1))
    if len(labelled) < FEWEST_NEW:
        return NewRows(len(frame), separation, columns, shift=_shift(result, inputs))
    squares = _squares(result, inputs[labelled], values[labelled])
    # new squared errors without drift scatter as those on held-out rows do, of which there are more
    each = max(float(squares.std()), result.leave_one_out * result.doubt * np.sqrt(result.tested))
    return NewRows(
        len(frame),
        separation,
        columns,
        (float(squares.mean()), each / np.sqrt(len(labelled))),
        (result.leave_one_out, result.leave_one_out * result.doubt),
        _shift(result, inputs[labelled], values[labelled]),
    )


def _shift(
    result: "Forecast",
    inputs: Float[np.ndarray, "row input"],
    values: np.ndarray | None = None,
) -> ShiftForecast | None:
    """The forecast of the network's error on new rows; None for groups, of which a row that is left
    out is not like a new one. values: in the units of `Problem.values`."""
    problem = result.problem
    if problem.groups is not None:
        return None
    targets = None if values is None else (values - problem.mean) / np.sqrt(problem.variance)
    return shift_forecast(
        result.arch, result.ridge, problem.inputs, problem.targets, inputs, targets
    )


def _differing(
    problem: Problem, inputs: Float[np.ndarray, "row input"]
) -> tuple[tuple[str, float], ...]:
    names = [one.name for one in problem.columns for _ in range(one.inputs)]
    found: dict[str, float] = {}
    for name, old, new in zip(names, problem.inputs.T, inputs.T):
        chance = float(ks_2samp(old[:: max(1, len(old) // MOST_NEW)], new).pvalue)
        found[name] = min(found.get(name, 1.0), chance * len(names))
    worst = sorted(found.items(), key=lambda one: one[1])[:3]
    return tuple((name, chance) for name, chance in worst if chance < SIGNIFICANT)


def _squares(
    result: "Forecast", inputs: Float[np.ndarray, "row input"], values: np.ndarray
) -> Float[np.ndarray, "row"]:
    """The squared errors, on new rows, of what learned all rows of the forecast."""
    problem, count = result.problem, len(result.problem.inputs)
    both = dataclasses.replace(
        problem,
        inputs=np.concatenate([problem.inputs, inputs]),
        values=np.concatenate([problem.values, values]),
    )
    unit = np.sqrt(both.variance / problem.variance)
    rows = np.arange(len(both.values))
    if result.estimator is not None:
        return np.sum(
            (unit * residuals(both, result.estimator, rows[:count], rows[count:])) ** 2, 1
        )
    targets = (both.values - problem.mean) / np.sqrt(problem.variance)
    found: Any = learner(result.arch, both.inputs, targets)
    size = min(count, TESTED * 2)
    missed = found.curve(result.ridge, np.concatenate([rows[:size], rows[count:]]), [size])
    return np.sum(missed.residuals[0] ** 2, axis=1)


def dependence(problem: Problem, found: Learner, measured: Measured) -> list[str]:
    """Compares the error on held-out groups, or on later rows, with that on random rows, both with
    their standard errors.

    Few later rows are tested, and squared errors are skewed: where their mean is small by chance,
    so is its standard error. Without drift they scatter as random rows do, so the scatter is taken
    from the more numerous random rows; stretches of time whose errors are correlated count less.
    """
    if problem.groups is None and not problem.ordered:
        return []
    plain = dataclasses.replace(problem, groups=None, ordered=False)
    orders = orders_of(found.examples, ORDERS)
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
    text = (
        f"held-out {what}: error {ours:.3g} ± {errors[0]:.1g}; random rows: {theirs:.3g} ± "
        f"{errors[1]:.1g}: "
    )
    seen = _moving_law(found, best_ridge(found)[0]) if problem.ordered else []
    if abs(ours - theirs) < NORMAL * np.hypot(*errors):
        return [f"{text}no significant difference", *seen]
    text += f"a significant difference, by a factor {ours / theirs:.2f}"
    if abs(np.log(ours / theirs)) > MATTERS:
        warnings.warn(f"{text}: an error measured on random rows would mislead", stacklevel=2)
    return [text, *seen]


def _moving_law(found: Learner, ridge: float) -> list[str]:
    """Says whether the dependence of the target on the inputs moves with time, which is seen long
    before later rows have a larger error."""
    chance = chance_of_drift(found, ridge)
    verdict = "does" if chance < SIGNIFICANT else "is not seen to"
    return [
        f"what the inputs say of the target {verdict} move with time (p = {chance:.2g}, from the "
        "order of the residuals)"
    ]


def chance_of_drift(found: Learner, ridge: float) -> float:
    r"""The probability that rows without drift have residuals in such an order in time.

    The statistic is that of the score test for a part $t\, g(x)$ of the target with a Gaussian g of
    the learner's kernel,

    $$ Q = \sum_{ij} t_i r_i K_{ij} t_j r_j, $$

    with the leave-one-out residuals r and the times t, equally spaced from -1/2 to 1/2. It is
    compared with its values for 399 orders in which stretches of $n^{1/3}$ rows change places, so
    that residuals that are correlated over a few rows are not taken for drift. Above 2,000 rows a
    random 2,000 of them are used, in their order.

    Source: derived here.
    """
    exact = found if isinstance(found, Exact) else found.pool
    residuals, count = exact.leave_one_out(ridge), exact.examples
    times = (np.arange(count) + 0.5) / count - 0.5
    stretches = np.array_split(np.arange(count), round(count ** (2 / 3)))
    random = np.random.default_rng(11)
    orders = [
        np.concatenate([stretches[place] for place in random.permutation(len(stretches))])
        for _ in range(_SHUFFLED)
    ]
    moved = times[np.stack([np.arange(count), *orders], axis=1)]
    scores = np.zeros(_SHUFFLED + 1)
    for one in residuals.T:
        weighted = one[:, None] * moved
        scores += np.einsum("ij,ij->j", weighted, exact.kernel @ weighted)
    return float(np.mean(scores >= scores[0]))


def later_inputs(problem: Problem, arch: str, ridge: float) -> list[str]:
    """Sentences on rows in the order of time: whether the inputs of the last fifth differ from
    those before, and whether this explains the error of a network there."""
    if not problem.ordered:
        return []
    cut = int(len(problem.inputs) * (1 - 1 / FOLDS))
    earlier, later = np.split(problem.inputs, [cut])
    lines = [
        (
            "inputs of the last fifth of the rows and those of earlier rows: "
            f"{told_apart(earlier, later)}"
        )
    ]
    if problem.groups is None:
        before, after = np.split(problem.targets, [cut])
        found = shift_forecast(arch, ridge, earlier, before, later, after)
        lines.append(f"the last fifth, learned from the earlier rows: {found}")
    return lines
