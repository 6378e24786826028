"""Lines and dots of rooms whose figures are not drawn from facets yet."""

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from orderparam.core.agreement import estimate
from orderparam.plotting.style import COLOURS, DASHES, MARKERS
from orderparam.plotting.words import words


def draw_line(axes: Any, data: xr.Dataset, x: str, y: str, number: int, label: str | None) -> None:
    """A theory: a line through its points; unconverged points are left out."""
    values = data[y].where(data["status"] == 1) if "status" in data else data[y]
    axes.plot(
        data[x], values, color=COLOURS[number % len(COLOURS)], linestyle=DASHES[number % len(DASHES)], label=label, zorder=2
    )


def draw_dots(axes: Any, data: xr.Dataset, x: str, y: str, number: int, label: str | None) -> None:
    """A measurement: mean over seeds with the standard error of the mean."""
    mean, error = estimate(data, y)
    axes.errorbar(
        data[x],
        mean,
        yerror(error),
        fmt=MARKERS[number % len(MARKERS)],
        color="black" if number == 0 else COLOURS[2 + number % (len(COLOURS) - 3)],
        markerfacecolor="white" if number else "black",
        label=label,
        zorder=3,
    )


def yerror(error: xr.DataArray) -> np.ndarray | None:
    """Error bars, none where there is only one seed."""
    values = np.asarray(error, float)
    return np.nan_to_num(values) if np.isfinite(values).any() else None


def plot_panel(
    axes: Any,
    theories: Mapping[str, xr.Dataset],
    experiments: Mapping[str, xr.Dataset],
    x: str,
    y: str,
    log: str = "xy",
    title: str = "",
) -> None:
    """One set of axes: every theory that has `y` as a line, every experiment as dots; `log` names the logarithmic axes."""
    drawn = [(draw_line, theories), (draw_dots, experiments)]
    for draw, curves in drawn:
        for number, (label, data) in enumerate(curves.items()):
            if y in data:
                draw(axes, data, x, y, number, label)
    if "x" in log:
        axes.set_xscale("log")
    if "y" in log:
        axes.set_yscale("log")
    axes.set_xlabel(words(x))
    axes.set_ylabel(words(y))
    if title:
        axes.set_title(title)


def caption(figure: Any, text: str, width: int = 110) -> None:
    """The parameters below the figure, so that it can be read alone."""
    figure.supxlabel(textwrap.fill(text, width), fontsize=7, color="0.35", ha="center")
