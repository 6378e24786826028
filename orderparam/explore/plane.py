"""The figure of the plane: the order parameter in colour, each boundary in the line style of its
kind. A click moves the system there."""

from collections.abc import Callable
from typing import Any

import numpy as np
from bokeh.events import Tap
from bokeh.models import ColorBar, ColumnDataSource, Legend, LegendItem, LinearColorMapper
from bokeh.palettes import Cividis256

from orderparam.analysis.phases.diagram import PhaseDiagram
from orderparam.explore.curves import INK, PAPER, dressed_legend, label, plain_figure
from orderparam.explore.state import PageState
from orderparam.plotting.plane import plane_image

PIXELS = 160
DASHES = {
    "jump": "solid",
    "continuous": "dashed",
    "crossover": "dotted",
    "end": "dotdash",
    "divergence": "dashdot",
}
NAMES = {kind: kind for kind in DASHES} | {
    "continuous": "continuous transition",
    "end": "end of a branch",
}


class PlaneFigure:
    """The plane of x and y of a state. clicked: called with (x, y) inside the plane."""

    def __init__(
        self, state: PageState, dark: bool, clicked: Callable[[float, float], None]
    ) -> None:
        self.key = plane_key(state, dark)
        (x0, x1, log_x), (y0, y1, log_y) = state.span, state.y_span
        self.topic = state.system.partition(".")[0]
        names = label(state.x, self.topic), label(state.y, self.topic)
        self.plot = plain_figure(log_x, log_y, dark, *names, x_range=(x0, x1), y_range=(y0, y1))
        self.plot.update(min_border_right=0)
        self._mapper = LinearColorMapper(palette=Cividis256, nan_color=(0, 0, 0, 0))
        self._ends = (x0, x1), (y0, y1)
        # The image is stretched between its corners on the screen, so its points are equidistant
        # along the axes as drawn, also on logarithmic axes.
        self._image = ColumnDataSource({"image": []})
        self.plot.image(
            "image",
            x=x0,
            y=y0,
            dw=x1 - x0,
            dh=y1 - y0,
            source=self._image,
            color_mapper=self._mapper,
            alpha=0.75,
        )
        bar = ColorBar(
            color_mapper=self._mapper,
            title=label(state.order, self.topic),
            background_fill_color=PAPER[dark],
            major_label_text_color=INK[dark],
            title_text_color=INK[dark],
            title_text_font_style="normal",
            width=12,
        )
        self.plot.add_layout(bar, "right")
        self._boundaries: dict[str, ColumnDataSource] = {}
        items = []
        for kind, dash in DASHES.items():
            self._boundaries[kind] = ColumnDataSource({"xs": [], "ys": []})
            line = self.plot.multi_line(
                "xs",
                "ys",
                source=self._boundaries[kind],
                line_color=INK[dark],
                line_width=3,
                line_dash=dash,
            )
            items.append(LegendItem(label=NAMES[kind], renderers=[line]))
        self._items = dict(zip(DASHES, items))
        self.legend: Legend = dressed_legend([], dark)
        self.plot.add_layout(self.legend, "above")
        self._here = ColumnDataSource({"x": [], "y": []})
        self.plot.scatter(
            "x", "y", source=self._here, marker="cross", size=16, line_color="#D55E00", line_width=3
        )
        self.plot.on_event(Tap, lambda event: self._tapped(event, clicked))

    def _tapped(self, event: Any, clicked: Callable[[float, float], None]) -> None:
        (x0, x1), (y0, y1) = self._ends
        if (
            isinstance(event.x, int | float)
            and isinstance(event.y, int | float)
            and x0 <= event.x <= x1
            and y0 <= event.y <= y1
        ):
            clicked(float(event.x), float(event.y))

    def draw(self, plane: PhaseDiagram) -> None:
        _, _, values = plane_image(plane.data, PIXELS)
        finite = np.isfinite(values).any()
        low, high = (float(np.nanmin(values)), float(np.nanmax(values))) if finite else (0.0, 1.0)
        self._mapper.update(low=low, high=max(high, low + 1e-6 * max(abs(low), 1.0)))
        self._image.data = {"image": [values]}
        shown = []
        for kind, source in self._boundaries.items():
            lines = plane.select(kind)
            source.data = {"xs": [one.x for one in lines], "ys": [one.y for one in lines]}
            shown += [self._items[kind]] if lines else []
        self.legend.items = shown

    def mark(self, x: float, y: float) -> None:
        """Shows the place of the system in the plane."""
        self._here.data = {"x": [x], "y": [y]}


def plane_key(state: PageState, dark: bool) -> Any:
    """Everything on which a plane depends: it is computed again when this changes."""
    return state.system, state.start, state.x, state.span, state.y, state.y_span, state.order, dark
