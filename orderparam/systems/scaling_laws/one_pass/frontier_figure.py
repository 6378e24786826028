"""The figure of the risk at a given compute: the lowest risk over all widths, and the computes at
which the risks of two widths are equal, from which on the larger one is the better."""

import itertools
from typing import Any

import numpy as np
import xarray as xr

from orderparam.comparison import Comparison
from orderparam.plotting.measured import dots
from orderparam.plotting.style import COLOURS, GREY, MARKERS, ink


def takeover(
    smaller: tuple[np.ndarray, np.ndarray], larger: tuple[np.ndarray, np.ndarray]
) -> float:
    """The largest compute at which the risks (compute, risk) of two widths are equal; beyond it the
    larger width has the smaller risk. The risks are interpolated linearly in logarithms. The result
    is NaN if the risks are equal nowhere.
    """
    (f, one), (g, other) = (np.log(np.asarray(curve, float)) for curve in (smaller, larger))
    grid = np.linspace(max(f[0], g[0]), min(f[-1], g[-1]), 2001)
    ahead = np.interp(grid, f, one) - np.interp(grid, g, other)
    changes = np.flatnonzero((ahead[:-1] <= 0) & (ahead[1:] > 0))
    if not changes.size:
        return float("nan")
    at = changes[-1]
    share = ahead[at] / (ahead[at] - ahead[at + 1])
    return float(np.exp(grid[at] + share * (grid[at + 1] - grid[at])))


def measured_takeover(smaller: xr.Dataset, larger: xr.Dataset) -> tuple[float, float]:
    """`takeover` of the mean risks of two widths, and the jackknife standard error of its logarithm
    over the draws."""
    risks = [data["risk"].squeeze(drop=True).transpose("seed", ...) for data in (smaller, larger)]
    computes = [
        data["compute"].squeeze(drop=True).isel(seed=0).values for data in (smaller, larger)
    ]
    seeds = risks[0].sizes["seed"]
    found = takeover(*((f, risk.mean("seed").values) for f, risk in zip(computes, risks)))
    without = [
        takeover(
            *((f, risk.drop_isel(seed=i).mean("seed").values) for f, risk in zip(computes, risks))
        )
        for i in range(seeds)
    ]
    return found, float(np.sqrt((seeds - 1) * np.var(np.log(without))))


def _theories(comparison: Comparison, phase: str) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Compute and risk in the theory of large width, for each width."""
    return {
        int(data.attrs["facets"]["width"]): (
            data["compute"].values.ravel(),
            data["risk"].values.ravel(),
        )
        for data in comparison.theories(phase=phase).values()
    }


def _experiments(comparison: Comparison, phase: str, label: str) -> dict[int, xr.Dataset]:
    """The runs of each width."""
    return {
        int(data.attrs["facets"]["width"]): data
        for data in comparison.experiments(phase=phase).values()
        if data.attrs["label"] == label
    }


def draw_risks(phase: str, axes: Any, comparison: Comparison) -> None:
    """Draw the risks of the measured widths, and the lowest risk of all widths."""
    theories = _theories(comparison, phase)
    drawn = _experiments(comparison, phase, "drawn features")
    sgd = _experiments(comparison, phase, "SGD")
    low, high = (
        pick([f[end] for f, _ in theories.values()]) for pick, end in ((min, 0), (max, -1))
    )
    grid = np.geomspace(low, high, 200)
    logs = [
        np.interp(np.log(grid), np.log(f), np.log(risk), left=np.inf, right=np.inf)
        for f, risk in theories.values()
    ]
    lowest = np.exp(np.min(logs, axis=0))
    axes.plot(grid, lowest, color=GREY, alpha=0.5, linewidth=5)
    # squares are hollow: circles and the line are seen inside them
    marks: dict[str, dict[str, Any]] = {
        "drawn features": {"markersize": 3.0, "markerfacecolor": "white"},
        "SGD": {"markersize": 5.5, "markerfacecolor": "none"},
    }
    for mark, (label, look) in zip("os", marks.items()):
        axes.plot([], [], mark, label=label, color=ink(), **look)
    for number, width in enumerate(drawn):
        colour = COLOURS[number]
        axes.plot(*theories[width], color=colour, linewidth=1, label=f"$N$ = {width}")
        for mark, runs, look in zip("os", (drawn, sgd), marks.values()):
            if width in runs:
                data = runs[width].squeeze(drop=True)
                compute = data["compute"].isel(seed=0).values
                dots(axes, compute, data["risk"], number, fmt=mark, linewidth=0.7, **look)
    axes.set(xscale="log", yscale="log", xlabel="compute $f=NBt$", ylabel="risk $R$")


def draw_takeovers(axes: Any, comparison: Comparison) -> None:
    """Draw the computes at which one measured width takes over from the next, over those in theory
    for the same two widths, for every phase; the colour is that of the larger width."""
    from matplotlib.lines import Line2D

    phases = list(
        dict.fromkeys(data.attrs["facets"]["phase"] for data in comparison.theories().values())
    )
    handles = []
    for number, phase in enumerate(phases):
        theories = _theories(comparison, phase)
        runs = _experiments(comparison, phase, "drawn features")
        look: dict[str, Any] = {"markerfacecolor": "white", "markersize": 4}
        for larger, (a, b) in enumerate(itertools.pairwise(sorted(runs)), 1):
            compute, error = measured_takeover(runs[a], runs[b])
            predicted = takeover(theories[a], theories[b])
            ratio = compute / predicted
            bar = [[ratio * (1 - np.exp(-error))], [ratio * (np.exp(error) - 1)]]
            colour = COLOURS[larger % len(COLOURS)]
            axes.errorbar(predicted, ratio, bar, fmt=MARKERS[number], color=colour, **look)
        look |= {"marker": MARKERS[number], "linestyle": "none", "color": ink()}
        handles.append(Line2D([], [], label=phase, **look))
    axes.axhline(1.0, color=GREY, linewidth=0.8, linestyle=":", zorder=0.5)
    axes.legend(handles=handles, title="phase", title_fontsize=8, ncols=2)
    axes.set(xlabel="compute $f=NBt$ in theory", ylabel="measured / theory")
    if np.isfinite(axes.dataLim.get_points()).all():  # a single width has no takeover
        axes.set(xscale="log")
