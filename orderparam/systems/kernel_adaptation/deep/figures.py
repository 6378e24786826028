"""How the study of deep networks is drawn."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from orderparam.core.study import Comparison
from orderparam.plotting.curves import caption, draw_dots, draw_line
from orderparam.plotting.measured import mean_and_error
from orderparam.plotting.style import COLOURS, DASHES
from orderparam.systems.kernel_adaptation.deep.experiment import DIRECTIONS

LEAST = 1e-3  # density below which nothing is drawn


def draw_deep(comparison: Comparison) -> Any:
    """Learnability and the pre-activations' variance along the target against the width, and the law of the pre-activations."""
    p = comparison.parameters
    figure, axes = plt.subplots(1, 3, figsize=(11.0, 3.8))
    theories, (runs,) = comparison.theories(), comparison.experiments().values()
    for number, (label, data) in enumerate(theories.items()):
        draw_line(axes[0], data, "width", "total_learnability", number, label)
        draw_line(axes[1], data.isel(layer=-1), "width", "on_target", number, None)
    draw_dots(axes[0], runs, "width", "total_learnability", 0, "sampled network")
    draw_dots(axes[1], runs.isel(layer=-1), "width", "on_target", 0, None)
    axes[0].set(xscale="log", xlabel="width $N$", ylabel="learnability of the target on test points")
    axes[1].set(xscale="log", xlabel="width $N$", ylabel=r"variance along the target, $y^\top H_L\,y/|y|^2$")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    _laws(axes[2], runs, p["measured_widths"][len(p["measured_widths"]) // 2])
    caption(
        figure,
        f"{p['depth']} hidden layers of N {p['activation']} units, d = {p['input_dim']}, n = {p['n_train']} (one training set), "
        f"y = He1 {p['cubic']:+g} He3 of the first axis; T = 0.1/chi, variance of sqrt(N) a 1/chi, chi = {p['chi']:g}, "
        f"E|w|^2 = 1, hidden variance 2. Dots: HMC, mean and standard error of {p['seeds']} runs of 2 chains and {p['draws']} "
        f"draws. Right: first-layer weights and last-layer pre-activations along one direction; in brackets excess kurtosis "
        f"and the p-value (not below 1e-4) of a Kolmogorov-Smirnov test against a Gaussian of the sampled variance, for as many "
        f"independent values as the samples amount to.",
        150,
    )
    return figure


def _laws(axes: Any, runs: Any, width: int) -> None:
    """Densities of all directions at one width, shifted by four decades each, against the Gaussians of both theories."""
    at = runs.sel(width=width)
    centres = at["bin_centre"].values.reshape(-1, at.sizes["bin"])[0]
    x = np.linspace(-4, 4, 400)
    for number, name in enumerate(DIRECTIONS):
        shift = 10.0 ** (-4 * number)
        mean, error = mean_and_error(at["density"].isel(direction=number))
        kurtosis = float(at["excess_kurtosis"].isel(direction=number).mean())
        p_value = float(at["p_value_of_shape"].isel(direction=number).median())
        ratio = float(np.sqrt((at["prior_variance"] / at["expected"]).isel(direction=number).mean()))
        for index, deviation in enumerate((ratio, 1.0)):
            law = np.exp(-((x / deviation) ** 2) / 2) / np.sqrt(2 * np.pi) / deviation
            shown = np.where(law > LEAST, shift * law, np.nan)
            axes.plot(x, shown, color=COLOURS[index], linestyle=DASHES[index], zorder=1)
        seen = mean > LEAST
        bars = shift * np.minimum(np.nan_to_num(error[seen]), 0.9 * mean[seen])
        axes.errorbar(centres[seen], shift * mean[seen], bars, fmt="o", color="black", markersize=2)
        axes.annotate(f"{name} ({kurtosis:+.2f}, p = {p_value:.2g})", (0, shift * 1.5), ha="center", va="bottom", fontsize=7)
    axes.set(yscale="log", ylim=(3e-16, 30), xlim=(-4, 4), xlabel="value / standard deviation in theory")
    axes.set_ylabel(f"density, $N$ = {width} (shifted by $10^{{-4}}$ each)")
