"""The exponent of a spectrum that is known from n examples only.

The small eigenvalues of a covariance or kernel matrix of n examples are not those of the population. For Gaussian features whose
population eigenvalues are k^-a, k = 1, 2, ... without end, the Marchenko-Pastur equation is z = -s + (I/n) s^(1 - 1/a) with
I = (pi/a)/sin(pi/a), and is solved by a curve: with s = r e^(i t), 0 < t < pi, c = 1 - 1/a,

    r = [(I/n) sin(c t)/sin t]^a,    sample eigenvalue r sin(t/a)/sin(c t),
    its rank k/n = 1 - [t - (a - 1) sin t sin(t/a)/sin(c t)]/pi.

Their ratio to k^-a depends on k/n alone: it is near one up to k ~ n/5, and where it goes from there is known (derived for this
package). Eigenvalues are divided by it before any exponent is fitted. Errors come from half-samples of the examples, because
neighbouring eigenvalues are not independent, and residuals of a fit through them tell nothing.
"""

from dataclasses import dataclass

import numpy as np
import scipy.optimize
import scipy.special
from jaxtyping import Float

from orderparam.analysis.exponent import straight_line

Spectral = Float[np.ndarray, "mode"]

_CURVE = np.pi - np.geomspace(np.pi * (1 - 1e-9), 1e-9, 2000)  # of t, dense towards pi, where k is small
_PER_OCTAVE = 6  # ranks that a fit uses
_OCTAVES = 1.0  # half a running window, for local slopes
_SHORTEST = 2.0  # octaves of a power law's window
_EXPONENTS = 1 + np.geomspace(0.05, 7, 40)  # between which the ratio is used
_ROUNDS = 12


def sample_ratio(share: Float[np.ndarray, "mode"], exponent: float) -> Float[np.ndarray, "mode"]:
    """Sample over population eigenvalue at rank k = share n, 0 < share <= 1, of a spectrum k^-exponent, exponent > 1."""
    a, t = exponent, _CURVE
    inner = np.sin((1 - 1 / a) * t)
    rank = np.maximum(1 - (t - (a - 1) * np.sin(t) * np.sin(t / a) / inner) / np.pi, 1e-12)
    integral = np.pi / a / np.sin(np.pi / a)
    log_ratio = a * np.log(integral * inner / np.sin(t) * rank) + np.log(np.sin(t / a) / inner)
    order = np.argsort(rank)
    return np.exp(np.interp(np.log(share), np.log(rank[order]), log_ratio[order]))


def ranks(first: float, last: float) -> np.ndarray:
    """Whole numbers from first to last, evenly spaced in their logarithm as far as they can be."""
    count = max(2, round(_PER_OCTAVE * np.log2(last / first)) + 1)
    return np.unique(np.round(np.geomspace(first, last, count)).astype(int))


def local_exponents(log_rank: np.ndarray, log_value: np.ndarray) -> np.ndarray:
    """-d log value / d log rank, of a straight line through all points at most one octave away."""
    slopes = np.empty(len(log_rank))
    for i, centre in enumerate(log_rank):
        near = np.abs(log_rank - centre) <= _OCTAVES * np.log(2)
        slopes[i] = -straight_line(log_rank[near], log_value[near]).slope
    return slopes


def corrected(rank: np.ndarray, values: np.ndarray, examples: int | None) -> np.ndarray:
    """Population eigenvalues at these ranks, from those of the sample: divided by `sample_ratio` at the local exponent, which is
    that of a parabola through the logarithms of the result (slopes between neighbours would feed back on themselves).

    examples: n, or None where the features are fewer than the examples, and nothing is corrected.
    """
    if examples is None:
        return values
    table = np.stack([sample_ratio(rank / examples, a) for a in _EXPONENTS])
    found = values
    for _ in range(_ROUNDS):
        exponents = -np.polyval(np.polyder(np.polyfit(np.log(rank), np.log(found), 2)), np.log(rank))
        found = values / [np.interp(a, _EXPONENTS, ratios) for a, ratios in zip(exponents, table.T)]
    return found


@dataclass(frozen=True)
class PowerLaw:
    """value = amplitude rank^-exponent from rank window[0] to window[1]; deviation: root mean square of ln value from it."""

    exponent: float
    amplitude: float
    window: tuple[int, int]
    deviation: float


def fitted(rank: np.ndarray, values: np.ndarray, window: tuple[int, int]) -> PowerLaw:
    """Least squares in the logarithms, inside the window."""
    inside = (rank >= window[0]) & (rank <= window[1])
    x, y = np.log(rank[inside]), np.log(values[inside])
    line = straight_line(x, y)
    return PowerLaw(-line.slope, float(np.exp(line.constant)), window, float(np.sqrt(line.chi_squared / len(x))))


def widest(rank: np.ndarray, values: np.ndarray, tolerance: float) -> PowerLaw:
    """In the widest window, of two octaves at least, in which the deviation is below `tolerance`; that with the smallest
    deviation of two octaves where there is none."""
    pairs = [(int(a), int(b)) for a in rank for b in rank if b >= a * 2**_SHORTEST]
    laws = [fitted(rank, values, pair) for pair in pairs]
    good = [law for law in laws if law.deviation < tolerance]
    if good:
        return max(good, key=lambda law: (law.window[1] / law.window[0], -law.deviation))
    return min(laws, key=lambda law: law.deviation)


@dataclass(frozen=True)
class Shapes:
    """Root mean square deviations of ln value, over all ranks, of three shapes with their best numbers.

    power: A k^-a. cutoff: A k^-a e^(-k/c). lognormal: the values are quantiles of a log-normal law of `modes` members.
    """

    power: float
    cutoff: float
    lognormal: float


def shapes(rank: np.ndarray, values: np.ndarray, modes: int) -> Shapes:
    """Two, three and two numbers are fitted to ln value."""
    y, one, log_rank = np.log(values), np.ones(len(rank)), np.log(rank)

    def deviation(columns: list[np.ndarray], bounds: tuple[list[float], list[float]]) -> float:
        fit = scipy.optimize.lsq_linear(np.stack(columns, axis=1), y, bounds)
        return float(np.sqrt(2 * fit.cost / len(y)))

    free, falling = [-np.inf, np.inf], [-np.inf, 0.0]
    quantile = scipy.special.ndtri(1 - (rank - 0.5) / modes)
    return Shapes(
        deviation([one, log_rank], ([free[0], falling[0]], [free[1], falling[1]])),
        deviation([one, log_rank, rank / rank[-1]], ([-np.inf] * 3, [np.inf, 0.0, 0.0])),
        deviation([one, quantile], ([-np.inf, 0.0], [np.inf, np.inf])),
    )
