"""What the studies of random networks draw by hand: sample surfaces, and order and chaos."""

from typing import Any

import numpy as np

from orderparam.core.study import Comparison
from orderparam.plotting.measured import dots
from orderparam.plotting.style import COLOURS, GREY, ink


def draw_sample(width: int, axes: Any, comparison: Comparison) -> None:
    """One network of that width as a function of its two inputs; all widths have one colour scale."""
    p = comparison.parameters
    (data,) = comparison.curves(part="samples").values()
    values = data["value"].isel(seed=0)
    limit = np.nanmax(np.abs(values))
    surface = values.sel(width=width).values.reshape(p["resolution"], p["resolution"])
    reach = np.linspace(-p["reach"], p["reach"], p["resolution"])
    axes.pcolormesh(reach, reach, surface, cmap="RdBu_r", vmin=-limit, vmax=limit, rasterized=True)
    levels = np.linspace(-limit, limit, 17)
    axes.contour(reach, reach, surface, levels=levels, colors="0.25", linewidths=0.4, linestyles="solid")
    axes.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal")


def draw_order_and_chaos(axes: Any, comparison: Comparison) -> None:
    """The fixed point of the correlation of two inputs and the slope of its map there, which is 1 at the edge of chaos."""
    (theory,), (runs,) = (comparison.curves(kind, part="fixed point").values() for kind in ("theory", "experiment"))
    x = theory["weight_variance"]
    axes.plot(x, theory["correlation"], color=ink())
    axes.plot(x, theory["slope"], color=COLOURS[-1], linestyle="--", label=r"slope $\chi_1$ at the fixed point")
    dots(axes, runs["weight_variance"], runs["correlation"], 0, colour=ink(), filled=True)
    edge = float(np.interp(1.0, theory["slope"], x))
    axes.axvline(edge, color=GREY, linewidth=0.8, linestyle=":")
    axes.annotate(f"edge of chaos\n{edge:.3f}", (edge + 0.1, 1.95), va="top", fontsize=8, color=GREY)
    axes.set(xlabel=r"weight variance $\sigma_w^2$", ylabel="correlation $c^*$", ylim=(0, 2))
