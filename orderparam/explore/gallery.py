"""The studies: each opens with its theories live, on its own system and axis."""

from collections.abc import Callable
from html import escape
from typing import Any

import panel as pn

from orderparam.core.grid import numeric
from orderparam.core.registry import index
from orderparam.core.study import find
from orderparam.core.verb import Theory, unwrap
from orderparam.explore.menu import Menu
from orderparam.explore.starts import curves_of, kinds, system_name, theories_of
from orderparam.explore.state import SHOWN, PageState, opened


def curves_that_open(study: str) -> dict[str, int]:
    """Name -> position of the curves of a study that a page can open: theories along a number."""
    found = {}
    for position, curve in enumerate(curves_of(study)):
        along = any(numeric(values) for values in curve.over.values())
        if isinstance(unwrap(curve.fn)[0], Theory) and along and system_name(type(curve.system)) in kinds():
            found[curve.key] = position
    return found


def opened_study(study: str, position: int) -> PageState:
    """A curve of a study, with the other theories that the study has of the same system."""
    curves = curves_of(study)
    chosen = curves[position]
    state = opened(system_name(type(chosen.system)), f"{study}:{position}")
    beside = []
    for curve in curves:
        verb, options = unwrap(curve.fn)
        if type(curve.system) is type(chosen.system) and verb.name in theories_of(state.system) and not options:
            beside.append(verb.name)
    return state.with_(theories=tuple(dict.fromkeys([*state.theories, *beside]))[:SHOWN])


class Gallery:
    """The list of all studies. show: shows the state that a function makes."""

    def __init__(self, show: Callable[[Callable[[], PageState]], None]) -> None:
        self._show = show
        self._entries = {entry.name: entry for entry in index() if entry.kind == "study"}
        wide: dict[str, Any] = {"sizing_mode": "stretch_width"}
        self.search = pn.widgets.TextInput(name="search the studies", placeholder="title, room, source", max_length=60, **wide)
        self.list = pn.widgets.MultiSelect(name="studies", options=self._found(""), size=14, **wide)
        self.curve = Menu(name="theory and facets", options={}, sizing_mode="stretch_width")
        self.open = pn.widgets.Button(name="Open its curves", button_type="primary", disabled=True)
        self.words = pn.pane.HTML("", sizing_mode="stretch_width")
        self.search.param.watch(self._searched, "value_input")
        self.list.param.watch(self._chosen, "value")
        self.open.on_click(self._opened)
        side = pn.Column(self.search, self.list, min_width=280, styles={"flex": "1 1 300px"}, **wide)
        about = pn.Column(self.words, self.curve, self.open, min_width=280, styles={"flex": "1 1 300px"}, **wide)
        self.view = pn.FlexBox(side, about, flex_wrap="wrap", **wide)

    def _found(self, word: str) -> dict[str, str]:
        word, found = word.lower().replace("_", " "), {}
        for name, entry in sorted(self._entries.items(), key=lambda item: (item[1].room, item[0])):
            text = f"{name} {entry.room} {entry.details.get('title')} {entry.details.get('source')}".lower().replace("_", " ")
            if word in text:
                found[f"{entry.room.replace('_', ' ')}: {entry.details.get('title') or name}"] = name
        return found

    def _searched(self, event: Any) -> None:
        self.list.options = self._found(event.new)

    def _chosen(self, event: Any) -> None:
        names = [name for name in event.new if name in self._entries]
        if not names:
            return
        try:
            study, known = find(names[-1]), curves_that_open(names[-1])
        except (ValueError, OSError) as error:
            self.words.object = f"<p>{escape(str(error))}</p>"
            self.open.disabled = True
            return
        said = "" if known else "<p>None of its curves is a theory along a number: run it to see it.</p>"
        self.words.object = (
            f"<h2>{escape(study.title)}</h2><p>{escape(study.source)}</p><p>{escape(study.explained)}</p>{said}"
            f"<p><code>orderparam run {escape(study.name)}</code></p>"
        )
        self.curve.param.update(options=known, value=next(iter(known.values()), None))
        self.open.disabled = not known

    def _opened(self, _: Any) -> None:
        names = [name for name in self.list.value if name in self._entries]
        if names and self.curve.value in self.curve.options.values():
            study, position = names[-1], self.curve.value
            self._show(lambda: opened_study(study, position))
