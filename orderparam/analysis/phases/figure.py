"""The picture of a plane: the order parameter in colour, each boundary in the line style of its
kind, and ends of boundaries as marks."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.colors import TwoSlopeNorm

from orderparam.plotting.layout import canvas, finish
from orderparam.plotting.plane import plane_image
from orderparam.plotting.style import COLOURS, house_style, ink
from orderparam.plotting.text import words
from orderparam.plotting.ticks import readable_ticks

LINES = {"jump": "-", "continuous": "--", "crossover": ":", "end": "-.", "divergence": (0, (1, 3))}
_NAMES = {
    "jump": "jump",
    "continuous": "continuous",
    "crossover": "crossover",
    "end": "end of a branch",
    "divergence": "divergence",
}
_MARKS = {"tricritical": "*", "critical": "o"}


def draw_plane(axes: Any, data: xr.Dataset, topic: str = "", centre: float | None = None) -> None:
    """Draws `data` of a phase diagram on axes. The boundaries of the first branch have the colour
    of text, and those of each further branch another colour.

    centre: a value of the order parameter that is white, between two colours for larger and smaller
    values.
    """
    x, y, log = (data.attrs[name] for name in ("x", "y", "log"))
    columns, rows, image = plane_image(data)
    if np.isfinite(image).any():
        look: dict[str, Any] = {"cmap": "cividis", "alpha": 0.6}
        if centre is not None and np.nanmin(image) < centre < np.nanmax(image):
            norm = TwoSlopeNorm(centre, np.nanmin(image), np.nanmax(image))
            look = {"cmap": "RdBu_r", "norm": norm}
        mesh = axes.pcolormesh(
            columns,
            rows,
            image,
            shading="nearest",
            linewidth=0,
            rasterized=True,
            zorder=0,
            **look,
        )
        axes.figure.colorbar(mesh, ax=axes, label=words(str(data["component"].values[0]), topic))
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
            linestyle=LINES[kind],
            color=ink() if rank == 0 else COLOURS[rank % len(COLOURS)],
            marker="." if own.sizes["boundary_point"] == 1 else "",
            zorder=3 - 0.1 * rank,
            label="_" if label in drawn else label,
        )
        drawn.add(label)
    for kind, mark in _MARKS.items():
        own = data.isel(end=np.flatnonzero(data["end_kind"].values == kind))
        if own.sizes["end"]:
            axes.plot(
                own["end_x"],
                own["end_y"],
                mark,
                color=ink(),
                markersize=8,
                label=f"{kind} point",
                zorder=4,
                ls="",
            )
    axes.set(xlabel=words(x, topic), ylabel=words(y, topic))
    axes.set_xscale("log" if "x" in log else "linear")
    axes.set_yscale("log" if "y" in log else "linear")
    axes.set(xlim=(data[x].min(), data[x].max()), ylim=(data[y].min(), data[y].max()))


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
