"""Finds divergences on a line: places near which the order parameter grows without bound.

The theory is evaluated ever closer to each value that exceeds both of its neighbours. A value that
keeps growing is a divergence if it grows as a power of the distance, or as a logarithm, over at
least two decades; the exponent is then negative, or 0 with a logarithm. If a theory rounds the
divergence off (by a small ridge), only points outside the rounded interval are used.
"""

import numpy as np

from orderparam.analysis.phases.brackets import Distances, Evaluate, Sides
from orderparam.analysis.phases.crossings import Crossings, around
from orderparam.analysis.phases.singularity import UNKNOWN, Power, power_law

_ROUNDS = 36
_FIRST = 6  # rounds after which a maximum must have grown
_GROWN, _DIVERGED = 1.2, 100.0  # factors of growth: for another round; for a power law
_SMALL = 1e-3  # fraction of the range of values: maxima below it are noise
_CONSTANT = 0.1  # largest relative difference of the steps of a logarithm


def poles(
    unit: np.ndarray, values: np.ndarray, evaluate: Evaluate, sides: Sides, distances: Distances
) -> Crossings:
    """The divergences near the maxima of a first scan: unit (point, 1) in order, values (point,
    view, component)."""
    size = _size(values)
    middle, beside = size[1:-1], np.minimum(size[:-2], size[2:])
    inside = (
        (middle >= np.maximum(size[:-2], size[2:]))
        & (middle > beside)
        & (middle > _SMALL * sides.scale)
    )
    at, view, component = np.nonzero(inside)
    low, top, high = (unit[at + k] for k in (0, 1, 2))
    initial = highest = size[at + 1, view, component]
    for number in range(_ROUNDS):
        if number == _FIRST:
            kept = highest > _GROWN * initial
            low, top, high, view, component, initial, highest = (
                column[kept] for column in (low, top, high, view, component, initial, highest)
            )
        if not len(view):
            break
        rows = np.arange(len(view))
        tried = np.stack([(low + top) / 2, top, (top + high) / 2])
        outer = _size(
            evaluate(np.concatenate([tried[0], tried[2]])).reshape(2, len(rows), *values.shape[1:])
        )
        sizes = np.stack(
            [outer[0, rows, view, component], highest, outer[1, rows, view, component]]
        )
        chosen = np.argmax(sizes, axis=0)
        bounds = np.stack([low, *tried, high])
        low, top, high = (bounds[chosen + k, rows] for k in (0, 1, 2))
        highest = sizes[chosen, rows]
    return _examined(low, top, high, view, component, highest, evaluate, sides, unit, distances)


def _size(values: np.ndarray) -> np.ndarray:
    """The modulus of the values, and -1 where there is no value."""
    return np.where(np.isfinite(values), np.abs(values), -1.0)


def _examined(
    low: np.ndarray,
    top: np.ndarray,
    high: np.ndarray,
    view: np.ndarray,
    component: np.ndarray,
    highest: np.ndarray,
    evaluate: Evaluate,
    sides: Sides,
    unit: np.ndarray,
    distances: Distances,
) -> Crossings:
    count, along = len(view), np.ones_like(top)
    error = np.maximum((high - low)[:, 0] / 2, 1e-16) if count else np.zeros(0)
    h, values = around(
        top, along, view, np.full(count, 2 * float(unit[1, 0] - unit[0, 0])), evaluate, distances
    )
    f = np.take_along_axis(values, component[:, None, None, None], axis=3)[..., 0]
    grown = [_grown(h[i], f[i], float(highest[i]), float(error[i])) for i in range(count)]
    found = np.array([power is not None for power in grown], bool)
    powers = [power for power in grown if power is not None]
    outer = f[found][:, 0] if count else np.zeros((0, 2))
    return Crossings(
        top[found],
        np.maximum(error[found], [power.shift_error for power in powers]),
        view[found],
        np.full(len(powers), "divergence", dtype="<U10"),
        outer[:, 0],
        outer[:, 1],
        component[found],
        np.array([power.exponent for power in powers]),
        np.array([power.error for power in powers]),
        np.array([power.logarithm for power in powers], bool),
        np.zeros(len(powers)),
        np.zeros((len(powers), 2), int),
    )


def _grown(h: np.ndarray, f: np.ndarray, highest: float, error: float) -> Power | None:
    """The growth law of f (distance, side) for h -> 0 on the side where f is larger; None where f
    stays bounded."""
    y = np.abs(np.take_along_axis(f, np.argmax(_size(f), axis=1)[:, None], axis=1)[:, 0])
    usable = np.isfinite(y) & (y > 0) & (h > 8 * error)
    h, y = h[usable], y[usable]
    if len(y) < 6 or np.any(np.diff(y) < -1e-6 * y[:-1]) or y[-1] < 1.5 * y[0]:
        return None
    steps = np.diff(y)
    if np.ptp(steps[-6:]) < _CONSTANT * steps[-1] and y[-1] < _DIVERGED * y[0]:
        return Power(0.0, float(np.ptp(steps[-6:]) / steps[-1]), True, 0.0, 0.0)
    if highest < _DIVERGED * y[0]:
        return None
    power = power_law(h, y, (y / highest) ** 2, error)
    if power.determined and power.exponent < 0:
        return power
    slopes = np.diff(np.log(y)) / np.diff(np.log(h))
    return UNKNOWN if slopes.min() < -0.1 else None
