"""The figure of a fitted law: the runs on it, and the best size for every budget."""

from typing import Any

import numpy as np

from orderparam.analysis.scaling_law.isoflop import iso_flop
from orderparam.analysis.scaling_law.law import ScalingLaw
from orderparam.plotting import canvas, finish
from orderparam.plotting.style import COLOURS, GREY, ink, paper
from orderparam.plotting.ticks import readable_ticks

_BEYOND = 100.0  # factor above the largest compute up to which the frontier is drawn
_POINTS = 40
_SYMBOLS = {"alpha": r"$\alpha$", "beta": r"$\beta$", "Nc": "$N_c$", "Dc": "$D_c$", "x0": "$x_0$"}


def draw_law(law: ScalingLaw) -> Any:
    """Loss against size, or, where both sizes vary, loss against compute with the frontier, and the
    sizes on it."""
    both = law.runs.parameters is not None and law.runs.samples is not None
    figure, axes = canvas(1, 2 if both else 1)
    handles = _draw_both(axes[0], law) if both else _draw_one(axes[0, 0], law)
    for panel in axes.ravel():
        readable_ticks(panel)
    named = ", ".join(
        f"{_SYMBOLS.get(name, f'${name}$')} = {value:.4g}" for name, value in law.values.items()
    )
    kind = f"{len(law.runs)} runs, form {law.form}: {named}. Scatter {law.scatter:.2%}."
    caption = (
        f"{kind} Bands: 95 % of {len(law.draws)} fits to runs drawn again; dotted: the largest run."
    )
    finish(figure, "The scaling law of these runs", handles, caption)
    return figure


def _draw_both(axes: np.ndarray, law: ScalingLaw) -> dict[str, Any]:
    runs = law.runs
    grid = np.geomspace(runs.compute.min(), _BEYOND * runs.compute.max(), _POINTS)
    shares = [law.allocate(compute) for compute in grid]
    handles = {"runs": axes[0].plot(runs.compute, runs.loss, "o", color=ink(), markersize=2.5)[0]}
    axes[1].plot(runs.compute, runs.parameters, "o", color=ink(), markersize=2.5)
    for panel, name in zip(axes, ("loss", "parameters"), strict=True):
        value, low, high = np.array([getattr(share, name) for share in shares]).T
        handles["best size"] = panel.plot(grid, value, color=COLOURS[0])[0]
        panel.fill_between(grid, low, high, color=COLOURS[0], alpha=0.25, linewidth=0)
        panel.axvline(runs.compute.max(), color=GREY, linewidth=0.8, linestyle=":")
        panel.set(xscale="log", yscale="log", xlabel="compute $C$")
    axes[0].set_ylabel("loss $L$")
    axes[1].set_ylabel("parameters $N$")
    try:
        parabolas = iso_flop(law)
    except ValueError:
        return handles
    style = {"color": COLOURS[1], "markerfacecolor": paper()}
    handles["parabolas of equal compute"] = axes[1].plot(
        parabolas.compute, parabolas.parameters, "s", **style
    )[0]
    return handles


def _draw_one(axes: Any, law: ScalingLaw) -> dict[str, Any]:
    runs = law.runs
    column, label = (
        (runs.parameters, "parameters $N$")
        if runs.samples is None
        else (runs.samples, "samples $D$")
    )
    grid = np.geomspace(column.min(), _BEYOND * column.max(), _POINTS)  # type: ignore[union-attr]
    value, low, high = law.predict(grid) if runs.samples is None else law.predict(samples=grid)
    handles = {
        "runs": axes.plot(column, runs.loss, "o", color=ink(), markersize=2.5)[0],
        "law": axes.plot(grid, value)[0],
    }
    axes.fill_between(grid, low, high, color=COLOURS[0], alpha=0.25, linewidth=0)
    axes.axvline(column.max(), color=GREY, linewidth=0.8, linestyle=":")  # type: ignore[union-attr]
    axes.set(xscale="log", yscale="log", xlabel=label, ylabel="loss $L$")
    return handles
