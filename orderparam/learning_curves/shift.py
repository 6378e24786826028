"""The error of a wide network on rows of another law of inputs, from the inputs alone.

The expected squared error at a row x of given inputs (`orderparam.kernels.row_errors`) is

    e(x) = S (1 + w(x))/<1 + w> + (1 - S) t(x)^p/<t^p>,    t = V - T w

relative to its mean over rows like those that were learned, each left out. S is the share of label
noise in the error; p = 1 is exact for targets drawn from the prior of the kernel, and other p stand
for targets that are rougher or smoother far from most rows. All S and p of a grid are weighted by
the likelihood of the residuals of the rows left out. What e(x) misses is corrected by these
residuals, weighted by how much more frequent rows like theirs are among the new ones:

    E_new/E = <e>_new  sum_i q_i r_i^2 / (E sum_i q_i e_i),    q = P(new | x)/P(own | x),

with P from a forest. The expectation is right when e or q is (a doubly robust estimate). It holds
when the law of the targets for given inputs stays as it was.

The variance of the log of this ratio adds: the spread of the weighted grid; the standard errors of
the mean square of rows left out, of the correction, and of the mean square of as many new rows; and
`MISSED`, in proportion to the squared log ratio and constant, fitted to tables that
`benchmarks/shift_calibration.py` does not report. Derived for this package.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.stats import norm
from sklearn.ensemble import RandomForestClassifier

from orderparam.kernels.row_errors import RowParts, left_out_parts, new_parts
from orderparam.learning_curves.estimators import NORMAL
from orderparam.learning_curves.learners import MOST_ROWS, Exact, kernel_of

Rows = Float[np.ndarray, "row input"]
Outputs = Float[np.ndarray, "row output"]

POWERS = (0.5, 1.0, 2.0, 3.0)
NOISE_SHARES = np.linspace(0.0, 1.0, 41)
LEAST_SHARE = 0.03  # of the mean error, expected at any row
MOST_OFTEN = 20.0  # ratio at which rows are counted as more frequent among the new ones
MISSED = (0.3, 0.1)  # standard deviations of the log ratio: per unit of it, and constant


@dataclass(frozen=True)
class ShiftForecast:
    """The error of a wide network on new rows, forecast from their inputs.

    arch, rows: the network, and the number of rows that it learned. own: its mean squared
    leave-one-out error (share of the variance). ratio, spread: the error on the new rows over
    `own`, and the standard deviation of the log of what is measured on them. noise_share: the
    share of label noise in `own`. measured: the error on the new rows, None without targets.
    """

    arch: str
    rows: int
    own: float
    ratio: float
    spread: float
    noise_share: float
    measured: float | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the error that is measured on the new rows."""
        width = np.exp(NORMAL * self.spread)
        middle = self.own * self.ratio
        return float(middle / width), float(middle * width)

    @property
    def p_value(self) -> float | None:
        """The probability of a measured error as far from the forecast, if targets depend on inputs
        as before; None without targets."""
        if self.measured is None:
            return None
        miss = np.log(max(self.measured, 1e-300) / (self.own * self.ratio))
        return float(2 * norm.sf(abs(miss) / self.spread))

    def __str__(self) -> str:
        low, high = self.interval
        text = (
            f"network {self.arch}: error on rows like yours {self.own:.3g}, forecast for the new "
            f"rows from their inputs alone {self.own * self.ratio:.3g} ({low:.2g} to {high:.2g})"
        )
        if self.measured is None or self.p_value is None:
            return text
        verdict = (
            "their inputs explain it"
            if self.p_value >= 0.05
            else "their inputs do not explain it, so that the target depends on them in another way"
        )
        return f"{text}, measured {self.measured:.3g} (p = {self.p_value:.2g}): {verdict}"


