"""Collapses of learnabilities, of learning curves and of the magnet, all by `orderparam.analysis.collapse`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from orderparam.analysis import Collapse, collapse
from orderparam.plotting.style import COLOURS, MARKERS, ink


def learnabilities(runs: xr.Dataset, reach: float = 2.0, groups: int = 24) -> Collapse:
    """L_k = F(k P^inverse_nu): modes below `reach` times the frozen ones, k_h ~ P without a ridge (inverse_nu = -1).

    Neighbouring modes are averaged, in `groups` of equal width in k up to `reach` times the largest P.
    """
    largest = reach * float(runs["n_train"].max())
    count = min(runs.sizes["mode"], int(largest))
    group = np.arange(count) * groups // count
    near = runs[["learnability"]].squeeze("temperature", drop=True).isel(mode=slice(0, count))
    near = near.assign_coords(mode=("mode", np.arange(1.0, count + 1)))
    parts = [near.isel(mode=group == one) for one in np.unique(group)]
    means = [part.mean("mode").expand_dims(mode=[float(part["mode"].mean())]) for part in parts]
    merged = xr.concat(means, "mode")
    return collapse(merged, x="mode", y="learnability", size="n_train", critical=0.0, power=0.0, window=reach, order=4)


def learning_curves(runs: xr.Dataset) -> Collapse:
    """E = P^power F(T P^inverse_nu): power = -alpha and inverse_nu = alpha for matched exponents and no noise."""
    return collapse(runs, x="temperature", y="test_error", size="n_train", critical=0.0, order=3)


def magnetisations(runs: xr.Dataset) -> Collapse:
    """<m^2> = L^power F((T - T_c) L^inverse_nu): power = -2 beta/nu = -1/4, inverse_nu = 1 and T_c = 2.2692 in two dimensions."""
    return collapse(runs, x="temperature", y="squared_magnetisation", size="length", order=4, window=3.0)


def draw_collapse(
    fit_of: Callable[[xr.Dataset], Collapse],
    runs_of: Callable[[Any], xr.Dataset],
    labels: dict[str, str],
    axes: Any,
    comparison: Any,
) -> None:
    """The points on their common curve, each size in its colour, and the exponents with their errors.

    labels: "x" and "y" of the axes, "size" the symbol of the sizes, and the symbols of what is fitted, by its name; one
    with a minus is shown with the other sign.
    """
    axes.set(xlabel=labels["x"], ylabel=labels["y"])
    try:
        fit = fit_of(runs_of(comparison))
    except ValueError as error:  # too few points
        axes.set_title(str(error))
        return
    for number, size in enumerate(fit.sizes):
        own = fit.scaled_size == size
        look: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)], "fmt": MARKERS[number % len(MARKERS)], "markersize": 3}
        text = f"${labels['size']}$ = {size:g}"
        axes.errorbar(fit.scaled_x[own], fit.scaled_y[own], fit.scaled_error[own], label=text, markerfacecolor="white", **look)
    u = np.linspace(fit.scaled_x.min(), fit.scaled_x.max(), 300)
    axes.plot(u, fit.curve(u), color=ink(), linewidth=0.8)
    told = []
    for name in ("critical", "inverse_nu", "power"):
        if name in labels:
            sign = -1 if labels[name].startswith("-") else 1
            unsure = getattr(fit, f"{name}_error")
            told.append(f"${labels[name].removeprefix('-')}$ = {sign * getattr(fit, name):.3f} ± {unsure:.3f}")
    axes.set_title("\n".join(told))
