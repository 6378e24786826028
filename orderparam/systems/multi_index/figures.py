"""What the studies of multi-index targets draw by hand: the table of sample complexities, and Hermite powers as bars."""

import math
from typing import Any

import numpy as np

from orderparam.core.study import Comparison
from orderparam.plotting import tex
from orderparam.plotting.measured import dots
from orderparam.plotting.style import COLOURS, ink
from orderparam.plotting.words import number
from orderparam.systems.multi_index.learnability.exponents import sgd_samples


def draw_table(axes: Any, comparison: Comparison) -> None:
    """Row by row: the exponents of a target, and what they cost each algorithm."""
    (theory,) = comparison.theories().values()
    rows = []
    for name in theory["target"].values:
        one = theory.sel(target=name)
        leap, generative, degree, threshold = (float(one[key]) for key in ("leap", "generative_leap", "degree", "threshold"))
        kernel = "$e^d$" if math.isinf(degree) else "$d$" if degree == 1 else f"$d^{{{degree:.0f}}}$"
        sgd = sgd_samples(int(leap) if math.isfinite(leap) else None, 8).replace("log", "\\log ").replace(" ", "\\,")
        best = "$d$" if generative <= 2 else f"$d^{{{generative:.0f}/2}}$"
        orders = [f"{float(value):.0f}" for value in (one["information"], leap, generative)]
        rows.append([f"${tex(str(name))}$", *orders, kernel, f"${sgd}$", best, number(float(f"{threshold:.4g}"))])
    axes.axis("off")
    header = ["target", "information", "leap", "gen. leap", "kernels", "one-pass SGD", "best algorithm", "its $n/d$"]
    cells = axes.table(rows, colLabels=header, loc="center", cellLoc="center", edges="horizontal")
    cells.scale(1, 1.35)
    cells.auto_set_column_width(range(len(header)))


def draw_powers(axes: Any, comparison: Comparison) -> None:
    """Sums of squared Hermite coefficients of each degree: exact bars and sampled dots."""
    (theory,), (runs,) = comparison.theories().values(), comparison.experiments().values()
    names = [str(name) for name in theory["target"].values]
    for order in range(theory.sizes["order"]):
        x = np.arange(len(names)) + 0.15 * (order - 1.5)
        height, label = theory["hermite_power"].isel(order=order), f"degree {order + 1}"
        axes.bar(x, height, 0.13, color=COLOURS[order], alpha=0.55, label=label)
        dots(axes, x, runs["hermite_power"].isel(order=order), 0, colour=ink(), filled=True, markersize=3)
    axes.set_xticks(range(len(names)), [f"${tex(name)}$" for name in names])
    axes.set(ylabel="power of $g$ in each degree", yscale="symlog", ylim=(-0.05, 60))
