"""The law of the weights along the target, drawn by hand: theories have different nodes, and some are Gaussian."""

from typing import Any

import numpy as np
import xarray as xr

from orderparam.core.study import Comparison
from orderparam.plotting.measured import mean_and_error
from orderparam.plotting.style import COLOURS, DASHES, GREY, ink

OVERLAP = r"$\rho = w\cdot w_*$"
PHASES = {0: "GFL", 1: "GMFL-I", 2: "GMFL-II"}


def _density(data: xr.Dataset, rho: np.ndarray, prior: float) -> np.ndarray:
    """p(rho) of a theory at one point; Gaussian where it gives the variance alone."""
    if "log_density" in data:
        return np.exp(np.interp(np.abs(rho), data["overlap"], data["log_density"]))
    variance = float(data["spread"]) * prior
    return np.exp(-(rho**2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)


def draw_densities(axes: Any, comparison: Comparison) -> None:
    """At the largest number of measured examples."""
    p = comparison.parameters
    shown, rho = max(p["n_train"]), np.linspace(-2.2, 2.2, 441)
    number = 0
    for data in comparison.curves("theory").values():
        look: Any = {"color": GREY, "linewidth": 0.9}
        if not data.attrs["baseline"]:
            look, number = {"color": COLOURS[number], "linestyle": DASHES[number]}, number + 1
        axes.plot(rho, _density(data.sel(n_train=shown), rho, p["weight_variance"] / p["input_dim"]), **look)
    (runs,) = comparison.curves("experiment").values()
    measured = runs.sel(n_train=shown)
    centres = measured["bin_centre"].values.reshape(-1, measured.sizes["bin"])[0]
    for direction, label, marker, colour in ((1, "across $w_*$", "s", GREY), (0, "along $w_*$", "o", ink())):
        mean, error = (part.ravel() for part in mean_and_error(measured["density"].isel(direction=direction)))
        seen = mean > 0
        look = {"fmt": marker, "color": colour, "markersize": 2, "zorder": 3}
        axes.errorbar(centres[seen], mean[seen], np.nan_to_num(error[seen]), label=label, **look)
    axes.set(yscale="log", ylim=(2e-3, 8), xlim=(-2.2, 2.2), xlabel=OVERLAP, ylabel="density of the weights")


def draw_phase_densities(axes: Any, comparison: Comparison) -> None:
    """At three temperatures, of the largest system."""
    p = comparison.parameters
    *_, last = comparison.curves().values()
    reduced = last["temperature"].values * p["chi"] / np.sqrt(p["betas"][-1])
    rho = np.linspace(-2, 2, 801)
    for number, chosen in enumerate(p["shown"]):
        at = last.isel(temperature=int(np.argmin(np.abs(reduced - chosen))))
        look = {"color": ink(), "linestyle": DASHES[number]}
        axes.plot(rho, _density(at, rho, np.nan), label=f"$t$ = {chosen:g}: {PHASES[int(at['phase'])]}", **look)
    axes.set(yscale="log", ylim=(1e-9, 100), xlim=(-2, 2), xlabel=OVERLAP, ylabel="density of the weights $p(\\rho)$")
