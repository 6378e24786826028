"""Lines for theories, dots with error bars for measurements, labelled from the data themselves."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from orderparam.core.agreement import estimate
from orderparam.plotting.style import COLOURS, DASHES, MARKERS, house_style

WORDS = {
    "n_train": "training examples $P$",
    "sample_ratio": r"samples per dimension $\alpha = n/d$",
    "temperature": "temperature $T$",
    "width": "width $N$",
    "test_error": "test error (mean squared)",
    "train_error": "train error (mean squared)",
}


def words(name: str) -> str:
    """A field or observable as an axis label."""
    return WORDS.get(name, name.replace("_", " "))


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


def plot(*curves: xr.Dataset, y: str, x: str | None = None, log: str = "", ax: Any = None) -> Any:
    """Sweeps on one set of axes: those with a `seed` dimension as dots with error bars, the others as lines.

    x: the grid dimension of the axis (the only one when there is just one). Returns the axes. Raises `ValueError` for a missing
    observable or an ambiguous axis.
    """
    import matplotlib.pyplot as plt

    for data in curves:
        if y not in data:
            raise ValueError(f"{y!r} is not in this sweep; it has: {', '.join(map(str, data.data_vars))}")
    chosen = x or _only_dimension(curves)
    with house_style():
        axes = ax or plt.subplots(figsize=(4.6, 3.4))[1]
        theories: dict[str, xr.Dataset] = {}
        experiments: dict[str, xr.Dataset] = {}
        for number, data in enumerate(curves):
            label = data.attrs.get("label") or str(data.attrs.get("function", f"curve {number}")).rsplit(".", 1)[-1]
            kept = experiments if "seed" in data.dims else theories
            kept[label if label not in kept else f"{label} ({number})"] = data
        plot_panel(axes, theories, experiments, chosen, y, log)
        axes.legend()
    return axes


def _only_dimension(curves: Sequence[xr.Dataset]) -> str:
    dims = {str(dim) for data in curves for dim in data["status"].dims if dim != "seed" and data.sizes[dim] > 1}
    if len(dims) != 1:
        raise ValueError(f"x: name the axis, one of {', '.join(sorted(dims)) or 'no varied fields'}")
    return dims.pop()


