"""How the studies of one giant gradient step are drawn."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import NullLocator

from orderparam.core.study import Comparison
from orderparam.plotting.curves import caption, draw_line
from orderparam.plotting.measured import dots, mean_and_error
from orderparam.plotting.style import COLOURS

SHIFT = 1.09  # between marks that would cover one another


def _log_ticks(axes: Any, values: Sequence[float]) -> None:
    """Ticks of a logarithmic axis at these values and nowhere else."""
    axes.set_xscale("log")
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.xaxis.set_minor_locator(NullLocator())


def _limit(axes: Any, comparison: Comparison, label: str, x: str, y: str, style: str, words: str) -> None:
    data = comparison.curves()[label]
    axes.plot(data[x], data[y], color="0.35", linestyle=style, linewidth=1.0, label=words, zorder=1)


def draw_batch_sizes(comparison: Comparison) -> Any:
    """Test error against the batch of the step, with the errors of no step and of the best linear predictor."""
    p = comparison.parameters
    panels = [panel for panel in comparison.panels if not panel.endswith("limits")]
    figure, row = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 3.9))
    for axes, panel in zip(row, panels):
        (theory,), (runs,) = comparison.theories(panel).values(), comparison.experiments(panel).values()
        draw_line(axes, theory, "batch_ratio", "test_error", 0, "theory, isotropic bulk")
        dots(axes, runs["batch_ratio"], runs["test_error"], 0, "measured", colour="black", filled=True)
        place = runs["batch_ratio"] * SHIFT
        dots(axes, place, runs["given_test_error"], 1, "theory, the trained layers given", colour=COLOURS[1])
        _limit(axes, comparison, f"no step, {panel}", "batch_ratio", "test_error", ":", "no step (random features)")
        _limit(axes, comparison, f"best linear, {panel}", "batch_ratio", "test_error", "--", "best linear predictor")
        _log_ticks(axes, p["batch_ratios"])
        axes.set_ylim(0, 1.35 * axes.get_ylim()[1])
        axes.set_xlabel("batch of the step per dimension, $n_B/d$")
        axes.set_title(panel)
    row[0].set_ylabel(r"test error $E\,(y-f)^2$")
    row[-1].legend()
    caption(
        figure,
        "Networks a·tanh(Wx)/√p; one step on the first layer (a⁰ = 1; effective step 1 and ridge 0.01 for y = tanh θ·x, 3 and "
        f"0.1 for y = sign θ·x), then ridge regression of a on n = {p['sample_ratio']:g} d fresh examples, p = "
        f"{p['width_ratio']:g} d, d = {p['input_dim']} where measured. Marks: means over {p['seeds']} networks, bars: standard "
        "errors; circles and squares are of the same networks, squares moved to the right. Squares: predicted from each "
        "network's first layer and the teacher.",
        125,
    )
    return figure


def draw_learning_curves(comparison: Comparison) -> Any:
    """Classification error against the read-out's training examples, one panel a loss."""
    p = comparison.parameters
    panels = [panel for panel in comparison.panels if not panel.endswith("no step")]
    figure, row = plt.subplots(1, len(panels), figsize=(4.1 * len(panels), 3.8), sharey=True)
    y = "classification_error"
    for axes, panel in zip(row, panels):
        (theory,), (runs,) = comparison.theories(panel).values(), comparison.experiments(panel).values()
        (without,) = comparison.theories(f"{panel}, no step").values()
        draw_line(axes, theory, "sample_ratio", y, 0, "one step, isotropic bulk")
        dots(axes, runs["sample_ratio"], runs[y], 0, "measured", colour="black", filled=True)
        place = runs["sample_ratio"] * SHIFT
        dots(axes, place, runs[f"given_{y}"], 1, "theory, the trained layers given", colour=COLOURS[1])
        axes.plot(without["sample_ratio"], without[y], color="0.35", linestyle=":", linewidth=1.0, label="no step")
        _log_ticks(axes, p["sample_ratios"])
        axes.set_xlabel("examples of the read-out per dimension, $n/d$")
        axes.set_title(panel)
    row[0].set_ylabel(r"test error $P(\mathrm{sign} f \neq y)$")
    row[-1].legend()
    caption(
        figure,
        f"y = sign θ·x; networks a·tanh(Wx)/√p, p = {p['width_ratio']:g} d; one step of effective size {p['step']:g} on "
        f"{p['batch_ratio']:g} d examples, then a by the loss with ridge {p['ridge']:g} beside the summed loss. d = "
        f"{p['input_dim']} where measured; means over {p['seeds']} networks, bars: standard errors. Squares (of the same "
        "networks, moved to the right): predicted from each network's first layer and the teacher.",
        120,
    )
    return figure


