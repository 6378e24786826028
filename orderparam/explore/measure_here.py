"""The part of the page that measures: the experiment, how many points and runs, progress, and a table beside the theories."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import panel as pn
import xarray as xr

from orderparam.core.agreement import agreement
from orderparam.core.text import with_error
from orderparam.explore.controls import experiment_menu, heading, options_of
from orderparam.explore.curves import CurveFigure, spoken
from orderparam.explore.evaluate import Drawn
from orderparam.explore.measure import MeasuredPoints, Measurement, measured
from orderparam.explore.state import MEASURED, SEEDS, PageState

_WIDE: dict[str, Any] = {"sizing_mode": "stretch_width"}


class MeasureHere:
    """change: asks the page for another state, or raises `ValueError`. tell: one sentence for the person."""

    def __init__(self, folder: Path, change: Callable[[PageState], None], tell: Callable[[str], None]) -> None:
        self._folder, self._change, self._tell = folder, change, tell
        self._state: PageState | None = None
        self._running: Measurement | None = None
        self._seen: tuple[Any, ...] = ()
        self.known: MeasuredPoints | None = None
        self.experiment = pn.Column(**_WIDE)
        self.points = pn.widgets.IntInput(name="points", value=6, start=MEASURED[0], end=MEASURED[1], width=90)
        self.seeds = pn.widgets.IntInput(name="runs of each", value=4, start=SEEDS[0], end=SEEDS[1], width=110)
        self.start = pn.widgets.Button(name="Measure", button_type="primary", width=100, margin=(25, 5, 5, 5))
        self.cancel = pn.widgets.Button(name="Cancel", width=90, margin=(25, 5, 5, 5), disabled=True)
        self.progress = pn.indicators.Progress(value=0, max=100, visible=False, **_WIDE)
        self.agreement = pn.pane.HTML("", **_WIDE)
        for one, field in ((self.points, "measured"), (self.seeds, "seeds")):
            one.param.watch(lambda event, field=field: self._counted(field, event.new), "value")
        self.start.on_click(lambda _: self._begin())
        self.cancel.on_click(lambda _: self._stop())
        buttons = pn.FlexBox(self.points, self.seeds, self.start, self.cancel)
        self.view = pn.Column(heading("Measure here"), self.experiment, buttons, self.progress, self.agreement, **_WIDE)

    def renew(self, state: PageState, optioned: Callable[[str, str, Any], None]) -> None:
        """The controls for what can be chosen now. optioned: called with experiment, option and its value."""
        menu = experiment_menu(state)
        menu.param.watch(lambda event: self._chosen(event.new), "value")
        name = state.experiment
        options = options_of(state, name, partial(optioned, name), self._tell) if name else []
        for one in options:
            one.param.update(sizing_mode=None, width=170)
        self.experiment.objects = [menu, pn.FlexBox(*options, **_WIDE)] if name else []
        self.view.visible = bool(name)
        self.points.value, self.seeds.value = state.measured, state.seeds

    def follow(self, state: PageState) -> None:
        self._state = state

    def forget(self) -> None:
        """Draws anew at the next look."""
        self._seen = ()

    def look(self, theories: Mapping[str, Drawn], figures: Sequence[CurveFigure]) -> None:
        """Reads the store of what is on the page, and draws what is in it."""
        state = self._state
        assert state is not None
        if self._running is not None and self._running.ended:
            if self._running.problem:
                self._tell(f"{spoken(self._running.state.experiment)}: {self._running.problem}")
            self._running, self.start.disabled, self.cancel.disabled = None, False, True
            self.forget()
        found = measured(state, self._folder)
        done = (found.done, found.failed, found.wanted) if found else None
        drawn = tuple(id(one) for one in theories.values())
        seen = (state.experiment, done, drawn, tuple(state.show), state.address, self._running is not None)
        if seen == self._seen:
            return
        self._seen, self.known = seen, found
        for one in figures:
            one.measured(found.data if found else None)
        self.agreement.object = _compared(state, found, theories) if found else ""
        self.progress.visible = self._running is not None
        if found:
            self.progress.value = max(1, round(100 * (found.done + found.failed) / found.wanted))

    def _begin(self) -> None:
        if self._state is None or not self._state.experiment or self._running is not None:
            return
        made = Measurement(self._state, self._folder)
        try:
            made.start()
        except (ValueError, OSError) as error:
            self._tell(str(error))
            return
        self._running = made
        self.start.disabled, self.cancel.disabled, self.progress.visible = True, False, True

    def _stop(self) -> None:
        if self._running is not None:
            self._running.cancel()

    def _chosen(self, name: Any) -> None:
        if self._state is not None and name:
            self._change(self._state.with_(experiment=name))

    def _counted(self, field: str, value: Any) -> None:
        low, high = MEASURED if field == "measured" else SEEDS
        known = self._state is not None and isinstance(value, int) and low <= value <= high
        if self._state is not None and known and value != getattr(self._state, field):
            self._change(self._state.with_(**{field: value}))


def _compared(state: PageState, found: MeasuredPoints, theories: Mapping[str, Drawn]) -> str:
    drawn = {spoken(name): one.data for name in state.theories if (one := theories.get(name)) and one.data is not None}
    known = {name: data for name, data in drawn.items() if state.x in data.dims}
    failed = f", {found.failed} failed" if found.failed else ""
    parts = [f"<p>{found.done} of {found.wanted} runs are kept{failed}.</p>"]
    for observable, part in agreement(known, found.data, [*state.show]).items():
        parts.append(_table(part, state.x, observable))
    return "".join(parts)


def _table(part: xr.Dataset, x: str, observable: str) -> str:
    """Theory beside the mean, as a table."""
    names = [str(name) for name in part["theory"].values]
    head = "".join(f"<th scope=col>{escape(name)}</th><th scope=col>z</th>" for name in names)
    extra = {str(dim): 0 for dim in part["mean"].dims if dim not in ("theory", x)}
    part = part.isel(extra)
    rows = []
    for i in range(part.sizes[x]):
        row = part.isel({x: i})
        first = row.isel(theory=0)
        cells = [f"{float(row[x]):.4g}", with_error(float(first["mean"]), float(first["standard_error"]))]
        for name in names:
            one = row.sel(theory=name)
            z = float(one["z"])
            cells += [f"{float(one['theory_value']):.4g}", f"{z:+.1f}" if z == z else "–"]
        rows.append(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>")
    title = escape(observable.replace("_", " "))
    return (
        f"<table><caption>{title}: theory and measurement</caption><tr><th scope=col>{escape(x)}</th>"
        f"<th scope=col>measured</th>{head}</tr>{''.join(rows)}</table>"
    )
