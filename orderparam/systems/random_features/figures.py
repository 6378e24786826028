"""How the studies of random features are drawn."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.ticker import FixedLocator, NullLocator

from orderparam.core.agreement import estimate
from orderparam.core.study import Comparison
from orderparam.plotting.curves import caption, draw_line, yerror
from orderparam.plotting.style import COLOURS, DASHES, MARKERS
from orderparam.systems.random_features.polynomial import multiplicities
from orderparam.systems.random_features.scaling import scaling_exponents

SHIFT = 1.06  # between marks that would cover one another


def marks(
    axes: Any, data: xr.Dataset, x: str, y: str, colour: str, marker: str = "o", filled: bool = True, label: str | None = None
) -> None:
    """Means over seeds with standard errors."""
    mean, error = estimate(data, y)
    face = colour if filled else "white"
    axes.errorbar(
        data[x], mean, yerror(error), fmt=marker, color=colour, markerfacecolor=face, markersize=4.2, label=label, zorder=3
    )


def ticks_at(axes: Any, sizes: Sequence[int]) -> None:
    """Ticks of a logarithmic axis at the measured sizes and nowhere else."""
    axes.set_xscale("log")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())


def draw_double_descent(comparison: Comparison) -> Any:
    """Test error and effective number of parameters against features."""
    p = comparison.parameters
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.7))
    for number, panel in enumerate(comparison.panels):
        colour = COLOURS[number]
        (theory,) = comparison.theories(panel).values()
        for axes, y in ((left, "test_error"), (right, "effective_dimension")):
            draw_line(axes, theory, "width", y, number, panel)
            for label, data in comparison.experiments(panel).items():
                real = label.startswith("real")
                shifted = data if real else data.assign_coords(width=data["width"] / SHIFT)
                marks(axes, shifted, "width", y, colour, "o" if real else "s", real)
        for label, data in comparison.experiments(panel).items():
            if label.startswith("real"):
                marks(left, data.assign_coords(width=SHIFT * data["width"]), "width", "cross_validation", colour, "x")
    for axes in (left, right):
        axes.axvline(p["n_train"], color="0.6", linewidth=0.8, linestyle=":", zorder=0)
        axes.set_xscale("log")
        axes.set_xlabel(f"features $p$ ($n$ = {p['n_train']} examples)")
    left.set_yscale("log")
    left.yaxis.set_major_locator(FixedLocator([0.2, 0.3, 0.5, 1, 2, 3, 5, 10]))
    left.yaxis.set_major_formatter("{x:g}")
    left.yaxis.set_minor_locator(NullLocator())
    left.set_ylabel(r"test error $E\,(y-f)^2$, noise included")
    right.axhline(p["n_train"], color="0.6", linewidth=0.8, linestyle=":", zorder=0)
    widths = np.linspace(min(p["widths"]), p["n_train"], 50)
    right.plot(widths, widths, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
    right.set_ylabel("effective number of parameters")
    left.legend(loc="upper right")
    for marker, filled, text in (("o", True, "real features"), ("s", False, "Gaussian equivalent"), ("x", False, "GCV (real)")):
        right.plot([], [], marker, color="0.2", markerfacecolor="0.2" if filled else "white", label=text)
    right.legend(loc="lower right")
    caption(
        figure,
        f"Random features {p['activation']}(W x), d = {p['input_dim']}, y = θ·x + noise of variance {p['noise']:g}, square loss, "
        f"ridge beside the summed loss. Lines: theory. Marks: mean of {p['seeds']} draws of W and data, bars: standard error. "
        "GCV: train error / (1 − effective parameters/n)², known from the training set alone. Squares and crosses "
        f"are shifted sideways by {100 * (SHIFT - 1):.0f} % for clarity. Dotted: n and p.",
        130,
    )
    return figure


def draw_equivalence(comparison: Comparison) -> Any:
    """One set of axes a loss: error against examples for several activations."""
    p = comparison.parameters
    losses = list(dict.fromkeys(panel.split(", ")[1] for panel in comparison.panels))
    figure, row = plt.subplots(1, len(losses), figsize=(3.3 * len(losses), 3.7))
    for axes, loss in zip(np.atleast_1d(row), losses):
        y = "test_error" if loss == "square loss" else "classification_error"
        for number, activation in enumerate(p["activations"]):
            panel = f"{activation}, {loss}"
            (theory,) = comparison.theories(panel).values()
            draw_line(axes, theory, "n_train", y, number, activation)
            for label, data in comparison.experiments(panel).items():
                real = label.startswith("real")
                shifted = data.assign_coords(n_train=data["n_train"] * (1.0 if real else SHIFT))
                marks(axes, shifted, "n_train", y, COLOURS[number], MARKERS[number], real)
        axes.set_title(loss)
        ticks_at(axes, p["n_train"])
        axes.set_xlabel("training examples $n$")
        axes.set_ylabel(r"test error $E\,(y-f)^2$" if y == "test_error" else r"test error $P(\mathrm{sign} f\neq y)$")
    np.atleast_1d(row)[0].legend()
    caption(
        figure,
        f"d = {p['input_dim']}, p = {p['width']}. Square loss: y = θ·x + noise of variance {p['noise']:g}, ridge {p['ridge']:g}; "
        f"logistic and hinge: y = sign θ·x, ridge {p['ridge']:g} and {p['hinge_ridge']:g} (beside the summed loss). Lines: "
        f"theory. Filled: real features activation(W x); open: Gaussian equivalent; mean of {p['seeds']} draws of W and data, "
        f"bars: standard error (open marks shifted by {100 * (SHIFT - 1):.0f} % for clarity). "
        "The panels share their draws: fluctuations are common.",
        130,
    )
    return figure


def draw_real_data(comparison: Comparison) -> Any:
    """Test and cross-validated error above, train error below, against examples; one column a ridge."""
    p = comparison.parameters
    figure, rows = plt.subplots(
        2, len(comparison.panels), figsize=(3.3 * len(comparison.panels), 5.2), sharex=True, sharey="row", squeeze=False
    )
    for (top, bottom), panel in zip(rows.T, comparison.panels):
        (theory,), (measured,) = comparison.theories(panel).values(), comparison.experiments(panel).values()
        for number, (axes, y) in enumerate(((top, "test_error"), (bottom, "train_error"))):
            draw_line(axes, theory, "n_train", y, number, "theory")
            marks(axes, measured, "n_train", y, COLOURS[number], MARKERS[number], label="measured")
            axes.axvline(p["width"], color="0.6", linewidth=0.8, linestyle=":", zorder=0)
            ticks_at(axes, p["n_train"])
        shifted = measured.assign_coords(n_train=1.05 * measured["n_train"])
        marks(top, shifted, "n_train", "cross_validation", COLOURS[2], "x", label="GCV, measured")
        top.set_title(panel)
        top.set_ylim(bottom=0)
        bottom.set_yscale("log")
        bottom.set_xlabel("training examples $n$")
    rows[0, 0].set_ylabel(r"test error $E\,(y-f)^2$")
    rows[1, 0].set_ylabel(r"train error, mean $(y-f)^2$")
    rows[0, -1].legend()
    rows[1, -1].legend()
    caption(
        figure,
        f"{p['width']} random features {p['activation']}(W x) of {p['dataset']}, {p['task']} (y = ±1). Theory: the covariance of "
        "the features over all images and their correlation with y, no fit. Measured: random training sets, error over all "
        f"images; mean of {p['seeds']}, bars: standard error. GCV: train error / (1 − effective parameters/n)², from the "
        "training set alone (shifted by 5 %). Dotted: n = p.",
        125,
    )
    return figure


def draw_real_classes(comparison: Comparison) -> Any:
    """Share of wrong signs and effective number of parameters against examples, one column a loss."""
    p = comparison.parameters
    losses = list(dict.fromkeys(panel.split(",")[0] for panel in comparison.panels))
    figure, rows = plt.subplots(2, len(losses), figsize=(7.6, 5.6), sharex=True, sharey="row")
    for column, loss in zip(rows.T, losses):
        panels = [panel for panel in comparison.panels if panel.startswith(loss)]
        for number, panel in enumerate(panels):
            (theory,), (measured,) = comparison.theories(panel).values(), comparison.experiments(panel).values()
            for axes, y in zip(column, ("classification_error", "effective_dimension")):
                draw_line(axes, theory, "n_train", y, number, panel.split(", ")[1])
                marks(axes, measured, "n_train", y, COLOURS[number], MARKERS[number])
                ticks_at(axes, p["n_train"])
        column[0].set_title(loss)
        column[1].set_xlabel("training examples $n$")
    rows[0, 0].set_ylabel(r"test error $P(\mathrm{sign} f\neq y)$")
    rows[1, 0].set_ylabel("effective number of parameters")
    rows[0, 0].legend()
    rows[0, 0].set_ylim(bottom=0)
    caption(
        figure,
        f"Random features {p['activation']}(W x) of {p['dataset']}, {p['task']} (y = ±1), ridge {p['ridge']:g} beside the summed "
        "loss. Theory: each class Gaussian about its mean with the covariance within classes, both measured over all images, no "
        f"fit. Measured: random training sets, error over all images; mean of {p['seeds']}, bars: standard error. The theory "
        "errs where real classes are no Gaussians.",
        120,
    )
    return figure


def draw_scaling(comparison: Comparison) -> Any:
    """Map of the local exponent over (l, q), the exponents against their prediction, and measured errors of finite problems."""
    p = comparison.parameters
    figure, (plane, slopes, errors) = plt.subplots(1, 3, figsize=(11.0, 3.7))
    (data,) = comparison.theories("exponents").values()
    data = data.where(data["status"] == 1)
    ridge, width = data["ridge_exponent"].values, data["width_exponent"].values
    shown = plane.pcolormesh(ridge, width, data["risk_exponent"].values.T, cmap="viridis", shading="gouraud")
    figure.colorbar(shown, ax=plane, label=r"$-d\ln(\mathrm{excess\ risk})/d\ln n$")
    predicted = {
        name: np.array([[getattr(scaling_exponents(p["capacity"], p["source"], l, q), name) for q in width] for l in ridge])
        for name in ("bias", "variance")
    }
    plane.contour(ridge, width, (predicted["bias"] - predicted["variance"]).T, levels=[0.0], colors="white", linewidths=1.2)
    saturated = np.minimum(ridge / p["capacity"], 1)
    plane.plot(ridge, saturated, color="white", linestyle="--", linewidth=1.0)
    plane.set(xlim=(ridge.min(), ridge.max()), ylim=(width.min(), width.max()))
    plane.set_xlabel(r"$l$: mean-loss ridge $n^{-l}$")
    plane.set_ylabel(r"$q$: width $p = n^q$")
    for number, name in enumerate(("bias", "variance")):
        found = data[f"{name}_exponent"].values
        slopes.plot(predicted[name].ravel(), found.ravel(), ".", color=COLOURS[number], markersize=3, label=name)
    ends = [0, max(part.max() for part in predicted.values())]
    slopes.plot(ends, ends, color="0.4", linewidth=0.8)
    slopes.set_xlabel("predicted exponent")
    slopes.set_ylabel(f"local exponent at $n = 10^{{{p['log10_examples']:g}}}$")
    slopes.legend()
    panels = [panel for panel in comparison.panels if panel != "exponents"]
    for number, panel in enumerate(panels):
        (theory,), (measured,) = comparison.theories(panel).values(), comparison.experiments(panel).values()
        draw_line(errors, theory, "n_train", "excess_risk", number, panel)
        marks(errors, measured, "n_train", "excess_risk", COLOURS[number], MARKERS[number])
    ticks_at(errors, p["n_train"])
    errors.set_yscale("log")
    errors.yaxis.set_major_locator(FixedLocator([0.02, 0.05, 0.1, 0.2, 0.5, 1]))
    errors.yaxis.set_major_formatter("{x:g}")
    errors.yaxis.set_minor_locator(NullLocator())
    errors.set_xlabel("training examples $n$")
    errors.set_ylabel(r"excess risk $E\,(f-f_*)^2$")
    errors.legend()
    caption(
        figure,
        f"Eigenvalues k^-{p['capacity']:g}, target power k^-{1 + 2 * p['source'] * p['capacity']:g}. Left and middle: "
        f"deterministic equivalent, label noise 1, n = 1e{p['log10_examples']:g}; white line: bias and variance are predicted "
        f"to fall alike; dashed: q = min(l/capacity, 1). Right: {p['modes']} modes, ridge {p['ridge']:g} beside the summed "
        f"loss, label noise {p['noise']:g}; lines: theory, marks: mean of {p['seeds']} draws of Gaussian features and data, "
        "bars: standard error.",
        150,
    )
    return figure


def draw_polynomial(comparison: Comparison) -> Any:
    """Excess risk against examples at one dimension, and against log n / log d for growing dimensions."""
    p = comparison.parameters
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.9))
    limits = [panel for panel in comparison.panels if panel.startswith("$d$")]
    for number, panel in enumerate(panel for panel in comparison.panels if panel not in limits):
        (theory,) = comparison.theories(panel).values()
        draw_line(left, theory, "n_train", "excess_risk", number, panel)
        for measured in comparison.experiments(panel).values():
            marks(left, measured, "n_train", "excess_risk", COLOURS[number], MARKERS[number])
    for degree, count in enumerate(multiplicities(p["input_dim"], len(p["degree_power"]) - 1)[1:], 1):
        left.axvline(count, color="0.7", linewidth=0.8, linestyle=":", zorder=0)
        left.annotate(f"$B_{degree}$", (count, 1.0), xycoords=("data", "axes fraction"), fontsize=8, color="0.4")
    for number, (panel, d) in enumerate(zip(limits, p["larger_dims"])):
        (theory,) = comparison.theories(panel).values()
        order = np.log(theory["n_train"]) / np.log(d)
        colour = COLOURS[len(p["widths"]) + 1 + number]
        right.plot(order, theory["excess_risk"], color=colour, linestyle=DASHES[number], label=panel)
    for plateau in np.cumsum(p["degree_power"][::-1])[::-1]:
        right.axhline(plateau, color="0.7", linewidth=0.8, linestyle=":", zorder=0)
    left.set(xscale="log", yscale="log", xlabel="training examples $n$", ylabel=r"excess risk $E\,(f-f_*)^2$")
    left.yaxis.set_major_locator(FixedLocator([0.1, 0.2, 0.5, 1, 2, 3]))
    left.yaxis.set_major_formatter("{x:g}")
    left.yaxis.set_minor_locator(NullLocator())
    left.text(0.98, 0.96, f"$d$ = {p['input_dim']}", transform=left.transAxes, ha="right", va="top")
    left.legend(loc="lower left", bbox_to_anchor=(0.16, 0))  # right of B_1
    right.set(xlabel=r"$\ln n/\ln d$", ylabel=r"excess risk $E\,(f-f_*)^2$", ylim=(0, None))
    right.legend(loc="lower left", title=r"$p\to\infty$")
    powers = ", ".join(f"{power:g}" for power in p["degree_power"])
    caption(
        figure,
        f"Features {p['activation']}(W x {p['bias']:+g}) on the sphere, target with power {powers} in the degrees 0, 1, 2, ..., "
        f"no noise, ridge {p['ridge']:g} beside the summed loss. Lines: deterministic equivalent. Marks: real features and "
        f"inputs, mean of {p['seeds']} draws, bars: standard error. Dotted: left, the number of modes B_k of degree k; right, "
        "the power that is left when all lower degrees are learned.",
        140,
    )
    return figure