def draw_groups(comparison: Comparison) -> Any:
    """Test error against examples without a spike, with spikes of one sign and of both."""
    p = comparison.parameters
    figure, axes = plt.subplots(figsize=(5.2, 4.1))
    for number, panel in enumerate(comparison.panels):
        (theory,), (runs,) = comparison.theories(panel).values(), comparison.experiments(panel).values()
        draw_line(axes, theory, "sample_ratio", "test_error", number, panel)
        dots(axes, runs["sample_ratio"], runs["test_error"], number, None, filled=True)
    axes.axhline(1 - 2 / np.pi + p["noise"], color="0.35", linestyle="--", linewidth=1.0, label="best constant, best linear")
    _log_ticks(axes, p["sample_ratios"])
    axes.set_ylim(0, None)
    axes.set_xlabel("examples of the read-out per dimension, $n/d$")
    axes.set_ylabel(r"test error $E\,(y-f)^2$, noise included")
    axes.legend()
    caption(
        figure,
        f"y = |θ·x| plus noise of variance {p['noise']:g}; features relu(w_j·x + u_j v·x), v·θ = {p['overlap']:g}, p = "
        f"{p['width_ratio']:g} d. u_j = 0, u_j = {p['spike']:g}, or {p['spike']:g} for one half of the neurons and "
        f"-{p['spike']:g} for the other, as their signs in the read-out have it during a step; ridge regression "
        f"({p['ridge']:g}). Lines: theory. Marks: d = {p['input_dim']}, means over {p['seeds']} networks, bars: standard errors.",
        95,
    )
    return figure


def draw_spectra(comparison: Comparison) -> Any:
    """Density of eigenvalues before and after, bulk edge and the eigenvalue of the mean."""
    p = comparison.parameters
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.9))
    for axes in (left, right):
        for number, panel in enumerate(("before", "after")):
            (theory,), (runs,) = comparison.theories(panel).values(), comparison.experiments(panel).values()
            place = theory["eigenvalue"].values
            scale = place if axes is left else 1.0
            axes.plot(place, scale * theory["density"].values, color=COLOURS[number], label=f"{panel} the step")
            mean, error = mean_and_error(runs["density"] if axes is right else runs["density"] * place)
            axes.errorbar(place, mean, error, fmt="os"[number], color=COLOURS[number], markersize=3.2, markerfacecolor="white")
            axes.axvline(float(theory["edge"]), color=COLOURS[number], linestyle=":", linewidth=0.9)
        axes.set_xscale("log")
        axes.set_xlabel(r"eigenvalue $\lambda$ of $\Phi^\top\Phi/p$")
    left.set_ylabel(r"density per $\ln\lambda$")
    left.set_ylim(0, None)
    right.set_yscale("log")
    right.set_ylim(1e-2, None)
    right.set_ylabel(r"density per $\lambda$")
    left.legend(loc="upper left")
    (theory,), (runs,) = comparison.theories("after").values(), comparison.experiments("after").values()
    top, top_error = mean_and_error(runs["mean_eigenvalue"])
    edges = {
        panel: (*(float(part) for part in mean_and_error(comparison.curves()[f"measured, {panel}"]["edge"])),)
        for panel in ("before", "after")
    }
    said = ", ".join(
        f"{panel} {value:.3f} ± {error:.3f} (theory {float(comparison.curves()[f'theory, {panel}']['edge']):.3f})"
        for panel, (value, error) in edges.items()
    )
    caption(
        figure,
        f"tanh features, n = {p['sample_ratio']:g} d, p = {p['width_ratio']:g} d; step {p['step']:g} on {p['batch_ratio']:g} d "
        f"labels sign θ·x. Lines: theory, isotropic bulk, averaged over bins; marks: d = {p['input_dim']}, means over "
        f"{p['seeds']} networks, bars: standard errors. Dotted: upper edge of the bulk; largest eigenvalue of the bulk "
        f"measured: {said}. After the step the features' mean adds one eigenvalue far outside: {float(top):.1f} ± "
        f"{float(np.ravel(top_error)[0]):.1f}, theory {float(theory['mean_eigenvalue']):.1f}.",
        130,
    )
    return figure
