"""Where measured success fractions cross: the load at which half of the samples are stored, and finite-size scaling."""

from typing import Any

import numpy as np
import xarray as xr

from orderparam.analysis import collapse
from orderparam.core.study import Comparison
from orderparam.plotting.style import COLOURS, GREY, MARKERS, ink


def draw_success_collapse(label: str, exact: float, axes: Any, comparison: Comparison) -> None:
    """The success fractions of an experiment against (load - critical load) N^(1/nu), and the critical load that this gives."""
    chosen = [data for data in comparison.experiments().values() if data.attrs["label"] == label]
    runs = {data.attrs["facets"]["input_dim"]: data for data in chosen}
    joined = xr.concat([runs[n].expand_dims(input_dim=[n]) for n in sorted(runs)], "input_dim", join="outer")
    try:
        found = collapse(joined, "load", "success_fraction", "input_dim", power=0, order=3, window=2.0)
    except ValueError as error:  # too few points
        axes.set_title(str(error))
        return
    for number, n in enumerate(found.sizes):
        own = found.scaled_size == n
        look = {"color": COLOURS[number % len(COLOURS)], "fmt": MARKERS[number % len(MARKERS)], "markerfacecolor": "white"}
        axes.errorbar(found.scaled_x[own], found.scaled_y[own], found.scaled_error[own], **look)
    u = np.linspace(found.scaled_x.min(), found.scaled_x.max(), 200)
    axes.plot(u, found.curve(u), color=ink(), linewidth=0.8, zorder=1)
    axes.axhline(0.5, color=GREY, linewidth=0.8, linestyle=":")
    place = rf"$\alpha_c$ = {found.critical:.3f} ± {found.critical_error:.3f} (theory {exact:.4g})"
    slope = rf"$1/\nu$ = {found.inverse_nu:.2f} ± {found.inverse_nu_error:.2f}"
    axes.set(xlabel=r"$(\alpha-\alpha_c)\,N^{1/\nu}$", ylabel="success fraction", title=f"{place}\n{slope}")