def shift_forecast(
    arch: str,
    ridge: float,
    own: Rows,
    targets: Outputs,
    new: Rows,
    new_targets: Outputs | None = None,
) -> ShiftForecast:
    """Forecasts the error of the network `arch` with `ridge` on new rows, and measures it where
    their targets are given. targets: in units in which their variance is 1, with mean 0; of more
    than 2000 rows of either kind, 2000 are drawn."""
    random = np.random.default_rng(0)
    chosen = np.sort(random.permutation(len(own))[:MOST_ROWS])
    used = np.sort(random.permutation(len(new))[:MOST_ROWS])
    own, new = own[chosen], new[used]
    everything = kernel_of(arch)(np.concatenate([own, new]), None)
    count = len(own)
    found = Exact(np.array(everything[:count, :count]), targets[chosen])
    inverse, beside = found.inverse(ridge), everything[count:, :count]
    squares = np.sum(found.leave_one_out(ridge) ** 2, axis=1)
    ratio, spread, noise_share = shifted_ratio(
        squares,
        left_out_parts(inverse, ridge),
        new_parts(inverse, ridge, beside, np.diag(everything)[count:]),
        frequency(own, new),
    )
    measured = None
    if new_targets is not None:
        missed = new_targets[used] - beside @ found.solve(ridge)
        measured = float(np.mean(np.sum(missed**2, axis=1)))
    return ShiftForecast(arch, count, float(squares.mean()), ratio, spread, noise_share, measured)


def frequency(own: Rows, new: Rows) -> Float[np.ndarray, "row"]:
    """The ratio of densities of new and own rows at each own row, up to a factor. It is estimated
    from the votes of those trees of a forest that were not trained on the row."""
    labels = np.repeat([0, 1], [len(own), len(new)])
    forest = RandomForestClassifier(
        200, min_samples_leaf=5, class_weight="balanced", oob_score=True, random_state=0
    ).fit(np.concatenate([own, new]), labels)
    share = np.nan_to_num(forest.oob_decision_function_[: len(own), 1], nan=0.5)
    return share / (1 - share + 1 / MOST_OFTEN)


def shifted_ratio(
    squares: Float[np.ndarray, "row"],
    own: RowParts,
    new: RowParts,
    frequent: Float[np.ndarray, "row"],
) -> tuple[float, float, float]:
    """The error on new rows over that on own ones, the standard deviation of the log of what is
    measured, and the share of label noise. squares: squared errors of own rows, each left out."""
    relative = squares / max(float(squares.mean()), 1e-300)
    ours, theirs, shares = [], [], []
    for power in POWERS:
        scale = np.mean(own.target**power)
        for share in NOISE_SHARES:
            parts = (
                share * one.noise / own.noise.mean() + (1 - share) * one.target**power / scale
                for one in (own, new)
            )
            here, there = (np.maximum(part, LEAST_SHARE) for part in parts)
            ours.append(here)
            theirs.append(there)
            shares.append(share)
    here, there = np.array(ours), np.array(theirs)
    amplitude = np.mean(relative / here, axis=1)
    likelihood = -0.5 * (np.log(here).sum(axis=1) + len(relative) * np.log(amplitude))
    weights = np.exp(likelihood - likelihood.max())
    weights /= weights.sum()
    logs = np.log(there.mean(axis=1))
    middle = float(weights @ logs)
    expected, ahead = weights @ here, weights @ there
    correction = (frequent @ relative) / (frequent @ expected)
    ratio = float(np.exp(middle) * correction)
    scatter = relative / expected
    kurtosis = scatter.var() / scatter.mean() ** 2
    variances = (
        weights @ (logs - middle) ** 2,
        relative.var() / len(relative),
        frequent**2 @ (relative - correction * expected) ** 2 / (frequent @ relative) ** 2,
        kurtosis * np.mean(ahead**2) / np.mean(ahead) ** 2 / len(ahead),
        (MISSED[0] * np.log(ratio)) ** 2,
        MISSED[1] ** 2,
    )
    return ratio, float(np.sqrt(np.sum(variances))), float(weights @ np.array(shares))
