"""Sliders and menus of one system: everything in a `PageState` that a person can change, generated
from the system's fields."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from html import escape
from typing import Any

import panel as pn

from orderparam.explore.address import choices_words
from orderparam.explore.curves import spoken
from orderparam.explore.first_state import beside
from orderparam.explore.knobs import STEPS, Knob
from orderparam.explore.slider import Slider
from orderparam.explore.state import SHOWN, PageState, checked_range, observables, option_of, taken
from orderparam.explore.systems import experiments_of, theories_of, verbs
from orderparam.plotting.text import words

Change = Callable[[PageState], None]  # called with the state that a person asks for
Tell = Callable[[str], None]  # called with a sentence for the person


class Knobs:
    """The sliders of the numbers of a state. view: those beside the figure; others: the rest."""

    def __init__(self, state: PageState, change: Change, tell: Tell) -> None:
        self.state, self._change, self._tell = state, change, tell
        self._quiet = False
        self._sliders: dict[str, Slider] = {}
        labels = slider_labels(state)
        for name, knob in state.knobs.items():
            value = state.value(name)
            slider = Slider(
                label=labels[name],
                meaning=f"{name}: {knob.meaning}; {knob.allowed}",
                position=_position(knob, value),
                steps=STEPS,
                shown=f"{value:.6g}",
                sizing_mode="stretch_width",
                margin=(0, 5),
            )
            slider.param.watch(lambda event, name=name: self._moved(name, event.new), "position")
            slider.param.watch(lambda event, name=name: self._typed(name, event.new), "typed")
            self._sliders[name] = slider
        near = beside(state)
        self.view = pn.Column(*(self._sliders[name] for name in near), sizing_mode="stretch_width")
        others = [slider for name, slider in self._sliders.items() if name not in near]
        self.others = pn.Column(*others, sizing_mode="stretch_width")

    def follow(self, state: PageState) -> None:
        """Shows the numbers of another state of the same system, without an event."""
        self.state, self._quiet = state, True
        try:
            for name, slider in self._sliders.items():
                value, knob = state.value(name), state.knobs[name]
                if slider.shown != f"{value:.6g}":
                    slider.param.update(position=_position(knob, value), shown=f"{value:.6g}")
        finally:
            self._quiet = False

    def _moved(self, name: str, position: int) -> None:
        knob = self.state.knobs[name]
        if not self._quiet and position != _position(knob, self.state.value(name)):
            self._take(name, knob.value(position), keep=True)

    def _typed(self, name: str, typed: Sequence[Any]) -> None:
        try:
            value = float(str(typed[0]))
        except (ValueError, IndexError):
            self._tell(f"{name} must be a number")
            self._sliders[name].param.trigger("shown")
            return
        self._take(
            name,
            int(value) if value.is_integer() and self.state.knobs[name].whole else value,
            keep=False,
        )

    def _take(self, name: str, value: float, keep: bool) -> None:
        """A number that a slider or a person asks for. keep: the slider stays where the person
        holds it."""
        try:
            self.state = taken(self.state, {name: value})
        except ValueError as error:
            self._tell(str(error))
            self._sliders[name].shown = ""
            self.follow(self.state)
            return
        self._quiet = True
        try:
            self._sliders[name].shown = f"{value:.6g}"
            if not keep:
                self._sliders[name].position = _position(self.state.knobs[name], value)
        finally:
            self._quiet = False
        self._change(self.state)


def slider_labels(state: PageState) -> dict[str, str]:
    """The label of the slider of every number: the words of the figures, or the field's name where
    two numbers have the same words."""
    topic = state.system.partition(".")[0]
    spoken_names = {
        name: words(name, topic).partition(" $")[0].replace("$", "") for name in state.knobs
    }
    alike = Counter(spoken_names.values())
    return {
        name: spoken if alike[spoken] == 1 else name.replace("_", " ")
        for name, spoken in spoken_names.items()
    }


def _position(knob: Knob, value: float) -> int:
    return knob.position(value) if math.isfinite(value) else STEPS


def menus(state: PageState, change: Change, tell: Tell) -> pn.Column:
    """The controls of everything that is not a number: menus of words, whole numbers, and
    formulas."""
    rows: list[Any] = []
    for name, (value, available) in choices_words(state).items():
        now = _now(state, name, value)
        if available:
            options = list(dict.fromkeys([*available, now]))
            one: Any = pn.widgets.Select(
                name=name, options=options, value=now, sizing_mode="stretch_width"
            )
        elif isinstance(value, int):
            one = pn.widgets.IntInput(name=name, value=int(now), sizing_mode="stretch_width")
        else:
            one = pn.widgets.TextInput(
                name=name, value=now, max_length=200, sizing_mode="stretch_width"
            )
        one.param.watch(
            lambda event, name=name, was=value: _chosen(name, was, event, state, change, tell),
            "value",
        )
        rows.append(one)
    return pn.Column(*rows, sizing_mode="stretch_width")


def _now(state: PageState, name: str, first: Any) -> str:
    value = state.changes.get(name, first)
    return value if isinstance(value, str) else getattr(value, "name", str(value))


def _chosen(name: str, was: Any, event: Any, state: PageState, change: Change, tell: Tell) -> None:
    value = event.new
    if isinstance(was, bool):
        value = value == "True"
    try:
        changed = taken(state, {name: value})
    except (ValueError, TypeError) as error:
        tell(str(error))
        if event.old != event.new:
            event.obj.value = event.old
        return
    change(changed)


def options_of(
    state: PageState, name: str, change: Callable[[str, Any], None], tell: Tell
) -> list[Any]:
    """The options of a theory or an experiment as widgets; an option that no widget can show is
    left as it is."""
    verb, given, rows = verbs()[name], state.own_options(name), []
    for option, parameter in verb.options.items():
        value = given.get(option, parameter.default)
        title = f"{spoken(name)}: {option.replace('_', ' ')}"
        if words := verb.choices(option):
            available = {str(word): word for word in words}
            one: Any = pn.widgets.Select(
                name=title, options=list(available), value=str(value), sizing_mode="stretch_width"
            )
        elif isinstance(value, bool):
            one = pn.widgets.Select(
                name=title, options=["True", "False"], value=str(value), sizing_mode="stretch_width"
            )
        elif isinstance(value, int | float):
            one = pn.widgets.TextInput(
                name=title, value=f"{value!r}", max_length=30, sizing_mode="stretch_width"
            )
        else:
            continue

        def taken(event: Any, option: str = option) -> None:
            try:
                read = option_of(state, name, option, str(event.new))
            except ValueError as error:
                tell(str(error))
                if event.old != event.new:
                    event.obj.value = event.old
                return
            change(option, read)

        one.param.watch(taken, "value")
        rows.append(one)
    return rows


class Axes:
    """The number along an axis and its range, typed as LOW and HIGH, with a box for the
    logarithm."""

    def __init__(self, state: PageState, letter: str, change: Change, tell: Tell) -> None:
        self._letter, self._change, self._tell = letter, change, tell
        self.state = state
        name, (low, high, log) = (state.x, state.span) if letter == "x" else (state.y, state.y_span)
        title = "along" if letter == "x" else "and along"
        self.name = pn.widgets.Select(
            name=title, options=list(state.knobs), value=name, sizing_mode="stretch_width"
        )
        self.low = pn.widgets.TextInput(name="from", value=f"{low:.6g}", width=84, max_length=30)
        self.high = pn.widgets.TextInput(name="to", value=f"{high:.6g}", width=84, max_length=30)
        self.log = pn.widgets.Checkbox(name="logarithmic", value=log, margin=(26, 5, 0, 10))
        self.view = pn.Column(
            self.name, pn.Row(self.low, self.high, self.log), sizing_mode="stretch_width"
        )
        self.name.param.watch(self._renamed, "value")
        for one in (self.low, self.high, self.log):
            one.param.watch(self._ranged, "value")

    def _renamed(self, event: Any) -> None:
        if event.new not in self.state.knobs:
            return
        axis = self.state.knobs[event.new].axis
        self._set(event.new, (axis.low, axis.high, axis.log))

    def _ranged(self, _: Any) -> None:
        name = self.name.value
        try:
            scale = ":log" if self.log.value else ""
            words = f"{float(self.low.value)}:{float(self.high.value)}{scale}"
            span = checked_range(self.state, name, words)
        except ValueError as error:
            self._tell(str(error))
            return
        self._set(name, span)

    def _set(self, name: str, span: tuple[float, float, bool]) -> None:
        fields = ("x", "span") if self._letter == "x" else ("y", "y_span")
        self._change(self.state.with_(**dict(zip(fields, (name, span)))))


def theory_menu(state: PageState, change: Change) -> pn.widgets.CheckBoxGroup:
    """All theories of the system; at most `SHOWN` are evaluated."""
    names = {spoken(name): name for name in theories_of(state.system)}
    menu = pn.widgets.CheckBoxGroup(
        name="theories",
        options=names,
        value=list(state.theories),
        sizing_mode="stretch_width",
        margin=(0, 5),
    )

    def chosen(event: Any) -> None:
        kept = [name for name in event.new if name in names.values()][-SHOWN:]
        if kept != list(event.new):
            menu.value = kept
            return
        other = state.with_(theories=tuple(kept))
        available = observables(other)
        shown = tuple(name for name in state.show if name in available) or tuple(available[:1])
        order = state.order if state.order in available else (shown[0] if shown else "")
        change(other.with_(show=shown, order=order))

    menu.param.watch(chosen, "value")
    return menu


def observable_menu(state: PageState, change: Change) -> pn.widgets.MultiChoice:
    """The menu of the observables that are drawn."""
    menu = pn.widgets.MultiChoice(
        name="observables",
        options=observables(state),
        value=list(state.show),
        max_items=SHOWN,
        sizing_mode="stretch_width",
    )
    menu.param.watch(
        lambda event: change(state.with_(show=tuple(event.new[:SHOWN]))) if event.new else None,
        "value",
    )
    return menu


def experiment_menu(state: PageState) -> pn.widgets.Select:
    """The menu of the experiments of the system, and of none."""
    names = {"none": "", **{spoken(name): name for name in experiments_of(state.system)}}
    return pn.widgets.Select(
        name="experiment", options=names, value=state.experiment, sizing_mode="stretch_width"
    )


def moved_to(state: PageState, places: Mapping[str, float]) -> PageState:
    """The state with its numbers at a place of the plane, as far as the system allows."""
    for name, value in places.items():
        with suppress(ValueError):
            state = taken(state, {name: state.knobs[name].neat(value)})
    return state


def heading(words: str) -> pn.pane.HTML:
    """A heading above a group of controls."""
    return pn.pane.HTML(f"<h3>{escape(words)}</h3>", margin=(8, 5, 0, 5))
