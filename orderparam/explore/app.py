"""The page: what is chosen on the left, the curves, the plane, the studies and a person's own data on the right.

A `Page` belongs to one visitor. It has one `PageState`; every control asks for another one through `show`, which draws what
changed: sliders move the curves that are there, another system or axis makes them anew.
"""

import time
from collections.abc import Callable
from functools import partial
from html import escape
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import panel as pn
import xarray as xr

from orderparam.core.agreement import agreement
from orderparam.core.sweep import SweepError
from orderparam.core.text import with_error
from orderparam.explore.controls import (
    Axes,
    Knobs,
    experiment_menu,
    heading,
    menus,
    moved_to,
    observable_menu,
    options_of,
    theory_menu,
)
from orderparam.explore.curves import CurveFigure, CurveLook, spoken
from orderparam.explore.evaluate import Drawn, Latest, Stale, curve, in_background, is_compiled
from orderparam.explore.gallery import Gallery
from orderparam.explore.measure import MeasuredPoints, Measurement, measured
from orderparam.explore.phases import planes
from orderparam.explore.plane import PlaneFigure, plane_key
from orderparam.explore.starts import kinds, theories_of
from orderparam.explore.state import MEASURED, RESOLUTIONS, SEEDS, PageState, observables, opened, read
from orderparam.explore.take_away import picture, table
from orderparam.explore.written import Unwritten
from orderparam.explore.your_data import YourData

FIRST = "spins.MeanFieldMagnet"  # where a page opens whose address names no system: it is known from every course
_WIDE: dict[str, Any] = {"sizing_mode": "stretch_width"}


def summary(kind: type) -> str:
    return (kind.__doc__ or "").partition("\n\n")[0].replace("\n", " ").partition(". ")[0].rstrip(".")


