"""What the studies of the Hopfield model draw by hand: the phase diagram with its four lines."""

from typing import Any

from orderparam.core.study import Comparison
from orderparam.plotting.style import COLOURS, DASHES

_LINES = {
    "glass_temperature": "$T_g$ spin glass",
    "retrieval_temperature": "$T_M$ retrieval exists",
    "global_temperature": "$T_c$ retrieval is lowest",
    "replicon_temperature": "$T_R$ replicas break",
}


def draw_lines(axes: Any, comparison: Comparison) -> None:
    """Temperature against load; inset: where retrieval becomes unstable against breaking replica symmetry."""
    (data,) = comparison.theories(part="lines").values()
    inset = axes.inset_axes((0.55, 0.48, 0.42, 0.26))
    for number, (name, text) in enumerate(_LINES.items()):
        there = data[name] > 0
        look = {"color": COLOURS[number], "linestyle": DASHES[number]}
        axes.plot(data["load"][there], data[name][there], label=text, **look)
        inset.plot(data["load"][there], data[name][there], **look)
    inset.set(xlim=(0.08, 0.142), ylim=(0, 0.04))
    inset.tick_params(labelsize=6)
    axes.set(xlabel=r"load $\alpha$", ylabel="temperature $T$", ylim=(0, None), xlim=(0, float(data["load"].max())))
