"""Grids in the number of samples, its natural unit d^2, and what its finite size explains."""

from collections.abc import Callable, Iterable

import numpy as np
import xarray as xr

# Why sampled posteriors differ from the theory (docs/theory/extensive_width.md): measured at d = 16 to 48.
FINITE_DIMENSION = (
    "The theory is that of large dimensions: near the threshold of a feature a small system holds it in some data sets and not "
    "in others, and the error is lower by a share of about 4/d."
)


def samples(low: float, high: float, count: int) -> list[float]:
    """Whole numbers of samples, equidistant in the logarithm."""
    return sorted({float(round(n)) for n in np.geomspace(low, high, count)})


def per_ratio(ratios: Iterable[float], input_dim: float) -> list[float]:
    """Whole numbers of samples at given n / d^2."""
    return [float(round(ratio * input_dim**2)) for ratio in ratios]


def learned(data: xr.Dataset) -> xr.DataArray:
    """Whether a feature is learned: where that changes, overlaps jump."""
    return data["overlap"] > 0


def per_square(input_dim: float) -> tuple[str, Callable[[xr.Dataset], xr.DataArray]]:
    """n / d^2 as the axis of a panel."""
    return "$n/d^2$", lambda data: data["n_train"] / input_dim**2
