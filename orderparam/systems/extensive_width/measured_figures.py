"""How the studies that measure extensive-width learning are drawn: sampled posteriors and trained students."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

from orderparam.core.agreement import estimate
from orderparam.core.study import Comparison
from orderparam.plotting.curves import caption, plot_panel, yerror
from orderparam.plotting.style import COLOURS, MARKERS
from orderparam.systems.extensive_width.figures import ERROR, INDEX, OVERLAP, SAMPLES, system_words

UNCONVERGED = 2


def _dots(axes: Any, data: xr.Dataset, x: Any, y: str, number: int, label: str, colour: str | None = None) -> None:
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


def _unconverged(comparison: Comparison, marked: bool = True) -> str:
    """How many runs missed the limits, in words; `marked`: with crosses in the figure."""
    runs = [data["status"].values for data in comparison.curves.values() if data.attrs["kind"] == "experiment"]
    missed, total = sum(int(np.sum(status == UNCONVERGED)) for status in runs), sum(status.size for status in runs)
    several = sum(int(np.sum(data["coexisting"])) for data in comparison.curves.values() if "coexisting" in data)
    words = f"{missed} of {total} runs miss R-hat < 1.05 or 100 effective samples" + (" (crosses)" if missed and marked else "")
    if not several:
        return f"{words}."
    return f"{words}; in {several} the chains hold different sets of features" + (" (dashes: single chains)." if marked else ".")


def draw_collapse(comparison: Comparison) -> Any:
    """Errors against n, and error times n / (k_c d (noise + error)) against k_c / k; measured ones among them."""
    decays = [panel for panel in comparison.panels if panel != "measured"]
    figure, axes = plt.subplots(2, len(decays), figsize=(2.9 * len(decays), 5.2), squeeze=False)
    for column, decay in enumerate(decays):
        for number, data in enumerate(comparison.theories(decay).values()):
            dim = float(data.attrs["label"].rsplit(" ", 1)[-1])
            _collapsed(axes[:, column], data, dim, comparison.parameters["noise"], COLOURS[number % len(COLOURS)])
        if float(decay) == comparison.parameters["measured_decay"]:
            _collapse_measured(axes[:, column], comparison)
        beta = float(decay)
        first = next(iter(comparison.theories(decay).values()))
        guide = np.array([0.05, 1.0])
        anchor = float(first["error"].interp(n_train=float(first.attrs["label"].rsplit(" ", 1)[-1]) ** 2 * 0.05))
        slope = 1.8 * anchor * (guide / 0.05) ** (1 / (2 * beta) - 1)
        axes[0, column].loglog(guide, slope, color="0.5", linewidth=0.9)
        axes[0, column].annotate(
            r"$n^{1/2\beta-1}$", (guide[0], slope[0]), (0, 3), textcoords="offset points", fontsize=7, color="0.3", va="bottom"
        )
        axes[0, column].set_title(rf"$\beta$ = {decay}")
        axes[0, column].set_xlabel("$n/d^2$")
        axes[1, column].set_xscale("log")
        axes[1, column].set_yscale("log")
        axes[1, column].set_xlabel("$k_c/k$")
        axes[0, column].legend(loc="lower left", fontsize=6.5)
    axes[0, 0].set_ylabel(r"error $\varepsilon$")
    axes[1, 0].set_ylabel(r"$\varepsilon n/(k_c d (\Delta + \varepsilon))$")
    parameters = comparison.parameters
    caption(
        figure,
        f"k = d/2, Δ = {parameters['noise']:g}, tanh(2z). Below: tends to one constant while $k_c \\ll k$, and to 1 where all is "
        f"learned. Measured: {parameters['seeds']} data sets, standard errors, $k_c$ of the theory; Adam: "
        f"{parameters['epochs']} epochs. {_unconverged(comparison)}",
    )
    return figure


def _collapsed(axes: Any, data: xr.Dataset, dim: float, noise: float, colour: str) -> None:
    """A theory in both panels of a column."""
    n = data["teacher.n_train"] if "teacher.n_train" in data else data["n_train"]
    axes[0].loglog(n / dim**2, data["error"], color=colour, label=f"$d$ = {dim:g}")
    ratio = data["error"] * n / (data["effective_width"] * dim * (noise + data["error"]))
    learned = data["effective_width"] > 0
    relative = data["effective_width"] / data.sizes["feature"]
    axes[1].plot(relative[learned], ratio[learned], ".", markersize=3, color=colour, alpha=0.8)


def _collapse_measured(axes: Any, comparison: Comparison) -> None:
    dim, noise = float(comparison.parameters["measured_dim"]), comparison.parameters["noise"]
    (theory,) = comparison.theories("measured").values()
    _collapsed(axes, theory, dim, noise, "0.4")
    for number, (label, data) in enumerate(comparison.experiments("measured").items()):
        n = data["teacher.n_train"]
        resolved = theory["effective_width"].sel({"teacher.n_train": n})
        _dots(axes[0], data, n.values / dim**2, "error", number, label, ("black", COLOURS[4])[number])
        scaled = data.assign(ratio=data["error"] * n / (resolved * dim * (noise + data["error"])))
        _dots(axes[1], scaled, (resolved / theory.sizes["feature"]).values, "ratio", number, label, ("black", COLOURS[4])[number])


def draw_posterior(comparison: Comparison) -> Any:
    """Error against n with HMC dots; overlaps of all features at the largest and at a middle n."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.8, 3.6))
    plot_panel(left, comparison.theories(), {}, "n_train", "error", log="y")
    for number, (label, data) in enumerate(comparison.experiments().items()):
        _dots(left, data, data["n_train"].values, "error", number, label, ("black", COLOURS[2])[number])
    left.set_xlabel(SAMPLES)
    left.set_ylabel(ERROR)
    left.legend(fontsize=7)
    theory = comparison.theories()["Bayes-optimal"]
    measured = comparison.experiments()["HMC, learned features informed"]
    shown = measured["n_train"].values[[len(measured["n_train"]) // 3, -1]]
    rank = np.arange(1, theory.sizes["feature"] + 1)
    for number, n in enumerate(shown):
        right.plot(rank, theory["overlap"].sel(n_train=n), "x", markersize=5, color=COLOURS[number], label=f"theory, $n$ = {n:g}")
        mean, error = estimate(measured.sel(n_train=n), "overlap")
        right.errorbar(
            rank, mean, yerror(error), fmt=MARKERS[number], color=COLOURS[number], markerfacecolor="white", markersize=4,
            label=f"HMC, $n$ = {n:g}", zorder=1,
        )  # fmt: skip
    right.set_xlabel(INDEX)
    right.set_ylabel(OVERLAP)
    right.set_ylim(top=1.05)
    right.legend(fontsize=7, loc="center left", bbox_to_anchor=(0.0, 0.35))
    caption(
        figure,
        f"{system_words(comparison.parameters)}, tanh(2z) without its linear part; {comparison.parameters['seeds']} data "
        f"sets, standard errors; uninformed: 1. {_unconverged(comparison)}",
    )
    return figure


def draw_quadratic(comparison: Comparison) -> Any:
    """Errors of the universal and of the Bayes-optimal state, with HMC; overlaps Q(v) below."""
    panels = comparison.panels
    figure, axes = plt.subplots(2, len(panels), figsize=(2.8 * len(panels), 5.2), squeeze=False, sharex=True, sharey="row")
    dim = comparison.parameters["input_dim"]
    for column, law in enumerate(panels):
        (theory,) = comparison.theories(law).values()
        ratio = theory["n_train"] / dim**2
        top, bottom = axes[:, column]
        top.plot(ratio, theory["universal_error"], "--", color=COLOURS[1], label="universal")
        top.plot(ratio, theory["error"], color=COLOURS[0], label="Bayes-optimal")
        distinct = np.unique(np.round(theory["overlap"].values.T, 9), axis=0, return_index=True)[1]
        for number, i in enumerate(sorted(distinct)):
            colour = plt.get_cmap("viridis")(0.9 * number / max(len(distinct) - 1, 1))
            bottom.plot(ratio, theory["overlap"][:, i], color=colour, label="Q(v), theory" if number == 0 else None)
        for number, (label, data) in enumerate(comparison.experiments(law).items()):
            start = label.split(", ")[1]
            _dots(top, data, data["n_train"].values / dim**2, "error", number, f"HMC, {start}", ("black", COLOURS[2])[number])
            if start == "informed":
                mean, _ = estimate(data, "overlap")
                for order, i in enumerate(sorted(distinct)):
                    same = np.flatnonzero(np.all(np.isclose(theory["overlap"].values.T, theory["overlap"].values.T[i]), axis=1))
                    colour = plt.get_cmap("viridis")(0.9 * order / max(len(distinct) - 1, 1))
                    bottom.plot(
                        data["n_train"] / dim**2, mean[:, same].mean("feature"), "o", color=colour,
                        markersize=4, label="HMC, informed" if order == 0 else None,
                    )  # fmt: skip
        top.set_yscale("log")
        top.set_title(f"{law} read-outs")
        bottom.set_xlabel("$n/d^2$")
        bottom.set_ylim(-0.3, 1.1)
        top.legend(fontsize=7)
        bottom.legend(fontsize=7, loc="lower right")
    axes[0, 0].set_ylabel(ERROR)
    axes[1, 0].set_ylabel("overlap $Q(v)$ of single features")
    parameters = comparison.parameters
    caption(
        figure,
        f"{system_words(parameters)}, σ = He₂/√2 + He₃/6, Gaussian weights; informed HMC: {parameters['seeds']} data "
        f"sets, standard errors; uninformed: 1. Darker: larger |v|. {_unconverged(comparison)}",
    )
    return figure


def draw_training(comparison: Comparison) -> Any:
    """Train and test error during the training of students of several widths."""
    figure, axes = plt.subplots(figsize=(4.9, 3.8))
    data, theory = comparison.experiments()["Adam"], comparison.theories()["best possible"]
    for number, width in enumerate(data["width"].values):
        runs = data.sel(width=width)
        epoch = runs["epoch"].isel(seed=0)
        colour = COLOURS[number]
        mean, error = estimate(runs, "test_curve")
        axes.plot(epoch, mean, color=colour, label=f"test, width {width:g}")
        axes.fill_between(epoch, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
        axes.plot(epoch, estimate(runs, "train_curve")[0], "--", color=colour, label=f"train, width {width:g}")
    bound = float(theory["error"].sel(width=data["width"].values.max()))
    axes.axhline(bound, color="black", linewidth=0.9, linestyle=":", label="Bayes-optimal")
    axes.axhline(comparison.parameters["noise"], color="0.6", linewidth=0.8)
    axes.annotate("noise Δ", (1.2, comparison.parameters["noise"]), fontsize=7, color="0.4", va="bottom")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("epoch of Adam")
    axes.set_ylabel("mean squared error")
    axes.legend(fontsize=6.5, loc="upper right")
    parameters = comparison.parameters
    resolved = float(theory["effective_width"].sel(width=data["width"].values.max()))
    caption(
        figure,
        f"{system_words(parameters)}, n/d² = {parameters['ratio']:g}, tanh(2z), {parameters['seeds']} seeds, band: "
        f"standard error. $k_c$ = {resolved:g}. Test labels have no noise, training labels have.",
        72,
    )
    return figure


def draw_student_width(comparison: Comparison) -> Any:
    """Error against the width of the student: the bound, and Adam."""
    figure, axes = plt.subplots(figsize=(5.2, 4.0))
    parameters = comparison.parameters
    for number, panel in enumerate(comparison.panels):
        colour = COLOURS[number % len(COLOURS)]
        (theory,) = comparison.theories(panel).values()
        (adam,) = comparison.experiments(panel).values()
        axes.loglog(theory["width"], theory["error"], "--", color=colour, linewidth=1)
        _dots(axes, adam, adam["width"].values, "error", number, f"$n/d^2$ = {panel}", colour)
        axes.plot(adam["width"], adam["error"].mean("seed"), color=colour, linewidth=0.7, alpha=0.6)
        resolved = float(theory["effective_width"].isel(width=-1))
        axes.plot(resolved, float(theory["error"].sel(width=resolved)), "|", color=colour, markersize=12, markeredgewidth=2)
    p = np.array([2.0, 0.5 * parameters["width"]])
    first = float(next(iter(comparison.experiments(comparison.panels[-1]).values()))["error"].mean("seed")[0])
    guide = 1.6 * first * (p / p[0]) ** (1 - 2 * parameters["decay"])
    axes.plot(p, guide, color="0.6", linewidth=0.9)
    axes.annotate(r"$p^{1-2\beta}$", (p[1], guide[1]), fontsize=8, color="0.4")
    axes.set_xlabel("width of the student $p$")
    axes.set_ylabel(ERROR)
    axes.legend(title="Adam", fontsize=7, loc="lower left")
    caption(
        figure,
        f"{system_words(parameters)}, tanh(2z), {parameters['epochs']} epochs of Adam, {parameters['seeds']} seeds, standard "
        "errors. Dashed: best possible student, to whom the linear part of σ is free (Adam must represent it too); bar: $k_c$.",
        78,
    )
    return figure


def draw_student_scaling(comparison: Comparison) -> Any:
    """Error against n: Bayes-optimal, Adam at full width, at the effective width and at half of it."""
    figure, axes = plt.subplots(figsize=(4.9, 3.9))
    theory = comparison.theories()["Bayes-optimal"]
    axes.loglog(theory["teacher.n_train"], theory["error"], color="#7B3294", label="Bayes-optimal")
    colours = ("black", COLOURS[0], COLOURS[1])
    for number, (label, data) in enumerate(comparison.experiments().items()):
        _dots(axes, data, data["teacher.n_train"].values, "error", number, label, colours[number])
        axes.plot(data["teacher.n_train"], data["error"].mean("seed"), color=colours[number], linewidth=0.7, alpha=0.6)
    parameters = comparison.parameters
    partial = theory["effective_width"] < parameters["width"]
    if bool((~partial).any()):
        complete = float(theory["teacher.n_train"][~partial][0])
        axes.axvline(complete, color="0.6", linewidth=0.8, linestyle=":")
        axes.annotate("$k_c = k$", (complete, 0.97), xycoords=("data", "axes fraction"), ha="right", va="top", fontsize=8)
    n = theory["teacher.n_train"].values
    for power, ends in ((1 / (2 * parameters["decay"]) - 1, (n[0], n[len(n) // 4])), (-1.0, (n[2 * len(n) // 3], n[-1]))):
        at = float(theory["error"].interp({"teacher.n_train": ends[0]}))
        line = 0.5 * at * (np.array(ends) / ends[0]) ** power
        axes.plot(ends, line, color="0.6", linewidth=0.8)
        middle = (np.sqrt(ends[0] * ends[1]), np.sqrt(line[0] * line[1]))
        axes.annotate(f"$n^{{{power:g}}}$", middle, (-3, -3), textcoords="offset points", fontsize=7, va="top", ha="right")
    axes.set_xlabel(SAMPLES)
    axes.set_ylabel(ERROR)
    axes.legend(loc="lower left", fontsize=7)
    size = f"{parameters['epochs']} epochs of Adam, {parameters['seeds']} seeds, standard errors"
    caption(figure, f"{system_words(parameters)}, tanh(2z), {size}. $k_c$: features that the theory calls resolved.", 72)
    return figure


def draw_effective_model(comparison: Comparison) -> Any:
    """Overlaps of the learned features in the whole and in the effective model."""
    figure, axes = plt.subplots(figsize=(4.9, 3.7))
    theory = comparison.theories()["theory"]
    rank = np.arange(1, theory.sizes["feature"] + 1)
    axes.plot(rank, theory["overlap"].isel(width=-1), "x", color=COLOURS[0], markersize=6, label="theory")
    errors = []
    for number, (label, data) in enumerate(comparison.experiments().items()):
        mean, error = estimate(data.isel(width=0), "overlap")
        shown = slice(None) if number == 0 else slice(0, int(data["width"][0]))
        axes.errorbar(
            rank[shown] + 0.15 * (2 * number - 1), mean[shown], np.nan_to_num(error)[shown], fmt=MARKERS[number], markersize=4,
            markerfacecolor="white", color=("black", COLOURS[1])[number], label=label, zorder=1,
        )  # fmt: skip
        value, spread = estimate(data.isel(width=0), "error")
        errors.append(f"{float(value):.4f} ± {float(spread):.4f} ({label.split(', ')[1]})")
    axes.set_xlabel(INDEX)
    axes.set_ylabel(OVERLAP)
    axes.legend()
    parameters = comparison.parameters
    size = f"{system_words(parameters)}, n/d² = {parameters['ratio']:g}"
    caption(
        figure,
        f"{size}, tanh(2z), {parameters['seeds']} data sets, standard errors. Errors: theory "
        f"{float(theory['error'].isel(width=-1)):.4f}, HMC {', '.join(errors)}. {_unconverged(comparison, marked=False)}",
        78,
    )
    return figure
