"""What the studies of the phase diagram draw by hand: the plane of exponents, and power laws with the exponents measured."""

from typing import Any

import numpy as np
import xarray as xr

from orderparam.core.study import Comparison
from orderparam.plotting.measured import dots, fitted_power, power_law
from orderparam.plotting.style import COLOURS, GREY, MARKERS
from orderparam.systems.online_sgd.phases.model import region, time_exponent

_REGION_COLOURS = {
    "perfect learning": COLOURS[2],
    "Saad-Solla line": COLOURS[0],
    "noise dominated": COLOURS[4],
    "no differential equation": GREY,
}


def draw_plane(axes: Any, comparison: Comparison) -> None:
    """The phases in the plane (kappa, delta), and the points that are run."""
    kappa = np.linspace(0, 1, 2)
    axes.fill_between(kappa, -kappa, 1, color=COLOURS[2], alpha=0.2, linewidth=0)
    axes.fill_between(kappa, -kappa - 0.5, -kappa, color=COLOURS[4], alpha=0.25, linewidth=0)
    axes.plot(kappa, -kappa, color=COLOURS[0], linewidth=2)
    axes.text(0.55, 0.6, "perfect learning", ha="center", color=COLOURS[2])
    axes.text(0.6, -0.56, "Saad-Solla", color=COLOURS[0], rotation=-31)
    axes.text(0.66, -1.04, "noise dominated", ha="center", color=COLOURS[4], rotation=-31)
    axes.text(0.3, -1.3, "no differential equation", ha="center", color=GREY)
    for number, (one, other) in enumerate(_points(comparison)):
        colour = _REGION_COLOURS[region(one, other)]
        axes.plot(one, other, MARKERS[number % 6], color=colour, markersize=7, clip_on=False, zorder=5)
    axes.set(xlim=(0, 1), ylim=(-1.5, 1), xlabel=r"width exponent $\kappa$", ylabel=r"learning-rate exponent $\delta$")


def draw_times(axes: Any, comparison: Comparison) -> None:
    """Samples until the overlaps have moved, against d: flow, runs, and the exponent measured."""
    for number, (one, other) in enumerate(_points(comparison)):
        theory, runs = _pair(comparison, kappa=one, delta=other)
        slope, half = power_law(runs["input_dim"].values, runs["samples"])
        words = f"$({one:g}, {other:g})$: {slope:z.2f}±{half:.2f} [{time_exponent(one, other):g}]"
        colour = _REGION_COLOURS[region(one, other)]
        axes.plot(theory["input_dim"], np.maximum(theory["samples"], 1), color=colour)
        dots(axes, runs["input_dim"], runs["samples"], number, words, colour=colour, filled=not one)
    axes.set(xscale="log", yscale="log", xlabel="input dimension $d$", ylabel="samples until the overlaps have moved by 0.1")


def draw_residuals(axes: Any, comparison: Comparison) -> None:
    """The residual risk against d: closed form, runs, and the exponents of both."""
    for number, delta in enumerate(comparison.parameters["deltas"]):
        theory, runs = _pair(comparison, delta=delta)
        slope, half = power_law(runs["input_dim"].values, runs["test_error"])
        exact, _ = fitted_power(theory["input_dim"].values, theory["test_error"].values, np.zeros(theory.sizes["input_dim"]))
        axes.plot(theory["input_dim"], theory["test_error"], color=COLOURS[number])
        label = rf"$\delta = {delta:g}$: $d^{{{slope:.3f}\pm{half:.3f}}}$ [{exact:.3f}]"
        dots(axes, runs["input_dim"], runs["test_error"], number, label, colour=COLOURS[number])
    axes.set(xscale="log", yscale="log", xlabel="input dimension $d$", ylabel="residual risk $R_\\infty$")


def draw_deviations(axes: Any, comparison: Comparison) -> None:
    """At the last time, against d: how far runs scatter, and how far the flow is from its limit."""
    (limit,) = comparison.theories(terms="noise").values()
    both, runs = (data["test_error"].isel(record=-1) for data in _pair(comparison, terms="both"))
    dims, power = runs["input_dim"].values, -(0.5 + comparison.parameters["delta"])
    spread = runs.std("seed", ddof=1).values
    relative = 1 / np.sqrt(2 * (runs.sizes["seed"] - 1))
    axes.errorbar(dims, spread, spread * relative, fmt="o", color=GREY, label="standard deviation over runs")
    axes.plot(dims, spread[0] * (dims / dims[0]) ** power, color=GREY, linestyle="--", label=rf"$d^{{{power:g}}}$")
    axes.plot(dims, np.abs(both - limit["test_error"].isel(record=-1)), color=COLOURS[1], label="flow minus its limit")
    axes.set(xscale="log", yscale="log", xlabel="input dimension $d$", ylabel="deviation of $R$ at the last time")


def _pair(comparison: Comparison, **facets: Any) -> tuple[xr.Dataset, xr.Dataset]:
    """The theory and the runs that carry these facets."""
    (theory,) = comparison.theories(**facets).values()
    (runs,) = comparison.experiments(**facets).values()
    return theory, runs


def _points(comparison: Comparison) -> list[tuple[float, float]]:
    """The points (kappa, delta) that are run."""
    return [(data.attrs["facets"]["kappa"], data.attrs["facets"]["delta"]) for data in comparison.experiments().values()]
