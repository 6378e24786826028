"""The figure of the curves: a line in its own colour for every theory, and marks with standard
errors for a measurement.

Points that did not converge are hollow circles, which the line leaves out. Where a theory reports
that it is not reliable, the background is shaded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from bokeh.models import ColumnDataSource, HoverTool, Legend, LegendItem, Span
from bokeh.plotting import figure

from orderparam.plotting.style import COLOURS
from orderparam.plotting.text import words
from orderparam.running.estimate import estimate
from orderparam.running.status import DONE, UNCONVERGED

ENTRIES = 6  # entries drawn of an observable with a dimension of its own
COURSE = ("record", "time")  # dimensions that are a time, of which the last value is drawn
INK = {False: "#1a1a1a", True: "#e4e6eb"}
PAPER = {False: "#ffffff", True: "#16181d"}
GRID = {False: "#e9e9e9", True: "#2b2f38"}
_LINES: dict[str, list[Any]] = {"xs": [], "ys": [], "alpha": []}
_PLACES: dict[str, list[Any]] = {"x": [], "y": []}
_STRIPS: dict[str, list[Any]] = {"x0": [], "x1": []}
_MARKS: dict[str, list[Any]] = {"x": [], "y": [], "low": [], "high": []}


def colours(available: Sequence[str], chosen: Sequence[str]) -> dict[str, str]:
    """The colour of each chosen theory: the one that belongs to its place among all theories of the
    system, or the next free one."""
    found: dict[str, str] = {}
    for name in chosen:
        place = list(available).index(name) if name in available else 0
        order = [COLOURS[(place + k) % len(COLOURS)] for k in range(len(COLOURS))]
        found[name] = next((colour for colour in order if colour not in found.values()), order[0])
    return found


def label(name: str, topic: str) -> str:
    """The label of an axis, with its symbol typeset in the browser."""
    return words(name, topic).replace("$", "$$")


def spoken(name: str) -> str:
    """The name of a theory or experiment in a legend."""
    return name.rpartition(".")[2].replace("_", " ")


@dataclass(frozen=True)
class CurveLook:
    """The look of one figure: the figure is made again whenever it changes."""

    observable: str
    x: str
    topic: str
    theories: tuple[str, ...]
    available: tuple[str, ...]
    experiment: str
    log_x: bool
    log_y: bool
    dark: bool


class CurveFigure:
    """The figure of one observable along the axis. New numbers change its curves; another
    `CurveLook` needs another figure."""

    def __init__(self, look: CurveLook) -> None:
        self.look = look
        self.plot = plain_figure(
            look.log_x,
            look.log_y,
            look.dark,
            label(look.x, look.topic),
            label(look.observable, look.topic),
        )
        self._lines, self._open, self._doubt, items = {}, {}, {}, []
        for name, colour in colours(look.available, look.theories).items():
            self._doubt[name] = ColumnDataSource(_STRIPS)
            self.plot.vstrip(
                x0="x0",
                x1="x1",
                source=self._doubt[name],
                fill_color=colour,
                fill_alpha=0.1,
                line_alpha=0,
            )
            self._lines[name], self._open[name] = (
                ColumnDataSource(_LINES),
                ColumnDataSource(_PLACES),
            )
            line = self.plot.multi_line(
                "xs",
                "ys",
                source=self._lines[name],
                line_color=colour,
                line_width=2.2,
                line_alpha="alpha",
                name=spoken(name),
            )
            hollow = self.plot.scatter(
                "x",
                "y",
                source=self._open[name],
                size=7,
                line_color=colour,
                fill_color=PAPER[look.dark],
                line_width=1.3,
            )
            items.append(LegendItem(label=spoken(name), renderers=[line, hollow]))
        self._marks = ColumnDataSource(_MARKS)
        bars = self.plot.segment(
            "x", "low", "x", "high", source=self._marks, line_color=INK[look.dark], line_width=1.4
        )
        marks = self.plot.scatter(
            "x",
            "y",
            source=self._marks,
            size=7,
            fill_color=INK[look.dark],
            line_color=PAPER[look.dark],
        )
        if look.experiment:
            items.append(
                LegendItem(
                    label=f"{spoken(look.experiment)} (mean, standard error)",
                    renderers=[marks, bars],
                )
            )
        self.here = Span(
            dimension="height",
            line_color=INK[look.dark],
            line_alpha=0.35,
            line_dash="dotted",
            visible=False,
        )
        self.plot.add_layout(self.here)
        self.plot.add_layout(dressed_legend(items, look.dark), "above")
        self.plot.add_tools(
            HoverTool(
                tooltips=[
                    ("", "$name"),
                    (look.x, "$x{0.[0000]}"),
                    (look.observable, "$y{0.[00000]}"),
                ]
            )
        )

    def theory(self, name: str, data: xr.Dataset | None) -> None:
        """Draws a theory, or removes it."""
        if name not in self._lines:
            return
        if data is None or self.look.observable not in data:
            self._lines[name].data, self._open[name].data, self._doubt[name].data = (
                _LINES,
                _PLACES,
                _STRIPS,
            )
            return
        x, rows = data[self.look.x].values, entries(data[self.look.observable], self.look.x)
        status = data["status"].values
        sound = (status == DONE) & flag(data, "valid")
        lines = [np.where(sound, row, np.nan) for row in rows]
        alpha = np.linspace(1.0, 0.35, len(lines)).tolist() if len(lines) > 1 else [1.0]
        self._lines[name].data = {"xs": [x] * len(lines), "ys": lines, "alpha": alpha}
        hollow = (
            (status == UNCONVERGED) & np.isfinite(rows[0]) if len(rows) else np.zeros(len(x), bool)
        )
        self._open[name].data = {"x": x[hollow], "y": rows[0][hollow]} if hollow.any() else _PLACES
        begin, end = runs(x, ~flag(data, "reliable") & sound)
        self._doubt[name].data = {"x0": begin, "x1": end}

    def measured(self, data: xr.Dataset | None) -> None:
        """Draws a measurement with its standard errors."""
        if data is None or self.look.observable not in data:
            self._marks.data = _MARKS
            return
        mean, error = (entries(one, self.look.x) for one in estimate(data, self.look.observable))
        self.marks(data[self.look.x].values, mean, error)

    def marks(
        self, x: np.ndarray, means: Sequence[np.ndarray], errors: Sequence[np.ndarray]
    ) -> None:
        """Draws marks with error bars, one row for each entry of the observable."""
        mean, error = np.concatenate(means), np.nan_to_num(np.concatenate(errors))
        x = np.tile(x, len(means))
        finite = np.isfinite(mean)
        x, mean, error = x[finite], mean[finite], error[finite]
        self._marks.data = {"x": x, "y": mean, "low": mean - error, "high": mean + error}

    def mark(self, value: float) -> None:
        """Shows the place of the system on the axis."""
        self.here.update(location=value, visible=bool(np.isfinite(value)))


def entries(values: xr.DataArray, x: str) -> list[np.ndarray]:
    """An observable along x, at the last time where it has a time, with one row for each of its
    first entries where it has several."""
    numbers = at_the_end(values, x).transpose(x, ...).values.astype(float)
    return list(numbers.reshape(len(numbers), -1).T[:ENTRIES])


def at_the_end(values: Any, x: str) -> Any:
    """An array or data set at the last time, without the dimensions that are times. The time along
    which the figure is drawn stays."""
    return values.isel({dim: -1 for dim in values.dims if dim in COURSE and dim != x})


def flag(data: xr.Dataset, name: str) -> np.ndarray:
    """A flag of the result at every point, such as `converged`; true where the result has no such
    flag."""
    points = data.sizes[data["status"].dims[0]]
    return (
        data[name].values.reshape(points, -1).all(1).astype(bool)
        if name in data
        else np.ones(points, bool)
    )


def runs(x: np.ndarray, where: np.ndarray) -> tuple[list[float], list[float]]:
    """The ends of the intervals of x in which every point is marked. They lie half way to the
    neighbours that are not marked."""
    edges = np.concatenate([x[:1], (x[1:] + x[:-1]) / 2, x[-1:]])
    change = np.diff(np.concatenate([[False], where, [False]]).astype(int))
    return edges[np.flatnonzero(change == 1)].tolist(), edges[np.flatnonzero(change == -1)].tolist()


def plain_figure(
    log_x: bool, log_y: bool, dark: bool, xlabel: str, ylabel: str, **options: Any
) -> Any:
    """Empty axes in the house style."""
    plot = figure(
        x_axis_type="log" if log_x else "linear",
        y_axis_type="log" if log_y else "linear",
        x_axis_label=xlabel,
        y_axis_label=ylabel,
        sizing_mode="stretch_width",
        height=460,
        min_width=260,
        tools="pan,box_zoom,wheel_zoom,reset",
        toolbar_location="right",
        background_fill_color=PAPER[dark],
        border_fill_color=PAPER[dark],
        outline_line_color=None,
        **options,
    )
    plot.toolbar.logo = None
    plot.toolbar.active_scroll = None
    plot.toolbar.autohide = True
    for axis in (*plot.xaxis, *plot.yaxis):
        axis.update(
            axis_line_color=INK[dark],
            major_tick_line_color=INK[dark],
            minor_tick_line_color=None,
            major_label_text_color=INK[dark],
            axis_label_text_color=INK[dark],
            major_tick_in=5,
            major_tick_out=0,
            axis_label_text_font_style="normal",
            axis_label_text_font_size="14px",
            major_label_text_font_size="12px",
        )
    plot.grid.grid_line_color = GRID[dark]
    return plot


def dressed_legend(items: list[LegendItem], dark: bool) -> Legend:
    """A legend in the colours of the page; a click on one of its items hides the curve."""
    return Legend(
        items=items,
        click_policy="hide",
        border_line_color=None,
        background_fill_color=None,
        label_text_color=INK[dark],
        label_text_font_size="12px",
        padding=2,
        spacing=1,
    )
