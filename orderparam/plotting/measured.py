"""Measurements repeated over seeds: dots with standard errors on any axes, and the power law
through their means."""

from typing import Any

import numpy as np
import xarray as xr

from orderparam.plotting.style import COLOURS, MARKERS
from orderparam.running.estimate import estimate
from orderparam.solve.straight_line import straight_line


def mean_and_error(values: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the dimension `seed` and its standard error, failed runs left out: see
    `estimate`."""
    mean, error = estimate(values.to_dataset(name="y"), "y")
    return mean.values, error.values


def dots(
    axes: Any,
    x: Any,
    values: xr.DataArray,
    number: int,
    label: str | None = None,
    *,
    colour: str | None = None,
    filled: bool = False,
    **style: Any,
) -> None:
    """Means over seeds with standard errors, in the marker and (unless given) the colour of curve
    `number`; open by default.

    style: further options of matplotlib's `errorbar`, which may replace these.
    """
    mean, error = mean_and_error(values)
    shade = colour or COLOURS[number % len(COLOURS)]
    face = shade if filled else "white"
    look = {
        "fmt": MARKERS[number % len(MARKERS)],
        "color": shade,
        "markerfacecolor": face,
        "zorder": 3,
        **style,
    }
    axes.errorbar(x, np.ravel(mean), np.ravel(error), label=label, **look)


def power_law(x: np.ndarray, values: xr.DataArray) -> tuple[float, float]:
    """The exponent of mean(values) ~ x^exponent over seeds, and half its 95% interval; see
    `fitted_power`."""
    return fitted_power(np.asarray(x, float), *mean_and_error(values))


def fitted_power(x: np.ndarray, mean: np.ndarray, error: np.ndarray) -> tuple[float, float]:
    """The exponent of mean ~ x^exponent, and half its 95% interval; NaN with fewer than two
    positive points.

    Least squares in logarithms, weighted by the standard errors (at least 0.1% of the mean). Where
    the points scatter about the line by more than their errors, the interval is widened by the
    square root of chi^2 per degree of freedom.
    """
    positive = (mean > 0) & (x > 0)
    if np.sum(positive) < 2:
        return np.nan, np.nan
    x, mean, error = x[positive], mean[positive], np.nan_to_num(error[positive])
    line = straight_line(np.log(x), np.log(mean), np.maximum(error / mean, 1e-3))
    return line.slope, 1.96 * line.error * max(1.0, line.chi_squared / max(line.freedom, 1)) ** 0.5
