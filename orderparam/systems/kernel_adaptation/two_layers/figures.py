"""How the studies of kernel adaptation are drawn."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from orderparam.core.study import Comparison
from orderparam.plotting.curves import caption, draw_dots, draw_line
from orderparam.plotting.measured import mean_and_error
from orderparam.plotting.style import COLOURS, DASHES
from orderparam.sampling.estimate import value_with_error

SAMPLES = r"training examples $n$"
OVERLAP = r"$\rho = w\cdot w_*$"


def _learnabilities(axes: Any, comparison: Comparison, mode: int, degree: int) -> None:
    """f_k / y_k of one mode against n: every theory a line, the sampled network dots."""
    for number, (label, data) in enumerate(comparison.theories().items()):
        draw_line(axes, data.isel(mode=mode), "n_train", "learnability", number, label)
    for label, data in comparison.experiments().items():
        draw_dots(axes, data.isel(mode=mode), "n_train", "learnability", 0, label)
    axes.axhline(1.0, color="0.8", linewidth=0.8, zorder=0)
    axes.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
    axes.set(xscale="log", xlabel=SAMPLES, ylabel=f"learnability of $h_{degree}$, $f_{degree}/y_{degree}$")


def draw_staircase(comparison: Comparison) -> Any:
    """Learnability of h_1 and h_3, and the density of the weights along the target."""
    p = comparison.parameters
    figure, axes = plt.subplots(1, 3, figsize=(11.0, 3.7))
    for panel, mode, degree in ((axes[0], 0, 1), (axes[1], 1, 3)):
        _learnabilities(panel, comparison, mode, degree)
    shown = max(p["n_train"])
    right = axes[2]
    theories, (runs,) = comparison.theories(), comparison.experiments().values()
    rho = np.linspace(-2.2, 2.2, 441)
    variance = p["weight_variance"] / p["input_dim"]
    for number, data in enumerate(theories.values()):
        at = data.sel(n_train=shown)
        if "log_density" in data:
            density = np.exp(np.interp(np.abs(rho), at["overlap"], at["log_density"]))
        else:
            spread = float(at["spread"]) * variance
            density = np.exp(-(rho**2) / (2 * spread)) / np.sqrt(2 * np.pi * spread)
        right.plot(rho, density, color=COLOURS[number], linestyle=DASHES[number], zorder=2)
    measured = runs.sel(n_train=shown)
    centres = measured["bin_centre"].values.reshape(-1, measured.sizes["bin"])[0]
    for name, label, look in (
        ("across_density", "across", {"fmt": "s", "color": "0.55", "markerfacecolor": "white"}),
        ("density", "along $w_*$", {"fmt": "o", "color": "black"}),
    ):
        mean, error = mean_and_error(measured[name])
        seen = mean > 0
        right.errorbar(centres[seen], mean[seen], np.nan_to_num(error[seen]), markersize=2.5, label=label, zorder=3, **look)
    right.legend(loc="upper left", fontsize=7)
    kurtosis = [
        value_with_error(*(float(part) for part in mean_and_error(measured[name]))) for name in ("kurtosis", "across_kurtosis")
    ]
    right.set(yscale="log", ylim=(2e-3, 8), xlim=(-2.2, 2.2), xlabel=OVERLAP, ylabel=f"density of the weights, $n$ = {shown}")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=5)
    caption(
        figure,
        f"Erf network, d = {p['input_dim']}, N = {p['width']}, y = He1 {p['cubic']:+g} He3 of w*.x, |w*| = 1; temperature "
        f"{p['temperature']:g}, variance of sqrt(N) a {p['readout_variance']:g}, E|w|^2 = {p['weight_variance']:g}; constants "
        f"chosen here. Lines: averaged over data, ridge T/n unless said, modes h1, h3, h5, h7. Dots: posterior of the network by "
        f"HMC, mean and standard error of {p['seeds']} data sets. Right: blue is the prior; Gaussian weights "
        f"cannot have side wells. Excess kurtosis of the weights along w*: {kurtosis[0]}, across: {kurtosis[1]}.",
        150,
    )
    return figure


def draw_phases(comparison: Comparison) -> Any:
    """Weight densities at three temperatures, and learnability of h_3 and side weight against the temperature."""
    p = comparison.parameters
    figure, axes = plt.subplots(1, 3, figsize=(11.0, 3.7))
    theories = comparison.theories()
    last = list(theories.values())[-1]
    names = {0: "GFL", 1: "GMFL-I", 2: "GMFL-II"}
    reduced = last["temperature"].values * p["chi"] / np.sqrt(p["betas"][-1])
    for number, chosen in enumerate(p["shown"]):
        at = last.isel(temperature=int(np.argmin(np.abs(reduced - chosen))))
        rho = np.concatenate([-at["overlap"].values[::-1], at["overlap"].values])
        log_density = np.concatenate([at["log_density"].values[::-1], at["log_density"].values])
        label = f"$t$ = {chosen:g}: {names[int(at['phase'])]}"
        axes[0].plot(rho, np.exp(log_density), color=COLOURS[number], linestyle=DASHES[number], label=label)
    axes[0].set(yscale="log", ylim=(1e-9, 100), xlim=(-2, 2), xlabel=OVERLAP, ylabel="density of the weights $p(\\rho)$")
    axes[0].set_title(f"$\\beta$ = {p['betas'][-1]:g}")
    axes[0].legend(loc="upper left", fontsize=7)
    for number, (label, data) in enumerate(theories.items()):
        beta = p["betas"][number]
        x = data["temperature"].values * p["chi"] / np.sqrt(beta)
        colour = COLOURS[number]
        axes[1].plot(x, data["learnability"].isel(mode=1), color=colour, linestyle=DASHES[number], label=label)
        side = np.where(data["phase"] == 1, data["specialised"], np.nan)
        axes[2].plot(x, side, color=colour, linestyle=DASHES[number], label=label)
    axes[1].set(xlabel="temperature $t = T\\chi/\\sqrt{\\beta}$", ylabel="learnability of $h_3$, $f_3/y_3$")
    axes[1].legend()
    axes[2].axhline(5, color="0.6", linewidth=0.8, linestyle=":")
    axes[2].set(xlabel="temperature $t = T\\chi/\\sqrt{\\beta}$", ylabel="specialised neurons $N P_{side}$")
    axes[2].set(yscale="log", ylim=(1e-3, 40))
    caption(
        figure,
        f"Erf network, y = He1 {p['cubic']:+g} He3; d = 150 sqrt(beta), n = 3000 beta, N = 700 beta, T = t sqrt(beta)/chi, "
        f"read-out variance 1/chi, chi = {p['chi']:g}, E|w|^2 = 0.5; constants chosen here. "
        "GMFL-I: a well at 0 and side wells coexist. "
        "Right: where side wells exist; below the dotted line fewer than 5 neurons are in them and the average over neurons is "
        "not reliable.",
        150,
    )
    return figure


def draw_relu(comparison: Comparison) -> Any:
    """R_1 and R_2 against the number of examples."""
    p = comparison.parameters
    figure, axes = plt.subplots(1, 2, figsize=(8.0, 3.7))
    for panel, mode, degree in ((axes[0], 1, 1), (axes[1], 2, 2)):
        _learnabilities(panel, comparison, mode, degree)
        panel.set_ylabel(f"$R_{degree} = f_{degree}/y_{degree}$")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    caption(
        figure,
        f"Relu network, d = {p['input_dim']}, N = {p['width']}, y = z {p['absolute']:+g} (|z| - E|z|), z = w*.x; temperature and "
        f"read-out variance 1/{p['chi']:g}, E|w|^2 = 1; constants chosen here. Lines: averaged over data, modes h0, h1, h2, h4. "
        f"Dots: posterior of the network by HMC, mean and standard error of {p['seeds']} data sets.",
        125,
    )
    return figure


def draw_hysteresis(comparison: Comparison) -> Any:
    """Two branches of Gaussian weights, with the equilibrium of unconstrained weights."""
    p = comparison.parameters
    figure, axes = plt.subplots(1, 3, figsize=(11.0, 3.5))
    for number, (label, data) in enumerate(comparison.theories().items()):
        x = data["temperature"].values * p["chi"] / np.sqrt(p["beta"])
        style = {"color": COLOURS[number], "linestyle": DASHES[number], "label": label}
        axes[0].plot(x, data["spread"], **style)
        axes[1].plot(x, data["learnability"].isel(mode=1), **style)
        if "perpendicular" in data:
            axes[2].plot(x, data["action"], **style)
    for panel, label in zip(axes, (r"$d\langle\rho^2\rangle/v$", "learnability of $h_3$, $f_3/y_3$", "action $F/N$")):
        panel.set(xlabel="temperature $t = T\\chi/\\sqrt{\\beta}$", ylabel=label)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    caption(
        figure,
        f"Erf network, y = He1 {p['cubic']:+g} He3; beta = {p['beta']:g}: d = 150 sqrt(beta), n = 3000 beta, N = 700 beta, "
        f"T = t sqrt(beta)/chi, read-out variance 1/chi, chi = {p['chi']:g}, v = E|w|^2 = 0.5; modes h1, h3; constants "
        "chosen here. Where the branches of Gaussian weights differ both are minima of F; the lower F is the equilibrium.",
        150,
    )
    return figure
