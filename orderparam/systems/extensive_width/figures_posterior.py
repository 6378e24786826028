"""How the studies of the sampled posterior are drawn."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from orderparam.core.agreement import estimate
from orderparam.core.study import Comparison
from orderparam.plotting.curves import caption, plot_panel, yerror
from orderparam.plotting.style import COLOURS, MARKERS
from orderparam.systems.extensive_width.common import ERROR, INDEX, OVERLAP, SAMPLES, dots, system_words, unconverged


def draw_posterior(comparison: Comparison) -> Any:
    """Error against n with HMC dots; overlaps of all features at the largest and at a middle n."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.8, 3.6))
    plot_panel(left, comparison.theories(), {}, "n_train", "error", log="y")
    for number, (label, data) in enumerate(comparison.experiments().items()):
        dots(left, data, data["n_train"].values, "error", number, label, ("black", COLOURS[2])[number])
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
        f"sets, standard errors; uninformed: 1. {unconverged(comparison)}",
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
            dots(top, data, data["n_train"].values / dim**2, "error", number, f"HMC, {start}", ("black", COLOURS[2])[number])
            if start == "informed":
                for order, i in enumerate(sorted(distinct)):
                    same = np.flatnonzero(np.all(np.isclose(theory["overlap"].values.T, theory["overlap"].values.T[i]), axis=1))
                    colour = plt.get_cmap("viridis")(0.9 * order / max(len(distinct) - 1, 1))
                    mean, error = estimate(data.assign(group=data["overlap"].isel(feature=same).mean("feature")), "group")
                    words = "HMC, informed" if order == 0 else None
                    place = data["n_train"] / dim**2
                    bottom.errorbar(place, mean, yerror(error), fmt="o", color=colour, markersize=4, label=words)
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
        f"sets, standard errors; uninformed: 1. Darker: larger |v|. Single features are found less well than in large "
        f"dimensions (docs/extensive_width.md). {unconverged(comparison)}",
    )
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
        f"{float(theory['error'].isel(width=-1)):.4f}, HMC {', '.join(errors)}. {unconverged(comparison, marked=False)}",
        78,
    )
    return figure


def draw_finite_size(comparison: Comparison) -> Any:
    """How far the error lies below the theory, and the Nishimori identity, against 1/d."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.5))
    inverse, missing, spread = [], [], []
    for panel in comparison.panels:
        (theory,), (runs,) = comparison.theories(panel).values(), comparison.experiments(panel).values()
        runs, expected = runs.isel(n_train=0), float(theory["error"].isel(n_train=0))
        identity = 2 * runs["posterior_mean_error"] / runs["gibbs_error"]
        deviation = runs.assign(missing=1 - runs["error"] / expected, identity=identity)
        inverse.append(1 / float(panel))
        for axes, name in ((left, "missing"), (right, "identity")):
            mean, error = estimate(deviation, name)
            bars = yerror(error)
            axes.errorbar(inverse[-1], float(mean), bars, fmt="o", color="black", label="HMC" if len(inverse) == 1 else None)
            if name == "missing":
                missing.append(float(mean))
                spread.append(float(error))
    x, y, weight = np.array(inverse), np.array(missing), 1 / np.array(spread) ** 2
    if np.all(np.isfinite(weight)):
        slope, uncertainty = np.sum(weight * x * y) / np.sum(weight * x**2), np.sum(weight * x**2) ** -0.5
        ends = np.array([0.0, 1.1 * x.max()])
        left.plot(ends, slope * ends, "--", color="0.5", label=f"({slope:.2g} ± {uncertainty:.1g}) / d")
    left.set_ylabel(r"$1 - \varepsilon_{\rm HMC} / \varepsilon_{\rm theory}$")
    left.set_ylim(bottom=0)
    left.legend()
    right.axhline(1, color="0.5", linestyle="--")
    right.set_ylim(0.8, 1.2)
    right.set_ylabel("2 (error of the mean) / (Gibbs error)")
    for axes in (left, right):
        axes.set_xlabel("$1/d$")
        axes.set_xlim(0, 1.1 * x.max())
    parameters = comparison.parameters
    size = f"k/d = {parameters['width_ratio']:g}, n/d² = {parameters['ratio']:g}, {system_words(parameters)}"
    caption(
        figure,
        f"{size}, {parameters['seeds']} data sets, standard errors. The theory sums over the features of each size. "
        f"Right: 1 by the Nishimori identity. {unconverged(comparison, marked=False)}",
    )
    return figure
