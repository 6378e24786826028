"""A figure from facets: panels say what is drawn against what, and `draw` makes the figure of a finished study.

    draw(
        comparison,
        [
            Panel("n_train", "test_error", facet="loss", by="activation", log="x"),
            Panel("n_train", "train_error", facet="loss", by="activation", log="xy", reference=[vertical(300, "$n = p$")]),
        ],
        caption="Width {width}, {seeds} seeds.",
    )

What is never said again: theories are lines, measurements are marks with standard errors over runs; one colour is one value
of `by` (or one label where there is no `by`) in the whole figure, for a theory and for its measurement; without `by` measurements
have the colour of text. Curves for orientation (`baseline`) are thin and grey. Points of a theory that did not converge, or are
NaN, are left out and not bridged; measured points of which a run did not converge are crossed out in grey. The legend, the
study's title, the caption and a sentence on lines and marks are put around the axes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from orderparam.core.agreement import estimate
from orderparam.core.program import DONE, UNCONVERGED
from orderparam.core.study.curve import agree
from orderparam.plotting.captions import filled, marks_sentence
from orderparam.plotting.guides import Guide, draw_guide
from orderparam.plotting.layout import canvas, finish, fit_labels
from orderparam.plotting.measured import fitted_power
from orderparam.plotting.style import COLOURS, DASHES, GREY, MARKERS, ink, paper
from orderparam.plotting.ticks import readable_ticks
from orderparam.plotting.words import value_words, words

if TYPE_CHECKING:
    from orderparam.core.study import Comparison

# The name of a dimension, coordinate or observable; or an axis label and a function of the data set
Quantity = str | tuple[str, Callable[[xr.Dataset], Any]]
_DENSE = 60  # measured points beyond which a band stands for marks


@dataclass(frozen=True)
class Panel:
    """One set of axes, or one for each value of a facet.

    x, y: a name, or (axis label, function of the data set to an array). `seed` is averaged over; all other dimensions must be x,
        `by`, `facet`, in `where`, or of one point.
    facet: what has one set of axes for each of its values: a facet of the curves, or a dimension. by: what is told apart by
        colour, likewise. A curve that does not carry the facet is drawn in all of them. Readers see dimensions without
        coordinates counted from 1.
    where: facets, `label`, `kind` or dimensions -> the value, or tuple of values, that is shown; of dimensions without
        coordinates the index or a slice.
    log: the logarithmic axes, "", "x", "y" or "xy". reference: guides (`horizontal`, `vertical`, `slope`, `curve`).
    ratio_to: label of a curve; all others are divided by it, point by point (or by its only point), and it is not drawn itself.
    jump: an observable, such as the index of a phase, at whose changes the line of a theory is interrupted.
    fit: symbol of x. A legend in the axes gives the exponent of the power law through every measurement with its 95 % interval,
        and in brackets the slope of its theory over the same x.
    text: value of `by`, of `facet`, or label -> what a reader sees for it.
    """

    x: Quantity
    y: Quantity
    facet: str = ""
    by: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    log: str = ""
    reference: Sequence[Guide] = ()
    xlabel: str = ""
    ylabel: str = ""
    title: str = ""
    xlim: tuple[float | None, float | None] | None = None
    ylim: tuple[float | None, float | None] | None = None
    ratio_to: str = ""
    jump: str = ""
    fit: str = ""
    text: Mapping[Any, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Freehand:
    """One set of axes that a function draws: `function(axes, comparison)`. What it labels enters the figure's legend."""

    function: Callable[[Any, "Comparison"], None]
    title: str = ""


