"""The slope of ln y against ln x at large x, averaged over the corrections to scaling that it may
have.

With t = ln x - (its smallest value), the laws of the family are

    pure                ln y = a + b t
    with corrections    ln y = a + b t + sum_{k=1..5} c_k exp(-k omega t)
    with a logarithm    ln y = a + b t + c ln(1 + t / tau) + e t / (tau + t)
                               + sum_{k=1..2} c_k exp(-k omega t)

where the c_k are Gaussian, of mean 0 and standard deviation s, and c, the power of the logarithm of
x / x_0 with tau = ln(x_min / x_0), is Gaussian of standard deviation 1; laws with and without the
c_k are included. The term with e accounts for a tau between two points of the grid. For one (omega,
s, tau) this is linear regression with a Gaussian prior: the exponent b has a Gaussian posterior,
and the data have an evidence. The result is the mixture of these posteriors, weighted by the
evidence and by SHARES, over the grids below (MacKay 1992). If a data set cannot distinguish the
laws the mixture is wide, which a fit of only the best law would hide.

SHARES make a logarithm improbable. Where there is one, and slow corrections describe the data as
well, the interval of this mixture is too narrow. The interval is therefore extended to contain that
of a second mixture, in which all kinds of law (pure, corrected, logarithm, logarithm with
corrections) have the same prior probability, without the kinds against which the odds are more than
five to one.

Where the errors are unknown (a few widths with a few runs at each), the noise of ln y is another
unknown, the same at all x, with a prior that is flat in its logarithm: `slope_law`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy

OMEGAS = np.geomspace(0.25, 2.5, 8)
STRENGTHS = np.geomspace(0.3, 10.0, 5)  # s: size of the corrections of ln y at the smallest x
TERMS = 5
TAUS = np.geomspace(0.4, 6.4, 33)
TAUS_BESIDE = TAUS[::4]  # of logarithms with corrections
BESIDE = ((0.5, 1.0, 2.0), (0.3, 1.0, 3.0))  # omega and s of the corrections beside a logarithm
TERMS_BESIDE = 2
# Prior probability of each kind of law. With a smaller one for pure laws, their intervals contain
# the exponent in 99 % rather than 95 % of cases; with a larger one, corrections that the noise
# hides are missed. With a larger one for logarithms, laws with slow corrections x^-1/2 are taken
# for logarithms.
SHARES = {"pure": 0.08, "corrected": 0.865, "logarithm": 0.025, "logarithm, corrected": 0.03}
EXCLUDED = 0.2  # odds against the best kind, below which a kind is left out of the second mixture
ACCEPTED = 0.05  # a fit whose chi squared is exceeded with a smaller probability is rejected
LADDER: dict[str, Any] = {
    "omegas": (0.5, 0.75, 1.0, 1.5, 2.0),
    "strengths": (1.0,),
    "terms": 2,
}  # prior probabilities in `slope_law`
NOISES = np.geomspace(0.02, 8.0, 60)  # sizes in units of the scatter about one straight line
_LEAST_NOISE = 1e-6
_FLAT = (1e-4, 4e-2)  # inverse prior variances of a and b, too small to have an effect
_NEGLIGIBLE = 1e-6  # smallest weight in the mixture that is kept
_ROUNDS = 3  # number of iterations in which weights follow the fitted y instead of the noisy one


class Slope(NamedTuple):
    """low, high: the ends of the 95 % interval of b, over both mixtures; middle: the median of the
    first. chi_squared, freedom: those of the most probable law, whose ln y are `fitted`. logarithm:
    the probability of the laws with a logarithm. possible: the kinds that are not excluded, by
    their names in SHARES."""

    low: float
    middle: float
    high: float
    chi_squared: float
    freedom: float
    fitted: np.ndarray
    logarithm: float
    possible: tuple[str, ...]


class Mixture(NamedTuple):
    """The distribution of a number: a mixture of Gaussians."""

    mean: np.ndarray
    deviation: np.ndarray
    weights: np.ndarray

    def quantiles(self, levels: Sequence[float]) -> tuple[float, ...]:
        return _quantiles(self, self.weights, tuple(levels))

    def below(self, value: float) -> float:
        """The probability that the number is below this one."""
        return float(self.weights @ scipy.special.ndtr((value - self.mean) / self.deviation))


class _Family(NamedTuple):
    """The family of laws. For each law: design (point, coefficient), inverse prior variances of the
    coefficients, the prior probability, and its kind, a name in SHARES."""

    designs: np.ndarray
    precisions: np.ndarray
    shares: np.ndarray
    kinds: np.ndarray


class _Posterior(NamedTuple):
    """The fit of each law of the family: mean and standard deviation of b, the logarithm of
    evidence times prior probability, chi squared, degrees of freedom, and fitted ln y."""

    mean: np.ndarray
    deviation: np.ndarray
    evidence: np.ndarray
    chi_squared: np.ndarray
    freedom: np.ndarray
    fitted: np.ndarray


def probable(chi_squared: float, freedom: float) -> float:
    """The probability of a chi squared at least as large by chance."""
    return float(scipy.special.gammaincc(freedom / 2, chi_squared / 2))


def asymptotic_slope(
    log_x: np.ndarray, y: np.ndarray, error: np.ndarray, correction: bool = True
) -> Slope:
    """The slope b of values with these standard errors. Errors are multiplied by the square root of
    chi squared per degree of freedom where that is above 1 and the fit is improbable."""
    family = _family(log_x - np.min(log_x), correction)
    found = _fitted(family, y, error)
    best = int(np.argmax(found.evidence))
    chi_squared, freedom = float(found.chi_squared[best]), float(found.freedom[best])
    if probable(chi_squared, freedom) < ACCEPTED:
        found = _fitted(family, y, error * np.sqrt(chi_squared / freedom))
    weights = scipy.special.softmax(found.evidence)
    low, middle, high = _quantiles(found, weights, (0.025, 0.5, 0.975))
    possible = _possible(family, found)
    equal = found.evidence - np.log([SHARES[kind] for kind in family.kinds])
    equal = np.where(np.isin(family.kinds, possible), equal, -np.inf)
    ends = _quantiles(found, scipy.special.softmax(equal), (0.025, 0.975))
    low, high = min(low, ends[0]), max(high, ends[1])
    logarithm = float(np.sum(weights[np.char.startswith(family.kinds, "logarithm")]))
    return Slope(low, middle, high, chi_squared, freedom, found.fitted[best], logarithm, possible)


def _possible(family: _Family, found: _Posterior) -> tuple[str, ...]:
    """The kinds of law that the data do not exclude, if all were equally probable beforehand."""
    odds = {
        kind: scipy.special.logsumexp(found.evidence[family.kinds == kind]) - np.log(SHARES[kind])
        for kind in SHARES
        if np.any(family.kinds == kind)
    }
    least = max(odds.values()) + np.log(EXCLUDED)
    return tuple(kind for kind, value in odds.items() if value >= least)


def slope_law(log_x: np.ndarray, log_y: np.ndarray) -> Mixture:
    """The slope b of values without errors, one for each run. Corrections at the smallest x may be
    as large as y itself, and the noise has an unknown size."""
    t, y = log_x - np.min(log_x), log_y - np.mean(log_y)
    family = _joined({"corrected": _corrected(_line(t), t, **LADDER)})
    scatter = np.std(y - np.polyval(np.polyfit(t, y, 1), t))
    means, deviations, evidences = [], [], []
    for noise in np.maximum(scatter, _LEAST_NOISE) * NOISES:
        found = _linear(family, y, np.full(len(y), 1 / noise))
        means.append(found.mean)
        deviations.append(found.deviation)
        evidences.append(found.evidence - len(y) * np.log(noise))
    weights = scipy.special.softmax(np.concatenate(evidences))
    return Mixture(np.concatenate(means), np.concatenate(deviations), weights)


def _family(t: np.ndarray, correction: bool) -> _Family:
    """The laws at these x; only the pure law where no corrections are allowed."""
    line = _line(t)
    if not correction:
        return _joined({"pure": [line]})
    logarithms, coarse = _with_logarithm(line, t, TAUS), _with_logarithm(line, t, TAUS_BESIDE)
    return _joined(
        {
            "pure": [line],
            "corrected": _corrected(line, t, OMEGAS, STRENGTHS, TERMS),
            "logarithm": logarithms,
            "logarithm, corrected": [
                law for one in coarse for law in _corrected(one, t, *BESIDE, TERMS_BESIDE)
            ],
        }
    )


class _Law(NamedTuple):
    """One law: its design (point, coefficient), and the inverse prior variances of the
    coefficients."""

    design: np.ndarray
    precisions: np.ndarray

    def beside(self, columns: np.ndarray, deviation: float) -> "_Law":
        """The law with further terms, whose coefficients have this prior standard deviation."""
        held = np.full(columns.shape[1], deviation**-2)
        return _Law(np.hstack([self.design, columns]), np.concatenate([self.precisions, held]))


def _line(t: np.ndarray) -> _Law:
    return _Law(np.stack([np.ones_like(t), t], axis=1), np.array(_FLAT))


def _with_logarithm(law: _Law, t: np.ndarray, taus: np.ndarray) -> list[_Law]:
    """The law beside the power of a logarithm, for every tau of a grid in equal steps of ln tau."""
    half_a_step = np.log(taus[1] / taus[0]) / 2
    return [
        law.beside(np.log1p(t / tau)[:, None], 1.0).beside((t / (tau + t))[:, None], half_a_step)
        for tau in taus
    ]


def _corrected(
    law: _Law, t: np.ndarray, omegas: Iterable[float], strengths: Iterable[float], terms: int
) -> list[_Law]:
    """The law with corrections of every omega and strength."""
    order = np.arange(1, terms + 1)
    return [
        law.beside(np.exp(-omega * t[:, None] * order), strength)
        for omega in omegas
        for strength in strengths
    ]


def _joined(kinds: Mapping[str, Sequence[_Law]]) -> _Family:
    """Laws of fewer terms get columns of zeros, whose coefficients keep their prior."""
    laws = [(name, law) for name, members in kinds.items() for law in members]
    terms = max(len(law.precisions) for _, law in laws)
    designs = np.zeros((len(laws), len(laws[0][1].design), terms))
    precisions = np.ones((len(laws), terms))
    for place, (_, law) in enumerate(laws):
        designs[place, :, : law.design.shape[1]] = law.design
        precisions[place, : len(law.precisions)] = law.precisions
    shares = np.array([SHARES[name] / len(kinds[name]) for name, _ in laws])
    return _Family(designs, precisions, shares, np.array([name for name, _ in laws]))


def _fitted(family: _Family, y: np.ndarray, error: np.ndarray) -> _Posterior:
    """Fits all laws. The error of ln y is the error of y over the fitted y. With the measured y in
    the denominator, points that came out low would have too small a weight."""
    target, weight = np.log(y), y / error
    for _ in range(_ROUNDS):
        found = _linear(family, target, weight)
        fitted = found.fitted[np.argmax(found.evidence)]
        ratio = y * np.exp(-fitted)
        target, weight = fitted + ratio - 1, np.exp(fitted) / error
    return found


def _linear(family: _Family, target: np.ndarray, weight: np.ndarray) -> _Posterior:
    designs, precisions = family.designs, family.precisions
    rows = designs * weight[:, None]
    turned = np.swapaxes(rows, 1, 2)
    information = turned @ rows
    curvature = information + precisions[:, :, None] * np.eye(precisions.shape[1])
    scale = np.sqrt(np.einsum("lii->li", curvature))
    covariance = np.linalg.inv(curvature / (scale[:, :, None] * scale[:, None, :]))
    covariance = covariance / (scale[:, :, None] * scale[:, None, :])
    coefficients = (covariance @ (turned @ (target * weight))[..., None])[..., 0]
    fitted = (designs @ coefficients[..., None])[..., 0]
    chi_squared = np.sum(((target - fitted) * weight) ** 2, axis=1)
    penalty = np.sum(precisions * coefficients**2, axis=1)
    volume = np.linalg.slogdet(covariance)[1] + np.sum(np.log(precisions), axis=1)
    used = np.einsum("lij,lji->l", covariance, information)
    return _Posterior(
        coefficients[:, 1],
        np.sqrt(covariance[:, 1, 1]),
        (volume - chi_squared - penalty) / 2 + np.log(family.shares),
        chi_squared,
        np.maximum(len(target) - used, 1e-3),
        fitted,
    )


def _quantiles(
    found: "_Posterior | Mixture", weights: np.ndarray, levels: tuple[float, ...]
) -> tuple[float, ...]:
    """Quantiles of the mixture of Gaussians, by bisection."""
    used = weights > _NEGLIGIBLE
    mean, deviation, weights = found.mean[used], found.deviation[used], weights[used]
    weights = weights / np.sum(weights)
    low = np.full(len(levels), np.min(mean - 9 * deviation))
    high = np.full(len(levels), np.max(mean + 9 * deviation))
    for _ in range(60):
        middle = (low + high) / 2
        below = scipy.special.ndtr((middle[:, None] - mean) / deviation) @ weights < levels
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return tuple(map(float, (low + high) / 2))
