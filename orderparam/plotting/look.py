"""Draws the curves of a panel on its axes: lines, marks, colours, and the legend that explains
them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from orderparam.core.declared import topic_of
from orderparam.core.facets import agree
from orderparam.plotting.guides import draw_guide, horizontal
from orderparam.plotting.measured import fitted_power
from orderparam.plotting.panel import Freehand, Panel
from orderparam.plotting.selection import (
    carried,
    carries,
    has_unconverged,
    interrupted,
    isolated,
    points_of,
    quantity_name,
    role_of,
    select,
    select_all,
    values_of,
)
from orderparam.plotting.style import COLOURS, DASHES, GREY, MARKERS, ink, paper
from orderparam.plotting.text import value_words, words

_DENSE = 60  # number of measured points above which a band replaces the marks


class Look:
    """The choices that hold for all panels of a figure: colours, dashes, marks, and the legend that
    explains them."""

    def __init__(
        self, datasets: Mapping[str, xr.Dataset], panels: Iterable[Panel | Freehand]
    ) -> None:
        self.datasets = datasets
        self._handles: dict[str, tuple[int, Any]] = {}
        self.drawn: dict[str, xr.Dataset] = {}
        self._colours: dict[tuple[str, Any], Any] = {}
        self._labels: dict[str, list[str]] = {"theory": [], "experiment": [], "baseline": []}
        self._beside: set[Any] = set()  # values and labels whose texts stand beside their lines
        self._written: set[Any] = set()
        self._waiting: dict[Any, tuple[str, tuple[int, Any]]] = {}  # their legend entries
        for panel in panels:
            if isinstance(panel, Panel):
                self._assign(panel)

    def _assign(self, panel: Panel) -> None:
        """Assigns colours, dashes and marks in the order of panels and curves."""
        shown = self._shown(panel)
        self._beside.update((panel.by, name) for name in panel.beside)
        if not shown:
            raise ValueError(
                f"no curve of this study has {quantity_name(panel.y)!r} where {dict(panel.where)}"
            )
        for data in shown.values():
            label, role = data.attrs["label"], role_of(data)
            if label not in self._labels[role]:
                self._labels[role].append(label)
        if panel.by:
            values = values_of(shown.values(), panel.by)
            for value, colour in zip(values, _sequence(values)):
                self._colours.setdefault(
                    (panel.by, value),
                    _chosen(panel, value) or colour or COLOURS[len(self._colours) % len(COLOURS)],
                )

    def _shown(self, panel: Panel) -> dict[str, xr.Dataset]:
        """The curves of a panel at the chosen points, the curve named by `ratio_to` among them."""
        for name in panel.where:
            if not any(carries(data, name) for data in self.datasets.values()):
                raise ValueError(f"where: no curve has a facet or dimension {name!r}")
        found = {}
        for key, data in self.datasets.items():
            chosen = select_all(data, panel.where)
            if chosen is not None and (not isinstance(panel.y, str) or panel.y in chosen):
                found[key] = chosen
        return found

    def facet_values(self, panel: Panel | Freehand) -> list[Any]:
        if isinstance(panel, Freehand) or not panel.facet:
            return [None]
        return values_of(self._shown(panel).values(), panel.facet)

    def draw(self, axes: Any, panel: Panel, value: Any) -> None:
        """Draws one set of axes: the panel at one value of its facet."""
        axes.set_xscale("log" if "x" in panel.log else "linear")
        axes.set_yscale("log" if "y" in panel.log else "linear")
        points: list[np.ndarray] = []
        fitted: dict[Any, dict[str, tuple[Any, Any, Any]]] = {}
        named: list[tuple[Any, str, Any, Any, Any]] = []
        shown = {key: select(data, panel.facet, value) for key, data in self._shown(panel).items()}
        for key, data in shown.items():
            if data is None or data.attrs["label"] == panel.ratio_to:
                continue
            for one, colour, name, text in self._parts(panel, data):
                x, y, error = points_of(panel, one, key)
                level = self._reference(panel, one, shown, x, key) if panel.ratio_to else 1.0
                y, error = y / level, None if error is None else error / np.abs(level)
                self._put(axes, panel, one, colour, x, y, error)
                if has_unconverged(one):
                    self._put_unconverged(axes, panel, one, key, level, colour)
                points.append(np.column_stack([np.atleast_1d(x).astype(float), np.atleast_1d(y)]))
                fitted.setdefault(colour, {})[data.attrs["kind"]] = (x, y, error)
                named.append((name, text, colour, x, y))
                self.drawn[key] = self.datasets[key]
        parts = [panel.title] if panel.title else []
        if value is not None:
            parts.append(self._words_of(panel, panel.facet, value))
        axes.set_title(", ".join(parts))
        topic = self._topic(shown.values())
        axes.set_xlabel(
            panel.xlabel or (words(panel.x, topic) if isinstance(panel.x, str) else panel.x[0])
        )
        quantity = words(panel.y, topic) if isinstance(panel.y, str) else panel.y[0]
        axes.set_ylabel(
            panel.ylabel
            or (f"{quantity.partition(' $')[0]} / {panel.ratio_to}" if panel.ratio_to else quantity)
        )
        axes.set_xlim(panel.xlim)
        axes.set_ylim(panel.ylim)
        if panel.xlim is None and points:
            axes.set_xlim(axes.get_xlim())
        for name, text, colour, x, y in named:
            waits = name in panel.beside and (panel.by, name) not in self._written
            if waits and _written_beside(axes, panel, name, text, colour, x, y):
                self._written.add((panel.by, name))
        if panel.fit:
            _say_exponents(axes, panel, fitted)
        for guide in (*panel.reference, *([horizontal(1.0)] if panel.ratio_to else [])):
            draw_guide(axes, guide, value, np.concatenate(points) if points else np.empty((0, 2)))

    def _parts(self, panel: Panel, data: xr.Dataset) -> Iterable[tuple[xr.Dataset, Any, Any, str]]:
        """The curve, or one for each value of `by`, with its colour, and its label or value with
        the text for it; adds the legend entries of that colour."""
        if not panel.by or not carries(data, panel.by):
            label = data.attrs["label"]
            colour = _chosen(panel, label) or self._own_colour(data)
            yield data, colour, label, panel.text.get(label, label)
            return
        for value in values_of([data], panel.by):
            colour = self._colours.get((panel.by, value))
            one = select(data, panel.by, value)
            if one is not None and panel.by in data.dims and panel.by not in data.coords:
                one = one.assign_coords({panel.by: value})  # for `_reference`
            if colour is not None and one is not None:
                text = self._words_of(panel, panel.by, value)
                self._entry(0, text, colour, "-", MARKERS[0], True, of=(panel.by, value))
                yield one, colour, value, text

    def _words_of(self, panel: Panel, name: str, value: Any) -> str:
        """The text for a value of a facet or dimension."""
        if value in panel.text:
            return panel.text[value]
        counted = not any(
            name in carried(data) or name in data.coords for data in self.datasets.values()
        )
        return value_words(
            name, value + 1 if counted else value, self._topic(self.datasets.values())
        )

    @staticmethod
    def _topic(curves: Iterable[xr.Dataset | None]) -> str:
        """The topic of the curves."""
        functions = (one.attrs.get("function", "") for one in curves if one is not None)
        return topic_of(next(functions, ""))

    def _own_colour(self, data: xr.Dataset) -> Any:
        """The colour of a curve that `by` does not distinguish in this panel: that of its facet if
        other panels distinguish it, or else of its label."""
        if role_of(data) == "baseline":
            return GREY
        for (name, value), colour in self._colours.items():
            if carried(data).get(name) == value:
                return colour
        if role_of(data) == "experiment":
            return ink()
        return COLOURS[
            (len(self._colours) + self._labels["theory"].index(data.attrs["label"])) % len(COLOURS)
        ]

    def _put(
        self, axes: Any, panel: Panel, data: xr.Dataset, colour: Any, x: Any, y: Any, error: Any
    ) -> None:
        label, role, kind = data.attrs["label"], role_of(data), data.attrs["kind"]
        number = self._labels[role].index(label)
        text, own = panel.text.get(label, label), ("", label)
        # the colour of a facet does not depend on the label
        shade = ink() if colour in self._colours.values() else colour
        if kind == "theory":
            dash = DASHES[(number + (role == "baseline")) % len(DASHES)]
            thin = role == "baseline"
            self._entry(1 + 2 * thin, text, shade, dash, "", True, thin=thin, of=own)
            look = {
                "color": colour,
                "linestyle": dash,
                "linewidth": 0.9 if role == "baseline" else None,
                "zorder": 2,
            }
            if np.ndim(y) == 0 and np.ndim(x) > 0:
                axes.axhline(float(y), **look)
            elif np.size(y) == 1:
                axes.plot(np.ravel(x), np.ravel(y), marker="x", markersize=6, **look)
            else:
                x, y = interrupted(panel, data, x, y)
                axes.plot(x, y, **look)
                alone = isolated(y)
                axes.plot(x[alone], y[alone], ".", color=colour, zorder=2)
            return
        marker, full = MARKERS[number % len(MARKERS)], number == 0 and role != "baseline"
        face = colour if full else paper()
        x, y = np.ravel(x), np.ravel(y)
        if len(x) > _DENSE:
            dash = DASHES[number % len(DASHES)]
            self._entry(2, text, shade, dash, "", True, thin=True, of=own)
            axes.plot(x, y, color=colour, linewidth=0.9, linestyle=dash, zorder=3)
            if error is not None:
                axes.fill_between(
                    x, y - error, y + error, color=colour, alpha=0.25, linewidth=0, zorder=1
                )
            return
        self._entry(2, text, shade, "", marker, full, of=own)
        bars = None if error is None else np.nan_to_num(np.ravel(error))
        axes.errorbar(x, y, bars, fmt=marker, color=colour, markerfacecolor=face, zorder=3)

    def _put_unconverged(
        self, axes: Any, panel: Panel, data: xr.Dataset, key: str, level: Any, colour: Any
    ) -> None:
        """Draws means over the runs that did not converge, which enter no other mean, as large open
        marks in the colour of the curve, or grey where that is the colour of text."""
        x, y, _ = points_of(panel, data, key, converged=False)
        marker = MARKERS[self._labels[role_of(data)].index(data.attrs["label"]) % len(MARKERS)]
        axes.plot(
            np.ravel(x),
            np.ravel(y / level),
            marker,
            color=GREY if colour == ink() else colour,
            markerfacecolor="none",
            markersize=8,
            zorder=4,
        )
        self._entry(4, "not converged", GREY, "", marker, False)

    def _entry(
        self,
        rank: int,
        text: str,
        colour: Any,
        dash: Any,
        marker: str,
        full: bool,
        thin: bool = False,
        of: Any = None,
    ) -> None:
        """Adds a legend entry, unless its text is empty. Colours, theories, measurements and guides
        follow in this order; of equal texts only the first stays. Where the text stands beside the
        line of the value or label `of`, the entry waits until it is known to be written there."""
        from matplotlib.lines import Line2D

        if not text:
            return
        look = {
            "color": colour,
            "linestyle": dash or "none",
            "marker": marker or None,
            "linewidth": 0.9 if thin else None,
        }
        entry = rank, Line2D([], [], markerfacecolor=colour if full else paper(), **look)
        if of in self._beside:
            self._waiting.setdefault(of, (text, entry))
        else:
            self._handles.setdefault(text, entry)

    def enter(self, handles: Sequence[Any], texts: Sequence[str]) -> None:
        """Adds the legend entries of what was drawn by hand."""
        for handle, text in zip(handles, texts):
            self._handles.setdefault(text, (4, handle))

    def legend(self) -> dict[str, Any]:
        """The legend: text -> handle. The texts that found no place beside their lines are in
        it."""
        left = dict(one for of, one in self._waiting.items() if of not in self._written)
        entries = left | self._handles
        return {
            text: handle
            for text, (_, handle) in sorted(entries.items(), key=lambda entry: entry[1][0])
        }

    def _reference(
        self, panel: Panel, data: xr.Dataset, shown: Mapping[str, Any], x: Any, key: str
    ) -> Any:
        """The values by which a curve is divided, at its own points."""
        for other in shown.values():
            if (
                other is None
                or other.attrs["label"] != panel.ratio_to
                or not agree(other.attrs["facets"], data.attrs["facets"])
            ):
                continue
            if panel.by and panel.by in other.dims and panel.by in data.coords:
                other = select(other, panel.by, data[panel.by].item())
            if other is not None:
                at, level, _ = points_of(panel, other, panel.ratio_to)
                if np.ptp(level) == 0:  # a limit, which does not depend on x
                    return float(np.ravel(level)[0])
                return _interpolated(x, at, level, "x" in panel.log)
        raise ValueError(f"ratio_to: {key!r} has no curve {panel.ratio_to!r} with the same facets")


def _chosen(panel: Panel, name: Any) -> str:
    """The colour that the panel chooses for a value or a label; "" if none."""
    colour = panel.colours.get(name, "")
    return ink() if colour == "text" else colour


def _written_beside(
    axes: Any, panel: Panel, name: Any, text: str, colour: Any, x: Any, y: Any
) -> bool:
    """Writes the text of a curve beside it, above and below on the side to which the curve does not
    turn; False if the curve has no point at the place that the panel names."""
    place = panel.beside[name]
    at, where = place if isinstance(place, tuple) else (place, "above")
    along, level = np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float))
    there = np.isfinite(along) & np.isfinite(level)
    along, level = along[there], level[there]
    if len(along) < 2:
        return False
    ends = along.min(), along.max()
    at = float(np.clip(at, *ends)) if np.isinf(at) else at
    if not ends[0] <= at <= ends[1]:
        return False
    logarithmic = "x" in panel.log
    around = (
        [at / 1.02, at, at * 1.02] if logarithmic else at + 0.01 * np.ptp(ends) * np.arange(-1, 2)
    )
    around = np.clip(around, *ends)
    height = _interpolated(around, along, level, logarithmic)
    first, _, last = axes.transData.transform(np.column_stack([around, height]))
    rise = (last - first)[1] / max(1e-9, (last - first)[0])
    turned = 0 if abs(rise) < 0.1 else int(np.sign(rise))
    side, up = {"above": (-turned, 1), "below": (turned, -1), "right": (1, 0), "left": (-1, 0)}[
        where
    ]
    axes.annotate(
        text,
        (at, height[1]),
        (side * (2 if up else 5), 3 * up),
        textcoords="offset points",
        fontsize=8,
        color=colour,
        ha={1: "left", 0: "center", -1: "right"}[side],
        va={1: "bottom", 0: "center", -1: "top"}[up],
        zorder=5,
    )
    return True


def _interpolated(x: Any, at: Any, level: Any, logarithmic: bool) -> np.ndarray:
    """The values at x of a curve given by points, interpolated on logarithmic scales if asked, and
    NaN outside."""
    x, at, level = (np.asarray(part, float) for part in (x, at, level))
    ascending = np.argsort(at)
    at, level = at[ascending], level[ascending]
    if not logarithmic or np.any(at <= 0) or np.any(level <= 0):
        return np.interp(x, at, level, left=np.nan, right=np.nan)
    return np.exp(np.interp(np.log(x), np.log(at), np.log(level), left=np.nan, right=np.nan))


def _say_exponents(
    axes: Any, panel: Panel, fitted: Mapping[Any, Mapping[str, tuple[Any, Any, Any]]]
) -> None:
    """Adds a legend of power laws: the exponent of each measurement, with the slope of the theory
    of the same colour in brackets."""
    from matplotlib.lines import Line2D

    entries: list[tuple[Any, str]] = []
    title = "fit"
    for colour, curves in fitted.items():
        if "experiment" not in curves:
            continue
        x, y, error = (
            np.ravel(part) if part is not None else np.zeros(1) for part in curves["experiment"]
        )
        kept = x.astype(float) <= panel.fit_to
        x, y, error = x[kept].astype(float), y[kept], np.broadcast_to(error, y.shape)[kept]
        exponent, half = fitted_power(x, y, error)
        if not np.isfinite(exponent):  # fewer than two points, as when most runs did not converge
            continue
        text = rf"${panel.fit}^{{{exponent:z.2f}\pm{half:.2f}}}$"
        if "theory" in curves:
            at, level, _ = curves["theory"]
            inside = (at >= x.min()) & (at <= x.max()) & (level > 0)
            if np.sum(inside) > 1:
                text += (
                    " "
                    f"[{fitted_power(at[inside], level[inside], np.zeros(np.sum(inside)))[0]:z.2f}]"
                )
                title = "fit [theory]"
        entries.append((Line2D([], [], color=colour, marker=MARKERS[0], linestyle="none"), text))
    if np.isfinite(panel.fit_to):
        title += rf", ${panel.fit} \leq {panel.fit_to:g}$"
    # opaque, because guides may run behind it
    look = {"frameon": True, "framealpha": 0.85, "facecolor": "inherit", "edgecolor": "none"}
    handles, texts = zip(*entries) if entries else ((), ())
    axes.legend(handles, texts, title=title, title_fontsize=8, **look)


def _sequence(values: Sequence[Any]) -> list[Any]:
    """Colours from dark to light for many numbers; None where the palette has enough colours."""
    from matplotlib import colormaps

    if len(values) <= len(COLOURS):
        return [None] * len(values)
    return [colormaps["viridis"](0.92 * i / (len(values) - 1)) for i in range(len(values))]
