"""The part of the page that measures: the experiment, the numbers of points and runs, the progress,
and a table beside the theories."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import panel as pn
import xarray as xr

from orderparam.comparison.agreement import agreement
from orderparam.core.text import with_error
from orderparam.explore.controls import experiment_menu, options_of
from orderparam.explore.curves import CurveFigure, at_the_end, spoken
from orderparam.explore.evaluate import Drawn
from orderparam.explore.figures import StoredFigure, stored_figures
from orderparam.explore.first_state import is_start
from orderparam.explore.measure import MeasuredPoints, Measurement, measured
from orderparam.explore.state import MEASURED, SEEDS, PageState
from orderparam.explore.systems import experiments_of

FAR = 4.0  # number of standard errors above which a deviation is not due to chance
FINITE = (
    "<p>z is the deviation in standard errors: above 4 it is not due to chance. Most theories here "
    "describe infinite systems, while the runs are finite: make the sizes larger and see whether "
    "the deviation disappears. If it stays, it is an error of the theory.</p>"
)
_WIDE: dict[str, Any] = {"sizing_mode": "stretch_width"}


class MeasureHere:
    """change: asks the page for another state, or raises `ValueError`. tell: one sentence for the
    person."""

    def __init__(
        self, folder: Path, change: Callable[[PageState], None], tell: Callable[[str], None]
    ) -> None:
        self._folder, self._change, self._tell = folder, change, tell
        self._state: PageState | None = None
        self._running: Measurement | None = None
        self._seen: tuple[Any, ...] = ()
        self.found: MeasuredPoints | None = None
        self.experiment = pn.Column(**_WIDE)
        self.points = pn.widgets.IntInput(
            name="points", value=6, start=MEASURED[0], end=MEASURED[1], width=90
        )
        self.seeds = pn.widgets.IntInput(
            name="runs of each", value=4, start=SEEDS[0], end=SEEDS[1], width=110
        )
        self.start = pn.widgets.Button(name="Measure", button_type="primary", width=110)
        self.cancel = pn.widgets.Button(name="Cancel", width=90, disabled=True)
        self.progress = pn.indicators.Progress(value=0, max=100, visible=False, **_WIDE)
        self.agreement = pn.pane.HTML("", **_WIDE)
        for one, field in ((self.points, "measured"), (self.seeds, "seeds")):
            one.param.watch(lambda event, field=field: self._counted(field, event.new), "value")
        self.start.on_click(lambda _: self._begin())
        self.cancel.on_click(lambda _: self._stop())
        self.buttons = pn.Column(pn.Row(self.start, self.cancel), self.progress, **_WIDE)
        self.settings = pn.Column(self.experiment, pn.Row(self.points, self.seeds), **_WIDE)

    def renew(self, state: PageState, optioned: Callable[[str, str, Any], None]) -> None:
        """Makes the controls again for the present choices. optioned: called with experiment,
        option and its value."""
        self._state = state  # before the controls take its values, which are no changes to it
        menu = experiment_menu(state)
        menu.param.watch(lambda event: self._chosen(event.new or ""), "value")
        name = state.experiment
        options = options_of(state, name, partial(optioned, name), self._tell) if name else []
        for one in options:
            one.param.update(sizing_mode=None, width=170)
        self.experiment.objects = [menu, pn.FlexBox(*options, **_WIDE)]
        self.buttons.visible, self.settings.visible = bool(name), bool(experiments_of(state.system))
        self.points.value, self.seeds.value = state.measured, state.seeds

    def follow(self, state: PageState) -> None:
        self._state = state

    def forget(self) -> None:
        """Forgets what is drawn, so that the next `look` draws it again."""
        self._seen = ()

    def look(self, theories: Mapping[str, Drawn], figures: Sequence[CurveFigure]) -> None:
        """Reads the store of the measurement on the page, and draws its points."""
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
        seen = (
            state.experiment,
            done,
            drawn,
            tuple(state.show),
            state.address,
            self._running is not None,
        )
        if seen == self._seen:
            return
        self._seen, self.found = seen, found
        kept = stored_figures().get(state.system) if found is None and is_start(state) else None
        for one in figures:
            if kept is not None and one.look.observable == state.show[0] and len(kept.mean):
                one.marks(kept.measured_x, list(kept.mean), list(kept.error))
            else:
                one.measured(found.data if found else None)
        self.agreement.object = _compared(state, found, theories) if found else _kept(state, kept)
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
        if self._state is not None and name != self._state.experiment:
            self._change(self._state.with_(experiment=name))

    def _counted(self, field: str, value: Any) -> None:
        low, high = MEASURED if field == "measured" else SEEDS
        valid = self._state is not None and isinstance(value, int) and low <= value <= high
        if self._state is not None and valid and value != getattr(self._state, field):
            self._change(self._state.with_(**{field: value}))


def _kept(state: PageState, kept: StoredFigure | None) -> str:
    """A sentence on the marks that are stored in the package."""
    if kept is None or not len(kept.mean):
        return ""
    words = (
        f"Dots: {state.seeds} runs of {spoken(state.experiment)} at each place, kept with this "
        "version."
    )
    if state.x in state.knobs:
        words += f" The dotted line stands at the {spoken(state.x)} of the system itself."
    return f"<p><small>{escape(words)}</small></p>"


def _compared(state: PageState, found: MeasuredPoints, theories: Mapping[str, Drawn]) -> str:
    found_curves = [
        (name, one)
        for name in state.theories
        if (one := theories.get(name)) is not None and not one.stored
    ]
    drawn = {spoken(name): one.data for name, one in found_curves if one.data is not None}
    along_x = {name: data for name, data in drawn.items() if state.x in data.dims}
    failed = f", {found.failed} failed" if found.failed else ""
    parts = [f"<p>{found.done} of {found.wanted} runs are kept{failed}.</p>"]
    tables = agreement(along_x, found.data, [*state.show])
    parts += [_table(part, state.x, observable) for observable, part in tables.items()]
    if any(bool((abs(part["z"]) > FAR).any()) for part in tables.values()):
        parts.append(FINITE)
    return "".join(parts)


def _table(part: xr.Dataset, x: str, observable: str) -> str:
    """A table of theory and measured mean."""
    names = [str(name) for name in part["theory"].values]
    head = "".join(f"<th scope=col>{escape(name)}</th><th scope=col>z</th>" for name in names)
    part = at_the_end(part, x)
    part = part.isel({str(dim): 0 for dim in part["mean"].dims if dim not in ("theory", x)})
    rows = []
    for i in range(part.sizes[x]):
        row = part.isel({x: i})
        first = row.isel(theory=0)
        cells = [
            f"{float(row[x]):.4g}",
            with_error(float(first["mean"]), float(first["standard_error"])),
        ]
        for name in names:
            one = row.sel(theory=name)
            z = float(one["z"])
            cells += [f"{float(one['theory_value']):.4g}", f"{z:+.1f}" if z == z else "–"]
        rows.append(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>")
    title = escape(observable.replace("_", " "))
    return (
        f"<table><caption>{title}: theory and measurement</caption><tr><th "
        f"scope=col>{escape(x)}</th><th scope=col>measured</th>{head}</tr>{''.join(rows)}</table>"
    )
