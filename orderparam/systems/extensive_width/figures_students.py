"""How the studies of trained students are drawn, and the collapse of all errors."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.ticker import FixedLocator, NullLocator

from orderparam.core.agreement import estimate
from orderparam.core.study import Comparison
from orderparam.plotting.curves import caption
from orderparam.plotting.style import COLOURS
from orderparam.systems.extensive_width.common import ERROR, SAMPLES, dots, system_words, unconverged


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
        _draw_law(axes[0, column], float(decay))
        axes[0, column].set_title(rf"$\beta$ = {decay}")
        axes[0, column].set_xlabel("$n/d^2$")
        axes[1, column].set_xscale("log")
        axes[1, column].set_yscale("log")
        axes[1, column].yaxis.set_major_locator(FixedLocator([1, 2, 3, 5, 10]))
        axes[1, column].yaxis.set_major_formatter("{x:g}")
        axes[1, column].yaxis.set_minor_locator(NullLocator())
        axes[1, column].set_xlabel("$k_c/k$")
        axes[0, column].legend(loc="lower left", fontsize=6.5)
    axes[0, 0].set_ylabel(r"error $\varepsilon$")
    axes[1, 0].set_ylabel(r"$\varepsilon n/(k_c d (\Delta + \varepsilon))$")
    parameters = comparison.parameters
    caption(
        figure,
        f"k = d/2, Δ = {parameters['noise']:g}, tanh(2z). Below: tends to one constant while $k_c \\ll k$, and to 1 where all is "
        f"learned. Measured (d = {parameters['measured_dim']}): {parameters['seeds']} data sets, standard errors, $k_c$ of the "
        f"theory; Adam: {parameters['epochs']} epochs. {unconverged(comparison)}",
        100,
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


def _draw_law(axes: Any, decay: float) -> None:
    """The slope n^(1/2 beta - 1), above all that is drawn there."""
    x = np.geomspace(0.05, 1.0, 20)
    law = x ** (1 / (2 * decay) - 1)
    drawn = [line.get_data() for line in axes.get_lines() if len(line.get_xdata())]
    law = law * 1.5 * max(np.max(np.interp(x, *points) / law) for points in drawn)
    axes.loglog(x, law, color="0.5", linewidth=0.9)
    axes.annotate(r"$n^{1/2\beta-1}$", (x[10], law[10]), (2, 1), textcoords="offset points", fontsize=7, color="0.3")


def _collapse_measured(axes: Any, comparison: Comparison) -> None:
    dim, noise = float(comparison.parameters["measured_dim"]), comparison.parameters["noise"]
    (theory,) = comparison.theories("measured").values()
    _collapsed(axes, theory, dim, noise, "0.4")
    for number, (label, data) in enumerate(comparison.experiments("measured").items()):
        n = data["teacher.n_train"]
        resolved = theory["effective_width"].sel({"teacher.n_train": n})
        dots(axes[0], data, n.values / dim**2, "error", number, label, ("black", COLOURS[4])[number])
        scaled = data.assign(ratio=data["error"] * n / (resolved * dim * (noise + data["error"])))
        dots(axes[1], scaled, (resolved / theory.sizes["feature"]).values, "ratio", number, label, ("black", COLOURS[4])[number])


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
        dots(axes, adam, adam["width"].values, "error", number, f"$n/d^2$ = {panel}", colour)
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
        dots(axes, data, data["teacher.n_train"].values, "error", number, label, colours[number])
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
