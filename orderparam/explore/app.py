"""The page: pictures to choose from, the figure of one system with its sliders, the plane, the
studies, and a person's own data.

A `Page` belongs to one visitor and has one `PageState`. Every control asks for another state
through `show`, which draws the difference: a slider moves the existing curves, another system or
axis makes new ones.
"""

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

from orderparam.explore.address import read
from orderparam.explore.cards import Cards
from orderparam.explore.choose import system_cards
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
from orderparam.explore.evaluate import Drawn, Latest, Stale, curve, in_background, is_compiled
from orderparam.explore.figures import stored_figures
from orderparam.explore.first_state import is_start, opened
from orderparam.explore.formulas import with_mathml
from orderparam.explore.gallery import Gallery
from orderparam.explore.measure_here import MeasureHere
from orderparam.explore.plane_tab import PlaneTab
from orderparam.explore.starts import question_of
from orderparam.explore.state import PageState
from orderparam.explore.systems import about, kinds, theories_of, title_of
from orderparam.explore.take_away import picture, table
from orderparam.explore.written import Unwritten
from orderparam.explore.your_data import YourData
from orderparam.running.program import DONE, FAILED

# the system shown where an address cannot be read: every course teaches it
FIRST = "spins.MeanFieldMagnet"
SYSTEMS, FIGURE, STUDIES = 0, 1, 3  # places of tabs
_WIDE: dict[str, Any] = {"sizing_mode": "stretch_width"}
_FULL = {"width": "100%", "box-sizing": "border-box"}


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


