"""One measured number: its value, its interval, its distribution under a null hypothesis, and its
cost."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import stats

LEVEL = 0.95  # confidence of every interval


@dataclass(frozen=True)
class Null:
    """The distribution of an observable under a null hypothesis.

    hypothesis: in words. draws: values of the observable under the hypothesis. variance: that of
    the distribution, where it is known exactly. With a variance the distribution is Pearson's type
    III with mean 0 and the skewness of the draws, which reaches further into the tail than a few
    draws do.
    """

    hypothesis: str
    draws: np.ndarray
    variance: float | None = None

    def p_value(self, value: float) -> float:
        """The probability of a value at least as large. From draws it is (1 + draws at least as
        large) / (1 + all draws), which is exact for permutations."""
        if not math.isfinite(value):
            return math.nan
        if self.variance is not None:
            return float(self._law().sf(value))
        return float((1 + np.sum(self.draws >= value)) / (1 + len(self.draws)))

    def quantile(self, probability: float) -> float:
        if self.variance is not None:
            return float(self._law().ppf(probability))
        return float(np.quantile(self.draws, probability, method="higher"))

    def _law(self) -> "stats.rv_frozen":
        deviation = math.sqrt(self.variance or 0.0)
        skewness = float(np.mean((self.draws / deviation) ** 3))
        return stats.pearson3(max(skewness, 1e-3), loc=0.0, scale=deviation)


@dataclass(frozen=True)
class Observed:
    """One number about a network.

    name: of the number. value: its estimate, NaN where it cannot be measured. low, high: its 95 %
    interval. p_value: the probability of such a value under `null`. estimand: the source of
    variation that the interval describes: "examples", "neurons" (examples and neurons) or "seeds"
    (trainings); "entries" for a matrix as it is. source: the papers of the estimator and the
    distribution. seconds: time of the computation. note: why a part is missing and which input
    would provide it, or by which rule the cost was reduced. plain: the estimate before its
    jackknife bias was subtracted; without: values with one unit left out, for each kind of unit.
    From these two differences get an interval.
    """

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    p_value: float = math.nan
    null: Null | None = None
    estimand: str = "examples"
    source: str = ""
    seconds: float = 0.0
    note: str = ""
    plain: float = math.nan
    without: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)

    @property
    def error(self) -> float:
        """A quarter of the interval's width: one standard error of a Gaussian."""
        return (self.high - self.low) / (2 * stats.norm.ppf((1 + LEVEL) / 2))

    def __str__(self) -> str:
        if not math.isfinite(self.value):
            return f"{self.name}: not determined ({self.note})"
        words = [f"{self.name} {self.value:.4g}"]
        if math.isfinite(self.low):
            words.append(f"[{self.low:.4g}, {self.high:.4g}]")
        if math.isfinite(self.p_value):
            words.append(f"p {as_p_value(self.p_value)}")
        return " ".join(words) + (f" ({self.note})" if self.note else "")


def as_p_value(p: float) -> str:
    """A p-value in words, such as "= 0.03"."""
    return f"= {p:.2g}" if p > 0 else f"< {np.finfo(float).tiny:.0e}"


def jackknifed(
    name: str,
    value: float,
    without: Mapping[str, np.ndarray],
    unbiased: bool = True,
    **fields: object,
) -> Observed:
    """A measured number with its jackknife interval.

    value: the estimate from all units. without: for each kind of unit (examples, neurons) the
    estimates with one unit left out; variances of the kinds add up. The interval is Student's: the
    degrees of freedom of each kind are those of a variance that is measured as precisely
    (`_freedom`), and those of the kinds are combined by Welch and Satterthwaite. unbiased: subtract
    the sum over kinds of (m - 1)(mean without one - value), the bias of order 1/m (Quenouille
    1956).
    """
    units = {kind: np.asarray(left, float) for kind, left in without.items() if len(left) > 1}
    if not math.isfinite(value) or any(not np.isfinite(left).all() for left in units.values()):
        return Observed(name, math.nan, plain=value, without=without, **fields)  # type: ignore[arg-type]
    bias, variances = 0.0, []
    for left in units.values():
        m = len(left)
        bias += (m - 1) * (float(np.mean(left)) - value)
        variances.append(((m - 1) * float(np.var(left)), _freedom(left)))
    total = sum(variance for variance, _ in variances)
    estimate = value - bias if unbiased else value
    if total <= 0:
        low = high = estimate
    else:
        freedom = total**2 / sum(variance**2 / nu for variance, nu in variances)
        half = stats.t.ppf((1 + LEVEL) / 2, freedom) * math.sqrt(total)
        low, high = estimate - half, estimate + half
    return Observed(name, estimate, low, high, plain=value, without=units, **fields)  # type: ignore[arg-type]


def _freedom(left: np.ndarray) -> float:
    r"""The degrees of freedom of a jackknife variance.

    A variance of m numbers of kurtosis $\kappa$ has the relative variance $(\kappa - 3)/m + 2/(m -
    1)$, and one of $\nu$ degrees of freedom $2/\nu$. Gaussian numbers have m - 1, which is also the
    most that is returned; a few units that decide the result leave far fewer.
    """
    m, deviations = len(left), left - np.mean(left)
    square = float(np.mean(deviations**2))
    if square <= 0:
        return m - 1
    kurtosis = float(np.mean(deviations**4)) / square**2
    return 1 / max(1 / (m - 1), (kurtosis - 3) / (2 * m) + 1 / (m - 1))


def difference(name: str, late: Observed, early: Observed) -> Observed:
    """The difference late - early with a jackknife interval, in which a unit that belongs to both
    is left out of both.

    Intervals are never subtracted. Kinds of units that only one of the two has, or of which they
    have different numbers, are taken as independent.
    """
    without: dict[str, np.ndarray] = {}
    for kind in {*late.without, *early.without}:
        one, other = late.without.get(kind), early.without.get(kind)
        if one is not None and other is not None and len(one) == len(other):
            without[kind] = one - other
            continue
        if one is not None:
            without[f"{kind} of the first"] = one - early.plain
        if other is not None:
            without[f"{kind} of the second"] = late.plain - other
    shift = late.plain - early.plain
    return jackknifed(name, shift, without, estimand=late.estimand, source=late.source)


@contextmanager
def clocked() -> Iterator[list[float]]:
    """A context that yields a list, which contains the seconds spent inside after the context has
    ended."""
    seconds: list[float] = []
    start = time.perf_counter()
    try:
        yield seconds
    finally:
        seconds.append(time.perf_counter() - start)


def holm(measured: Sequence[Observed]) -> list[Observed]:
    """Numbers of one kind (those of all layers, say) with p-values that Holm's method corrects for
    their number."""
    p = np.array([one.p_value for one in measured])
    order = np.argsort(p)
    finite = [i for i in order if math.isfinite(p[i])]
    adjusted, running = p.copy(), 0.0
    for rank, i in enumerate(finite):
        running = max(running, (len(finite) - rank) * p[i])
        adjusted[i] = min(1.0, running)
    return [replace(one, p_value=float(value)) for one, value in zip(measured, adjusted)]