class Page:
    """One visitor's page. query: the address that it was opened with."""

    def __init__(self, folder: Path, query: str, dark: bool) -> None:
        self.folder, self.dark = folder, dark
        self._doc = pn.state.curdoc
        self._location = pn.state.location
        self._latest, self._planes = Latest(self._evaluate), Latest(self._fill)
        self._curves: dict[str, Drawn] = {}
        self._figures: list[CurveFigure] = []
        self._plane: PlaneFigure | None = None
        self._measurement: Measurement | None = None
        self._measured: MeasuredPoints | None = None
        self._seen: tuple[Any, ...] = ()
        self._running: tuple[str, float, bool] | None = None
        self._ended = False
        self._asked = self._address = ""
        self._opening = 0
        self._refused = ""  # why the address that the page was opened with is not what is seen
        self.state: PageState | None = None
        self._layout()
        self._open(query)

    # -- what there is ---------------------------------------------------------------------------------------------------

    def _layout(self) -> None:
        self.search = pn.widgets.TextInput(name="search the systems", placeholder="name or summary", max_length=60, **_WIDE)
        self.systems = pn.widgets.MultiSelect(name="systems", options=self._found(""), size=7, **_WIDE)
        self.search.param.watch(lambda event: self._refill(event.new), "value_input")
        self.systems.param.watch(self._picked, "value")
        self.about = pn.pane.HTML("", **_WIDE)
        self.chosen = pn.Column(**_WIDE)
        self.message = pn.pane.HTML("", **_WIDE)
        self.busy = pn.pane.HTML("", height=22, **_WIDE)
        self.problems = pn.pane.HTML("", **_WIDE)
        self.plots = pn.Column(min_width=300, **_WIDE)
        self.log_y = pn.widgets.Checkbox(name="logarithmic y", value=False, margin=(6, 5))
        self.log_y.param.watch(lambda event: self._logged(event.new), "value")
        theme = pn.widgets.Button(name="Light" if self.dark else "Dark", width=70, margin=(5, 5))
        theme.on_click(self._other_theme)
        head = pn.Row(pn.pane.HTML("<h1>orderparam explorer</h1>", **_WIDE), theme, **_WIDE)
        self.gallery = Gallery(self.open)
        self.data = YourData(self.folder, self.dark, self.post)
        self.tabs = pn.Tabs(
            ("Curves", self._curve_tab()),
            ("Phase plane", self._plane_tab()),
            ("Gallery", self.gallery.view),
            ("Your data", self.data.view),
            **_WIDE,
        )
        left = pn.Column(self.search, self.systems, self.about, self.chosen, width=330)
        right = pn.Column(self.message, self.tabs, min_width=310, styles={"flex": "1 1 560px"}, **_WIDE)
        body = pn.FlexBox(left, right, flex_wrap="wrap", align_items="flex-start", **_WIDE)
        self.view = pn.Column(head, body, max_width=1500, styles={"margin": "0 auto", "padding": "0 8px"}, **_WIDE)

    def _curve_tab(self) -> pn.Column:
        self.experiment = pn.Column(**_WIDE)
        self.points = pn.widgets.IntInput(name="points", value=6, start=MEASURED[0], end=MEASURED[1], width=90)
        self.seeds = pn.widgets.IntInput(name="runs of each", value=4, start=SEEDS[0], end=SEEDS[1], width=110)
        self.measure = pn.widgets.Button(name="Measure", button_type="primary", width=100, margin=(25, 5, 5, 5))
        self.cancel = pn.widgets.Button(name="Cancel", width=90, margin=(25, 5, 5, 5), disabled=True)
        self.progress = pn.indicators.Progress(value=0, max=100, visible=False, **_WIDE)
        self.agreement = pn.pane.HTML("", **_WIDE)
        for one, field in ((self.points, "measured"), (self.seeds, "seeds")):
            one.param.watch(lambda event, field=field: self._counted(field, event.new), "value")
        self.measure.on_click(lambda _: self._measure())
        self.cancel.on_click(lambda _: self._cancel())
        self.python = pn.widgets.TextAreaInput(name="as Python", rows=8, disabled=True, **_WIDE)
        self.command = pn.widgets.TextAreaInput(name="as commands", rows=4, disabled=True, **_WIDE)
        copies = []
        for words, source in (("Copy as Python", self.python), ("Copy as command", self.command)):
            button = pn.widgets.Button(name=words, width=140)
            button.js_on_click(args={"source": source}, code="navigator.clipboard.writeText(source.value)")
            copies.append(button)
        files = [
            pn.widgets.FileDownload(
                label=kind.upper(),
                callback=lambda kind=kind: self._file(kind),
                filename=f"orderparam.{kind}",
                button_type="default",
                width=80,
            )
            for kind in ("png", "pdf", "csv")
        ]
        take_away = pn.Column(pn.FlexBox(*copies, *files, **_WIDE), self.python, self.command, **_WIDE)
        self.here = pn.Column(
            heading("Measure here"),
            self.experiment,
            pn.FlexBox(self.points, self.seeds, self.measure, self.cancel),
            self.progress,
            self.agreement,
            **_WIDE,
        )
        above = pn.Row(self.busy, self.log_y, **_WIDE)
        return pn.Column(above, self.plots, self.problems, self.here, heading("Take it away"), take_away, **_WIDE)

    def _plane_tab(self) -> pn.Column:
        self.order = pn.widgets.Select(name="order parameter", options=[], width=200)
        self.order.param.watch(lambda event: self._ordered(event.new), "value")
        self.finest = pn.widgets.Select(name="squares along each axis", options=list(RESOLUTIONS), value=32, width=160)
        self.fill = pn.widgets.Button(name="Fill in", button_type="primary", width=90, margin=(25, 5, 5, 5))
        self.halt = pn.widgets.Button(name="Cancel", width=90, margin=(25, 5, 5, 5), disabled=True)
        self.fill.on_click(lambda _: self._ask_plane())
        self.halt.on_click(lambda _: self._halt_plane())
        self.y_axis = pn.Column(width=300)
        self.plane_words = pn.pane.HTML("", **_WIDE)
        self.plane_plot = pn.Column(min_width=300, **_WIDE)
        controls = pn.FlexBox(self.y_axis, self.order, self.finest, self.fill, self.halt, align_items="flex-start", **_WIDE)
        return pn.Column(controls, self.plane_words, self.plane_plot, **_WIDE)

    # -- threads, messages -----------------------------------------------------------------------------------------------

    def post(self, work: Callable[[], None]) -> None:
        """Runs a function in the page's own thread, soon; nothing where the page is closed."""
        if not self._ended:
            self._doc.add_next_tick_callback(lambda: None if self._ended else self._at_once(work))

    def _at_once(self, work: Callable[[], None]) -> None:
        """Sends what a function changes as one message: two would race, and a curve come before the figure that it is in."""
        with pn.io.hold(self._doc):
            work()

    def tell(self, words: str) -> None:
        """One sentence for the person, above everything."""
        self.message.object = f'<p role="status" aria-live="polite" class="warn">{escape(words)}</p>' if words else ""

    def end(self) -> None:
        """The visitor has gone: what runs for this page alone is ended; a measurement goes on into its store."""
        self._ended = True
        self._latest.end()
        self._planes.end()
        self.data.end()

    # -- choosing a system -----------------------------------------------------------------------------------------------

    def _found(self, word: str) -> dict[str, str]:
        word = word.lower().replace("_", " ")
        known = {f"{name.replace('_', ' ')} – {summary(kind)}": name for name, kind in kinds().items()}
        return {text: name for text, name in known.items() if word in text.lower()}

    def _refill(self, word: str) -> None:
        self.systems.options = self._found(word)

    def _picked(self, event: Any) -> None:
        names = [name for name in event.new if name in kinds()]
        if names and (self.state is None or names[-1] != self.state.system):
            self.open(lambda: opened(names[-1]))

    def open(self, make: Callable[[], PageState]) -> None:
        """Shows a state that takes a while to be made: its study is built, with its data, in a worker thread."""
        self._opening += 1
        count = self._opening

        def work() -> None:
            try:
                state = make()
            except Exception as error:  # data that cannot be fetched, systems that hold what no slider makes
                words = str(error)
                self.post(lambda: self.tell(words))
                return
            self.post(lambda: self.change(state) if count == self._opening else None)

        self.tell("opening ...")
        in_background(work)

    def _open(self, query: str) -> None:
        """Shows what an address says, or the first system where it says nothing or what does not fit."""
        if "system=" not in query:
            self.open(lambda: opened(FIRST))
            return

        def make() -> PageState:
            try:
                return read(query)
            except (ValueError, OSError) as error:
                words = str(error)
                self.post(lambda: self.open(lambda: opened(FIRST)))
                self._refused = words
                raise

        self.open(make)

    def _try(self, work: Callable[[], None]) -> bool:
        try:
            self._at_once(work)
        except (ValueError, OSError) as error:
            self.tell(str(error))
            return False
        return True

    # -- showing a state -------------------------------------------------------------------------------------------------

    def show(self, state: PageState) -> None:
        """Draws another state. Raises `ValueError` where it is none."""
        _ = state.made, state.grid  # refused before anything changes
        old, self.state = self.state, state
        self.tell(self._refused)
        self._refused = ""
        if old is None or (old.system, old.start) != (state.system, state.start):
            self._new_system(state)
        elif _frame(old) != _frame(state):
            self._new_controls(state)
        else:
            self.knobs.follow(state)
        self._redrawn()
        self._latest.ask(state)

    def change(self, state: PageState) -> None:
        """What a control asks for; where it cannot be, that is said."""
        self._try(lambda: self.show(state))

    def _new_system(self, state: PageState) -> None:
        self.systems.value = [state.system] if state.system in self.systems.options.values() else []
        kind = kinds()[state.system]
        begun = state.begun
        where = f" Numbers to begin with: study {begun.study}." if begun.study else ""
        self.about.object = f"<h2>{escape(kind.__name__)}</h2><p>{escape(summary(kind))}.<small>{escape(where)}</small></p>"
        self._curves, self._plane, self._measured = {}, None, None
        self.plane_plot.clear()
        self.tabs.active = 0
        self._new_controls(state)

    def _new_controls(self, state: PageState) -> None:
        self.knobs = Knobs(state, self._moved, self.tell)
        rows: list[Any] = [heading("Theories"), theory_menu(state, self.change)] if theories_of(state.system) else []
        for name in state.theories:
            rows += options_of(state, name, partial(self._optioned, name), self.tell)
        rows += [observable_menu(state, self.change), Axes(state, "x", self.change, self.tell).view]
        rows += [pn.Column(heading("Numbers"), self.knobs.view, styles={"order": "var(--ex-numbers)"}, **_WIDE)]
        choices = menus(state, self.change, self.tell)
        rows += [heading("Choices"), choices] if len(choices) else []
        self.chosen.objects = rows
        menu = experiment_menu(state)
        menu.param.watch(lambda event: self._experiment_chosen(event.new), "value")
        options = []
        if state.experiment:
            name = state.experiment
            options = options_of(state, name, partial(self._optioned, name), self.tell)
        for one in options:
            one.param.update(sizing_mode=None, width=170)
        self.experiment.objects = [menu, pn.FlexBox(*options, **_WIDE)] if state.experiment else []
        self.here.visible = bool(state.experiment)
        self.points.value, self.seeds.value, self.log_y.value = state.measured, state.seeds, state.log_y
        known = observables(state)
        self.order.param.update(options=known, value=state.order if state.order in known else None)
        self.y_axis.objects = [Axes(state, "y", self.change, self.tell).view] if state.y else []
        self.fill.disabled = not (state.y and state.order and state.theories)

    def _moved(self, state: PageState) -> None:
        """A slider has moved: what else changed meanwhile stays."""
        assert self.state is not None
        self.change(self.state.with_(changes=state.changes))

    def _optioned(self, name: str, option: str, value: Any) -> None:
        assert self.state is not None
        self.change(self.state.with_(options={**self.state.options, (name, option): value}))

    def _experiment_chosen(self, name: Any) -> None:
        assert self.state is not None
        if name:
            self.change(self.state.with_(experiment=name))

    def _counted(self, field: str, value: Any) -> None:
        assert self.state is not None
        low, high = MEASURED if field == "measured" else SEEDS
        if isinstance(value, int) and low <= value <= high and value != getattr(self.state, field):
            self.change(self.state.with_(**{field: value}))

    def _logged(self, value: Any) -> None:
        assert self.state is not None
        if bool(value) != self.state.log_y:
            self.change(self.state.with_(log_y=bool(value)))

    def _ordered(self, name: Any) -> None:
        assert self.state is not None
        if name and name != self.state.order and name in observables(self.state):
            self.change(self.state.with_(order=name))

    def _looks(self) -> list[CurveLook]:
        state = self.state
        assert state is not None
        shared = (state.system.partition(".")[0], state.theories, tuple(theories_of(state.system)), state.experiment)
        return [CurveLook(name, state.x, *shared, state.span[2], state.log_y, self.dark) for name in state.show]

    def _redrawn(self) -> None:
        """The figures of the state, made anew where their look changed, with the curves that are known."""
        state = self.state
        assert state is not None
        looks = self._looks()
        if looks != [one.look for one in self._figures]:
            self._figures = [CurveFigure(look) for look in looks]
            self.plots.objects = [pn.pane.Bokeh(one.plot, **_WIDE) for one in self._figures]
            for name, known in self._curves.items():
                if known.data is not None and state.x in known.data.dims:
                    self._draw(name, known.data)
            self._seen = ()
        for one in self._figures:
            one.mark(state.value(state.x))
        if self._plane is not None and self._plane.key == plane_key(state, self.dark):
            self._plane.mark(state.value(state.x), state.value(state.y))

    def _draw(self, name: str, data: xr.Dataset | None) -> None:
        for one in self._figures:
            one.theory(name, data)

    # -- theories --------------------------------------------------------------------------------------------------------

    def _evaluate(self, state: PageState, stale: Callable[[], bool]) -> None:
        """In a worker thread: every theory of the state, each posted as it is there."""
        for name in state.theories:
            self._running = (name, time.perf_counter(), is_compiled(state, name))
            try:
                found = curve(state, name, stale)
            finally:
                self._running = None
            self.post(lambda found=found: self._arrived(state, found))  # type: ignore[misc]
            if stale():
                raise Stale

    def _arrived(self, state: PageState, found: Drawn) -> None:
        now = self.state
        if now is None or (now.system, now.x, now.start) != (state.system, state.x, state.start):
            return
        self._curves[found.theory] = found
        self._draw(found.theory, found.data)
        self._seen = ()
        self._say_problems()

    def _say_problems(self) -> None:
        assert self.state is not None
        said = []
        for name in self.state.theories:
            found = self._curves.get(name)
            if found is None:
                continue
            data = found.data
            if data is None:
                said.append(f"{spoken(name)}: {found.problem}")
            elif data.attrs["failed"] or data.attrs["unconverged"]:
                words = [f"{data.attrs[key]} {key}" for key in ("failed", "unconverged") if data.attrs[key]]
                first = "".join(f"; {reason}" for reason in data.attrs.get("failures", [])[:1])
                said.append(f"{spoken(name)}: of {data.attrs['points']} points {' and '.join(words)}{first}")
        self.problems.object = "".join(f'<p class="warn">{escape(one)}</p>' for one in said)

    # -- measurements ----------------------------------------------------------------------------------------------------

    def _measure(self) -> None:
        if self.state is None or not self.state.experiment or (self._measurement and not self._measurement.ended):
            return
        made = Measurement(self.state, self.folder)
        if self._try(made.start):
            self._measurement = made
            self.measure.disabled, self.cancel.disabled, self.progress.visible = True, False, True

    def _cancel(self) -> None:
        if self._measurement is not None:
            self._measurement.cancel()

    def _look_for_points(self) -> None:
        """Reads the store of what is on the page, and draws what is in it."""
        state = self.state
        assert state is not None
        found = measured(state, self.folder)
        running = self._measurement if self._measurement and not self._measurement.ended else None
        done = (found.done, found.failed, found.wanted) if found else None
        theories = tuple(id(one) for one in self._curves.values())
        seen = (state.experiment, done, theories, tuple(state.show), state.address, bool(running))
        if seen == self._seen:
            return
        self._seen, self._measured = seen, found
        for one in self._figures:
            one.measured(found.data if found else None)
        self.agreement.object = self._agreement(found)
        self.progress.visible = running is not None
        if found:
            self.progress.value = max(1, round(100 * (found.done + found.failed) / found.wanted))

    def _agreement(self, found: MeasuredPoints | None) -> str:
        state = self.state
        assert state is not None
        if found is None:
            return ""
        theories = {spoken(name): one.data for name in state.theories if (one := self._curves.get(name)) and one.data is not None}
        known = {name: data for name, data in theories.items() if state.x in data.dims}
        parts = [f"<p>{found.done} of {found.wanted} runs are kept{_failed(found)}.</p>"]
        for observable, part in agreement(known, found.data, [*state.show]).items():
            parts.append(_table(part, state.x, observable))
        return "".join(parts)

    # -- the plane -------------------------------------------------------------------------------------------------------

    def _ask_plane(self) -> None:
        state = self.state
        if state is None or not (state.y and state.order and state.theories):
            return
        if state.x == state.y:
            self.tell("the two axes of the plane must be different numbers")
            return
        self._plane = PlaneFigure(state, self.dark, self._clicked)
        self._plane.mark(state.value(state.x), state.value(state.y))
        self.plane_plot.objects = [pn.pane.Bokeh(self._plane.plot, **_WIDE)]
        self.halt.disabled = False
        self.plane_words.object = "<p>evaluating the corners ...</p>"
        self._planes.ask((state, int(self.finest.value), self._plane))

    def _halt_plane(self) -> None:
        self._planes.end()
        self.halt.disabled = True
        self.plane_words.object = "<p>cancelled</p>"

    def _fill(self, request: Any, stale: Callable[[], bool]) -> None:
        """In a worker thread: ever finer planes, each posted as it is there."""
        state, finest, figure = request

        def arrived(plane: Any) -> None:
            if figure is self._plane and figure is not None:
                figure.draw(plane)
                words = f"{plane.points} points of {spoken(state.theories[0])}; click in the plane to go there"
                self.plane_words.object = f"<p>{escape(words)}</p><pre>{escape(repr(plane))}</pre>"

        def ended(words: str) -> None:
            if figure is self._plane:
                self.halt.disabled = True
                if words:
                    self.plane_words.object = f'<p class="warn">{escape(words)}</p>'

        problem = ""
        try:
            for plane in planes(state, finest, lambda: stale() or self._ended):
                self.post(lambda plane=plane: arrived(plane))  # type: ignore[misc]
        except Stale:
            raise
        except (ValueError, SweepError) as error:
            problem = str(error)
        except Exception as error:  # what a theory raises outside its contract is said, not printed
            problem = f"{type(error).__name__}: {error}"
        self.post(lambda: ended(problem))

    def _clicked(self, x: float, y: float) -> None:
        state = self.state
        if state is not None and self._plane is not None and self._plane.key == plane_key(state, self.dark):
            self._try(lambda: self.show(moved_to(state, {state.x: x, state.y: y})))

    # -- taking away -----------------------------------------------------------------------------------------------------

    def _snippets(self) -> None:
        state = self.state
        assert state is not None
        try:
            self.python.value = state.python()
        except Unwritten as error:
            self.python.value = f"# {error}"
        try:
            self.command.value = "\n".join(state.commands())
        except Unwritten:
            study = state.begun.study
            self.command.value = f"# this system holds arrays of the study {study}, which words cannot say: take the Python above"

    def _file(self, kind: str) -> Any:
        """What is seen, as a file."""
        state = self.state
        assert state is not None
        curves = {name: one.data for name in state.theories if (one := self._curves.get(name)) and one.data is not None}
        points = self._measured.data if self._measured else None
        if kind == "csv":
            return StringIO(table(curves, points, state.x))
        looks = [look for look in self._looks() if any(look.observable in data for data in curves.values())]
        if not looks:
            self.tell("there is nothing to be drawn yet")
            return BytesIO(b"")
        return BytesIO(picture(curves, points, looks, self.dark, kind))

    def _other_theme(self, _: Any) -> None:
        if self._location is not None and self.state is not None:
            self._location.reload = True
            self._location.search = self.state.address + ("" if self.dark else "&theme=dark")

    # -- the clock -------------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """A few times a second: what is being computed, points that have come, the address."""
        if self.state is not None and not self._ended:
            self._at_once(self._ticked)

    def _ticked(self) -> None:
        assert self.state is not None
        running = self._running
        words = ""
        if running is not None and (seconds := time.perf_counter() - running[1]) > 0.3:
            words = f"{'computing' if running[2] else 'compiling'} {spoken(running[0])} ... {seconds:.0f} s"
        shown = f'<p role="status" aria-live="polite"><small>{escape(words)}</small></p>'
        if self.busy.object != shown:
            self.busy.object = shown
        if self._measurement is not None and self._measurement.ended:
            if self._measurement.problem:
                self.tell(f"{spoken(self._measurement.state.experiment)}: {self._measurement.problem}")
            self._measurement, self.measure.disabled, self.cancel.disabled = None, False, True
            self._seen = ()
        self._look_for_points()
        address = self.state.address + ("&theme=dark" if self.dark else "")
        if address != self._asked:  # while a slider moves, neither the address nor what is copied follows it
            self._asked = address
        elif address != self._address:
            self._address = address
            self._snippets()
            if self._location is not None:
                self._location.search = address

    def went(self, query: str) -> None:
        """The visitor has gone back or forth in the history of the browser."""
        if query and query != self._address and "system=" in query:
            self._address = query
            self.open(lambda: read(query))


def _frame(state: PageState) -> Any:
    """What the controls are made anew for: all but numbers."""
    words = tuple(sorted((name, str(value)) for name, value in state.changes.items() if not isinstance(value, int | float)))
    options = tuple(sorted((key, str(value)) for key, value in state.options.items()))
    return words, state.theories, options, state.show, state.x, state.span, state.y, state.y_span, state.experiment, state.order


def _failed(found: MeasuredPoints) -> str:
    return f", {found.failed} failed" if found.failed else ""


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
