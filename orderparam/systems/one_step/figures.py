"""The density of eigenvalues on logarithmic axes, with the bulk's edge and the eigenvalue of the features' mean."""

from typing import Any

import numpy as np

from orderparam.core.study import Comparison
from orderparam.plotting.measured import mean_and_error
from orderparam.plotting.style import COLOURS


def draw_outliers(axes: Any, comparison: Comparison) -> None:
    """Bulk and outlier before and after the step; an eigenvalue outside has the weight 1/p."""
    p = comparison.parameters
    weight = 1 / (p["width_ratio"] * p["input_dim"])
    for colour, step in zip(COLOURS, ("before the step", "after the step")):
        (theory,), (runs,) = comparison.theories(step=step).values(), comparison.experiments(step=step).values()
        place = theory["eigenvalue"].values
        axes.plot(place, theory["density"].values, color=colour)
        mean, error = mean_and_error(runs["density"])
        axes.errorbar(place, mean, np.nan_to_num(error), fmt="o", color=colour, markersize=3)
        axes.axvline(float(theory["edge"]), color=colour, linestyle=":", linewidth=0.9)
        top, spread = (np.ravel(part)[0] for part in mean_and_error(runs["mean_eigenvalue"]))
        if float(theory["mean_eigenvalue"]) > float(theory["edge"]):  # an odd activation has no mean before the step
            axes.plot([float(theory["mean_eigenvalue"])] * 2, [0.6 * weight, 1.8 * weight], color=colour)
            axes.errorbar([top], [weight], xerr=[np.nan_to_num(spread)], fmt="o", color=colour, markersize=4)
    axes.set(xscale="log", yscale="log", ylim=(0.3 * weight, None))
    axes.set(xlabel=r"eigenvalue $\lambda$ of $\Phi^\top\Phi/p$", ylabel=r"density per $\lambda$")
