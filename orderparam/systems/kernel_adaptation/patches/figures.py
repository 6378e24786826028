"""How the studies of convolutional networks are drawn."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from orderparam.core.study import Comparison
from orderparam.plotting.curves import caption, draw_dots, draw_line
from orderparam.plotting.measured import dots
from orderparam.plotting.style import COLOURS, DASHES, MARKERS

_RATIO = "kernel eigenvalue ratio"


def measured_sizes(axes: Any, sizes: Any) -> None:
    """Ticks of a logarithmic axis at the measured sizes."""
    axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
    axes.minorticks_off()


def draw_transition(comparison: Comparison) -> Any:
    """Learnability and eigenvalue ratio of growing systems against P/P_c, and one small system with its samples."""
    p = comparison.parameters
    figure, axes = plt.subplots(1, 3, figsize=(11.0, 3.9))
    theories = comparison.theories("size")
    grid = np.geomspace(0.1, 30, 200)
    axes[0].plot(grid, np.maximum(0, 1 - 1 / grid), color="0.6", linewidth=3, label=r"$d\to\infty$: $1-P_c/P$", zorder=0)
    for number, size in enumerate(p["sizes"]):
        network, process = list(theories.values())[2 * number : 2 * number + 2]
        critical = (p["chi"] ** -1) * np.sqrt(50 * size * 10 * size * 1000 * size * p["chi"])
        x, style = network["n_train"] / critical, {"color": COLOURS[number], "linestyle": DASHES[number]}
        axes[0].plot(x, network["total_learnability"], label=network.attrs["label"], **style)
        axes[0].plot(x, process["total_learnability"], linewidth=0.8, **style)
        axes[1].plot(x, network["eigenvalue_ratio"], **style)
    axes[0].set(xscale="log", xlabel="$P/P_c$, $P_c\\sim d^{3/4}$", ylabel="learnability")
    axes[1].set(xscale="log", yscale="log", xlabel="$P/P_c$, $P_c\\sim d^{3/4}$", ylabel=_RATIO)
    axes[0].legend(loc="upper left", fontsize=7)
    small = comparison.theories("sampled")
    for number, (label, data) in enumerate(small.items()):
        draw_line(axes[2], data, "n_train", "total_learnability", number, label)
    for label, data in comparison.experiments("sampled").items():
        draw_dots(axes[2], data, "n_train", "total_learnability", 0, label)
    axes[2].set(xscale="log", xlabel="training examples $P$", ylabel=f"learnability, $d$ = {500 * min(p['sizes']) ** 2:g}")
    measured_sizes(axes[2], next(iter(comparison.experiments("sampled").values()))["n_train"].values)
    axes[2].legend(loc="lower right", fontsize=7)
    caption(
        figure,
        f"Linear units, N = 10 a patches of S = 50 a inputs, C = 1000 a channels, d = 500 a^2; temperature and read-out variance "
        f"1/chi, chi = {p['chi']:g}, E|w|^2 = 1; target linear in every patch. Left and middle: averaged over data, ridge T/P; "
        f"thin lines: infinitely wide network (GP). Right: a = {min(p['sizes']):g}; dots: HMC, mean and standard error of "
        f"{p['seeds']} data sets.",
        150,
    )
    return figure


def draw_erf_patches(comparison: Comparison) -> Any:
    """Learnability of h_1 and h_3, and the eigenvalue ratio, for several numbers of patches."""
    p = comparison.parameters
    figure, axes = plt.subplots(1, 3, figsize=(11.0, 3.9))
    kinds = ((":", 0.9), ("--", 1.2), ("-", 1.5))
    for number, count in enumerate(p["patches"]):
        name = f"$N$ = {count}"
        for (label, data), (dash, thick) in zip(comparison.theories().items(), kinds):
            at, style = data.sel(patches=count), {"color": COLOURS[number], "linestyle": dash, "linewidth": thick}
            axes[0].plot(at["n_train"], at["learnability"].isel(mode=0), label=f"{label}, {name}", **style)
            axes[1].plot(at["n_train"], at["learnability"].isel(mode=1), **style)
            axes[2].plot(at["n_train"], at["eigenvalue_ratio"], **style)
        for label, data in comparison.experiments().items():
            at = data.sel(patches=count)
            x, values = at["n_train"], at["learnability"]
            look: dict[str, Any] = {"colour": COLOURS[number], "filled": True, "fmt": MARKERS[number]}
            dots(axes[0], x, values.isel(mode=0), number, f"{label}, {name}", **look)
            dots(axes[1], x, values.isel(mode=1), number, **look)
            dots(axes[2], x, at["eigenvalue_ratio"], number, **look)
    for panel, label in zip(axes, ("learnability of $h_1$", "learnability of $h_3$", _RATIO)):
        panel.set(xscale="log", xlabel="training examples $P$", ylabel=label)
        measured_sizes(panel, p["n_train"])
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4)
    caption(
        figure,
        f"Erf units, N patches of {p['patch_dim']} inputs, {p['channels']} channels, y = N^(-1/2) sum_i (He1 {p['cubic']:+g} He3)"
        f"(w*.x_i); temperature and read-out variance 1/chi, chi = {p['chi']:g}, E|w|^2 = 1; constants chosen here. Lines: "
        f"averaged over data, modes h1, h3, h5, h7; GP with the effective ridge. Dots: HMC, mean and standard error of "
        f"{p['seeds']} data sets.",
        150,
    )
    return figure
