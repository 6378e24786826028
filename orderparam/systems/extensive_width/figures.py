"""What panels cannot say: overlaps of chosen features on two branches, and a map of the order of the transition."""

from typing import Any

import numpy as np

from orderparam.core.study import Comparison
from orderparam.plotting.style import ink


def draw_features(axes: Any, comparison: Comparison) -> None:
    """Overlaps of the features 1, 2, 4, 8 ... on the Bayes-optimal and on the informed branch."""
    from matplotlib import colormaps

    bayes, informed = comparison.theories().values()
    chosen = 2 ** np.arange(int(np.log2(bayes.sizes["feature"])) + 1)
    for colour, i in zip(colormaps["viridis"](np.linspace(0, 0.9, len(chosen))), chosen):
        axes.plot(bayes["n_train"], bayes["overlap"].isel(feature=i - 1), color=colour, label=f"$i$ = {i}")
        axes.plot(informed["n_train"], informed["overlap"].isel(feature=i - 1), color=colour, linestyle=":", linewidth=0.9)
    axes.set(xscale="log", ylim=(0, 1.02), xlabel="training examples $n$", ylabel="overlap $q_i$")


def draw_order(axes: Any, comparison: Comparison) -> None:
    """Where in (decay, noise) a finite fraction of the features is learned at once."""
    (diagram,) = comparison.theories(part="diagram").values()
    ratio = diagram["first_order_ratio"].transpose("noise", "decay")
    decay, noise = diagram["decay"], diagram["noise"]
    mesh = axes.pcolormesh(decay, noise, np.log10(ratio), cmap="RdBu_r", vmin=-1, vmax=1, shading="gouraud")
    axes.contour(decay, noise, ratio, levels=[1.0], colors=[ink()])
    axes.plot(comparison.parameters["decay"], comparison.parameters["noise"], "*", color=ink())
    axes.annotate("many at once", (0.2, 0.3), xycoords="axes fraction")
    axes.annotate("one by one", (0.62, 0.85), xycoords="axes fraction")
    axes.set(yscale="log", xlabel=r"decay $\beta$", ylabel=r"noise $\Delta$")
    axes.figure.colorbar(mesh, ax=axes, label=r"$\log_{10}\, A / (2\beta(\Delta + g(1)))$")
