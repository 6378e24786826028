"""The tab of the figure: the curves of one system along an axis, with its sliders, its menus, its
measurement and what can be taken away."""

import time
from collections.abc import Callable
from functools import partial
from html import escape
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np
import panel as pn
import xarray as xr

from orderparam.explore.controls import (
    Axes,
    Knobs,
    heading,
    menus,
    observable_menu,
    options_of,
    theory_menu,
)
from orderparam.explore.curves import CurveFigure, CurveLook, spoken
from orderparam.explore.evaluate import Drawn, Latest, Stale, curve, is_compiled
from orderparam.explore.figures import stored_figures
from orderparam.explore.first_state import is_start
from orderparam.explore.formulas import with_mathml
from orderparam.explore.measure_here import MeasureHere
from orderparam.explore.starts import question_of
from orderparam.explore.state import PageState
from orderparam.explore.systems import about, kinds, theories_of, title_of
from orderparam.explore.take_away import TakeAway, picture, table
from orderparam.running.status import DONE, FAILED

_WIDE: dict[str, Any] = {"sizing_mode": "stretch_width"}


def stored_curve(state: PageState, name: str) -> xr.Dataset | None:
    """A theory along the axis as it is stored in the package, for a page that shows a start."""
    figure = stored_figures().get(state.system)
    if figure is None or name not in figure.curves:
        return None
    rows = figure.curves[name]
    status = xr.DataArray(np.where(np.isfinite(rows).any(0), DONE, FAILED), dims=state.x)
    return xr.Dataset(
        {state.show[0]: ((state.x, "entry"), rows.T), "status": status},
        coords={state.x: figure.x},
        attrs={"points": figure.x.size, "failed": 0, "unconverged": 0},
    )


