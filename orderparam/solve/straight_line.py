"""The straight line of least squares."""

from typing import NamedTuple

import numpy as np


class Line(NamedTuple):
    """The line slope x + constant. error: standard error of the slope. freedom: number of points
    minus two."""

    slope: float
    error: float
    constant: float
    chi_squared: float
    freedom: int


def straight_line(x: np.ndarray, y: np.ndarray, error: np.ndarray | None = None) -> Line:
    """The straight line through points, weighted by their errors (None: all 1)."""
    weight = np.ones(len(x)) if error is None else error**-2.0
    centre, height = (float(np.sum(weight * column) / np.sum(weight)) for column in (x, y))
    spread = float(np.sum(weight * (x - centre) ** 2))
    slope = float(np.sum(weight * (x - centre) * y)) / spread
    residuals = y - height - slope * (x - centre)
    return Line(
        slope,
        spread**-0.5,
        height - slope * centre,
        float(np.sum(weight * residuals**2)),
        len(x) - 2,
    )
