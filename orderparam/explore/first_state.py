"""The first state of a page: that of the table of starts, or of a curve of a study."""

import math
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from orderparam.comparison import find
from orderparam.core.fields import is_number
from orderparam.core.grid import numeric
from orderparam.core.verb import Theory, unwrap
from orderparam.explore.opening import Opening, curves_of, first_opening, opening_of
from orderparam.explore.starts import FirstFigure
from orderparam.explore.state import (
    PageState,
    checked_range,
    known_name,
    observables,
    option_of,
    taken,
)
from orderparam.explore.systems import (
    experiments_of,
    kind_of,
    system_name,
    theories_of,
    verbs,
)
from orderparam.explore.written import text

FEW = 4  # number of sliders beside the figure, where the table of starts names none


def opened(system: str, start: str = "") -> PageState:
    """The first state of a system: that of the table of starts, or of a curve of a study. Raises
    `ValueError`."""
    kind = kind_of(system)
    opening = opening_of(start) if start else first_opening(system)
    if type(opening.system) is not kind:
        raise ValueError(
            f"start = {start!r} is of {system_name(type(opening.system))}, not of {system}"
        )
    state = PageState(system, opening.name)
    state = (
        _as_tabled(state, opening.start)
        if opening.start is not None
        else _as_in_study(state, opening)
    )
    y = next((name for name in beside(state) if name != state.x), "")
    if y:
        axis = state.knobs[y].axis
        state = state.with_(
            y=y, y_span=(axis.low, axis.high, axis.log), order=state.show[0] if state.show else ""
        )
    return state


def beside(state: PageState) -> list[str]:
    """The numbers whose sliders stand beside the figure: those that the table of starts names, or
    else the first few."""
    start = state.opening.start
    others = [name for name in state.knobs if name != state.x]
    return (
        [name for name in start.knobs if name in state.knobs]
        if start is not None and start.knobs
        else others[:FEW]
    )


def is_start(state: PageState) -> bool:
    """True if a page shows the start of its system, so that the stored figure can be used."""
    start = state.opening.start
    return start is not None and state.with_(
        y="", y_span=(0.0, 1.0, False), order="", log_y=False
    ) == _tabled(state.system)


@lru_cache(maxsize=256)
def _tabled(system: str) -> PageState:
    return opened(system).with_(y="", y_span=(0.0, 1.0, False), order="", log_y=False)


def _as_tabled(state: PageState, start: FirstFigure) -> PageState:
    available, experiments = theories_of(state.system), experiments_of(state.system)
    name, _, words = start.x.partition(":")
    x = known_name(name, state.knobs, "number")
    state = state.with_(
        theories=tuple(known_name(one, available, "theory") for one in start.theories),
        experiment=known_name(start.experiment, experiments, "experiment")
        if start.experiment
        else "",
        x=x,
        span=checked_range(state, x, words),
        measured=start.points,
        seeds=start.runs,
        log_y=start.log_y,
    )
    options = {}
    for verb, given in start.options.items():
        for option, value in given.items():
            known_name(
                option,
                verbs()[known_name(verb, {**available, **experiments}, "theory")].options,
                "option",
            )
            options[verb, option] = option_of(state, verb, option, text(value))
    state = state.with_(options=options)
    return state.with_(
        show=tuple(known_name(one, observables(state), "observable") for one in start.show)
    )


def _as_in_study(state: PageState, opening: Opening) -> PageState:
    available, curve = theories_of(state.system), opening.curve
    verb, options = unwrap(curve.fn) if curve else (None, {})
    chosen = (
        [verb.name] if isinstance(verb, Theory) and verb.name in available else _quickest(available)
    )
    words = (
        {(verb.name, name): value for name, value in options.items() if _is_plain(value)}
        if isinstance(verb, Theory)
        else {}
    )
    x = _axis_of(state)
    if x is None:
        raise ValueError(f"{state.system.rpartition('.')[2]} has no number that could be an axis")
    axis = state.knobs[x].axis
    values = [float(value) for value in curve.over.get(x, ())] if curve else []
    span = (
        (min(values), max(values), axis.log)
        if len(set(values)) > 2
        else (axis.low, axis.high, axis.log)
    )
    state = state.with_(theories=tuple(chosen), options=words, x=x, span=span)
    # a study leaves the number that it sweeps at any value
    if values and not min(values) < state.value(x) < max(values):
        middle = math.sqrt(span[0] * span[1]) if span[2] else (span[0] + span[1]) / 2
        with suppress(ValueError):
            state = taken(state, {x: state.knobs[x].neat(middle)})
    state = _with_experiment(state)
    return state.with_(show=_first_shown(state))


def _quickest(available: Mapping[str, Theory]) -> list[str]:
    """The first theory that is compiled and needs no options, or a host algorithm where there is no
    other."""
    ready = [
        name
        for name, verb in available.items()
        if all(one.default is not one.empty for one in verb.options.values())
    ]
    return [name for name in ready if available[name].traced][:1] or ready[:1]


def _is_plain(value: Any) -> bool:
    return is_number(value) or isinstance(value, str | bool | type(None))


def _axis_of(state: PageState) -> str | None:
    curve = state.opening.curve
    over = [name for name, values in curve.over.items() if numeric(values)] if curve else []
    return next((name for name in over if name in state.knobs), None) or next(
        iter(state.knobs), None
    )


def _first_shown(state: PageState) -> tuple[str, ...]:
    available = observables(state)
    wanted = (
        [name for name in find(state.opening.study).observables if name in available]
        if state.opening.study
        else []
    )
    return tuple((wanted or available)[:1])


def _with_experiment(state: PageState) -> PageState:
    """The state with the experiment of the start's study and the lengths of its quick runs, or else
    with the first experiment of the system."""
    available = experiments_of(state.system)
    for curve in curves_of(state.opening.study) if state.opening.study else ():
        verb, options = unwrap(curve.fn)
        if type(curve.system) is type(state.opening.system) and verb.name in available:
            own = {
                (verb.name, name): value
                for name, value in options.items()
                if _is_plain(value) and value is not None
            }
            return state.with_(experiment=verb.name, options={**state.options, **own})
    return state.with_(experiment=next(iter(available), ""))
