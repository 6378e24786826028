r"""The calibration of a classifier: the difference between stated confidences and the shares of
right answers.

In 15 bins of equal mass the mean of (right - stated) over a bin of $n_b$ examples is its gap. The
plain mean of |gap| is not zero for a perfect classifier; the squared gap less its variance is,

$$ G = \sum_b \frac{n_b}{N} \left( \mathrm{gap}_b^2 - \frac{\mathrm{var}_b}{n_b} \right) . $$
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from orderparam.observables.observable import Null, Observed

BINS = 15
DRAWS = 499
SOURCE = "Guo et al. 2017; Broecker 2012 (bias); Widmann et al. 2019"


class Calibration(NamedTuple):
    """measured: G. naive: the mean of |gap|, with its distribution for a perfect classifier.
    stated, right: the means of each bin; band: the 95 % interval of `right` for a perfect
    classifier."""

    measured: Observed
    naive: Observed
    stated: Float[np.ndarray, "bin"]
    right: Float[np.ndarray, "bin"]
    band: Float[np.ndarray, "2 bin"]


def calibration(
    confidence: Float[np.ndarray, "example"],
    right: Float[np.ndarray, "example"],
    *,
    bins: int = BINS,
    seed: int = 0,
) -> Calibration:
    """The squared gap between stated confidences and shares of right answers, without its bias.

    Args:
        confidence: Stated probability of the answer given, 0 to 1.
        right: 1 for a right answer, 0 for a wrong one.
        bins: Number of bins, which have equally many examples.
        seed: Seed of the null distribution, in which each answer is right with its stated
            probability.

    Returns:
        A `Calibration`; the interval of G is that of the bootstrap over examples within bins,
        widened to hold zero where p > 0.05.

    Raises:
        ValueError: for fewer than four examples in a bin, confidences outside 0 to 1, and answers
            that are neither 0 nor 1.

    Theory: 0 for a posterior mean of the true model; training beyond interpolation makes it
        positive (the topic `generalised_linear`).

    Source: Guo et al. 2017 (the plain error); Broecker 2012 (its bias); Widmann et al. 2019.

    >>> rng = np.random.default_rng(0)
    >>> stated = rng.uniform(0.5, 1, 2000)
    >>> found = op.observables.calibration(stated, rng.random(2000) < stated)
    >>> bool(found.measured.low <= 0 <= found.measured.high)
    True
    """
    c, r = np.asarray(confidence, np.float64).ravel(), np.asarray(right, np.float64).ravel()
    if len(c) != len(r) or len(c) < 4 * bins:
        raise ValueError(
            f"{len(c)} confidences and {len(r)} answers: must be as many, at least {4 * bins}"
        )
    if not ((c >= 0) & (c <= 1)).all() or not np.isin(r, (0, 1)).all():
        raise ValueError("confidences must lie from 0 to 1, and answers be 0 or 1")
    rng = np.random.default_rng(seed)
    groups = np.array_split(np.argsort(c, kind="stable"), bins)
    value, naive = (float(one) for one in _gaps(c, r, groups))
    answers = (rng.random((DRAWS, len(c))) < c).astype(float)
    means = np.stack([answers[:, group].mean(axis=1) for group in groups], axis=1)
    perfect = np.stack(_gaps(c, answers, groups), axis=1)
    again = np.zeros(DRAWS)
    for group in groups:
        gap = (r - c)[rng.choice(group, (DRAWS, len(group)))]
        squared = gap.mean(axis=1) ** 2 - gap.var(axis=1, ddof=1) / len(group)
        again += len(group) * squared / len(c)
    null = Null("answers as stated", perfect[:, 0])
    p_value = null.p_value(value)
    # a resampled bin has twice the sampling variance, but the estimate subtracts it only once
    extra = np.mean(again) - value
    low, high = 2 * value - np.quantile(again, [0.975, 0.025]) + extra
    if p_value > 0.05:
        low, high = min(low, 0.0), max(high, 0.0, float(null.quantile(0.95)))
    plain = Null("answers as stated", perfect[:, 1])
    return Calibration(
        Observed("squared gap", value, low, high, p_value, null, source=SOURCE),
        Observed("mean gap", naive, p_value=plain.p_value(naive), null=plain, source=SOURCE),
        np.array([c[group].mean() for group in groups]),
        np.array([r[group].mean() for group in groups]),
        np.quantile(means, [0.025, 0.975], axis=0),
    )


def _gaps(
    c: np.ndarray, r: Float[np.ndarray, "*draw example"], groups: list[np.ndarray]
) -> tuple[Any, Any]:
    """G and the plain mean of |gap|, for each row of answers."""
    squared, naive = np.zeros(r.shape[:-1]), np.zeros(r.shape[:-1])
    for group in groups:
        gap = r[..., group] - c[group]
        mean = gap.mean(axis=-1)
        squared += len(group) * (mean**2 - gap.var(axis=-1, ddof=1) / len(group))
        naive += len(group) * np.abs(mean)
    return squared / len(c), naive / len(c)