class FigureTab:
    """folder: where measurements are stored. change: asks the page for another state. tell: one
    sentence for the person. post: runs a function in the page's thread."""

    def __init__(
        self,
        folder: Path,
        dark: bool,
        change: Callable[[PageState], None],
        tell: Callable[[str], None],
        post: Callable[[Callable[[], None]], None],
    ) -> None:
        self._dark, self._change, self._tell, self._post = dark, change, tell, post
        self._state: PageState | None = None
        self._latest = Latest(self._evaluate)
        self._curves: dict[str, Drawn] = {}
        self._figures: list[CurveFigure] = []
        self._running: tuple[str, float, bool] | None = None
        self.here = MeasureHere(folder, change, tell)
        self.files = TakeAway(self.file)
        self.view = self._layout()

    def _layout(self) -> pn.Column:
        """The figure with the most important sliders beside it; all other controls are folded
        below."""
        self.sees = pn.pane.HTML("", **_WIDE)
        self.busy = pn.pane.HTML("", height=22, **_WIDE)
        self.problems = pn.pane.HTML("", **_WIDE)
        self.plots = pn.Column(min_width=290, styles={"flex": "3 1 560px"}, **_WIDE)
        self.near = pn.Column(**_WIDE)
        self.beside = pn.Column(
            self.near, self.here.buttons, self.here.agreement, self.busy, self.problems,
            min_width=270, max_width=460, styles={"flex": "1 1 270px"}, **_WIDE,
        )  # fmt: skip
        self.log_y = pn.widgets.Checkbox(name="logarithmic y", value=False, margin=(6, 5))
        self.log_y.param.watch(lambda event: self._logged(event.new), "value")
        self.drawn = pn.Column(**_WIDE)
        self.numbers = pn.Column(**_WIDE)
        self.about = pn.pane.HTML("", **_WIDE)
        folded = [
            ("Theories, observables and the axis", pn.Column(self.drawn, self.log_y, **_WIDE)),
            ("All numbers and choices", self.numbers),
            ("The experiment", self.here.settings),
            ("Code and files", self.files.view),
            ("About this system", self.about),
        ]
        cards = [
            pn.Card(part, title=title, collapsed=True, margin=(4, 5), **_WIDE)
            for title, part in folded
        ]
        figure = pn.FlexBox(
            self.plots, self.beside, flex_wrap="wrap", align_items="flex-start", **_WIDE
        )
        return pn.Column(self.sees, figure, *cards, **_WIDE)

    # -- showing a state --------------------------------------------------------------------------

    def show(self, state: PageState) -> bool:
        """Draws another state; true if the controls were made again for it."""
        old, self._state = self._state, state
        system = old is None or (old.system, old.start) != (state.system, state.start)
        controls = system or old is None or _frame(old) != _frame(state)
        if system:
            self._new_system(state)
        if controls:
            self._new_controls(state)
        else:
            self.knobs.follow(state)
        self._redrawn()
        return controls

    def evaluate(self) -> None:
        """Asks for the curves of the state that is shown."""
        assert self._state is not None
        self._latest.ask(self._state)

    def end(self) -> None:
        """Ends the evaluation of theories; a measurement goes on into its store."""
        self._latest.end()

    def _new_system(self, state: PageState) -> None:
        kind, opening = kinds()[state.system], state.opening
        start = opening.start
        title = start.title if start is not None else title_of(state.system)
        sees = f'<p class="sees">{with_mathml(start.sees)}</p>' if start is not None else ""
        question = question_of(state.system.partition(".")[0])
        self.sees.object = (
            f'<p class="question">{escape(question)}</p><h2>{escape(title)}</h2>{sees}'
        )
        study = (
            f"<p>Its numbers are those of the study {escape(opening.study)}.</p>"
            if opening.study
            else ""
        )
        self.about.object = (
            f"<p><code>{escape(state.system)}</code></p><p>{escape(about(kind))}</p>{study}"
        )
        self._curves = {}
        if is_start(state):
            kept = {
                name: data
                for name in state.theories
                if (data := stored_curve(state, name)) is not None
            }
            self._curves = {
                name: Drawn(name, data, "", 0.0, stored=True) for name, data in kept.items()
            }
        self._figures = []

    def _new_controls(self, state: PageState) -> None:
        self.knobs = Knobs(state, self._moved, self._tell)
        self.near.objects = [self.knobs.view]
        theories = [theory_menu(state, self._change)] if theories_of(state.system) else []
        options = [
            row
            for name in state.theories
            for row in options_of(state, name, partial(self._optioned, name), self._tell)
        ]
        axis = Axes(state, "x", self._change, self._tell).view
        self.drawn.objects = [*theories, observable_menu(state, self._change), axis, *options]
        choices = menus(state, self._change, self._tell)
        words = [heading("Choices"), choices] if len(choices) else []
        self.numbers.objects = [self.knobs.others, *words]
        self.here.renew(state, self._optioned)
        self.log_y.value = state.log_y

    def _moved(self, state: PageState) -> None:
        """A slider has moved; other changes made meanwhile stay."""
        assert self._state is not None
        self._change(self._state.with_(changes=state.changes))

    def _optioned(self, name: str, option: str, value: Any) -> None:
        assert self._state is not None
        self._change(self._state.with_(options={**self._state.options, (name, option): value}))

    def _logged(self, value: Any) -> None:
        if self._state is not None and bool(value) != self._state.log_y:
            self._change(self._state.with_(log_y=bool(value)))

    def _looks(self) -> list[CurveLook]:
        state = self._state
        assert state is not None
        shared = (
            state.system.partition(".")[0],
            state.theories,
            tuple(theories_of(state.system)),
            state.experiment,
        )
        return [
            CurveLook(name, state.x, *shared, state.span[2], state.log_y, self._dark)
            for name in state.show
        ]

    def _redrawn(self) -> None:
        """The figures of the state, made again where their look changed, with the curves computed
        so far."""
        state = self._state
        assert state is not None
        looks = self._looks()
        if looks != [one.look for one in self._figures]:
            self._figures = [CurveFigure(look) for look in looks]
            self.plots.objects = [pn.pane.Bokeh(one.plot, **_WIDE) for one in self._figures]
            for name, drawn in self._curves.items():
                if drawn.data is not None and state.x in drawn.data.dims:
                    self._draw(name, drawn.data)
            self.here.forget()
        for one in self._figures:
            one.mark(state.value(state.x))
        self.here.follow(state)

    def _draw(self, name: str, data: xr.Dataset | None) -> None:
        for one in self._figures:
            one.theory(name, data)

    # -- theories ---------------------------------------------------------------------------------

    def _evaluate(self, state: PageState, stale: Callable[[], bool]) -> None:
        """Evaluates every theory of the state in a worker thread, and posts each as soon as it is
        finished."""
        for name in state.theories:
            self._running = (name, time.perf_counter(), is_compiled(state, name))
            try:
                found = curve(
                    state, name, stale, lambda part: self._post(partial(self._arrived, state, part))
                )
            finally:
                self._running = None
            self._post(partial(self._arrived, state, found))
            if stale():
                raise Stale

    def _arrived(self, state: PageState, found: Drawn) -> None:
        now = self._state
        if now is None or (now.system, now.x, now.start) != (state.system, state.x, state.start):
            return
        self._curves[found.theory] = found
        self._draw(found.theory, found.data)
        self._say_problems()

    def _say_problems(self) -> None:
        assert self._state is not None
        refusals = []
        for name in self._state.theories:
            found = self._curves.get(name)
            if found is None:
                continue
            data = found.data
            if data is None:
                refusals.append(f"{spoken(name)}: {found.problem}")
            elif data.attrs["failed"] or data.attrs["unconverged"]:
                words = [
                    f"{data.attrs[key]} {key}"
                    for key in ("failed", "unconverged")
                    if data.attrs[key]
                ]
                first = "".join(f"; {reason}" for reason in data.attrs.get("failures", [])[:1])
                refusals.append(
                    f"{spoken(name)}: of {data.attrs['points']} points {' and '.join(words)}{first}"
                )
        self.problems.object = "".join(f'<p class="warn">{escape(one)}</p>' for one in refusals)

    # -- the clock --------------------------------------------------------------------------------

    def tick(self) -> None:
        """Updates the progress and the measured points."""
        running = self._running
        words = ""
        if running is not None and (seconds := time.perf_counter() - running[1]) > 0.3:
            words = (
                f"{'computing' if running[2] else 'compiling'} {spoken(running[0])} ... "
                f"{seconds:.0f} s"
            )
        shown = f'<p role="status" aria-live="polite"><small>{escape(words)}</small></p>'
        if self.busy.object != shown:
            self.busy.object = shown
        self.here.look(self._curves, self._figures)

    def write(self) -> None:
        """Writes the state that is shown as Python and as commands."""
        assert self._state is not None
        self.files.write(self._state)

    def file(self, kind: str) -> Any:
        """The figure as a file: "png", "pdf" or "csv"."""
        if self._state is None:
            self._tell("there is nothing to be drawn yet: choose a system first")
            return BytesIO(b"")
        found = {
            name: one
            for name in self._state.theories
            if (one := self._curves.get(name)) is not None and not one.stored
        }
        curves = {name: one.data for name, one in found.items() if one.data is not None}
        points = self.here.found.data if self.here.found else None
        if kind == "csv":
            return StringIO(table(curves, points, self._state.x))
        looks = [
            look
            for look in self._looks()
            if any(look.observable in data for data in curves.values())
        ]
        if not looks:
            self._tell("there is nothing to be drawn yet")
            return BytesIO(b"")
        return BytesIO(picture(curves, points, looks, self._dark, kind))


def _frame(state: PageState) -> Any:
    """Everything in a state but its numbers: the controls are made again when it changes."""
    words = tuple(
        sorted(
            (name, str(value))
            for name, value in state.changes.items()
            if not isinstance(value, int | float)
        )
    )
    options = tuple(sorted((key, str(value)) for key, value in state.options.items()))
    return (
        words,
        state.theories,
        options,
        state.show,
        state.x,
        state.span,
        state.y,
        state.y_span,
        state.experiment,
        state.order,
    )
