"""The temperatures at which Binder's ratios of two sizes cross."""

import itertools
from typing import Any

import numpy as np
import xarray as xr

from orderparam.comparison import Comparison
from orderparam.plotting.style import GREY, ink
from orderparam.systems.spins.lattice.model import CRITICAL_TEMPERATURE


def draw_crossings(axes: Any, comparison: Comparison) -> None:
    """Draw the temperature at which Binder's ratios of two successive sizes are equal, against the
    inverse of the larger size.
    """
    runs = {data.attrs["facets"]["length"]: data for data in comparison.experiments().values()}
    lengths = sorted(runs)
    for number, (smaller, larger) in enumerate(itertools.pairwise(lengths)):
        found = crossing(runs[smaller], runs[larger], larger)
        if len(found) > 1:
            place = 1 / larger, np.mean(found)
            axes.errorbar(*place, np.std(found, ddof=1) / np.sqrt(len(found)), fmt="o", color=ink())
            offset = (5, (5, -14)[number % 2])  # neighbouring labels would overlap
            axes.annotate(f"{smaller}, {larger}", place, offset, textcoords="offset points")
    axes.axhline(CRITICAL_TEMPERATURE, color=GREY, linewidth=0.8, linestyle=":")
    axes.annotate(
        "$T_c$", (0, CRITICAL_TEMPERATURE), (2, 3), textcoords="offset points", color=GREY
    )
    axes.set(
        xlabel=r"$1/L$ of the larger size",
        ylabel="crossing temperature",
        xlim=(0, 1.3 / lengths[1]),
    )


def crossing(smaller: xr.Dataset, larger: xr.Dataset, length: int) -> np.ndarray:
    """Temperature at which Binder's ratios of two sizes are equal, for each seed.

    The crossing is the zero of a polynomial that is fitted to the difference of the two ratios as a
    function of the temperature. The fit is made twice. The first polynomial has degree four, or
    less for fewer than seven temperatures, and is fitted at all temperatures. The second is a
    parabola, fitted at the temperatures within 2/L of the mean crossing of the first fit, where L =
    `length` is the larger size; the scaling functions bend little there. Seeds without a zero
    between the temperatures are left out.
    """
    temperatures = smaller["temperature"].values
    differences = (larger["binder"] - smaller["binder"]).transpose("seed", "temperature").values
    everywhere = np.ones(len(temperatures), bool)
    middle = (temperatures.max() + temperatures.min()) / 2
    first = _zeros(temperatures, differences, everywhere, min(4, len(temperatures) - 3), middle)
    if not len(first):
        return first
    near = np.abs(temperatures - np.mean(first)) <= 2 / length
    if near.sum() < 5:
        return first
    return _zeros(temperatures, differences, near, 2, float(np.mean(first)))


def _zeros(
    temperatures: np.ndarray, differences: np.ndarray, used: np.ndarray, degree: int, middle: float
) -> np.ndarray:
    """For each seed, the zero of its polynomial that is nearest to `middle`."""
    half = np.max(np.abs(temperatures[used] - middle))
    found = []
    for difference in differences:
        finite = used & np.isfinite(difference)
        if finite.sum() < 3:
            continue
        scaled = (temperatures[finite] - middle) / half
        powers = min(max(2, degree), int(finite.sum()) - 1)
        roots = np.roots(np.polyfit(scaled, difference[finite], powers))
        real = roots[np.isreal(roots)].real
        inside = real[np.abs(real) <= 1]
        if inside.size:
            found.append(middle + half * inside[np.argmin(np.abs(inside))])
    return np.array(found)
