"""The law by which y vanishes or grows as the distance h from a point goes to 0: y ~ h^exponent,
with corrections to scaling or a logarithm.

The exponent comes from fits of ln y over decades of h. Two families are fitted in every window of
neighbouring distances,

    ln y = a + b ln h + c h^w + d h^2w,       ln y = a + b ln h + k ln ln(l/h) + c h,

with the strength w of the correction and the length l searched, and with a shift of the point
itself, which adds (shift) b/h. The window is the one with the smallest error of b; this error
covers all w or l that fit equally well, and the effect of the largest distances.
"""

import itertools
from typing import NamedTuple

import numpy as np
import scipy

STRENGTHS = np.arange(0.25, 2.2, 0.125)  # w
LENGTHS = np.geomspace(0.5, 40, 10)  # ln(l / the largest h)
FEWEST, SPAN = 7, 100.0  # number of distances in a window, and the ratio of its ends: two decades
PRECISION = 1e-9  # smallest relative error attributed to an order parameter
_KNOWN = 0.03  # relative error above which a distance is not used
_AS_GOOD, _WORSE, _SIGMAS = 4.0, 3.0, 3.0
_ITERATED = 0.005  # smallest error of an exponent beside a logarithm
# fraction of the correction to the local exponent at the smallest distances that counts as
# uncertain
_EXTRAPOLATED = 0.5


class Power(NamedTuple):
    """exponent and error, half of an interval that covers it; NaN where it is not determined.
    logarithm: True if a power of ln h multiplies h^exponent. shift, shift_error: displacement of
    the point from its assumed place, towards smaller h."""

    exponent: float
    error: float
    logarithm: bool
    shift: float
    shift_error: float

    @property
    def determined(self) -> bool:
        return bool(self.error <= 0.1 * max(abs(self.exponent), 0.5))


UNKNOWN = Power(np.nan, np.nan, False, 0.0, 0.0)


class _Fit(NamedTuple):
    exponent: float
    half: float
    inflation: float  # square root of chi squared per degree of freedom, at least 1
    log_power: float  # k, and its standard error
    log_error: float
    shift: float
    shift_error: float


def power_law(h: np.ndarray, y: np.ndarray, error: np.ndarray, shift: float) -> Power:
    """The exponent of y(h), from values with these relative errors at distances that are all wrong
    by about `shift`."""
    with np.errstate(all="ignore"):
        used = np.isfinite(y) & (y > 0) & (error < _KNOWN) & (h > 2 * shift)
    order = np.argsort(-h[used])
    h, y, error = (column[used][order] for column in (h, y, error))
    error = np.hypot(error, PRECISION)
    ends = range(0, len(h) + 1, 2 if len(h) > 16 else 1)
    spans = [
        (i, j)
        for i, j in itertools.combinations(ends, 2)
        if j - i >= FEWEST and h[i] >= 0.99 * SPAN * h[j - 1]
    ]
    if not spans:
        return UNKNOWN
    plain = {span: _fitted(h, y, error, shift, span, False) for span in spans}
    logs = {span: _fitted(h, y, error, shift, span, True) for span in spans}
    best, best_log = (_best(fits) for fits in (plain, logs))
    power, rival = plain[best], logs[best_log]
    is_log = abs(rival.log_power) > max(0.1, 3 * rival.log_error)
    moved = abs(rival.shift - power.shift) if is_log else 0.0
    if is_log and rival.inflation * _WORSE < plain[best_log].inflation:
        return _power(
            logs, best_log, max(_steady(logs, best_log), _spread(logs, best_log)), moved, True
        )
    half = _steady(plain, best)
    if (
        is_log
        and rival.inflation < _WORSE * plain[best_log].inflation
        and logs[best].inflation < _WORSE * power.inflation
    ):
        half = max(half, abs(rival.exponent - power.exponent) + rival.half)
    return _power(plain, best, half, moved, False)


def _power(
    fits: dict[tuple[int, int], _Fit],
    span: tuple[int, int],
    half: float,
    moved: float,
    logarithm: bool,
) -> Power:
    """The result of one window. The error of the place includes its changes in other windows and in
    the other family."""
    fit = fits[span]
    moves = [abs(one.shift - fit.shift) for one in _beside(fits, span)]
    return Power(
        fit.exponent,
        half,
        logarithm,
        fit.shift,
        max(fit.shift_error, moved, 2 * max(moves, default=0.0)),
    )


