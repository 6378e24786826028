"""How the studies of the theory of extensive-width learning are drawn."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from orderparam.core.study import Comparison
from orderparam.plotting.curves import caption
from orderparam.plotting.style import COLOURS
from orderparam.systems.extensive_width.common import ERROR, INDEX, OVERLAP, SAMPLES, system_words


def draw_staircase(comparison: Comparison) -> Any:
    """Overlaps of some features, and the effective width, against the number of samples."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.5))
    bayes, informed = comparison.curves().values()
    width = bayes.sizes["feature"]
    chosen = [i for i in (1, 2, 4, 8, 16, 32, 64, 128) if i <= width]
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(chosen)))
    for colour, i in zip(colours, chosen):
        left.plot(bayes["n_train"], bayes["overlap"][:, i - 1], color=colour, label=f"$i$ = {i}")
        left.plot(informed["n_train"], informed["overlap"][:, i - 1], color=colour, linestyle=":", linewidth=0.9)
    left.set_xscale("log")
    left.set_xlabel(SAMPLES)
    left.set_ylabel(OVERLAP)
    left.set_ylim(0, 1.02)
    left.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, fontsize=7)
    for data, style, label in ((bayes, "-", "Bayes-optimal"), (informed, ":", "informed branch")):
        learned = data["effective_width"].where(data["effective_width"] > 0)
        right.plot(data["n_train"], learned, style, color=COLOURS[0], label=label)
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_xlabel(SAMPLES)
    right.set_ylabel(r"effective width $k_c$")
    right.legend(loc="upper left")
    caption(
        figure,
        f"{system_words(comparison.parameters)}, tanh(2z). Solid: Bayes-optimal. Dotted: metastable branch reached from the "
        "teacher.",
    )
    return figure


def draw_collective(comparison: Comparison) -> Any:
    """Error against alpha through a collective transition, and where in (decay, noise) there is one."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.8, 3.5))
    for number, (label, data) in enumerate(comparison.theories().items()):
        style = ("-", "--", ":")[number]
        left.plot(data["n_train"] / 400**2, data["error"], color=COLOURS[number], linestyle=style, label=label)
    left.set_xlabel("$n/d^2$")
    left.set_ylabel(ERROR)
    left.legend(fontsize=7)
    (diagram,) = comparison.theories("diagram").values()
    ratio = diagram["first_order_ratio"].transpose("noise", "decay")
    decay, noise = diagram["decay"], diagram["noise"]
    mesh = right.pcolormesh(decay, noise, np.log10(ratio), cmap="RdBu_r", vmin=-1, vmax=1, shading="gouraud")
    right.contour(decay, noise, ratio, levels=[1.0], colors="black")
    right.plot(comparison.parameters["decay"], comparison.parameters["noise"], "k*")
    right.annotate("many at once", (0.2, 0.3), xycoords="axes fraction")
    right.annotate("one by one", (0.62, 0.85), xycoords="axes fraction")
    right.set_yscale("log")
    right.set_xlabel(r"decay $\beta$")
    right.set_ylabel(r"noise $\Delta$")
    figure.colorbar(mesh, ax=right, label=r"$\log_{10}\ A / (2\beta(\Delta + g(1)))$")
    at = f"β = {comparison.parameters['decay']:g}, Δ = {comparison.parameters['noise']:g} (star)"
    size = f"tanh(2z), k/d = {comparison.parameters['width_ratio']:g}"
    caption(figure, f"{size}; left: {at}. Finite sizes approach the limit as k^(2β - 1), slowly.")
    return figure


def draw_readout_laws(comparison: Comparison) -> Any:
    """Overlap profiles, one panel per law."""
    panels = comparison.panels
    figure, axes = plt.subplots(1, len(panels), figsize=(2.1 * len(panels), 2.7), sharey=True, squeeze=False)
    for ax, panel in zip(axes[0], panels):
        (data,) = comparison.theories(panel).values()
        rank = np.arange(1, data.sizes["feature"] + 1)
        for number, n in enumerate(data["n_train"].values):
            ratio = n / comparison.parameters["input_dim"] ** 2
            ax.plot(rank, data["overlap"].sel(n_train=n), ".", markersize=2.5, color=COLOURS[number], label=f"{ratio:g}")
        ax.set_title(panel, fontsize=8)
        ax.set_xlabel(INDEX)
    axes[0, 0].set_ylabel(OVERLAP)
    axes[0, 0].legend(title="$n/d^2$", fontsize=7, title_fontsize=7, loc="center right", markerscale=3)
    caption(figure, f"{system_words(comparison.parameters)}, tanh(2z), unit-norm read-outs.")
    return figure
