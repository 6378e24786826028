"""Guides: grey lines and crosses that are not measured (levels, places, power laws, known curves
and points), with a text beside each line."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from orderparam.plotting.style import GREY

# A number, or a function from the value of the panel's facet to it
Level = float | Callable[[Any], float]


@dataclass(frozen=True)
class Guide:
    """A line for orientation; made by `horizontal`, `vertical`, `slope`, `curve` and `cross`."""

    kind: Literal["horizontal", "vertical", "slope", "curve", "cross"]
    at: Any
    text: str = ""
    through: tuple[float, float] | None = None


def horizontal(at: Level, text: str = "") -> Guide:
    """A horizontal line; `at` may be a function of the panel's facet value."""
    return Guide("horizontal", at, text)


def vertical(at: Level, text: str = "") -> Guide:
    """A vertical line; `at` may be a function of the panel's facet value."""
    return Guide("vertical", at, text)


def slope(power: Level, text: str = "", through: tuple[float, float] | None = None) -> Guide:
    """The power law x^power on logarithmic axes, through a point (by default beside the middle of
    the drawn data)."""
    return Guide("slope", power, text, through)


def curve(function: Callable[[np.ndarray], Any], text: str = "") -> Guide:
    """A known function of x, drawn along the whole x axis."""
    return Guide("curve", function, text)


def cross(x: float, y: float) -> Guide:
    """A cross at a known point."""
    return Guide("cross", (x, y))


def draw_guide(axes: Any, guide: Guide, facet: Any, drawn: np.ndarray) -> None:
    """Draws a guide. `drawn` are the points (x, y) of the data on these axes, whose x limits must
    be final."""
    look: dict[str, Any] = {"color": GREY, "linewidth": 0.8, "linestyle": ":", "zorder": 0.5}
    at = guide.at(facet) if callable(guide.at) and guide.kind != "curve" else guide.at
    note: dict[str, Any] = {
        "textcoords": "offset points",
        "fontsize": 8,
        "color": GREY,
        "annotation_clip": True,
    }
    if guide.kind == "cross":
        axes.plot(*at, marker="x", color=GREY, markersize=7, linestyle="none", zorder=0.5)
        return
    if guide.kind == "horizontal":
        axes.axhline(at, **look)
        axes.annotate(
            guide.text,
            (1, at),
            (-1, 1),
            xycoords=axes.get_yaxis_transform(),
            ha="right",
            va="bottom",
            **note,
        )
        return
    if guide.kind == "vertical":
        axes.axvline(at, **look)
        axes.annotate(
            guide.text,
            (at, 1),
            (2, -1),
            xycoords=axes.get_xaxis_transform(),
            ha="left",
            va="top",
            **note,
        )
        return
    low, high = axes.get_xlim()
    x = np.geomspace(low, high, 200) if axes.get_xscale() == "log" else np.linspace(low, high, 200)
    if guide.kind == "curve":
        y = np.asarray(guide.at(x), float)
    else:
        anchor = guide.through or _beside_middle(drawn, axes.get_ylim()[1])
        x = x[(x > anchor[0] / 4) & (x < anchor[0] * 4)]
        y = anchor[1] * (x / anchor[0]) ** at
    axes.plot(x, y, **look)
    if guide.text and len(x):
        if guide.kind == "slope" and at < 0:  # at its start: two through one point stay apart
            place, offset, align = 0, (-3, 0), {"ha": "right", "va": "center"}
        else:
            rising = guide.kind == "slope"  # the text stands above it, where the line is not
            place = len(x) // 2 if rising else int(0.75 * len(x))
            offset = (-2, 2) if rising else (2, 2)
            align = {"ha": "right" if rising else "left", "va": "bottom"}
        axes.annotate(guide.text, (x[place], y[place]), offset, **align, **note)


def _beside_middle(drawn: np.ndarray, top: float) -> tuple[float, float]:
    """A point above the data near the geometric middle of their x, or below them where there is no
    room above."""
    positive = drawn[(drawn > 0).all(axis=1)]
    if not len(positive):
        return 1.0, 1.0
    middle = float(np.exp(np.mean(np.log([positive[:, 0].min(), positive[:, 0].max()]))))
    near = positive[np.argsort(np.abs(np.log(positive[:, 0] / middle)))[:5], 1]
    return middle, float(2 * near.max() if 4 * near.max() < top else near.min() / 2)
