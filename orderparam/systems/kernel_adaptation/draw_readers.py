"""The learnability of kept directions, measured and in theory, on one panel."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import xarray as xr

from orderparam.plotting.measured import dots, mean_and_error
from orderparam.plotting.style import GREY


def draw_learnability(axes: Any, rank: np.ndarray, cases: Iterable[tuple[xr.Dataset, str]]) -> None:
    """Draws the learnability against the number of directions kept: filled marks for a Gaussian
    process on images that have not trained the network, dashed lines for its theory, open marks for
    one on the training set. A case is (data, colour)."""
    for number, (data, colour) in enumerate(cases):
        theory = np.ravel(mean_and_error(data["predicted_learnability"].squeeze(drop=True))[0])
        axes.plot(rank, theory, color=colour, linestyle="--", linewidth=1)
        for name, filled in (("fresh_learnability", True), ("learnability", False)):
            values = data[name].squeeze(drop=True)
            dots(axes, rank, values, number, colour=colour, filled=filled, linestyle="none")
    axes.axhline(0, color=GREY, linewidth=0.8, zorder=0)
    axes.set(xscale="log", xlabel="directions kept $k$", ylabel="learnability of the labels")
