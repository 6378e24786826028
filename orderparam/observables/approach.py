r"""The limit of a running coupling, averaged over the laws by which it may be approached.

The partition function of a loss K with its poles $-\lambda_k$ is a sum of
$t^{-\lambda_k} P_k(\ln t)$ with polynomials $P_k$, of which that of the first pole has the degree m
- 1 (Watanabe 2009). Therefore

$$ \lambda(t) = \lambda - \frac{P'(\ln t)}{P(\ln t)} + O(t^{-x}) ,
   \qquad \frac{P'}{P} = \sum_{i=1}^{m-1} \frac{1}{\ln t + c_i}
   \simeq \frac{m-1}{\ln t + c} , $$

where x is the distance to the next pole and the $c_i$ are minus the roots of P. The amplitude of
the logarithm is an integer and is not fitted. x is a multiple of 1/2 where K vanishes as a square
on each component of its zeros, as for linear networks, and of 1/4 where it vanishes as a fourth
power.
"""

from typing import NamedTuple

import numpy as np
from scipy import special, stats

from orderparam.analysis.corrections import Mixture
from orderparam.observables.observable import LEVEL

SHIFTS = np.geomspace(0.3, 20.0, 18)  # ln t + c at the first t of the window
CORRECTION, CORRECTION_BESIDE = 0.3, 0.6  # their scale at the first t, in units of lambda
EXCLUDED = 0.05  # odds against the best law, below which another one is left out


class ApproachLaw(NamedTuple):
    """multiplicity: m. powers: possible x of the corrections t^(-x) and t^(-2x). share: the prior
    probability, on which only the median of all laws depends: the interval holds those of every
    law that the data do not exclude."""

    multiplicity: int
    powers: tuple[float, ...]
    share: float


LAWS = (
    ApproachLaw(1, (1.0, 1.5), 0.25),  # a regular minimum has x = 1
    ApproachLaw(1, (0.5, 0.75), 0.2),
    ApproachLaw(1, (0.25, 1 / 3), 0.05),
    ApproachLaw(2, (0.5, 1.0), 0.29),  # half for logarithms, the less the higher the power
    ApproachLaw(3, (0.5, 1.0), 0.14),
    ApproachLaw(4, (0.5, 1.0), 0.07),
)


class Limit(NamedTuple):
    """low, high: the ends of the interval; middle: the median over all laws; multiplicity: the
    probability of m = 1, 2, ..; possible: the distribution of the limit under each law that the
    data do not exclude."""

    low: float
    middle: float
    high: float
    multiplicity: np.ndarray
    possible: list[Mixture]


def limit(t: np.ndarray, each: np.ndarray, order: int, parameters: float = np.inf) -> Limit:
    """The limit of lambda(t) from independent measurements (ensemble, t).

    Laws whose multiplicity exceeds the number of parameters are left out: m is at most that number.
    order: 0 for u = lambda(t); 1 for v = u - du/d ln t.

    The interval of an average over the laws would hold the limit in 60 to 85 % of cases where it is
    approached as 1 / ln t: a power with a small exponent describes these curves nearly as well.
    """
    few = stats.t.ppf((1 + LEVEL) / 2, len(each) - 1) / stats.norm.ppf((1 + LEVEL) / 2)
    mean, error = each.mean(axis=0), few * stats.sem(each, axis=0)
    log_t, largest = np.log(t / t[0]), np.max(mean)

    def corrections(x: float, size: float) -> list[np.ndarray]:
        return [size * largest * np.exp(-k * x * log_t) * (1 + order * k * x) for k in (1, 2)]

    def posterior(law: ApproachLaw) -> tuple[Mixture, float]:
        logarithms = law.multiplicity - 1
        size = CORRECTION_BESIDE if logarithms else CORRECTION
        found = []
        for shift in SHIFTS if logarithms else SHIFTS[:1]:
            shape = logarithms / (log_t + shift)
            level = mean + shape * (1 + order / (log_t + shift))
            found += [_constant(level, error, corrections(x, size)) for x in law.powers]
        middles, deviations, evidences = np.array(found).T
        mixture = Mixture(middles, deviations, special.softmax(evidences))
        return mixture, float(special.logsumexp(evidences) - np.log(len(found)))

    laws = [law for law in LAWS if law.multiplicity <= parameters]
    mixtures, evidences = zip(*(posterior(law) for law in laws))
    odds = np.exp(np.array(evidences) - max(evidences))
    shares = odds * [law.share for law in laws]
    shares = shares / shares.sum()
    both = Mixture(
        np.concatenate([one.mean for one in mixtures]),
        np.concatenate([one.deviation for one in mixtures]),
        np.concatenate([share * one.weights for share, one in zip(shares, mixtures)]),
    )
    possible = [one for one, odd in zip(mixtures, odds) if odd >= EXCLUDED]
    tail = (1 - LEVEL) / 2
    ends = np.array([one.quantiles((tail, 1 - tail)) for one in possible])
    multiplicity = np.bincount([law.multiplicity for law in laws], shares)[1:]
    middle = float(both.quantiles((0.5,))[0])
    return Limit(float(ends[:, 0].min()), middle, float(ends[:, 1].max()), multiplicity, possible)


def _constant(
    y: np.ndarray, error: np.ndarray, shapes: list[np.ndarray]
) -> tuple[float, float, float]:
    """Mean, deviation and log evidence of a constant; terms of these shapes with standard Gaussian
    coefficients are added to the noise."""
    covariance = np.diag(error**2) + sum(np.outer(shape, shape) for shape in shapes)
    inverse = np.linalg.inv(covariance)
    information = inverse.sum()
    mean = inverse.sum(axis=0) @ y / information
    rest = y - mean
    evidence = -0.5 * (rest @ inverse @ rest + np.linalg.slogdet(covariance)[1])
    return float(mean), float(information**-0.5), float(evidence - 0.5 * np.log(information))
