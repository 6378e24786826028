"""How the studies of theories on given training sets are drawn."""

from typing import Any

import matplotlib.pyplot as plt

from orderparam.core.study import Comparison
from orderparam.plotting.curves import caption, draw_line
from orderparam.plotting.measured import dots
from orderparam.plotting.style import COLOURS

OPEN: dict[str, Any] = {"markersize": 9, "markerfacecolor": "none"}  # what lies below stays visible


def draw_particles(comparison: Comparison) -> Any:
    """R_1, R_2 and the spread of the weights along w_* against the width."""
    p = comparison.parameters
    figure, axes = plt.subplots(1, 3, figsize=(11.0, 3.8))
    labels = ("$R_1$", "$R_2$", r"spread of $w\cdot w_*$, $d\langle\rho^2\rangle/\sigma_w^2$")
    for panel, (axis, label) in enumerate(zip(axes, labels)):

        def shown(data: Any, panel: int = panel) -> Any:
            return data if panel == 2 else data.isel(degree=panel)

        name = "spread" if panel == 2 else "projections"
        for number, (theory, data) in enumerate(comparison.theories().items()):
            draw_line(axis, shown(data), "width", name, number, theory)
        runs, particles = comparison.experiments().items()
        dots(axis, runs[1]["width"], shown(runs[1])[name], 0, runs[0], colour="black", filled=True)
        dots(axis, particles[1]["width"], shown(particles[1])[name], 2, particles[0], colour=COLOURS[3], **OPEN)
        axis.set(xscale="log", xlabel="width $N$", ylabel=label)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=5)
    caption(
        figure,
        f"Relu network, d = {p['input_dim']}, n = {p['n_train']} (one training set), y = z {p['absolute']:+g} (|z| - E|z|), "
        f"z = w*.x; T = 0.1/chi, variance of sqrt(N) a 1/chi, chi = {p['chi']:g}, E|w|^2 = 1; constants chosen here. R_p: mean "
        f"output projected on He_p(z), over that of the target, on 2000 test points. Dots: HMC of the network; open diamonds: "
        f"weights of the kernel-adaptation theory with their full distribution, by {p['replicas']} N particles; mean and "
        f"standard error of {p['seeds']} runs.",
        150,
    )
    return figure


def draw_scaled(comparison: Comparison) -> Any:
    """R_1 and R_2 against beta, a column for each n/d."""
    p = comparison.parameters
    columns = len(p["ratios"])
    figure, axes = plt.subplots(2, columns, figsize=(3.6 * columns, 5.4), sharex=True, sharey="row", squeeze=False)
    for column, ratio in enumerate(p["ratios"]):
        for row, (mode, degree) in enumerate(((1, 1), (2, 2))):
            axis = axes[row, column]
            at = {"network.n_train": ratio * p["input_dim"]}
            for label, data in comparison.theories().items():
                draw_line(axis, data.sel(at).isel(mode=mode), "scale", "learnability", 2, label)
            curves = comparison.experiments().items()
            for number, (label, data) in enumerate(curves):
                last = number == len(curves) - 1
                colour, shift = ("black" if last else COLOURS[(0, 1, 3)[number]]), 1 + 0.02 * (number - 1.5)
                values = data.sel(at).isel(mode=mode)["learnability"]
                dots(axis, shift * data["scale"], values, number, label, colour=colour, filled=last)
            axis.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
            axis.set(xscale="log")
            axis.set_xticks(p["betas"], [f"{beta:g}" for beta in p["betas"]])
            axis.minorticks_off()
            if column == 0:
                axis.set_ylabel(f"$R_{degree} = f_{degree}/y_{degree}$")
        axes[0, column].set_title(f"$n = {ratio} d$")
        axes[1, column].set_xlabel(r"scale $\beta$")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    caption(
        figure,
        f"Relu network, d = {p['input_dim']} beta, N = {p['width']} beta, y = z {p['absolute']:+g} (|z| - E|z|), z = w*.x; T = "
        f"0.1/chi, variance of sqrt(N) a 1/chi, chi = {p['chi']:g}, E|w|^2 = 1; constants chosen here. Symbols: theories and "
        f"posterior of the network (HMC) on the same {p['seeds']} training sets a point, means and standard errors over them, "
        f"moved sideways to be seen. Line: adapted weights averaged over data, effective ridge, modes h0, h1, h2, h4.",
        130,
    )
    return figure
