"""The figure of the risk at a given compute: the lowest risk over all widths, and the best width,
which follows from the computes at which the risks of two widths are equal."""

import itertools
from typing import Any

import numpy as np
import xarray as xr

from orderparam.comparison import Comparison
from orderparam.plotting.measured import dots
from orderparam.plotting.style import COLOURS, DASHES, GREY, MARKERS, ink


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
    axes.plot(grid, lowest, color=GREY, alpha=0.5, linewidth=5, label="lowest of all widths")
    for number, width in enumerate(drawn):
        colour = COLOURS[number]
        axes.plot(*theories[width], color=colour, linewidth=1, label=f"$N$ = {width}")
        for runs, mark, size in ((drawn, "o", 3.0), (sgd, "s", 5.0)):
            if width in runs:
                data = runs[width].squeeze(drop=True)
                compute = data["compute"].isel(seed=0).values
                dots(axes, compute, data["risk"], number, fmt=mark, markersize=size, linewidth=0.7)
    axes.set(xscale="log", yscale="log", xlabel="compute $f=NBt$", ylabel="risk $R$")


def draw_best_widths(axes: Any, comparison: Comparison) -> None:
    """Draw the width of the smallest risk against the compute, for every phase."""
    from matplotlib.lines import Line2D

    phases = list(
        dict.fromkeys(data.attrs["facets"]["phase"] for data in comparison.theories().values())
    )
    handles = []
    for number, phase in enumerate(phases):
        theories = _theories(comparison, phase)
        pairs = list(itertools.pairwise(sorted(theories)))
        computes = [takeover(theories[a], theories[b]) for a, b in pairs]
        widths = [np.sqrt(a * b) for a, b in pairs]
        thin: dict[str, Any] = {"linestyle": DASHES[number], "linewidth": 0.8}
        axes.plot(computes, widths, color=GREY, zorder=1, **thin)
        handle: dict[str, Any] = {"color": ink(), "markerfacecolor": "white", "markersize": 4}
        runs = _experiments(comparison, phase, "drawn features")
        for a, b in itertools.pairwise(sorted(runs)):
            compute, error = measured_takeover(runs[a], runs[b])
            bar = [[compute * (1 - np.exp(-error))], [compute * (np.exp(error) - 1)]]
            axes.errorbar(compute, np.sqrt(a * b), xerr=bar, fmt=MARKERS[number], **handle)
        handles.append(Line2D([], [], marker=MARKERS[number], label=phase, **handle, **thin))
    axes.legend(handles=handles, loc="lower right", title="phase", handlelength=3)
    axes.set(xlabel="compute $f=NBt$", ylabel="best width $N^*$")
    if np.isfinite(axes.dataLim.get_points()).all():  # a single width has no takeover
        axes.set(xscale="log", yscale="log")
