"""The picture of a plane: the order parameter in colour, boundaries in the line of their kind, their ends as marks."""

from typing import Any

import numpy as np
import xarray as xr

from orderparam.plotting.layout import canvas, finish
from orderparam.plotting.style import COLOURS, house_style, ink
from orderparam.plotting.ticks import readable_ticks
from orderparam.plotting.words import words

LINES = {"jump": "-", "continuous": "--", "crossover": ":", "end": "-."}
_BANK = 1e-3  # of the axes: how near to a line of jumps the values on its sides are put
PIXELS = 240
_NAMES = {"jump": "jump", "continuous": "continuous", "crossover": "crossover", "end": "end of a branch"}
_MARKS = {"tricritical": "*", "critical": "o"}


def draw_plane(axes: Any, data: xr.Dataset, room: str = "") -> None:
    """Draws `data` of a phase diagram on axes. The boundaries of the first branch have the colour of text, those of each further
    one a colour of its own."""
    x, y, log = (data.attrs[name] for name in ("x", "y", "log"))
    _fill(axes, data, x, y, log)
    branches = list(data.attrs["branches"])
    drawn: set[str] = set()
    for curve in np.unique(data["curve"].values):
        own = data.isel(boundary_point=np.flatnonzero(data["curve"].values == curve))
        kind, branch = str(own["boundary_kind"].values[0]), str(own["boundary_branch"].values[0])
        rank = branches.index(branch)
        label = ", ".join(filter(None, (_NAMES[kind], branch)))
        axes.plot(
            own["boundary_x"],
            own["boundary_y"],
            LINES[kind],
            color=ink() if rank == 0 else COLOURS[rank % len(COLOURS)],
            marker="." if own.sizes["boundary_point"] == 1 else "",
            zorder=3 - 0.1 * rank,
            label="_" if label in drawn else label,
        )
        drawn.add(label)
    for kind, mark in _MARKS.items():
        own = data.isel(end=np.flatnonzero(data["end_kind"].values == kind))
        if own.sizes["end"]:
            axes.plot(own["end_x"], own["end_y"], mark, color=ink(), markersize=8, label=f"{kind} point", zorder=4, ls="")
    axes.set(xlabel=words(x, room), ylabel=words(y, room))
    axes.set_xscale("log" if "x" in log else "linear")
    axes.set_yscale("log" if "y" in log else "linear")
    axes.set(xlim=(data[x].min(), data[x].max()), ylim=(data[y].min(), data[y].max()))


def _fill(axes: Any, data: xr.Dataset, x: str, y: str, log: str) -> None:
    """The first component of the first branch, linear between the points (of those nearer than 1/2000 of the axes, one) and up to
    the lines at which it jumps."""
    from scipy.interpolate import LinearNDInterpolator
    from scipy.spatial import QhullError

    value, steps = data["order"].values[:, 0, 0], np.linspace(0, 1, PIXELS)
    units, ticks = [], []
    for name, letter in ((x, "x"), (y, "y")):
        scale = np.log if letter in log else np.asarray
        low, span = scale(data[name].values).min(), np.ptp(scale(data[name].values)) or 1.0
        units.append(lambda column, scale=scale, low=low, span=span: (scale(column) - low) / span)
        ticks.append(np.exp(low + span * steps) if letter in log else low + span * steps)
    unit = np.stack([place(data[name].values) for name, place in zip((x, y), units)], axis=1)
    known = np.isfinite(value)
    _, first = np.unique(np.round(2000 * unit), axis=0, return_index=True)
    chosen = first[known[first]]
    places, values = [unit[chosen]], [value[chosen]]
    for curve in np.unique(data["curve"].values):
        own = data.isel(boundary_point=np.flatnonzero(data["curve"].values == curve))
        main = str(own["boundary_branch"].values[0]) == data.attrs["branches"][0]
        if main and str(own["boundary_kind"].values[0]) == "jump" and own.sizes["boundary_point"] > 1:
            line = np.stack([units[0](own["boundary_x"].values), units[1](own["boundary_y"].values)], axis=1)
            for place, height in _banks(line, unit[known], value[known]):
                places.append(place)
                values.append(height)
    try:
        between = LinearNDInterpolator(np.concatenate(places), np.concatenate(values))
    except (ValueError, QhullError):  # no three points that are not on one line
        return
    image = between(*np.meshgrid(steps, steps))
    mesh = axes.pcolormesh(*ticks, image, shading="nearest", cmap="cividis", alpha=0.6, linewidth=0, rasterized=True, zorder=0)
    axes.figure.colorbar(mesh, ax=axes, label=words(str(data["component"].values[0])))


def _banks(line: np.ndarray, unit: np.ndarray, value: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Places close to a line of jumps, on either side, with the value of the nearest point of that side at each of its points."""
    along = np.arange(len(line))
    fine = np.linspace(0, len(line) - 1, 20 * len(line))
    dense = np.stack([np.interp(fine, along, column) for column in line.T], axis=1)
    step = np.gradient(dense, axis=0)
    normal = np.stack([-step[:, 1], step[:, 0]], axis=1) / np.maximum(np.linalg.norm(step, axis=1), 1e-300)[:, None]
    nearest = np.argmin(np.linalg.norm(unit[:, None] - dense, axis=2), axis=1)
    side = np.sum((unit - dense[nearest]) * normal[nearest], axis=1)
    banks = []
    for sign in (1.0, -1.0):
        there = np.flatnonzero(sign * side > _BANK / 5)  # nearer ones may be on either side of what is drawn
        if len(there):
            closest = there[np.argmin(np.linalg.norm(line[:, None] - unit[there], axis=2), axis=1)]
            banks.append((dense + sign * _BANK * normal, np.interp(fine, along, value[closest])))
    return banks


def figure_of(data: xr.Dataset, title: str = "") -> Any:
    """One set of axes with its legend."""
    with house_style():
        figure, grid = canvas()
        axes = grid[0, 0]
        draw_plane(axes, data)
        handles, labels = axes.get_legend_handles_labels()
        finish(figure, title, dict(zip(labels, handles)))
        figure.draw_without_rendering()
        readable_ticks(axes)
    return figure
