"""What the studies of extensive-width learning share: their source and grids, axis titles, dots with errors."""

from typing import Any

import numpy as np
import xarray as xr

from orderparam.core.agreement import estimate
from orderparam.core.study import Comparison
from orderparam.plotting.curves import yerror
from orderparam.plotting.style import COLOURS, MARKERS

SOURCE = "Nguyen and Barbier 2026"
SAMPLES = r"training examples $n$"
ERROR = r"error $\varepsilon$ (without label noise)"
INDEX = r"feature index $i$"
OVERLAP = r"overlap $q_i$"
UNCONVERGED = 2


def samples(low: float, high: float, count: int) -> list[float]:
    """Whole numbers of samples, equidistant in the logarithm."""
    return sorted({float(round(n)) for n in np.geomspace(low, high, count)})


def system_words(parameters: dict[str, Any]) -> str:
    names = {"input_dim": "d", "width": "k", "decay": "β", "noise": "Δ"}
    return ", ".join(f"{short} = {parameters[name]:g}" for name, short in names.items() if name in parameters)


def dots(axes: Any, data: xr.Dataset, x: Any, y: str, number: int, label: str, colour: str | None = None) -> None:
    """Mean and standard error; a grey cross on the points some of whose runs missed R-hat < 1.05 or 100 effective samples.

    Where chains hold different sets of features, every chain is a short line beside the mean.
    """
    mean, error = estimate(data, y)
    bars = yerror(error)
    axes.errorbar(
        x,
        np.ravel(mean),
        None if bars is None else np.ravel(bars),
        fmt=MARKERS[number % len(MARKERS)],
        color=colour or ("black" if number == 0 else COLOURS[number % len(COLOURS)]),
        markerfacecolor="white" if number else None,
        label=label,
        zorder=3,
    )
    missed = np.ravel((data["status"] == UNCONVERGED).any("seed"))
    axes.plot(np.ravel(x)[missed], np.ravel(mean)[missed], "x", color="0.6", markersize=9, zorder=2.5)
    if y == "error" and "chain_error" in data:
        for run in range(data.sizes["seed"]):
            each = data["chain_error"].isel(seed=run).values.reshape(np.size(x), -1)
            several = np.ravel(data["coexisting"].isel(seed=run)).astype(bool)
            axes.plot(np.ravel(x)[several], each[several], "_", color=colour or "black", markersize=7, alpha=0.6, zorder=2.4)


def unconverged(comparison: Comparison, marked: bool = True) -> str:
    """How many of the sampled runs missed the limits, in words; `marked`: with crosses in the figure."""
    runs = [data["status"].values for data in comparison.curves().values() if "r_hat" in data]
    missed, total = sum(int(np.sum(status == UNCONVERGED)) for status in runs), sum(status.size for status in runs)
    several = sum(int(np.sum(data["coexisting"])) for data in comparison.curves().values() if "coexisting" in data)
    words = f"{missed} of {total} runs miss R-hat < 1.05 or 100 effective samples" + (" (crosses)" if missed and marked else "")
    if not several:
        return f"{words}."
    return f"{words}; in {several} the chains hold different sets of features" + (" (dashes: single chains)." if marked else ".")
