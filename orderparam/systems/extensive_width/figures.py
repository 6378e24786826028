"""How the studies of extensive-width learning are drawn."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

from orderparam.core.agreement import estimate
from orderparam.core.study import Comparison
from orderparam.plotting.curves import caption, plot_panel, yerror
from orderparam.plotting.style import COLOURS, MARKERS

SAMPLES = r"training examples $n$"
ERROR = r"error $\varepsilon$ (without label noise)"
INDEX = r"feature index $i$"
OVERLAP = r"overlap $q_i$"


def _system_words(parameters: dict[str, Any]) -> str:
    names = {"input_dim": "d", "width": "k", "decay": "β", "noise": "Δ"}
    return ", ".join(f"{short} = {parameters[name]:g}" for name, short in names.items() if name in parameters)


def _dots(axes: Any, data: xr.Dataset, x: np.ndarray, y: str, number: int, label: str) -> None:
    mean, error = estimate(data, y)
    bars = yerror(error)
    axes.errorbar(
        x,
        np.ravel(mean),
        None if bars is None else np.ravel(bars),
        fmt=MARKERS[number % len(MARKERS)],
        color="black" if number == 0 else COLOURS[(number + 2) % len(COLOURS)],
        markerfacecolor="white" if number else "black",
        label=label,
        zorder=3,
    )


def draw_staircase(comparison: Comparison) -> Any:
    """Overlaps of some features, and the effective width, against the number of samples."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.5))
    bayes, informed = comparison.curves.values()
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
        f"{_system_words(comparison.parameters)}, tanh(2z). Solid: Bayes-optimal. Dotted: metastable branch reached from the "
        "teacher.",
    )
    return figure


def draw_collapse(comparison: Comparison) -> Any:
    """Errors against n, and error times n / (k_c d noise) against k_c / k."""
    decays = comparison.panels
    figure, axes = plt.subplots(2, len(decays), figsize=(2.9 * len(decays), 5.2), squeeze=False)
    for column, decay in enumerate(decays):
        for number, data in enumerate(comparison.theories(decay).values()):
            dim, width = data.attrs["label"].rsplit(" ", 1)[-1], data.sizes["feature"]
            colour = COLOURS[number % len(COLOURS)]
            n = data["n_train"] / float(dim) ** 2
            axes[0, column].loglog(n, data["error"], color=colour, label=f"$d$ = {float(dim):g}")
            noise = comparison.parameters["noise"] + data["error"]
            ratio = data["error"] * data["n_train"] / (data["effective_width"] * float(dim) * noise)
            learned = data["effective_width"] > 0
            axes[1, column].plot(
                (data["effective_width"] / width)[learned], ratio[learned], ".", markersize=3, color=colour, alpha=0.8
            )
        beta = float(decay)
        first = next(iter(comparison.theories(decay).values()))
        guide = np.array([0.05, 1.0])
        anchor = float(first["error"].interp(n_train=float(first.attrs["label"].rsplit(" ", 1)[-1]) ** 2 * 0.05))
        slope = 1.8 * anchor * (guide / 0.05) ** (1 / (2 * beta) - 1)
        axes[0, column].loglog(guide, slope, color="0.5", linewidth=0.9)
        axes[0, column].annotate(r"$n^{1/2\beta-1}$", (guide[1], slope[1]), fontsize=7, color="0.3")
        axes[0, column].set_title(rf"$\beta$ = {decay}")
        axes[0, column].set_xlabel("$n/d^2$")
        axes[1, column].set_xscale("log")
        axes[1, column].set_yscale("log")
        axes[1, column].set_xlabel("$k_c/k$")
    axes[0, 0].set_ylabel(r"error $\varepsilon$")
    axes[1, 0].set_ylabel(r"$\varepsilon n/(k_c d (\Delta + \varepsilon))$")
    axes[0, 0].legend(loc="lower left")
    size = f"k = d/2, Δ = {comparison.parameters['noise']:g}, tanh(2z)"
    caption(figure, f"{size}. Below: tends to one constant while $k_c \\ll k$, and to 1 where all is learned.")
    return figure


