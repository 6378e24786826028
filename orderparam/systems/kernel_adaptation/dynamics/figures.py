"""How the studies of training, sample complexity and pruning are drawn."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

from orderparam.core.study import Comparison
from orderparam.plotting.curves import caption, draw_dots
from orderparam.plotting.measured import dots, mean_and_error, power_law
from orderparam.plotting.style import COLOURS, DASHES


def _band(axes: Any, time: np.ndarray, values: xr.DataArray, number: int, label: str | None, **style: Any) -> None:
    """Mean over seeds as a line, its standard error as a band."""
    mean, error = mean_and_error(values)
    axes.plot(time, mean.ravel(), color=COLOURS[number], label=label, **style)
    axes.fill_between(time, (mean - error).ravel(), (mean + error).ravel(), color=COLOURS[number], alpha=0.25, linewidth=0)


def draw_grokking(comparison: Comparison) -> Any:
    """Errors, components and specialised neurons in time; last, the equilibrium of training against the posterior."""
    p = comparison.parameters
    figure, axes = plt.subplots(1, 4, figsize=(13.0, 3.7))
    (theory,), (run, back) = comparison.theories().values(), comparison.experiments().values()
    time = run["time"].values.reshape(-1, run.sizes["record"])[0]
    for number, (name, label) in enumerate((("train_error", "training set"), ("test_error", "fresh inputs"))):
        _band(axes[0], time, run[name], number, label)
    axes[0].set(ylabel="mean squared error", ylim=(0, None))
    level = theory["learnability"].squeeze()
    for mode, degree in ((0, 1), (1, 3)):
        share = run["test_learnability"].isel(mode=mode) / level[mode].item()
        _band(axes[1], time, share, mode, f"$h_{degree}$")
    share = back["test_learnability"].isel(mode=1) / level[1].item()
    _band(axes[1], time, share, 1, "$h_3$, from the target", linestyle="--")
    share = run["train_learnability"].isel(mode=1) / level[1].item()
    _band(axes[1], time, share, 2, "$h_3$ on the training set", linestyle="-.")
    axes[1].axhline(1.0, color="0.6", linewidth=0.8, zorder=0)
    axes[1].set(ylabel="component $f_k$ / its equilibrium (GMFL)", ylim=(-0.1, 1.8))
    for number, (label, data) in enumerate((("from the prior", run), ("from the target", back))):
        _band(axes[2], time, data["specialised"], number, label, linestyle=DASHES[number])
    axes[2].axhline(theory["specialised"].item(), color="0.3", linestyle=":", linewidth=1, label="GMFL, equilibrium")
    axes[2].set(ylabel="neurons with $|w\\cdot w_*| > 1/2$", yscale="symlog", ylim=(0, None))
    for panel in axes[:3]:
        panel.set(xscale="log", xlabel="training time")
        panel.legend(loc="upper left" if panel is axes[1] else "best", fontsize=7)
    _equilibrium(axes[3], comparison)
    caption(
        figure,
        f"Erf network trained by Langevin dynamics with weight decay on y = He1 {p['cubic']:+g} He3; time 1: that of the "
        f"weight decay alone. Left three: beta = {p['beta']:g}, d = 150 sqrt(beta), n = 3000 beta, N = 700 beta, T = "
        f"{p['reduced_temperature']:g} sqrt(beta)/chi, read-out variance 1/chi, chi = {p['chi']:g}, E|w|^2 = 0.5; from prior "
        "weights unless said; GMFL averaged over data. Right: d = 20, N = 100, "
        f"n = {p['small_n_train']}, T = 0.2, second half of a run of {p['small_duration']:g}, over HMC on the same data set. "
        f"Bands and bars: standard error of {p['seeds']} data sets.",
        180,
    )
    return figure


def _equilibrium(axes: Any, comparison: Comparison) -> None:
    """Averages over a training run against the posterior on the same data set."""
    *trained, (_, posterior) = comparison.experiments("equilibrium").items()
    names = (("$f_1$", "output", 0), ("$f_3$", "output", 1), ("$d\\langle\\rho^2\\rangle/v$", "spread", None))
    for number, (label, data) in enumerate(trained):
        for place, (_, name, mode) in enumerate(names):
            values, reference = (one[name] if mode is None else one[name].isel(mode=mode) for one in (data, posterior))
            dots(axes, [place + 0.16 * (number - 0.5)], values / reference, number, label if place == 0 else None)
    axes.axhline(1.0, color="0.6", linewidth=0.8, zorder=0)
    axes.set(xticks=range(len(names)), ylabel="training / posterior by HMC", xlim=(-0.5, 2.5), ylim=(0.95, 1.05))
    axes.set_xticklabels([label for label, _, _ in names])
    axes.legend(loc="upper right", fontsize=7)


def draw_sample_complexity(comparison: Comparison) -> Any:
    """Examples for a given learnability of h_3 against the dimension, and per dimension."""
    p = comparison.parameters
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.7))
    theories, (runs,) = comparison.theories(), comparison.experiments().values()
    adapted = theories["adapted weights (GMFL)"]
    notes = []
    for number, (label, data) in enumerate(theories.items()):
        d = data["input_dim"].values
        exponent = np.gradient(np.log(data["examples"].values), np.log(d))[-1]
        notes.append(f"{label} {exponent:.2f} at d = {d[-1]:g}")
        style = {"color": COLOURS[number], "linestyle": DASHES[number]}
        axes[0].plot(d, data["examples"], label=label, **style)
        axes[1].plot(d, data["per_dimension"], **style)
    draw_dots(axes[0], runs, "input_dim", "examples", 0, "sampled network")
    draw_dots(axes[1], runs, "input_dim", "per_dimension", 0, None)
    exponent, half = power_law(runs["input_dim"].values.astype(float), runs["examples"])
    ends = [np.log(adapted["examples"].sel(input_dim=end).values.ravel()[0]) for end in (min(p["measured"]), max(p["measured"]))]
    between = (ends[1] - ends[0]) / np.log(max(p["measured"]) / min(p["measured"]))
    d = adapted["input_dim"].values
    wide = theories["infinitely wide (GP)"]["examples"].values
    axes[0].plot(d, wide[-1] * (d / d[-1]) ** 3, color="0.6", linewidth=0.8, linestyle=":", label="$d^3$")
    axes[0].set(xscale="log", yscale="log", xlabel="input dimension $d$", ylabel=f"$n$ for $f_3/y_3 = {p['threshold']:g}$")
    axes[1].set(xscale="log", xlabel="input dimension $d$", ylabel="examples per dimension, $n/d$", xlim=axes[0].get_xlim())
    axes[1].set_ylim(0, 1.6 * float(adapted["per_dimension"].max()))
    axes[0].legend(loc="upper left")
    caption(
        figure,
        f"Erf network, N = {p['units_per_input']:g} d, y = He1 {p['cubic']:+g} He3, temperature {p['temperature']:g}, variance "
        f"of sqrt(N) a {p['readout_variance']:g}, E|w|^2 = {p['weight_variance']:g}; constants chosen here. Lines: averaged over "
        f"data; local exponents: {', '.join(notes)}. Dots: posteriors by HMC at "
        f"n/d = {', '.join(f'{a:g}' for a in p['ratios'])}, between which n is interpolated; mean and standard error of "
        f"{p['seeds']} data sets, exponent {exponent:.2f} +- {half:.2f} (95 %; GMFL between the same d {between:.2f}).",
        130,
    )
    return figure


def draw_pruning(comparison: Comparison) -> Any:
    """Accuracy against the rank kept, against random directions and units, and the latent spectra."""
    p = comparison.parameters
    figure, axes = plt.subplots(1, 3, figsize=(11.0, 3.7))
    first, trained = comparison.experiments().values()
    shown = [("features of the start", first.isel(chi=0))]
    shown += [(f"trained, $\\chi$ = {chi:g}", trained.sel(chi=chi)) for chi in p["chis"]]
    for number, (label, data) in enumerate(shown):
        rank = data["rank"].values.reshape(-1, data.sizes["kept"])[0]
        dots(axes[0], rank, data["accuracy"], number, label, linestyle=DASHES[number])
        mean, error = mean_and_error(data["eigenvalues"])
        order = np.arange(1, len(mean) + 1)
        axes[2].plot(order, mean, color=COLOURS[number], linestyle=DASHES[number])
        axes[2].fill_between(order, mean - error, mean + error, color=COLOURS[number], alpha=0.25, linewidth=0)
    axes[0].set(xscale="log", xlabel="directions kept $k$", ylabel="test accuracy", ylim=(0, 1))
    axes[0].set_title("leading latent directions")
    axes[0].legend(loc="lower right", fontsize=7)
    last = len(shown) - 1
    for name, label, shade in (
        ("accuracy", "leading directions", COLOURS[last]),
        ("magnitude_accuracy", "units of largest read-out", "0.3"),
        ("random_accuracy", "random directions", "0.6"),
    ):
        dots(axes[1], rank, shown[last][1][name], last, label, colour=shade, linestyle="-", filled=name == "accuracy")
    axes[1].set(xscale="log", xlabel="directions or units kept $k$", ylabel="test accuracy", ylim=(0, 1), title=shown[last][0])
    axes[1].legend(loc="lower right", fontsize=7)
    axes[2].axvline(9, color="0.7", linewidth=0.8, linestyle=":")
    axes[2].set(xscale="log", yscale="log", xlabel="order", ylabel="latent eigenvalue / trace", ylim=(1e-5, 1))
    moved = [f"chi = {chi:g}: {float(trained['moved'].sel(chi=chi).mean()):.2f}" for chi in p["chis"]]
    caption(
        figure,
        f"Digits 8 x 8, {p['n_train']} training and {p['n_test']} test examples; two hidden layers of {p['width']} relu units, "
        f"one-hot targets, temperature {p['temperature']:g}/chi, read-out variance 1/chi. Pruned without retraining; mean and "
        f"standard error of {p['seeds']} networks on one split. Relative change of the hidden weights: {'; '.join(moved)}. "
        "Dotted: number of classes minus one.",
        150,
    )
    return figure
