"""What panels cannot say: a map of the order of the transition."""

from typing import Any

import numpy as np

from orderparam.core.study import Comparison
from orderparam.plotting.style import ink


def draw_order(axes: Any, comparison: Comparison) -> None:
    """Where in (decay, noise) a finite fraction of the features is learned at once."""
    (diagram,) = comparison.theories(part="diagram").values()
    ratio = diagram["first_order_ratio"].transpose("noise", "decay")
    decay, noise = diagram["decay"], diagram["noise"]
    mesh = axes.pcolormesh(decay, noise, np.log10(ratio), cmap="RdBu_r", vmin=-1, vmax=1, shading="gouraud")
    axes.contour(decay, noise, ratio, levels=[1.0], colors=[ink()])
    axes.plot(comparison.parameters["decay"], comparison.parameters["noise"], "*", color=ink())
    axes.annotate("many at once", (0.15, 0.18), xycoords="axes fraction")
    axes.annotate("one by one", (0.96, 0.85), xycoords="axes fraction", ha="right")
    axes.set(yscale="log", xlabel=r"decay $\beta$", ylabel=r"noise $\Delta$")
    axes.figure.colorbar(mesh, ax=axes, label=r"$\log_{10}\, A / (2\beta(\Delta + g(1)))$")
