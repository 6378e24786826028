"""The place where a measured order parameter crosses a level, by bisection with answers that may be
wrong (Horstein 1963; Waeber, Frazier, Henderson 2013).

The place has a probability on a fine grid. The experiment is run at its median. The mean over runs
is above the level with a probability that follows from Student's t, and Bayes' rule with this
probability updates both sides. A second measurement at the same place has new runs. The method
assumes that the order parameter crosses the level only once.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from orderparam.analysis.phases.axes import Axis
from orderparam.core.late import stdtr
from orderparam.core.names import nearest
from orderparam.core.system import System, replace
from orderparam.core.verb import unwrap
from orderparam.running.sweep import sweep

GRID = 2048
STEPS = 60
_CERTAIN = 0.999  # largest probability that a single answer is right


class MeasuredTransition(NamedTuple):
    """Mean and standard deviation of the place, the order parameter at both ends of the line, and
    all measured points."""

    location: float
    error: float
    low: float
    high: float
    data: xr.Dataset


def measured_transition(
    fn: Callable[..., Any],
    system: System,
    axis: Axis,
    order: str,
    level: float | None,
    seeds: int,
    accuracy: float,
    store: str | Path | None,
) -> MeasuredTransition:
    """The place where the order parameter crosses the level. The measurement ends when its standard
    deviation is below `accuracy` times the range, or after 60 points; the error gives the accuracy
    reached.

    Fields of whole numbers are measured at the nearest whole number. Raises `ValueError` for fewer
    than four seeds, an observable that does not exist or is not one number, and where the two ends
    are on the same side of the level.
    """
    observables = [name for result in unwrap(fn)[0].results for name in result.dims()]
    if order not in observables:
        raise ValueError(f"the experiment has no observable {order!r}{nearest(order, observables)}")
    if seeds < 4:
        raise ValueError(
            f"seeds = {seeds}: at least four runs at each point are needed to know how sure an "
            "answer is"
        )
    runs: list[tuple[float, float, float]] = []

    def measure(u: float) -> tuple[float, float]:
        value = _legal(system, axis, float(axis.value(np.asarray(u))))
        step = len(runs)
        numbers = range(step * seeds, (step + 1) * seeds)
        place = None if store is None else Path(store) / f"step-{step:03d}.zarr"
        found = sweep(fn, system, {axis.name: [value]}, seeds=numbers, store=place, progress=False)[
            order
        ]
        if found.ndim != 2:
            raise ValueError(
                f"order = {order!r}: has the dimensions {', '.join(map(str, found.dims[2:]))}, and "
                "must be one number"
            )
        mean, error = float(found.mean()), float(found.std(ddof=1)) / np.sqrt(seeds)
        runs.append((value, mean, error))
        return mean, error

    ends = measure(0.0)[0], measure(1.0)[0]
    parting = float(np.mean(ends)) if level is None else level
    if (ends[0] > parting) == (ends[1] > parting):
        seen = f"{order} is {ends[0]:.4g} and {ends[1]:.4g} at the ends"
        raise ValueError(
            f"no transition between {axis.name} = {axis.low:g} and {axis.high:g}: {seen}, on one "
            f"side of {parting:.4g}"
        )
    rising = ends[1] > parting
    unit = (np.arange(GRID) + 0.5) / GRID
    probability = np.full(GRID, 1 / GRID)
    while len(runs) < STEPS:
        spread = np.sqrt(np.sum(probability * unit**2) - np.sum(probability * unit) ** 2)
        if spread < accuracy:
            break
        middle = float(unit[np.searchsorted(np.cumsum(probability), 0.5)])
        mean, error = measure(middle)
        beyond = stdtr(seeds - 1, (mean - parting) / max(error, 1e-300))
        # probability that the place is left of the middle
        left = np.clip(beyond if rising else 1 - beyond, 1 - _CERTAIN, _CERTAIN)
        probability = probability * np.where(unit <= middle, left, 1 - left)
        probability /= probability.sum()
    centre = float(np.sum(probability * unit))
    spread = float(np.sqrt(np.sum(probability * (unit - centre) ** 2)))
    columns = np.array(runs).T
    data = xr.Dataset(
        {
            order: ("point", columns[1]),
            f"{order}_error": ("point", columns[2]),
            "probability": ("unit", probability),
        },
        {axis.name: ("point", columns[0]), "unit": unit},
        {"level": parting, "seeds": seeds},
    )
    return MeasuredTransition(
        float(axis.value(np.asarray(centre))), spread * axis.slope(centre), ends[0], ends[1], data
    )


def _legal(system: System, axis: Axis, value: float) -> float:
    """The value, or the nearest whole number where only those are allowed."""
    try:
        replace(system, {axis.name: value})
        return value
    except ValueError:
        return float(round(value))
