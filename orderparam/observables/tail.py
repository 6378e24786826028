"""A power law in the tail of a spectrum, reported only if four tests allow it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import optimize, stats

from orderparam.observables.observable import Observed
from orderparam.observables.weights import WeightSpectrum

OUTLIERS = 10  # fewest outliers beyond noise
DRAWS = 200
_LEAST = 10  # fewest eigenvalues in a tail
_STARTS = 40  # number of candidates for the first eigenvalue of the tail
SOURCE = "Clauset, Shalizi and Newman 2009; gate derived here"


@dataclass(frozen=True)
class PowerLawTail:
    """The result of `power_law_tail`.

    exponent: alpha of the density x^-alpha of eigenvalues x = s^2; NaN where no power law is
    reported; the note then names the test that failed. start: where the tail begins; count: the
    eigenvalues in it; goodness: p-value of the Kolmogorov-Smirnov distance; NaN where it was not
    needed.
    """

    exponent: Observed
    start: float
    count: int
    goodness: float


def power_law_tail(spectrum: WeightSpectrum, *, seed: int = 0) -> PowerLawTail:
    """The exponent of the eigenvalues' tail, or the reason why none is reported.

    The tests, in this order, are: at least 10 outliers beyond noise; a tail over a factor 10, or of
    at least 50 eigenvalues; the distance of Kolmogorov and Smirnov with p > 0.1 under the
    semi-parametric bootstrap, in which the start is chosen anew; and neither a lognormal nor an
    exponential distribution that fits better at the 5 % level (Vuong).

    Args:
        spectrum: That of a weight matrix.
        seed: Seed of the bootstrap.

    Accuracy: of random matrices and of those with 1 to 5 directions none was given an exponent, as
        the first test lets none through (`tests/observables/test_weights.py`). The interval is the
        bootstrap's with the start chosen anew.

    Source: Clauset, Shalizi and Newman 2009; Vuong 1989; the gate is derived here.

    >>> noise = np.random.default_rng(0).normal(size=(200, 100))
    >>> spectrum = op.observables.weight_spectrum(noise)
    >>> print(op.observables.power_law_tail(spectrum).exponent)
    exponent of the tail: not determined (no power law: the bulk and 0 outliers)
    """
    outliers = len(spectrum.outliers)
    plain = f"no power law: the bulk and {outliers} outlier{'' if outliers == 1 else 's'}"

    def none(reason: str, start: float = np.nan, count: int = 0, p: float = np.nan) -> PowerLawTail:
        note = plain + (f" ({reason})" if reason else "")
        measured = Observed(
            "exponent of the tail", np.nan, note=note, estimand="entries", source=SOURCE
        )
        return PowerLawTail(measured, start, count, p)

    if outliers < OUTLIERS:
        return none("")
    x = np.sort(spectrum.singular_values**2)
    rng = np.random.default_rng(seed)
    alpha, start, distance = _fit(x)
    tail = x[x >= start]
    if tail[-1] / start < 10 and len(tail) < 50:
        return none("the tail is short", start, len(tail))
    below, share, again = x[x < start], len(tail) / len(x), []
    for _ in range(DRAWS):
        many = rng.binomial(len(x), share)
        drawn = start * (1 - rng.random(many)) ** (-1 / (alpha - 1))
        rest = rng.choice(below, len(x) - many) if len(below) else drawn[:0]
        again.append(_fit(np.sort(np.append(rest, drawn)))[2])
    goodness = float((1 + np.sum(np.array(again) >= distance)) / (1 + DRAWS))
    if goodness <= 0.1:
        return none(f"goodness of fit p = {goodness:.2g}", start, len(tail), goodness)
    better = _better(tail, start, alpha)
    if better:
        return none(f"{better} fits better", start, len(tail), goodness)
    boot = [_fit(np.sort(rng.choice(x, len(x))))[0] for _ in range(DRAWS)]
    low, high = np.quantile(boot, [0.025, 0.975])
    measured = Observed(
        "exponent of the tail", alpha, float(low), float(high), goodness, estimand="entries",
        source=SOURCE, note=f"the p-value is that of the goodness of fit, over {len(tail)} values",
    )  # fmt: skip
    return PowerLawTail(measured, start, len(tail), goodness)


def _fit(x: Float[np.ndarray, "value"]) -> tuple[float, float, float]:
    """The exponent, the start and the distance of the best tail of sorted values."""
    logs = np.log(np.maximum(x, 1e-300))
    starts = np.unique(np.linspace(0, len(x) - _LEAST, _STARTS).astype(int))
    best = (np.inf, np.nan, np.nan)
    for i in starts:
        over = logs[i:] - logs[i]
        if over[-1] <= 0:
            continue
        alpha = 1 + len(over) / over.sum()
        law = 1 - np.exp(-(alpha - 1) * over)
        steps = np.arange(len(over) + 1) / len(over)
        distance = max(np.max(steps[1:] - law), np.max(law - steps[:-1]))
        best = min(best, (float(distance), float(alpha), float(x[i])))
    return best[1], best[2], best[0]


def _better(tail: np.ndarray, start: float, alpha: float) -> str:
    """The law that fits the tail better than the power law at 5 %, or an empty string."""
    power = np.log((alpha - 1) / start) - alpha * np.log(tail / start)
    rate = 1 / (np.mean(tail) - start)
    others = {"an exponential": np.log(rate) - rate * (tail - start)}
    logs = np.log(tail)

    def lognormal(parameters: np.ndarray) -> np.ndarray:
        law = stats.norm(parameters[0], np.exp(np.clip(parameters[1], -20, 20)))
        return law.logpdf(logs) - logs - law.logsf(np.log(start))

    guess = [logs.mean(), np.log(logs.std() + 1e-6)]
    best = optimize.minimize(
        lambda q: -np.sum(np.nan_to_num(lognormal(q), nan=-1e6, neginf=-1e6)), guess,
        method="Nelder-Mead",
    )  # fmt: skip
    others["a lognormal"] = lognormal(best.x)
    for name, other in others.items():
        ratio = other - power
        spread = np.std(ratio) * np.sqrt(len(tail))
        if spread > 0 and stats.norm.sf(np.sum(ratio) / spread) < 0.025:
            return name
    return ""
