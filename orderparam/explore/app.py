"""The page: pictures to choose from, the figure of one system with its sliders, the plane, the
studies, and a person's own data.

A `Page` belongs to one visitor and has one `PageState`. Every control asks for another state
through `show`, which draws the difference: a slider moves the existing curves, another system or
axis makes new ones.
"""

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import panel as pn

from orderparam.explore.address import read
from orderparam.explore.cards import Cards
from orderparam.explore.choose import system_cards
from orderparam.explore.evaluate import in_background
from orderparam.explore.figure_tab import FigureTab
from orderparam.explore.first_state import opened
from orderparam.explore.gallery import Gallery
from orderparam.explore.plane_tab import PlaneTab
from orderparam.explore.state import PageState
from orderparam.explore.systems import kinds
from orderparam.explore.your_data import YourData

# the system shown where an address cannot be read: every course teaches it
FIRST = "spins.MeanFieldMagnet"
SYSTEMS, FIGURE, STUDIES = 0, 1, 3  # places of tabs
_WIDE: dict[str, Any] = {"sizing_mode": "stretch_width"}
_FULL = {"width": "100%", "box-sizing": "border-box"}


class Page:
    """One visitor's page. query: the address that it was opened with."""

    def __init__(self, folder: Path, query: str, dark: bool) -> None:
        self.folder, self.dark = folder, dark
        self._doc = pn.state.curdoc
        self._location = pn.state.location
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
        self.figure = FigureTab(self.folder, self.dark, self.change, self.tell, self.post)
        self.tabs = pn.Tabs(
            ("Systems", self.systems),
            ("Figure", self.figure.view),
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
        """Shows one tab. The long lists of pictures take space only while their tab is open."""
        self.systems.visible, self.gallery.view.visible = active == SYSTEMS, active == STUDIES
        if active == STUDIES:
            self.gallery.fill()

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
        """Ends the work for this page when the visitor has gone; a measurement goes on into its
        store."""
        self._ended = True
        self.figure.end()
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
            # data that cannot be fetched, or systems with parts that no slider makes
            except Exception as error:
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
            self.plane.clear()
            self.tabs.active = FIGURE
        if self.figure.show(state):
            self.plane.renew(state)
        self.plane.follow(state)
        self.figure.evaluate()

    def change(self, state: PageState) -> None:
        """Makes the change that a control asks for, or shows the message where it is refused."""
        self._try(lambda: self.show(state))

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
        self.figure.tick()
        address = self.state.address + ("&theme=dark" if self.dark else "")
        # while a slider moves, the address and the copied text stay as they are
        if address != self._settling:
            self._settling = address
        elif address != self._address:
            self._address = address
            self.figure.write()
            if self._location is not None:
                self._location.search = address

    def follow(self, query: str) -> None:
        """Follows a visitor who went back or forth in the history of the browser."""
        if query and query != self._address and "system=" in query:
            self._address = query
            self.open(lambda: read(query))
