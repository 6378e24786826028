"""What the studies of random features draw by hand: the plane of exponents of width and ridge."""

from typing import Any

import numpy as np

from orderparam.core.study import Comparison
from orderparam.plotting.style import COLOURS, GREY
from orderparam.systems.random_features.scaling import scaling_exponents


def draw_plane(axes: Any, comparison: Comparison) -> None:
    """Map of the local exponent over (l, q), where bias and variance fall alike, and where the width is enough."""
    data, predicted = _exponents(comparison)
    ridge, width = data["ridge_exponent"].values, data["width_exponent"].values
    shown = axes.pcolormesh(ridge, width, data["risk_exponent"].values.T, cmap="viridis", shading="gouraud")
    axes.figure.colorbar(shown, ax=axes, label=r"$-d\ln(\mathrm{excess\ risk})/d\ln n$")
    axes.contour(ridge, width, (predicted["bias"] - predicted["variance"]).T, levels=[0.0], colors="white", linewidths=1.2)
    axes.plot(ridge, np.minimum(ridge / comparison.parameters["capacity"], 1), color="white", linestyle="--", linewidth=1.0)
    axes.set(xlim=(ridge.min(), ridge.max()), ylim=(width.min(), width.max()))
    axes.set(xlabel=r"$l$: mean-loss ridge $n^{-l}$", ylabel=r"$q$: width $p = n^q$")


def draw_exponents(axes: Any, comparison: Comparison) -> None:
    """The local exponents of bias and variance against their prediction."""
    data, predicted = _exponents(comparison)
    for number, (name, values) in enumerate(predicted.items()):
        found = data[f"{name}_exponent"].values
        axes.plot(values.ravel(), found.ravel(), ".", color=COLOURS[-1 - number], markersize=3, label=name)
    ends = [0, max(values.max() for values in predicted.values())]
    axes.plot(ends, ends, color=GREY, linewidth=0.8)
    axes.set_xlabel("predicted exponent")
    axes.set_ylabel(f"local exponent at $n = 10^{{{comparison.parameters['log10_examples']:g}}}$")


def _exponents(comparison: Comparison) -> tuple[Any, dict[str, np.ndarray]]:
    """The converged local exponents, and what is predicted of bias and variance in the same plane."""
    data = comparison.datasets["local exponents"]
    p, ridge, width = comparison.parameters, data["ridge_exponent"].values, data["width_exponent"].values
    at = [[scaling_exponents(p["capacity"], p["source"], l, q) for q in width] for l in ridge]
    return data.where(data["status"] == 1), {
        name: np.array([[getattr(point, name) for point in row] for row in at]) for name in ("bias", "variance")
    }
