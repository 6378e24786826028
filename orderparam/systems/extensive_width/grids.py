"""Grids in the number of samples, and its natural unit d^2."""

from collections.abc import Callable

import numpy as np
import xarray as xr


def samples(low: float, high: float, count: int) -> list[float]:
    """Whole numbers of samples, equidistant in the logarithm."""
    return sorted({float(round(n)) for n in np.geomspace(low, high, count)})


def per_square(input_dim: float) -> tuple[str, Callable[[xr.Dataset], xr.DataArray]]:
    """n / d^2 as the axis of a panel."""
    return "$n/d^2$", lambda data: data["n_train"] / input_dim**2