class Page:
    """One visitor's page. query: the address that it was opened with."""

    def __init__(self, folder: Path, query: str, dark: bool) -> None:
        self.folder, self.dark = folder, dark
        self._doc = pn.state.curdoc
        self._location = pn.state.location
        self._latest = Latest(self._evaluate)
        self._curves: dict[str, Drawn] = {}
        self._figures: list[CurveFigure] = []
        self._running: tuple[str, float, bool] | None = None
        self._ended = False
        self._settling = self._address = ""
        self._opening = 0
        self._at_pictures = False
        self._refused = ""  # why the page does not show what its address asked for
        self.state: PageState | None = None
        self._layout()
        self._open(query)

    # -- what there is ----------------------------------------------------------------------------

    def _layout(self) -> None:
        self.systems = Cards(
            groups=system_cards(),
            address="?system=",
            label="search the systems: a word, a name",
            **_WIDE,
        )
        self.systems.param.watch(self._picked, "chosen")
        self.message = pn.pane.HTML("", **_WIDE)
        theme = pn.widgets.Button(name="Light" if self.dark else "Dark", width=70, margin=(5, 5))
        theme.on_click(self._other_theme)
        head = pn.Row(pn.pane.HTML("<h1>orderparam explorer</h1>", **_WIDE), theme, **_WIDE)
        self.gallery = Gallery(self.open, self.post)
        self.data = YourData(self.folder, self.dark, self.post)
        self.plane = PlaneTab(self.dark, self.change, self.tell, self.post)
        self.here = MeasureHere(self.folder, self.change, self.tell)
        self.tabs = pn.Tabs(
            ("Systems", self.systems),
            ("Figure", self._figure_tab()),
            ("Phase plane", self.plane.view),
            ("Studies", self.gallery.view),
            ("Your data", self.data.view),
            **_WIDE,
        )
        self.tabs.param.watch(lambda event: self._tab(event.new), "active")
        self.gallery.view.visible = False
        self.view = pn.Column(
            head,
            self.message,
            self.tabs,
            max_width=1500,
            styles={"margin": "0 auto", "padding": "0 8px", **_FULL},
            **_WIDE,
        )

    def _tab(self, active: int) -> None:
        """One tab. The long lists of pictures take space only while their tab is open."""
        self.systems.visible, self.gallery.view.visible = active == SYSTEMS, active == STUDIES
        if active == STUDIES:
            self.gallery.fill()

    def _figure_tab(self) -> pn.Column:
        """The tab of the figure, with the most important sliders beside it; all other controls are
        folded below."""
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
            ("Code and files", self._take_away()),
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

    def _take_away(self) -> pn.Column:
        self.python = pn.widgets.TextAreaInput(name="as Python", rows=8, disabled=True, **_WIDE)
        self.command = pn.widgets.TextAreaInput(name="as commands", rows=4, disabled=True, **_WIDE)
        copies = []
        for words, source in (("Copy as Python", self.python), ("Copy as command", self.command)):
            button = pn.widgets.Button(name=words, width=140)
            button.js_on_click(
                args={"source": source}, code="navigator.clipboard.writeText(source.value)"
            )
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
        return pn.Column(pn.FlexBox(*copies, *files, **_WIDE), self.python, self.command, **_WIDE)

    # -- threads, messages ------------------------------------------------------------------------

    def post(self, work: Callable[[], None]) -> None:
        """Runs a function soon in the page's own thread, or not at all if the page is closed."""
        if not self._ended:
            self._doc.add_next_tick_callback(lambda: None if self._ended else self._at_once(work))

    def _at_once(self, work: Callable[[], None]) -> None:
        """Sends all changes of a function as one message: of two messages the second might arrive
        first, and a curve come before its figure."""
        with pn.io.hold(self._doc):
            work()

    def tell(self, words: str) -> None:
        """Shows one sentence to the person above everything else."""
        self.message.object = (
            f'<p role="status" aria-live="polite" class="warn">{escape(words)}</p>' if words else ""
        )

    def end(self) -> None:
        """The visitor has gone: work for this page only is ended; a measurement goes on into its
        store."""
        self._ended = True
        self._latest.end()
        self.plane.end()
        self.data.end()

    # -- choosing a system ------------------------------------------------------------------------

    def _picked(self, event: Any) -> None:
        name = str(event.new[0]) if event.new else ""
        if self.state is not None and name == self.state.system:
            self.tabs.active = FIGURE
        elif name in kinds():
            self.open(lambda: opened(name))

    def open(self, make: Callable[[], PageState]) -> None:
        """Shows a state that takes a while to make, because its study is built, with its data, in a
        worker thread."""
        self._opening += 1
        count = self._opening

        def work() -> None:
            try:
                state = make()
            except (
                Exception
            ) as error:  # data that cannot be fetched, or systems with parts that no slider makes
                words = str(error)
                self.post(lambda: self.tell(words))
                return
            self.post(lambda: self.change(state) if count == self._opening else None)

        self.tell("opening ...")
        in_background(work)

    @property
    def ready(self) -> bool:
        """True if there is something to show: a system, or the pictures where the address names
        none."""
        return self.state is not None or self._at_pictures

    def _open(self, query: str) -> None:
        """Shows the state of an address; the pictures if the address is empty, and the first system
        if it cannot be read."""
        self._at_pictures = "system=" not in query
        if self._at_pictures:
            return

        def make() -> PageState:
            try:
                return read(query)
            except Exception as error:  # a page opens whatever is wrong with its address
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

    # -- showing a state --------------------------------------------------------------------------

    def show(self, state: PageState) -> None:
        """Draws another state. Raises `ValueError` for a state that cannot be drawn."""
        _ = state.instance, state.grid  # refused before anything changes
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
        """Makes the change that a control asks for, or shows the message where it is refused."""
        self._try(lambda: self.show(state))

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
        self.plane.clear()
        self.tabs.active = FIGURE
        self._new_controls(state)

    def _new_controls(self, state: PageState) -> None:
        self.knobs = Knobs(state, self._moved, self.tell)
        self.near.objects = [self.knobs.view]
        theories = [theory_menu(state, self.change)] if theories_of(state.system) else []
        options = [
            row
            for name in state.theories
            for row in options_of(state, name, partial(self._optioned, name), self.tell)
        ]
        axis = Axes(state, "x", self.change, self.tell).view
        self.drawn.objects = [*theories, observable_menu(state, self.change), axis, *options]
        choices = menus(state, self.change, self.tell)
        words = [heading("Choices"), choices] if len(choices) else []
        self.numbers.objects = [self.knobs.others, *words]
        self.here.renew(state, self._optioned)
        self.plane.renew(state)
        self.log_y.value = state.log_y

    def _moved(self, state: PageState) -> None:
        """A slider has moved; other changes made meanwhile stay."""
        assert self.state is not None
        self.change(self.state.with_(changes=state.changes))

    def _optioned(self, name: str, option: str, value: Any) -> None:
        assert self.state is not None
        self.change(self.state.with_(options={**self.state.options, (name, option): value}))

    def _logged(self, value: Any) -> None:
        assert self.state is not None
        if bool(value) != self.state.log_y:
            self.change(self.state.with_(log_y=bool(value)))

    def _looks(self) -> list[CurveLook]:
        state = self.state
        assert state is not None
        shared = (
            state.system.partition(".")[0],
            state.theories,
            tuple(theories_of(state.system)),
            state.experiment,
        )
        return [
            CurveLook(name, state.x, *shared, state.span[2], state.log_y, self.dark)
            for name in state.show
        ]

    def _redrawn(self) -> None:
        """The figures of the state, made again where their look changed, with the curves computed
        so far."""
        state = self.state
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
        self.plane.follow(state)

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
                    state, name, stale, lambda part: self.post(partial(self._arrived, state, part))
                )
            finally:
                self._running = None
            self.post(partial(self._arrived, state, found))
            if stale():
                raise Stale

    def _arrived(self, state: PageState, found: Drawn) -> None:
        now = self.state
        if now is None or (now.system, now.x, now.start) != (state.system, state.x, state.start):
            return
        self._curves[found.theory] = found
        self._draw(found.theory, found.data)
        self._say_problems()

    def _say_problems(self) -> None:
        assert self.state is not None
        refusals = []
        for name in self.state.theories:
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

    # -- taking away ------------------------------------------------------------------------------

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
            study = state.opening.study
            self.command.value = (
                f"# this system holds arrays of the study {study}, which words cannot say: take "
                "the Python above"
            )

    def _file(self, kind: str) -> Any:
        """A file of the figure on the page."""
        state = self.state
        assert state is not None
        found = {
            name: one
            for name in state.theories
            if (one := self._curves.get(name)) is not None and not one.stored
        }
        curves = {name: one.data for name, one in found.items() if one.data is not None}
        points = self.here.found.data if self.here.found else None
        if kind == "csv":
            return StringIO(table(curves, points, state.x))
        looks = [
            look
            for look in self._looks()
            if any(look.observable in data for data in curves.values())
        ]
        if not looks:
            self.tell("there is nothing to be drawn yet")
            return BytesIO(b"")
        return BytesIO(picture(curves, points, looks, self.dark, kind))

    def _other_theme(self, _: Any) -> None:
        if self._location is not None and self.state is not None:
            self._location.reload = True
            self._location.search = self.state.address + ("" if self.dark else "&theme=dark")

    # -- the clock --------------------------------------------------------------------------------

    def tick(self) -> None:
        """Called a few times a second: updates the progress, the new points and the address."""
        if self.state is not None and not self._ended:
            self._at_once(self._ticked)

    def _ticked(self) -> None:
        assert self.state is not None
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
        address = self.state.address + ("&theme=dark" if self.dark else "")
        # while a slider moves, the address and the copied text stay as they are
        if address != self._settling:
            self._settling = address
        elif address != self._address:
            self._address = address
            self._snippets()
            if self._location is not None:
                self._location.search = address

    def follow(self, query: str) -> None:
        """Follows a visitor who went back or forth in the history of the browser."""
        if query and query != self._address and "system=" in query:
            self._address = query
            self.open(lambda: read(query))


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
