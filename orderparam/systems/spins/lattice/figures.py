"""What the studies of the Ising model draw by hand: configurations, and where Binder's ratios cross."""

import itertools
from typing import Any

import numpy as np
import xarray as xr

from orderparam.core.study import Comparison
from orderparam.plotting.style import GREY, ink
from orderparam.systems.spins.lattice.model import CRITICAL_TEMPERATURE


def draw_configuration(temperature: float, axes: Any, comparison: Comparison) -> None:
    """The configuration of the first seed: black is up."""
    (runs,) = comparison.experiments().values()
    axes.imshow(runs["spin"].sel(temperature=temperature).isel(seed=0), cmap="binary", vmin=-1, vmax=1, interpolation="nearest")
    axes.set(xticks=[], yticks=[])


def draw_crossings(axes: Any, comparison: Comparison) -> None:
    """The temperature where Binder's ratios of two successive sizes cross, against the larger one's inverse."""
    runs = {data.attrs["facets"]["length"]: data for data in comparison.experiments().values()}
    lengths = sorted(runs)
    for smaller, larger in itertools.pairwise(lengths):
        found = crossing(runs[smaller], runs[larger])
        if len(found) > 1:
            place = 1 / larger, np.mean(found)
            axes.errorbar(*place, np.std(found, ddof=1) / np.sqrt(len(found)), fmt="o", color=ink())
            axes.annotate(f"{smaller}, {larger}", place, (5, 5), textcoords="offset points")
    axes.axhline(CRITICAL_TEMPERATURE, color=GREY, linewidth=0.8, linestyle=":")
    axes.annotate("$T_c$", (0, CRITICAL_TEMPERATURE), (2, 3), textcoords="offset points", color=GREY)
    axes.set(xlabel=r"$1/L$ of the larger size", ylabel="crossing temperature", xlim=(0, 1.3 / lengths[1]))


def crossing(smaller: xr.Dataset, larger: xr.Dataset) -> np.ndarray:
    """The temperature of each seed at which the difference of the two ratios, a parabola fitted to all temperatures, vanishes.

    Of two zeros the one nearer the middle of the range; seeds without one in the range are left out.
    """
    temperatures = smaller["temperature"].values
    middle, half = (temperatures.max() + temperatures.min()) / 2, (temperatures.max() - temperatures.min()) / 2
    found = []
    for difference in (larger["binder"] - smaller["binder"]).transpose("seed", "temperature").values:
        known = np.isfinite(difference)
        if known.sum() < 3:
            continue
        roots = np.roots(np.polyfit((temperatures[known] - middle) / half, difference[known], 2))
        real = roots[np.isreal(roots)].real
        inside = real[np.abs(real) <= 1]
        if inside.size:
            found.append(middle + half * inside[np.argmin(np.abs(inside))])
    return np.array(found)