def draw_posterior(comparison: Comparison) -> Any:
    """Error against n with HMC dots; overlaps of all features at the largest and at a middle n."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.8, 3.6))
    plot_panel(left, comparison.theories(), {}, "n_train", "error", log="y")
    for number, (label, data) in enumerate(comparison.experiments().items()):
        _dots(left, data, data["n_train"].values, "error", number, label)
    left.set_xlabel(SAMPLES)
    left.set_ylabel(ERROR)
    left.legend(fontsize=7)
    theory = comparison.theories()["Bayes-optimal"]
    measured = comparison.experiments()["HMC, learned features informed"]
    shown = measured["n_train"].values[[len(measured["n_train"]) // 3, -1]]
    rank = np.arange(1, theory.sizes["feature"] + 1)
    for number, n in enumerate(shown):
        right.plot(rank, theory["overlap"].sel(n_train=n), "x", markersize=4, color=COLOURS[number], label=f"theory, $n$ = {n:g}")
        mean, error = estimate(measured.sel(n_train=n), "overlap")
        right.errorbar(
            rank, mean, yerror(error), fmt=MARKERS[number], color=COLOURS[number], markerfacecolor="white", markersize=4,
            label=f"HMC, $n$ = {n:g}", zorder=1,
        )  # fmt: skip
    right.set_xlabel(INDEX)
    right.set_ylabel(OVERLAP)
    right.legend(fontsize=7)
    caption(
        figure,
        f"{_system_words(comparison.parameters)}, tanh(2z) without its linear part; {comparison.parameters['seeds']} data "
        "sets, standard errors. At this size the theory is off by a few percent; an uninformed chain stays in the hard phase.",
    )
    return figure


def draw_student_width(comparison: Comparison) -> Any:
    """Error against the width of the student: the bound, and Adam."""
    panels = comparison.panels
    figure, axes = plt.subplots(1, len(panels), figsize=(3.7 * len(panels), 3.5), squeeze=False, sharey=True)
    for ax, panel in zip(axes[0], panels):
        plot_panel(ax, comparison.theories(panel), comparison.experiments(panel), "width", "error", title=f"$n/d^2$ = {panel}")
        (theory,) = comparison.theories(panel).values()
        resolved = float(theory["effective_width"][-1])
        ax.axvline(resolved, color="0.6", linewidth=0.8, linestyle=":")
        ax.annotate("$k_c$", (resolved, 0.97), xycoords=("data", "axes fraction"), ha="right", va="top", fontsize=8)
        ax.set_xlabel("width of the student $p$")
        ax.set_ylabel(ERROR if panel == panels[0] else "")
        ax.legend(loc="lower left", fontsize=7)
    parameters = comparison.parameters
    caption(
        figure,
        f"{_system_words(parameters)}, tanh(2z), {parameters['epochs']} epochs of Adam, {parameters['seeds']} seeds. The bound "
        "is for a student to whom the linear part is free; Adam must represent it too, and is not optimal.",
    )
    return figure


def draw_student_scaling(comparison: Comparison) -> Any:
    """Error against n: Bayes-optimal, Adam at full and at effective width."""
    figure, axes = plt.subplots(figsize=(4.8, 3.7))
    theory = comparison.theories()["Bayes-optimal"]
    axes.loglog(theory["teacher.n_train"], theory["error"], color=COLOURS[0], label="Bayes-optimal")
    full = comparison.experiments()["Adam, full width"]
    _dots(axes, full, full["teacher.n_train"].values, "error", 0, "Adam, full width")
    others = [data for name, data in comparison.experiments().items() if name != "Adam, full width"]
    for number, data in enumerate(others):
        _dots(axes, data, data["teacher.n_train"].values, "error", 1, "Adam, width $k_c$" if number == 0 else "")
    partial = theory["effective_width"] < comparison.parameters["width"]
    if bool((~partial).any()):
        complete = float(theory["teacher.n_train"][~partial][0])
        axes.axvline(complete, color="0.6", linewidth=0.8, linestyle=":")
        axes.annotate("$k_c = k$", (complete, 0.97), xycoords=("data", "axes fraction"), ha="right", va="top", fontsize=8)
    axes.set_xlabel(SAMPLES)
    axes.set_ylabel(ERROR)
    axes.legend(loc="lower left")
    parameters = comparison.parameters
    caption(figure, f"{_system_words(parameters)}, tanh(2z), {parameters['epochs']} epochs, {parameters['seeds']} seeds.", 70)
    return figure


def draw_effective_model(comparison: Comparison) -> Any:
    """Overlaps of the learned features in the whole and in the effective model."""
    figure, axes = plt.subplots(figsize=(4.8, 3.6))
    theory = comparison.theories()["theory"]
    rank = np.arange(1, theory.sizes["feature"] + 1)
    axes.plot(rank, theory["overlap"].isel(width=-1), "x", color=COLOURS[0], label="theory")
    for number, (label, data) in enumerate(comparison.experiments().items()):
        mean, error = estimate(data.isel(width=0), "overlap")
        axes.errorbar(
            rank + 0.15 * (2 * number - 1), mean, yerror(error), fmt=MARKERS[number], markersize=4, markerfacecolor="white",
            color=("black", COLOURS[1])[number], label=label, zorder=1,
        )  # fmt: skip
    axes.set_xlabel(INDEX)
    axes.set_ylabel(OVERLAP)
    axes.legend()
    parameters = comparison.parameters
    size = f"{_system_words(parameters)}, n/d² = {parameters['ratio']:g}"
    caption(figure, f"{size}, tanh(2z), {parameters['seeds']} data sets, standard errors.", 70)
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
    caption(figure, f"{_system_words(comparison.parameters)}, tanh(2z), unit-norm read-outs.")
    return figure
