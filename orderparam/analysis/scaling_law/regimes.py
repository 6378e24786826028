"""One power law or two consecutive power laws: the exponents of a curve and its crossover, with
intervals.

    found = regimes(n_train, test_error, test_error_error)
    found.exponents, found.crossover

ln y is continuous and straight in ln x on either side of a crossover, which is searched. For the
curve of a theory, which has no errors, the intervals give the change of the exponents when a fifth
of the curve is left out.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from orderparam.analysis.scaling_law.law import Interval

_DRAWS = 200
_BLOCKS = 5
_LEAST = 3  # fewest points on either side of a crossover
_PLACES = 400  # number of candidates for the crossover
_WORTH = 10.0  # decrease of the Bayesian information criterion that a crossover needs
_SMOOTH = 1e-6  # errors of ln y where there is no scatter


@dataclass(frozen=True)
class Regimes:
    """A fit of one power law y ~ x^-exponent or of two consecutive ones. crossover: the x between
    them, None for one law. Intervals are 95 %.

    deviation: root mean square of ln y from the law.
    """

    exponents: tuple[Interval, ...]
    crossover: Interval | None
    deviation: float


def regimes(
    x: ArrayLike, y: ArrayLike, error: ArrayLike | None = None, *, number: int | None = None
) -> Regimes:
    """Fits one power law, or two where the Bayesian information criterion prefers them. number: 1
    or 2 fixes how many.

    error: standard errors of y, for a parametric bootstrap; None: the jackknife over five stretches
    of the curve.

    Raises `ValueError` for different lengths, values that are not positive and finite, another
    number, or too few points.
    """
    columns = [
        np.asarray(column, np.float64).ravel()
        for column in (x, y, *([] if error is None else [error]))
    ]
    if len({len(column) for column in columns}) > 1:
        raise ValueError(
            f"x, y, error have {', '.join(str(len(column)) for column in columns)} entries: must "
            "have as many"
        )
    if number not in (None, 1, 2):
        raise ValueError(f"number = {number!r}: must be 1, 2 or None")
    for name, column in zip(("x", "y", "error"), columns):
        bad = ~(np.isfinite(column) & (column > 0))
        if bad.any():
            raise ValueError(f"{name} = {column[bad][0]:g}: must be finite and > 0")
    needed = _LEAST if number == 1 else 2 * _LEAST
    if len(np.unique(columns[0])) < needed:
        raise ValueError(
            f"x has {len(np.unique(columns[0]))} different values: at least {needed} are needed"
        )
    order = np.argsort(columns[0])
    place, height = np.log(columns[0][order]), np.log(columns[1][order])
    spread = None if error is None else (columns[2] / columns[1])[order]
    weight = np.ones(len(place)) if spread is None else 1 / spread
    chosen = number or (1 if _better_alone(place, height, weight) else 2)
    best, rest = _fit(place, height[:, None], weight, number=chosen)
    if spread is None:
        parts = np.array_split(np.arange(len(place)), _BLOCKS)
        left = [
            [np.delete(column, part, axis=0) for column in (place, height[:, None], weight)]
            for part in parts
        ]
        again = np.concatenate([_fit(*columns, number=chosen)[0] for columns in left])
        half = 1.96 * np.sqrt((_BLOCKS - 1) / _BLOCKS * np.sum((again - best) ** 2, axis=0))
        low, high = best[0] - half, best[0] + half
    else:
        noise = np.random.default_rng(0).standard_normal((len(place), _DRAWS))
        drawn, _ = _fit(place, height[:, None] + spread[:, None] * noise, weight, number=chosen)
        low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    intervals = [Interval(*map(float, numbers)) for numbers in zip(best[0], low, high)]
    crossover = None
    if chosen == 2:
        at = intervals.pop()
        crossover = Interval(*(float(np.exp(end)) for end in (at.value, at.low, at.high)))
    return Regimes(tuple(intervals), crossover, float(np.sqrt(np.mean(rest**2))))


def _fit(
    place: np.ndarray, height: Float[np.ndarray, "points draws"], weight: np.ndarray, *, number: int
) -> tuple[Float[np.ndarray, "draws unknown"], Float[np.ndarray, "points draws"]]:
    """The fits to all draws: (exponent) or (first, second exponent, ln crossover), and the
    deviations of ln y."""
    draws = np.arange(height.shape[1])
    straight = np.stack([np.ones(len(place)), place], axis=1)
    if number == 1:
        found, rest = _line(straight, height, weight)
        return -found[1:].T, rest
    candidates = np.linspace(place[_LEAST - 1], place[-_LEAST], _PLACES)
    fits = [
        _line(np.column_stack([straight, np.maximum(place - at, 0.0)]), height, weight)
        for at in candidates
    ]
    least = np.argmin([np.sum((weight[:, None] * rest) ** 2, axis=0) for _, rest in fits], axis=0)
    found = np.stack([fits[k][0][:, draw] for k, draw in zip(least, draws)])
    rest = np.stack([fits[k][1][:, draw] for k, draw in zip(least, draws)], axis=1)
    return np.column_stack([-found[:, 1], -found[:, 1] - found[:, 2], candidates[least]]), rest


def _line(
    columns: np.ndarray, height: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    found = np.linalg.lstsq(columns * weight[:, None], height * weight[:, None], rcond=None)[0]
    return found, height - columns @ found


def _better_alone(place: np.ndarray, height: np.ndarray, weight: np.ndarray) -> bool:
    """True if the crossover does not lower the Bayesian information criterion enough for its two
    further parameters."""
    if len(np.unique(place)) < 2 * _LEAST:
        return True
    rests = [_fit(place, height[:, None], weight, number=k)[1][:, 0] for k in (1, 2)]
    one, two = (np.sum((weight * rest) ** 2) + _SMOOTH**2 * np.sum(weight**2) for rest in rests)
    return len(place) * np.log(one / two) < 2 * np.log(len(place)) + _WORTH
