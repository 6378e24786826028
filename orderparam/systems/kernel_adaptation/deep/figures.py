"""The laws of weights and pre-activations along one direction, drawn by hand: many of them on one set of axes."""

from typing import Any

import numpy as np

from orderparam.core.study import Comparison
from orderparam.plotting.measured import mean_and_error
from orderparam.plotting.style import COLOURS, GREY, ink
from orderparam.systems.kernel_adaptation.deep.experiment import DIRECTIONS

LEAST = 1e-3  # density below which nothing is drawn


def draw_laws(axes: Any, comparison: Comparison) -> None:
    """Densities of all directions at the middle width, shifted by four decades each, against the Gaussians of both theories."""
    widths = comparison.parameters["measured_widths"]
    width = widths[len(widths) // 2]
    (runs,) = comparison.curves("experiment").values()
    at = runs.sel(width=width)
    centres = at["bin_centre"].values.reshape(-1, at.sizes["bin"])[0]
    x = np.linspace(-4, 4, 400)
    for number, name in zip(range(at.sizes["direction"]), DIRECTIONS):
        shift, here = 10.0 ** (-4 * number), at.isel(direction=number)
        ratio = float(np.sqrt((here["prior_variance"] / here["expected"]).mean()))
        for deviation, colour in ((ratio, GREY), (1.0, COLOURS[0])):
            law = np.exp(-((x / deviation) ** 2) / 2) / np.sqrt(2 * np.pi) / deviation
            axes.plot(x, np.where(law > LEAST, shift * law, np.nan), color=colour, zorder=1)
        mean, error = (part.ravel() for part in mean_and_error(here["density"]))
        seen = mean > LEAST
        bars = shift * np.minimum(np.nan_to_num(error[seen]), 0.9 * mean[seen])
        axes.errorbar(centres[seen], shift * mean[seen], bars, fmt="o", color=ink(), markersize=1.5)
        kurtosis, p_value = float(here["excess_kurtosis"].mean()), float(here["p_value_of_shape"].median())
        axes.annotate(f"{name} ({kurtosis:+.2f}, p = {p_value:.2g})", (0, shift * 1.5), ha="center", va="bottom", fontsize=6)
    axes.set(yscale="log", ylim=(3e-16, 30), xlim=(-4, 4), xlabel="value / standard deviation in theory")
    axes.set_ylabel(f"density, $N$ = {width}")
