"""The learning curve beyond its measured errors: of a learner that is not a kernel, and how much of
the change that the theory of a kernel predicts is kept.

**Other learners.** Power laws above a floor are fitted to the measured errors, each weighted by how
well it explains them. Their mean change of the log error, c, exaggerates: early points of trees
fall steeply, since a tree cannot split few rows, and a maximum of noise looks like a fall. So only
a share of it is predicted. Where another learner has the smaller error on the same rows, this one
can still fall by up to the gap between them:

    log E(n') - log E(n) = share c + (rise + gap g) log(n'/n),     at most 0

with g = log(error of the best other learner / own error) where this is negative, else 0. The
variance of the forecast has a part for each of these, and one for the scatter of the last measured
error between samples of n rows,

    change c^2 + (walk (1 - E)^2 + between g^2) log(n'/n) + level (1 - E)/n + doubt v

with v the variance of the log of that error from the errors of its rows. An error E near 1, that of
the mean of the targets, is certain, because it is compared with the variance of the same targets.

The numbers of a `Law` maximise Student's likelihood with four degrees of freedom, where every table
has the same weight, on tuning tables of `benchmarks/forecast_calibration.py`, none of which it
reports: 413 forecasts of boosted trees and as many of forests on 96 tables, and 804 of ridge
regression, support vector machines and nearest neighbours on 67. The variances are then multiplied
by the factor with which 95 % of the errors lie within 1.96 standard deviations on tables that were
left out of the fit (six parts in turn). This is derived for this package.

Two changes were fitted to 60 further forecasts on 30 tuning tables, judged on tables kept apart,
and left out: a level of 0.29 of this one (the intervals are narrower by a sixth, but contain 91 %
instead of 93 % below 150 rows), and 0.37 of the change that the theory of a kernel draws through
the measured errors (the median miss grows from 0.16 to 0.20).

**Kernels.** The curve of few rows falls too steeply on average. All of its points are errors on the
same rows, so rows that happen to explain one another lower the last point and steepen the curve at
once; with other rows the error comes back. So of the change c of the log error that
`orderparam.kernels.extrapolation` predicts from n rows, the share n/(n + 100) is kept, and the rest
adds its square to the variance. On tuning tables (183 forecasts with 423 points, from 50 to 963
rows) the mean of log(measured/predicted) falls from 0.117 to -0.004, its root mean square from
0.438 to 0.340 and the median of its absolute value from 0.091 to 0.072; 95.3 % of the points are
inside of the interval, instead of 92.9 %. Any number of rows from 70 to 200 in the place of 100
serves as well.

Where few rows carry most of the error, its fall with more of them says nothing about others. With d
the relative standard error of the last error as a share of the variance, only 1/(1 + (d/0.4)^8) of
that share is kept. On 623 points of 210 tuning tables (those of large d or large changes were
measured more often, and have a smaller weight) the root mean square falls from 0.366 to 0.357,
where d > 0.4 from 1.28 to 1.02; the median stays at 0.078 and the coverage at 95.1 %. Any d from
0.35 to 0.5 in the place of 0.4 serves as well.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from orderparam.kernels.extrapolation import EARLIEST, FLOORS, Extrapolated, Sizes, weighed

POWERS = np.geomspace(0.05, 4, 24)  # exponents of the power laws
WIDEST = -3.0  # largest gap that is counted, a factor of 20
STEEP = 100.0  # number of rows from which half of a kernel's change is kept
# relative standard error of the last error at which half of that is kept, and how sharp this is
DOUBTFUL, SHARP = 0.4, 8
UNCERTAIN = 0.05  # least share 1 - E of the error that is uncertain


@dataclass(frozen=True)
class Law:
    """The numbers of the law for a kind of learner, under the names that they have above."""

    share: float
    rise: float
    gap: float
    change: float
    walk: float
    between: float
    level: float
    doubt: float

    def level_scatter(self, error: float, count: float, doubt: float) -> float:
        """The standard deviation of the log of the last measured error between samples of `count`
        rows. doubt: that from the errors of its rows."""
        return float(np.sqrt(self.level * uncertain(error) / count + self.doubt * doubt**2))


BOOSTING = Law(0.638, 0.032, 0.384, 0.896, 0.0190, 0.153, 22.4, 0.70)
FORESTS = Law(0.601, 0.004, 0.240, 1.024, 0.0029, 0.0171, 5.65, 0.99)
OTHERS = Law(0.366, -0.004, 0.119, 0.571, 0.0025, 0.0637, 0.060, 1.75)
NAMES = {"Boost": BOOSTING, "XGB": BOOSTING, "LGBM": BOOSTING, "Forest": FORESTS, "Tree": FORESTS}


def law_of(estimator: Any) -> Law:
    """The law of an estimator, or of the last step of a pipeline, by the name of its class."""
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    return next((law for part, law in NAMES.items() if part in type(last).__name__), OTHERS)


def continued(
    law: Law,
    kernel: Extrapolated,
    n_train: Float[np.ndarray, "measured"],
    error: Float[np.ndarray, "measured"],
    sizes: Sizes,
    gap: float,
) -> Extrapolated:
    """The curve at `sizes`, relative to the last measured error. law: of this learner; kernel: what
    a kernel on the same data says, for the floor and the dimension, which are averaged with those
    of the power laws; gap: log of the best other learner's error over the last measured one."""
    used = n_train >= EARLIEST * n_train[-1]
    n_train, error = n_train[used], error[used]
    count = len(n_train)
    relative = np.append(n_train, sizes) / n_train[-1]
    shares = FLOORS[:, None, None]
    curves = np.log(error[-1] * (shares + (1 - shares) * relative ** -POWERS[:, None]))
    weights, _ = weighed(curves, FLOORS, n_train, error)
    change = np.einsum("fb,fbs->s", weights, curves[..., count:] - np.log(error[-1]))
    distance = np.log(sizes / n_train[-1])
    gap = float(np.clip(gap, WIDEST, 0.0))
    walk = law.walk * uncertain(error[-1]) ** 2
    variance = law.change * change**2 + (walk + law.between * gap**2) * distance
    # up to the last measured size the errors were measured
    spread = np.sqrt(np.where(distance > 0, variance, walk * np.abs(distance)))
    ahead = np.minimum(law.share * change + (law.rise + law.gap * gap) * distance, 0.0)
    floors = weights.sum(axis=1)
    low, high = np.interp([0.025, 0.975], np.cumsum(floors), FLOORS)
    return replace(
        kernel,
        log_change=np.where(distance > 0, ahead, change),
        spread=spread,
        floor=(float(floors @ FLOORS) + kernel.floor) / 2,
        floor_interval=(
            min(float(low), kernel.floor_interval[0]),
            max(float(high), kernel.floor_interval[1]),
        ),
        without_floor=(float(floors[0]) + kernel.without_floor) / 2,
    )


def moderated(
    kernel: Extrapolated, sizes: Sizes, last: float, rows: float, doubt: float
) -> Extrapolated:
    """The curve of a kernel at `sizes` with the kept share of its change beyond the last measured
    size. rows: the number of independent rows from which it was measured; doubt: relative standard
    error of the last measured error, as a share of the variance."""
    kept = rows / (rows + STEEP) / (1 + (doubt / DOUBTFUL) ** SHARP)
    share = np.where(sizes > last, kept, 1.0)
    return replace(
        kernel,
        log_change=share * kernel.log_change,
        spread=np.hypot(share * kernel.spread, (1 - share) * kernel.log_change),
    )


def uncertain(error: float) -> float:
    """The share of an error that scatters independently of the variance of the targets."""
    return max(1 - error, UNCERTAIN)
