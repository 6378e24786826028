"""The studies with their pictures. Each opens with its theories evaluated live, on its own system
and axis."""

from collections.abc import Callable
from html import escape
from typing import Any

import panel as pn

from orderparam.comparison import find
from orderparam.core.grid import numeric
from orderparam.core.registry import index
from orderparam.core.verb import Theory, unwrap
from orderparam.explore.cards import Cards
from orderparam.explore.choose import study_cards
from orderparam.explore.evaluate import in_background
from orderparam.explore.first_state import opened
from orderparam.explore.formulas import with_mathml
from orderparam.explore.menu import Menu
from orderparam.explore.opening import curves_of
from orderparam.explore.state import SHOWN, PageState
from orderparam.explore.systems import kinds, system_name, theories_of

_WIDE: dict[str, Any] = {"sizing_mode": "stretch_width"}


def curves_that_open(study: str) -> dict[str, int]:
    """Name -> position of the curves of a study that a page can open: theories along a number."""
    found = {}
    for position, curve in enumerate(curves_of(study)):
        along = any(numeric(values) for values in curve.over.values())
        if (
            isinstance(unwrap(curve.fn)[0], Theory)
            and along
            and system_name(type(curve.system)) in kinds()
        ):
            found[curve.key.replace("$", "")] = position
    return found


def opened_study(study: str, position: int) -> PageState:
    """A curve of a study, together with the other theories of the study for the same system."""
    curves = curves_of(study)
    chosen = curves[position]
    state = opened(system_name(type(chosen.system)), f"{study}:{position}")
    beside = []
    for curve in curves:
        verb, options = unwrap(curve.fn)
        if (
            type(curve.system) is type(chosen.system)
            and verb.name in theories_of(state.system)
            and not options
        ):
            beside.append(verb.name)
    return state.with_(theories=tuple(dict.fromkeys([*state.theories, *beside]))[:SHOWN])


class Gallery:
    """All studies as pictures, and the chosen one with its description and its curves.

    show: shows the state that a function makes. post: runs a function in the page's own thread.
    """

    def __init__(
        self,
        show: Callable[[Callable[[], PageState]], None],
        post: Callable[[Callable[[], None]], None],
    ) -> None:
        self._show, self._post = show, post
        self._study = ""
        self._names = {entry.name for entry in index() if entry.kind == "study"}
        self.cards = Cards(label="search the studies: title, topic, author", **_WIDE)
        self.back = pn.widgets.Button(name="All studies", width=110)
        self.words = pn.pane.HTML("", **_WIDE)
        self.curve = Menu(name="theory and facets", options={}, width=340)
        self.open = pn.widgets.Button(
            name="Open its curves", button_type="primary", disabled=True, margin=(25, 5, 5, 5)
        )
        self.cards.param.watch(lambda event: self._chosen(event.new), "chosen")
        self.back.on_click(lambda _: self._list())
        self.open.on_click(lambda _: self._opened())
        self.about = pn.Column(
            self.back, self.words, pn.FlexBox(self.curve, self.open), visible=False, **_WIDE
        )
        self.view = pn.Column(self.about, self.cards, **_WIDE)

    def fill(self) -> None:
        """Sends the pictures when their tab is first opened."""
        if not self.cards.groups:
            self.cards.groups = study_cards()

    def _list(self) -> None:
        self._study = ""
        self.about.visible, self.cards.visible = False, True

    def _chosen(self, chosen: Any) -> None:
        name = str(chosen[0]) if chosen else ""
        if name not in self._names:
            return
        self._study = name
        self.words.object = '<p role="status">building the study ...</p>'
        self.open.disabled, self.curve.visible = True, False
        self.about.visible, self.cards.visible = True, False

        def work() -> None:
            try:
                study, openable, problem = find(name), curves_that_open(name), ""
            except Exception as error:  # data that cannot be fetched
                study, openable, problem = None, {}, str(error)
            self._post(lambda: self._describe(name, study, openable, problem))

        in_background(work)

    def _describe(self, name: str, study: Any, openable: dict[str, int], problem: str) -> None:
        if name != self._study:
            return
        if study is None:
            self.words.object = f'<p class="warn">{escape(problem)}</p>'
            return
        text = (
            ""
            if openable
            else "<p>None of its curves is a theory along a number: run it to see it.</p>"
        )
        self.words.object = (
            f"<h2>{with_mathml(study.title)}</h2><p>{with_mathml(study.source)}</p>"
            f"<p>{with_mathml(study.explained)}</p>{text}"
            "<p>The whole figure with its measurements: "
            f"<code>orderparam run {escape(study.name)}</code></p>"
        )
        self.curve.param.update(options=openable, value=next(iter(openable.values()), None))
        self.open.disabled, self.curve.visible = not openable, bool(openable)

    def _opened(self) -> None:
        if self._study and self.curve.value in self.curve.options.values():
            study, position = self._study, self.curve.value
            self._show(lambda: opened_study(study, position))