def draw(
    comparison: "Comparison", panels: Sequence[Panel | Freehand], *, columns: int | None = None, caption: str = ""
) -> Any:
    """The figure of a finished study.

    Panels with a facet fill a row each when all have as many values as the others; otherwise axes follow one another in `columns`
    (at most three, or two for four). caption: formatted with the study's parameters. Raises `ValueError` for names that no curve
    has.
    """
    look = Look(comparison.datasets, panels)
    places = [(panel, value) for panel in panels for value in look.facet_values(panel)]
    per_row = columns or _columns(panels, look, len(places))
    rows = -(-len(places) // per_row)
    figure, grid = canvas(rows, min(per_row, len(places)))
    flat = grid.ravel()
    for axes, (panel, value) in zip(flat, places):
        if isinstance(panel, Freehand):
            panel.function(axes, comparison)
            axes.set_title(panel.title or axes.get_title())
            look.enter(*axes.get_legend_handles_labels())
        else:
            look.draw(axes, panel, value)
    for axes in flat[len(places) :]:
        axes.remove()
    _share(flat[: len(places)], places, per_row)
    _say_once(flat[: len(places)], per_row)
    study = comparison.study
    text = " ".join(part for part in (filled(caption, comparison.parameters), marks_sentence(look.drawn)) if part)
    finish(figure, study.title, look.legend(), text)
    figure.draw_without_rendering()
    for axes in flat[: len(places)]:
        fit_labels(axes)
        readable_ticks(axes)
    return figure


def plot(*curves: xr.Dataset, y: str, x: str | None = None, by: str = "", log: str = "", ax: Any = None) -> Any:
    """Sweeps on one set of axes: those with a `seed` dimension as marks with standard errors, the others as lines.

    x: the grid dimension of the axis (the only one when there is just one); by: one told apart by colour. Returns the axes.
    Raises `ValueError` for a missing observable or an ambiguous axis.
    """
    from orderparam.plotting.style import house_style

    for data in curves:
        if y not in data:
            raise ValueError(f"{y!r} is not in this sweep; it has: {', '.join(map(str, data.data_vars))}")
    named: dict[str, xr.Dataset] = {}
    for number, data in enumerate(curves):
        label = data.attrs.get("label") or str(data.attrs.get("function", f"curve {number}")).rsplit(".", 1)[-1]
        label = label if label not in named else f"{label} ({number})"
        kind = "experiment" if "seed" in data.dims else "theory"
        named[label] = data.assign_attrs(label=label, kind=kind, facets=data.attrs.get("facets", {}), baseline=False)
    panel = Panel(x or _only_dimension(curves, by), y, by=by, log=log)
    look = Look(named, [panel])
    with house_style():
        figure, axes = (ax.figure, ax) if ax is not None else (lambda f, g: (f, g[0, 0]))(*canvas())
        look.draw(axes, panel, None)
        axes.legend(list(look.legend().values()), list(look.legend()))
        if ax is None:
            figure.draw_without_rendering()
            readable_ticks(axes)
    return axes


def _only_dimension(curves: Sequence[xr.Dataset], by: str) -> str:
    dims = {str(dim) for data in curves for dim in data["status"].dims if dim not in ("seed", by) and data.sizes[dim] > 1}
    if len(dims) != 1:
        raise ValueError(f"x: name the axis, one of {', '.join(sorted(dims)) or 'no varied fields'}")
    return dims.pop()


def _columns(panels: Sequence[Panel | Freehand], look: "Look", count: int) -> int:
    sizes = {len(look.facet_values(panel)) for panel in panels}
    if len(panels) > 1 and len(sizes) == 1 and 1 < (size := sizes.pop()) <= 4:
        return size
    return 2 if count == 4 else min(count, 3)


def _share(flat: Any, places: Sequence[tuple[Any, Any]], per_row: int) -> None:
    """Axes of one panel in one row have the same y limits, and say what y is only once."""
    for i, (axes, (panel, _)) in enumerate(zip(flat, places)):
        beside = [other for other in range(i - i % per_row, i) if places[other][0] is panel]
        if isinstance(panel, Panel) and beside:
            first = flat[beside[0]]
            limits = np.array([first.get_ylim(), axes.get_ylim()])
            axes.sharey(first)
            axes.set_ylim(limits[:, 0].min(), limits[:, 1].max())
            axes.set_ylabel("")


def _say_once(flat: Any, per_row: int) -> None:
    """Axes below one another say once above what they show and once below what x is."""
    columns = list(zip(flat, flat[per_row:]))
    for above, below in columns:
        if above.get_xlabel() == below.get_xlabel():
            above.set_xlabel("")
    for above, below in reversed(columns):
        if above.get_title() == below.get_title():
            below.set_title("")


class Look:
    """What stays the same in all panels of a figure: the colours, dashes and marks, and the legend that says so."""

    def __init__(self, datasets: Mapping[str, xr.Dataset], panels: Iterable[Panel | Freehand]) -> None:
        self.datasets = datasets
        self._handles: dict[str, tuple[int, Any]] = {}
        self.drawn: dict[str, xr.Dataset] = {}
        self._colours: dict[tuple[str, Any], Any] = {}
        self._labels: dict[str, list[str]] = {"theory": [], "experiment": [], "baseline": []}
        for panel in panels:
            if isinstance(panel, Panel):
                self._assign(panel)

    def _assign(self, panel: Panel) -> None:
        """Colours, dashes and marks in the order in which panels and curves come."""
        shown = self._shown(panel)
        if not shown:
            raise ValueError(f"no curve of this study has {_name(panel.y)!r} where {dict(panel.where)}")
        for data in shown.values():
            label, role = data.attrs["label"], _role(data)
            if label not in self._labels[role]:
                self._labels[role].append(label)
        if panel.by:
            values = _values(shown.values(), panel.by)
            for value, colour in zip(values, _sequence(values)):
                self._colours.setdefault((panel.by, value), colour or COLOURS[len(self._colours) % len(COLOURS)])

    def _shown(self, panel: Panel) -> dict[str, xr.Dataset]:
        """The curves of a panel, at the chosen points; `ratio_to` is among them."""
        for name in panel.where:
            if not any(_carries(data, name) for data in self.datasets.values()):
                raise ValueError(f"where: no curve has a facet or dimension {name!r}")
        found = {}
        for key, data in self.datasets.items():
            chosen = _select_all(data, panel.where)
            if chosen is not None and (not isinstance(panel.y, str) or panel.y in chosen):
                found[key] = chosen
        return found

    def facet_values(self, panel: Panel | Freehand) -> list[Any]:
        if isinstance(panel, Freehand) or not panel.facet:
            return [None]
        return _values(self._shown(panel).values(), panel.facet)

    def draw(self, axes: Any, panel: Panel, value: Any) -> None:
        """One set of axes: the panel at one value of its facet."""
        axes.set_xscale("log" if "x" in panel.log else "linear")
        axes.set_yscale("log" if "y" in panel.log else "linear")
        points: list[np.ndarray] = []
        fitted: dict[Any, dict[str, tuple[Any, Any, Any]]] = {}
        shown = {key: _select(data, panel.facet, value) for key, data in self._shown(panel).items()}
        for key, data in shown.items():
            if data is None or data.attrs["label"] == panel.ratio_to:
                continue
            for one, colour in self._parts(panel, data):
                x, y, error = _points(panel, one, key)
                if panel.ratio_to:
                    level = self._reference(panel, one, shown, x, key)
                    y, error = y / level, None if error is None else error / np.abs(level)
                self._put(axes, panel, one, colour, x, y, error)
                points.append(np.column_stack([np.atleast_1d(x).astype(float), np.atleast_1d(y)]))
                fitted.setdefault(colour, {})[data.attrs["kind"]] = (x, y, error)
                self.drawn[key] = data
        parts = [panel.title] if panel.title else []
        if value is not None:
            parts.append(self._said(panel, panel.facet, value))
        axes.set_title(", ".join(parts))
        axes.set_xlabel(panel.xlabel or (words(panel.x) if isinstance(panel.x, str) else panel.x[0]))
        axes.set_ylabel(panel.ylabel or (words(panel.y) if isinstance(panel.y, str) else panel.y[0]))
        axes.set_xlim(panel.xlim)
        axes.set_ylim(panel.ylim)
        if panel.xlim is None and points:
            axes.set_xlim(axes.get_xlim())
        if panel.fit:
            _say_exponents(axes, panel.fit, fitted)
        for guide in panel.reference:
            draw_guide(axes, guide, value, np.concatenate(points) if points else np.empty((0, 2)))

    def _parts(self, panel: Panel, data: xr.Dataset) -> Iterable[tuple[xr.Dataset, Any]]:
        """The curve, or one for each value of `by`, with its colour; the legend entries of that colour."""
        if not panel.by or not _carries(data, panel.by):
            yield data, self._own_colour(data)
            return
        for value in _values([data], panel.by):
            colour = self._colours.get((panel.by, value))
            one = _select(data, panel.by, value)
            if colour is not None and one is not None:
                self._entry(0, self._said(panel, panel.by, value), colour, "-", MARKERS[0], True)
                yield one, colour

    def _said(self, panel: Panel, name: str, value: Any) -> str:
        """What a reader sees for a value of a facet or dimension."""
        if value in panel.text:
            return panel.text[value]
        counted = not any(name in _carried(data) or name in data.coords for data in self.datasets.values())
        return value_words(name, value + 1 if counted else value)

    def _own_colour(self, data: xr.Dataset) -> Any:
        """Of a curve that is not told apart by `by` here: that of its facet where other panels tell it apart, or of its label."""
        if _role(data) == "baseline":
            return GREY
        for (name, value), colour in self._colours.items():
            if _carried(data).get(name) == value:
                return colour
        if _role(data) == "experiment":
            return ink()
        return COLOURS[(len(self._colours) + self._labels["theory"].index(data.attrs["label"])) % len(COLOURS)]

    def _put(self, axes: Any, panel: Panel, data: xr.Dataset, colour: Any, x: Any, y: Any, error: Any) -> None:
        label, role, kind = data.attrs["label"], _role(data), data.attrs["kind"]
        number = self._labels[role].index(label)
        text = panel.text.get(label, label)
        said = ink() if colour in self._colours.values() else colour  # the colour of a facet says nothing of the label
        if kind == "theory":
            dash = DASHES[(number + (role == "baseline")) % len(DASHES)]
            self._entry(1 + 2 * (role == "baseline"), text, said, dash, "", True, thin=role == "baseline")
            look = {"color": colour, "linestyle": dash, "linewidth": 0.9 if role == "baseline" else None, "zorder": 2}
            if np.ndim(y) == 0 and np.ndim(x) > 0:
                axes.axhline(float(y), **look)
            elif np.size(y) == 1:
                axes.plot(np.ravel(x), np.ravel(y), marker="x", markersize=6, **look)
            else:
                axes.plot(*_interrupted(panel, data, x, y), **look)
                alone = _alone(y)
                axes.plot(x[alone], y[alone], ".", color=colour, zorder=2)
            return
        marker, full = MARKERS[number % len(MARKERS)], number == 0 and role != "baseline"
        face = colour if full else paper()
        x, y = np.ravel(x), np.ravel(y)
        if len(x) > _DENSE:
            self._entry(2, text, said, DASHES[number % len(DASHES)], "", True, thin=True)
            axes.plot(x, y, color=colour, linewidth=0.9, linestyle=DASHES[number % len(DASHES)], zorder=3)
            if error is not None:
                axes.fill_between(x, y - error, y + error, color=colour, alpha=0.25, linewidth=0, zorder=1)
            return
        self._entry(2, text, said, "", marker, full)
        bars = None if error is None else np.nan_to_num(np.ravel(error))
        axes.errorbar(x, y, bars, fmt=marker, color=colour, markerfacecolor=face, zorder=3)
        missed = _missed(data, len(x))
        if missed.any():
            axes.plot(x[missed], y[missed], "x", color=GREY, markersize=8, zorder=4)
            self._entry(4, "not converged", GREY, "", "x", True)

    def _entry(self, rank: int, text: str, colour: Any, dash: Any, marker: str, full: bool, thin: bool = False) -> None:
        """A legend entry: colours, theories, measurements, orientation in this order; of equal texts the first stays."""
        from matplotlib.lines import Line2D

        look = {"color": colour, "linestyle": dash or "none", "marker": marker or None, "linewidth": 0.9 if thin else None}
        self._handles.setdefault(text, (rank, Line2D([], [], markerfacecolor=colour if full else paper(), **look)))

    def enter(self, handles: Sequence[Any], texts: Sequence[str]) -> None:
        """Legend entries of what was drawn by hand."""
        for handle, text in zip(handles, texts):
            self._handles.setdefault(text, (4, handle))

    def legend(self) -> dict[str, Any]:
        """Text -> handle."""
        return {text: handle for text, (_, handle) in sorted(self._handles.items(), key=lambda entry: entry[1][0])}

    def _reference(self, panel: Panel, data: xr.Dataset, shown: Mapping[str, Any], x: Any, key: str) -> Any:
        """What a curve is divided by, at its own points."""
        for other in shown.values():
            if other is None or other.attrs["label"] != panel.ratio_to or not agree(other.attrs["facets"], data.attrs["facets"]):
                continue
            if panel.by and panel.by in other.dims and panel.by in data.coords:
                other = _select(other, panel.by, data[panel.by].item())
            if other is not None:
                at, level, _ = _points(panel, other, panel.ratio_to)
                if np.size(level) == 1:
                    return float(np.ravel(level)[0])
                return np.interp(x, at, level)
        raise ValueError(f"ratio_to: {key!r} has no curve {panel.ratio_to!r} with the same facets")


def _say_exponents(axes: Any, symbol: str, fitted: Mapping[Any, Mapping[str, tuple[Any, Any, Any]]]) -> None:
    """A legend of power laws: of each measurement, with the slope of the theory of the same colour in brackets."""
    from matplotlib.lines import Line2D

    entries = {}
    for colour, curves in fitted.items():
        if "experiment" not in curves:
            continue
        x, y, error = (np.ravel(part) if part is not None else np.zeros(1) for part in curves["experiment"])
        exponent, half = fitted_power(x.astype(float), y, np.broadcast_to(error, y.shape))
        text = rf"${symbol}^{{{exponent:z.2f}\pm{half:.2f}}}$"
        if "theory" in curves:
            at, level, _ = curves["theory"]
            inside = (at >= x.min()) & (at <= x.max()) & (level > 0)
            if np.sum(inside) > 1:
                text += f" [{np.polyfit(np.log(at[inside]), np.log(level[inside]), 1)[0]:z.2f}]"
        entries[text] = Line2D([], [], color=colour, marker=MARKERS[0], linestyle="none")
    axes.legend(list(entries.values()), list(entries), title="fit [theory]", title_fontsize=8)


def _role(data: xr.Dataset) -> str:
    return "baseline" if data.attrs["baseline"] else data.attrs["kind"]


def _name(quantity: Quantity) -> str:
    return quantity if isinstance(quantity, str) else quantity[0]


def _carried(data: xr.Dataset) -> dict[str, Any]:
    """The facets of a curve, with its label and kind."""
    return {"label": data.attrs["label"], "kind": data.attrs["kind"], **data.attrs["facets"]}


def _carries(data: xr.Dataset, name: str) -> bool:
    return name in _carried(data) or name in data.dims


def _select_all(data: xr.Dataset, where: Mapping[str, Any]) -> xr.Dataset | None:
    chosen: xr.Dataset | None = data
    for name, value in where.items():
        if chosen is not None:
            chosen = _select(chosen, name, value)
    return chosen


def _select(data: xr.Dataset, name: str, value: Any) -> xr.Dataset | None:
    """The curve at a value of a facet or dimension, None where it has none of that value; as it is where it has no such name."""
    if not name or (value is None):
        return data
    several = isinstance(value, tuple | list | set | frozenset)
    if name in _carried(data):
        own = _carried(data)[name]
        return data if (own in value if several else own == value) else None
    if name not in data.dims:
        return data
    if name not in data.coords and not several and not isinstance(value, slice) and value >= data.sizes[name]:
        return None
    if isinstance(value, slice) or name not in data.coords:
        return data.isel({name: list(value) if several else value})
    wanted = [one for one in (value if several else [value]) if one in data[name].values]
    return data.sel({name: wanted if several else wanted[0]}) if wanted else None


def _values(curves: Iterable[xr.Dataset], name: str) -> list[Any]:
    """The values of a facet, or of a dimension (of measurements where one has it), in their order."""
    listed = list(curves)
    carried = [_carried(data)[name] for data in listed if name in _carried(data)]
    if carried:
        return list(dict.fromkeys(carried))
    having = [data for data in listed if name in data.dims]
    if not having:
        raise ValueError(f"no curve has a facet or dimension {name!r}")
    measured = [data for data in having if data.attrs["kind"] == "experiment"] or having
    if name in measured[0].coords:
        return list(dict.fromkeys(value for data in measured for value in data[name].values.tolist()))
    return list(range(max(data.sizes[name] for data in measured)))


def _sequence(values: Sequence[Any]) -> list[Any]:
    """Colours from dark to light for many numbers; None where those of the palette are enough."""
    from matplotlib import colormaps

    if len(values) <= len(COLOURS):
        return [None] * len(values)
    return [colormaps["viridis"](0.92 * i / (len(values) - 1)) for i in range(len(values))]


def _get(data: xr.Dataset, quantity: Quantity) -> xr.DataArray:
    if not isinstance(quantity, str):
        return xr.DataArray(quantity[1](data))
    if quantity in data.variables:
        return data[quantity]
    if quantity in data.dims:
        return xr.DataArray(np.arange(1, data.sizes[quantity] + 1), dims=[quantity])
    raise ValueError(f"{data.attrs['label']} has neither a dimension nor an observable {quantity!r}")


def _points(panel: Panel, data: xr.Dataset, key: str) -> tuple[Any, Any, Any]:
    """x, y and standard error (None for theories) as arrays without dimensions of one point."""
    values = _get(data, panel.y).astype(float)
    error = None
    if data.attrs["kind"] == "theory":
        if "status" in data and set(data["status"].dims) <= set(values.dims):
            values = values.where(data["status"] == DONE)
    else:
        named, name = (data, panel.y) if isinstance(panel.y, str) else (values.to_dataset(name="y"), "y")
        values, error = estimate(named, name)
    x = _get(data, panel.x)
    x = x.mean("seed") if "seed" in x.dims else x
    keep = [dim for dim in x.dims if data.sizes.get(dim, 2) > 1 or x.ndim == 1]
    x = x.isel({dim: 0 for dim in x.dims if dim not in keep})
    left = [dim for dim in values.dims if dim not in x.dims and values.sizes[dim] > 1]
    if len(left) == x.ndim == 1 and x.dims[0] not in data.dims and x.size == values.sizes[left[0]]:  # a plain array
        x, left = x.rename({x.dims[0]: left[0]}), []
    if left or x.ndim > 1:
        raise ValueError(f"{key}: {_name(panel.y)} along {', '.join(map(str, left or x.dims))} is neither x nor by nor in where")
    drop = {dim: 0 for dim in values.dims if dim not in x.dims}
    bars = None if error is None or not error.notnull().any() else error.isel(drop).values
    return x.values, values.isel(drop).values, bars


def _missed(data: xr.Dataset, size: int) -> np.ndarray:
    """Which measured points have a run that did not converge."""
    if "status" not in data:
        return np.zeros(size, bool)
    status = data["status"] == UNCONVERGED
    missed = np.ravel(status.any("seed") if "seed" in status.dims else status)
    return missed if len(missed) == size else np.full(size, missed.any())


def _alone(y: np.ndarray) -> np.ndarray:
    """Points of a line without a neighbour, which the line does not show."""
    known = np.concatenate([[False], np.isfinite(y), [False]])
    return known[1:-1] & ~known[:-2] & ~known[2:]


def _interrupted(panel: Panel, data: xr.Dataset, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The line of a theory, with a gap wherever `jump` changes its value."""
    if not panel.jump or panel.jump not in data:
        return x, y
    state = np.ravel(data[panel.jump].values)
    places = np.flatnonzero(state[1:] != state[:-1]) + 1
    return np.insert(x.astype(float), places, np.nan), np.insert(y, places, np.nan)
