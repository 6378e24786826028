"""The figure of a table of widths: sizes with their exponents, losses with their parabolas, and the
best rate against the width."""

from typing import Any

import numpy as np

from orderparam.observables.width_rate import REACH, RateShift
from orderparam.observables.width_transfer import SizeExponent, WidthTransfer
from orderparam.plotting import canvas, finish
from orderparam.plotting.style import COLOURS, GREY, MARKERS, ink
from orderparam.plotting.ticks import readable_ticks

_MOST = 6  # largest number of entries of a legend


def draw_width(found: WidthTransfer) -> Any:
    """Draws one panel for the sizes and two for the best rate, as far as they were measured."""
    sizes = found.update or found.activation
    losses = found.shift is not None and found.runs.loss is not None
    panels = bool(sizes) + losses + (found.shift is not None)
    if not panels:
        raise ValueError("nothing to draw: the table has neither sizes nor best rates")
    figure, axes = canvas(1, panels)
    todo = list(axes[0])
    handles: dict[str, Any] = {}
    words = []
    if sizes:
        panel = todo.pop(0)
        what = "first update" if found.update else "activation"
        for k, (name, one) in enumerate(list(sizes.items())[:_MOST]):
            _draw_size(panel, k, name, one)
        panel.set(xscale="log", yscale="log", xlabel="width $N$", ylabel=f"rms of {what}")
        panel.margins(y=0.15)
        words.append(
            "Lines are powers of $N$ with the fitted exponents, through the largest width: "
            + ", ".join(
                f"{name} {e.value:.2f} [{e.low:.2f}, {e.high:.2f}]" for name, e in sizes.items()
            )
            + "."
        )
    if losses:
        _draw_losses(todo.pop(0), found)
        words.append("Losses are means over seeds; lines are the fitted parabolas.")
    if found.shift is not None:
        handles |= _draw_shift(todo.pop(0), found.shift)
        words.append(found.sentence() + ".")
    for panel in axes[0]:
        readable_ticks(panel)
    finish(figure, "Growth with width, and the best learning rate", handles, " ".join(words))
    return figure


def _draw_size(panel: Any, k: int, name: str, one: SizeExponent) -> None:
    colour = COLOURS[k]
    panel.plot(one.width, one.size, MARKERS[k % len(MARKERS)], color=colour, markersize=2.5)
    widths = np.unique(one.width)
    last = np.exp(np.mean(np.log(one.size[one.width == widths[-1]])))
    line = last * (widths / widths[-1]) ** one.value
    panel.plot(widths, line, color=colour)
    where = {"xytext": (0, 5), "textcoords": "offset points"}
    panel.annotate(name, (widths[0], line[0]), color=colour, fontsize=8, **where)


def _draw_losses(panel: Any, found: WidthTransfer) -> None:
    runs, shift = found.runs, found.shift
    assert shift is not None
    assert runs.loss is not None
    shades = np.linspace(0.25, 1.0, len(shift.optima))
    for shade, optimum in zip(shades, shift.optima):
        here = runs.width == optimum.width
        rates = np.unique(runs.rate[here])
        mean = [np.exp(np.mean(np.log(runs.loss[here & (runs.rate == r)]))) for r in rates]
        shown = np.isfinite(mean)
        look = {"color": COLOURS[0], "alpha": shade}
        panel.plot(rates[shown], np.array(mean)[shown], "o", markersize=2.5, **look)
        if np.isfinite(optimum.error):
            x = np.linspace(optimum.rate - REACH, optimum.rate + REACH, 60)
            y = np.exp(optimum.least + optimum.curvature * (x - optimum.rate) ** 2)
            kept = y < 3 * np.max(np.array(mean)[shown])
            panel.plot(2 ** x[kept], y[kept], label=f"{optimum.width:g}", **look)
    panel.set(xscale="log", yscale="log", xlabel=r"learning rate $\eta$", ylabel="loss")
    panel.legend(title="width $N$", fontsize=7, title_fontsize=7)


def _draw_shift(panel: Any, shift: RateShift) -> dict[str, Any]:
    handles: dict[str, Any] = {}
    fitted = [o for o in shift.optima if np.isfinite(o.error)]
    cells = [o for o in shift.optima if not np.isfinite(o.error) and np.isfinite(o.rate)]
    if fitted:
        width = [o.width for o in fitted]
        rate = np.array([o.rate for o in fitted])
        bars = 1.96 * np.array([o.error for o in fitted])
        low, high = 2**rate - 2 ** (rate - bars), 2 ** (rate + bars) - 2**rate
        handles["best rate, 95 %"] = panel.errorbar(
            width, 2**rate, (low, high), fmt="o", color=COLOURS[0], markersize=3
        )
    if cells:
        rate = np.array([o.rate for o in cells])
        handles["best rate on the grid"] = panel.plot(
            [o.width for o in cells], 2**rate, "s", color=GREY, markersize=3
        )[0]
    widths = np.array([o.width for o in (fitted or cells)])
    rates = np.array([o.rate for o in (fitted or cells)])
    middle, level = np.exp(np.mean(np.log(widths))), 2 ** np.mean(rates)
    if np.isfinite(shift.exponent):
        line = panel.plot(widths, level * (widths / middle) ** shift.exponent, color=ink())[0]
        handles["fitted power"] = line
    for power in (0.0, -1.0):
        panel.plot(widths, level * (widths / middle) ** power, color=GREY, linestyle=":")
    panel.annotate("$N^0$", (widths[-1], level), color=GREY, fontsize=7)
    panel.annotate("$N^{-1}$", (widths[-1], level * middle / widths[-1]), color=GREY, fontsize=7)
    panel.set(xscale="log", yscale="log", xlabel="width $N$", ylabel=r"best rate $\eta^*$")
    return handles