def _spread(fits: dict[tuple[int, int], _Fit], span: tuple[int, int]) -> float:
    """The largest difference to the exponents of windows that are fitted equally well, and the
    possible effect of iterated logarithms, which are not fitted."""
    good = [fit.exponent for fit in fits.values() if fit.inflation <= _WORSE * fits[span].inflation]
    spread = max(abs(exponent - fits[span].exponent) for exponent in good)
    return max(spread, _ITERATED * max(1.0, abs(fits[span].log_power)))


def _best(fits: dict[tuple[int, int], _Fit]) -> tuple[int, int]:
    return min(fits, key=lambda span: _steady(fits, span))


def _steady(fits: dict[tuple[int, int], _Fit], span: tuple[int, int]) -> float:
    """Half of the interval of this window's exponent, which covers the exponents of windows with
    one distance less."""
    return max(
        fits[span].half,
        2
        * max(
            (abs(one.exponent - fits[span].exponent) for one in _beside(fits, span)), default=np.inf
        ),
    )


def _beside(fits: dict[tuple[int, int], _Fit], span: tuple[int, int]) -> list[_Fit]:
    """The fits in the next smaller windows; where there are none, in the next larger ones."""
    i, j = span
    smaller = [[fits[other] for other in ((i + k, j), (i, j - k)) if other in fits] for k in (1, 2)]
    larger = [[fits[other] for other in ((i - k, j), (i, j + k)) if other in fits] for k in (1, 2)]
    return next((found for found in (*smaller, *larger) if found), [])


def _fitted(
    h: np.ndarray,
    y: np.ndarray,
    error: np.ndarray,
    shift: float,
    span: tuple[int, int],
    logarithmic: bool,
) -> _Fit:
    part = slice(*span)
    h, y, error = h[part], y[part], error[part]
    unit = h / h[0]
    base = [np.ones_like(h), np.log(unit), h[-1] / h]
    prior = np.array([0.0, 0.0, h[-1] / max(shift, 1e-9 * h[-1])])
    target = np.concatenate([np.log(y) / error, [0.0]])

    def solved(scanned: float) -> tuple[float, np.ndarray, np.ndarray]:
        """Chi squared, the coefficients and their standard errors."""
        extra = (
            [np.log(scanned - np.log(unit)), unit]
            if logarithmic
            else [unit**scanned, unit ** (2 * scanned)]
        )
        matrix = np.vstack(
            [
                np.stack([*base, *extra], axis=1) / error[:, None],
                np.concatenate([prior, [0.0, 0.0]]),
            ]
        )
        scale = np.linalg.norm(matrix, axis=0)
        left, singular, right = np.linalg.svd(matrix / scale, full_matrices=False)
        inverse = (right.T / np.maximum(singular, 1e-14 * singular[0])) / scale[:, None]
        found = inverse @ (left.T @ target)
        return (
            float(np.sum((matrix @ found - target) ** 2)),
            found,
            np.sqrt(np.sum(inverse**2, axis=1)),
        )

    scan = LENGTHS if logarithmic else STRENGTHS
    tried = [solved(one) for one in scan]
    best = int(np.argmin([one[0] for one in tried]))
    low, high = scan[max(best - 1, 0)], scan[min(best + 1, len(scan) - 1)]
    nearer = scipy.optimize.minimize_scalar(
        lambda one: solved(one)[0], bounds=(low, high), method="bounded", options={"maxiter": 12}
    )
    tried.append(solved(float(nearer.x)))
    least, found, sigma = min(tried, key=lambda one: one[0])
    inflation = float(np.sqrt(max(1.0, least / (len(h) - 5))))
    alike = [one for one in tried if one[0] <= least + _AS_GOOD * inflation**2]
    half = max(abs(one[1][1] - found[1]) + _SIGMAS * inflation * one[2][1] for one in alike)
    if not logarithmic:
        last = np.log(y[-1] / y[-2]) / np.log(h[-1] / h[-2])
        half = max(half, _EXTRAPOLATED * abs(found[1] - last))
    moved = [one[1][2] * h[-1] / found[1] for one in alike]
    uncertain = np.ptp(moved) + _SIGMAS * inflation * sigma[2] * h[-1] / abs(found[1])
    # a fault of the nearest value may affect all values
    uncertain = max(uncertain, error[-1] * h[-1] / abs(found[1]))
    log_power, log_error = (
        (float(found[3]), inflation * float(sigma[3])) if logarithmic else (0.0, 0.0)
    )
    return _Fit(
        *map(
            float,
            (
                found[1],
                half,
                inflation,
                log_power,
                log_error,
                found[2] * h[-1] / found[1],
                uncertain,
            ),
        )
    )
