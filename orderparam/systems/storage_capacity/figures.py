"""Where measured success fractions cross: the load at which half of the samples are stored, and finite-size scaling."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import norm

from orderparam.analysis import collapse
from orderparam.core.study import Comparison
from orderparam.plotting.style import COLOURS, GREY, MARKERS, ink

_INSIDE = 0.04  # fractions nearer to 0 or 1 have no useful error on the scale of the normal distribution


def draw_success_collapse(label: str, exact: float, axes: Any, comparison: Comparison) -> None:
    """The success fractions of an experiment against (load - critical load) N^(1/nu), and the critical load that this gives.

    What is collapsed is the argument of the normal distribution, in which Cover's law is a straight line for large N.
    """
    chosen = [data for data in comparison.experiments().values() if data.attrs["label"] == label]
    runs = {data.attrs["facets"]["input_dim"]: data for data in chosen}
    joined = xr.concat([runs[n].expand_dims(input_dim=[n]) for n in sorted(runs)], "input_dim", join="outer")
    share = joined["success_fraction"].mean("seed")
    error = np.sqrt((joined["success_fraction_error"] ** 2).sum("seed")) / joined.sizes["seed"]
    known = (share > _INSIDE) & (share < 1 - _INSIDE)
    argument = xr.apply_ufunc(norm.ppf, share.where(known))
    normal = xr.Dataset({"argument": argument, "argument_error": error / norm.pdf(argument)})
    try:
        found = collapse(normal, "load", "argument", "input_dim", power=0, order=2, window=3.0)
    except ValueError as failure:  # too few points
        axes.set_title(str(failure))
        return
    for number, n in enumerate(found.sizes):
        own = found.scaled_size == n
        look = {"color": COLOURS[number % len(COLOURS)], "fmt": MARKERS[number % len(MARKERS)], "markerfacecolor": "white"}
        height = norm.cdf(found.scaled_y[own])
        axes.errorbar(found.scaled_x[own], height, found.scaled_error[own] * norm.pdf(found.scaled_y[own]), **look)
    u = np.linspace(found.scaled_x.min(), found.scaled_x.max(), 200)
    axes.plot(u, norm.cdf(found.curve(u)), color=ink(), linewidth=0.8, zorder=1)
    axes.axhline(0.5, color=GREY, linewidth=0.8, linestyle=":")
    place = rf"$\alpha_c$ = {found.critical:.3f} ± {found.critical_error:.3f} (theory {exact:.4g})"
    slope = rf"$1/\nu$ = {found.inverse_nu:.2f} ± {found.inverse_nu_error:.2f}"
    axes.set(xlabel=r"$(\alpha-\alpha_c)\,N^{1/\nu}$", ylabel="success fraction", title=f"{place}\n{slope}")
