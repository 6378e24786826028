"""The order parameter of a phase diagram, interpolated between its points on a lattice, from which
the plane is coloured."""

import numpy as np
import xarray as xr
from jaxtyping import Float

_BANK = 1e-3  # fraction of the axes: distance from a line of jumps of the values on its two sides


def plane_image(
    data: xr.Dataset, pixels: int = 240
) -> tuple[Float[np.ndarray, "column"], Float[np.ndarray, "row"], Float[np.ndarray, "row column"]]:
    """The first component of the first branch, linear between the points up to the lines at which
    it jumps, and NaN outside the points. Of points nearer to one another than 1/2000 of the axes,
    only one is used.

    data: the data set of a phase diagram. Returns the places along x and y, equidistant along the
    axes as drawn, and the values.
    """
    from scipy.interpolate import LinearNDInterpolator
    from scipy.spatial import QhullError

    x, y, log = (data.attrs[name] for name in ("x", "y", "log"))
    value, steps = data["order"].values[:, 0, 0], np.linspace(0, 1, pixels)
    units, ticks = [], []
    for name, letter in ((x, "x"), (y, "y")):
        scale = np.log if letter in log else np.asarray
        low, span = scale(data[name].values).min(), np.ptp(scale(data[name].values)) or 1.0
        units.append(lambda column, scale=scale, low=low, span=span: (scale(column) - low) / span)
        ticks.append(np.exp(low + span * steps) if letter in log else low + span * steps)
    unit = np.stack([place(data[name].values) for name, place in zip((x, y), units)], axis=1)
    finite = np.isfinite(value)
    _, first = np.unique(np.round(2000 * unit), axis=0, return_index=True)
    chosen = first[finite[first]]
    places, values = [unit[chosen]], [value[chosen]]
    for curve in np.unique(data["curve"].values):
        own = data.isel(boundary_point=np.flatnonzero(data["curve"].values == curve))
        main = str(own["boundary_branch"].values[0]) == data.attrs["branches"][0]
        if (
            main
            and str(own["boundary_kind"].values[0]) == "jump"
            and own.sizes["boundary_point"] > 1
        ):
            line = np.stack(
                [units[0](own["boundary_x"].values), units[1](own["boundary_y"].values)], axis=1
            )
            for place, height in _banks(line, unit[finite], value[finite]):
                places.append(place)
                values.append(height)
    try:
        between = LinearNDInterpolator(np.concatenate(places), np.concatenate(values))
    except (ValueError, QhullError):  # all points lie on one line
        return ticks[0], ticks[1], np.full((pixels, pixels), np.nan)
    return ticks[0], ticks[1], between(*np.meshgrid(steps, steps))


def _banks(
    line: np.ndarray, unit: np.ndarray, value: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Places close to a line of jumps, on either side, each with the value of the nearest point on
    that side."""
    along = np.arange(len(line))
    fine = np.linspace(0, len(line) - 1, 20 * len(line))
    dense = np.stack([np.interp(fine, along, column) for column in line.T], axis=1)
    step = np.gradient(dense, axis=0)
    normal = (
        np.stack([-step[:, 1], step[:, 0]], axis=1)
        / np.maximum(np.linalg.norm(step, axis=1), 1e-300)[:, None]
    )
    nearest = np.argmin(np.linalg.norm(unit[:, None] - dense, axis=2), axis=1)
    side = np.sum((unit - dense[nearest]) * normal[nearest], axis=1)
    banks = []
    for sign in (1.0, -1.0):
        # nearer points may be on either side of the drawn line
        there = np.flatnonzero(sign * side > _BANK / 5)
        if len(there):
            closest = there[np.argmin(np.linalg.norm(line[:, None] - unit[there], axis=2), axis=1)]
            banks.append((dense + sign * _BANK * normal, np.interp(fine, along, value[closest])))
    return banks
