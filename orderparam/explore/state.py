"""The state of a page as one record: made from an address, and written as an address, as Python and
as commands.

Nothing that a browser sends is evaluated: every value is read by the declaration of its field,
every name is looked up in the registry, and anything else is refused with a sentence.
"""

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from dataclasses import replace as changed
from functools import cached_property, lru_cache, partial
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np

from orderparam.analysis.phases.axes import axes_of
from orderparam.comparison import find
from orderparam.core.fields import is_number
from orderparam.core.given import read_option
from orderparam.core.grid import numeric
from orderparam.core.names import nearest
from orderparam.core.system import System, replace
from orderparam.core.verb import Theory, unwrap
from orderparam.explore.knobs import Knob, knobs
from orderparam.explore.opening import Opening, curves_of, first_opening, opening_of
from orderparam.explore.starts import FirstFigure
from orderparam.explore.systems import (
    choices_of,
    experiments_of,
    kind_of,
    system_name,
    theories_of,
    verbs,
)
from orderparam.explore.written import Python, Unwritten, call, text, texts

POINTS = 65  # number of points of a curve
LONGEST = 4000  # largest number of characters of an address
SHOWN = 4  # largest numbers of observables and theories on one page
MEASURED = (2, 40)  # smallest and largest number of points of an experiment
SEEDS = (1, 100)
# largest factor above the size in a study or a default: a larger size would fill the machine
MOST = 20
FEW = 4  # number of sliders beside the figure, where the table of starts names none
RESOLUTIONS = (8, 16, 32, 64)
ASIDE = ("residual", "converged", "valid", "reliable", "status", "seconds")
BRANCHES = ("branch", "start")

Range = tuple[float, float, bool]  # low, high, whether logarithmic


@dataclass(frozen=True)
class PageState:
    """Everything that determines a page. start: "STUDY:POSITION", or empty. changes: dotted field
    -> value, for the fields that differ from the start.

    theories: names; options: (theory or experiment, option) -> value. x, span: the axis and its
    range. y, y_span, order: the other axis of the plane and its order parameter. show: observables.
    experiment, measured, seeds: the measurement, its number of points and of runs.
    """

    system: str
    start: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    theories: tuple[str, ...] = ()
    options: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    x: str = ""
    span: Range = (0.0, 1.0, False)
    show: tuple[str, ...] = ()
    y: str = ""
    y_span: Range = (0.0, 1.0, False)
    order: str = ""
    experiment: str = ""
    measured: int = 6
    seeds: int = 4
    log_y: bool = False

    # -- what it stands for -----------------------------------------------------------------------

    @cached_property
    def opening(self) -> Opening:
        """The system on which the page opened."""
        return opening_of(self.start) if self.start else first_opening(self.system)

    @cached_property
    def instance(self) -> System:
        """The system. Raises `ValueError` for values that it refuses."""
        return replace(self.opening.system, dict(self.changes))

    @property
    def knobs(self) -> dict[str, Knob]:
        """The numbers of the system with their ranges."""
        return knobs(self.system, self.opening.name)

    def value(self, name: str) -> float:
        """A number of the system by its dotted name."""
        found: Any = self.instance
        for part in name.split("."):
            found = getattr(found, part)
        return float(found)

    @cached_property
    def grid(self) -> list[float]:
        """The values along x."""
        low, high, log = self.span
        values = np.geomspace(low, high, POINTS) if log else np.linspace(low, high, POINTS)
        return np.unique(np.round(values)).tolist() if self.along_integers else values.tolist()

    @property
    def along_integers(self) -> bool:
        """True if the x axis is an integer field, such as a number of examples."""
        return (
            self.x in self.knobs and self.knobs[self.x].whole and self.span[1] - self.span[0] >= 1
        )

    @property
    def places(self) -> list[float]:
        """The values along x that are measured, all of them on the grid."""
        chosen = np.unique(np.round(np.linspace(0, len(self.grid) - 1, self.measured)).astype(int))
        return [self.grid[i] for i in chosen]

    def verb_with_options(self, name: str) -> Callable[..., Any]:
        """A theory or experiment with its options."""
        own = self.own_options(name)
        return partial(verbs()[name], **own) if own else verbs()[name]

    def own_options(self, name: str) -> dict[str, Any]:
        return {option: value for (verb, option), value in self.options.items() if verb == name}

    def with_(self, **fields: Any) -> "PageState":
        return changed(self, **fields)

    # -- as an address ----------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """`?system=...`"""
        pairs = [("system", self.system)]
        pairs += [("start", self.start)] if self.start else []
        pairs += [(f"f.{name}", text(value)) for name, value in self.changes.items()]
        pairs += [("theory", ",".join(self.theories))] if self.theories else []
        pairs += [
            (f"o.{verb}.{option}", text(value)) for (verb, option), value in self.options.items()
        ]
        pairs += [("x", f"{self.x}:{_range(self.span)}")] if self.x else []
        pairs += [("y", f"{self.y}:{_range(self.y_span)}")] if self.y else []
        pairs += [
            (name, value)
            for name, value in (("order", self.order), ("show", ",".join(self.show)))
            if value
        ]
        pairs += [("log", "y" if self.log_y else "")]
        pairs += [
            ("experiment", self.experiment),
            ("measured", str(self.measured)),
            ("seeds", str(self.seeds)),
        ]
        return "?" + urlencode(pairs, safe=":,.")

    # -- taken away -------------------------------------------------------------------------------

    def python(self) -> str:
        """A Python program that computes the curves of the page: `curves[name]` for every theory,
        `measured` for the experiment."""
        python = Python()
        try:
            system = f"system = {python(self.instance)}"
        except Unwritten:
            system = self._from_study()
        called = {
            name: call(*unwrap(self.verb_with_options(name)), python) for name in self.theories
        }
        lines = [f"curves[{name!r}] = op.sweep({fn}, system, grid)" for name, fn in called.items()]
        if self.experiment:
            fn = call(*unwrap(self.verb_with_options(self.experiment)), python)
            lines.append(
                f"measured = op.sweep({fn}, system, {{{self.x!r}: {self.places!r}}}, seeds={self.seeds})"
            )
        used = (
            ["from functools import partial\n"] if any("partial(" in line for line in lines) else []
        )
        head = [*used, "import numpy as np\n", "import orderparam as op", *python.lines]
        return "\n".join(
            [
                *head,
                "",
                system,
                f"grid = {{{self.x!r}: {self._values()}}}",
                "curves = {}",
                *lines,
                "",
            ]
        )

    def _values(self) -> str:
        low, high, log = self.span
        values = f"np.{'geomspace' if log else 'linspace'}({low!r}, {high!r}, {POINTS})"
        return f"np.unique(np.round({values}))" if self.along_integers else values

    def _from_study(self) -> str:
        opening = self.opening
        if not opening.study:
            raise Unwritten(f"{self.system} cannot be written out")
        changes = ", ".join(
            f"{name!r}: {value!r}" for name, value in {**opening.fields, **self.changes}.items()
        )
        curve = f"study.build(**study.parameters())[{opening.position}].system"
        system = f'study = op.studies()["{opening.study}"]\nsystem = {curve}'
        return f"{system}.with_(**{{{changes}}})" if changes else system

    def commands(self) -> list[str]:
        """One `orderparam solve` for every theory and the experiment. Raises `Unwritten` where the
        system cannot be written as arguments."""
        return [_line(words) for words in self.words()]

    def words(self) -> list[list[str]]:
        """The arguments that the commands share."""
        found = [self._solve(name, self._over()) for name in self.theories]
        if self.experiment:
            found.append(
                [
                    *self._solve(self.experiment, f"{self.x}={text(self.places)}"),
                    "--seeds",
                    str(self.seeds),
                ]
            )
        return found

    def _over(self) -> str:
        return (
            f"{self.x}={text(self.grid)}"
            if self.along_integers
            else f"{self.x}={_range(self.span, POINTS)}"
        )

    def _solve(self, name: str, over: str) -> list[str]:
        available = {
            field: value
            for field, value in texts(verbs()[name], self.instance).items()
            if field != self.x
        }
        options = {option: text(value) for option, value in self.own_options(name).items()}
        return [
            "solve",
            name,
            *(f"{key}={value}" for key, value in (available | options).items()),
            "--over",
            over,
        ]


def _range(span: Range, points: int | None = None) -> str:
    low, high, log = span
    return ":".join(
        [repr(low), repr(high), *([str(points)] if points else []), *(["log"] if log else [])]
    )


def _line(words: Sequence[str]) -> str:
    return shlex.join(["orderparam", *words])


# -- made from nothing, and from an address ------------------------------------------------------


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
        {(verb.name, name): value for name, value in options.items() if _plain(value)}
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


def _plain(value: Any) -> bool:
    return is_number(value) or isinstance(value, str | bool | type(None))


def _axis_of(state: PageState) -> str | None:
    curve = state.opening.curve
    over = [name for name, values in curve.over.items() if numeric(values)] if curve else []
    return next((name for name in over if name in state.knobs), None) or next(
        iter(state.knobs), None
    )


def taken(state: PageState, changes: Mapping[str, Any]) -> PageState:
    """The state with these fields of the system changed. Raises `ValueError` for what the system
    refuses, and for sizes that change the structure of the computation and are beyond `MOST` times
    those of the start."""
    first = {name: value for name, _, value in choices_of(state.opening.system)}
    for name, value in changes.items():
        _check_size(name, value, first.get(name))
    replace(state.opening.system, {**state.changes, **changes})
    return state.with_(changes={**state.changes, **changes})


def option_of(state: PageState, name: str, option: str, words: str) -> Any:
    """The value of an option of a theory or experiment. Raises `ValueError` as the theory does, and
    for sizes beyond `MOST` times its default or that of the study."""
    verb = verbs()[name]
    value = read_option(verb, option, words)
    verb.accept(state.instance, {option: value})
    default = verb.options[option].default
    for one in value if isinstance(value, tuple) else (value,):
        _check_size(f"{name}: {option}", one, default)
    return value


def _check_size(name: str, value: Any, usual: Any) -> None:
    if (
        isinstance(usual, int)
        and not isinstance(usual, bool)
        and is_number(value)
        and abs(value) > (most := MOST * max(usual, 5))
    ):
        raise ValueError(
            f"{name} = {value}: must be at most {most} here; in Python there is no such limit"
        )


def observables(state: PageState) -> list[str]:
    """The observables of the chosen theories (or of the experiment); those with one number at each
    point come first."""
    names = state.theories or ((state.experiment,) if state.experiment else ())
    found: dict[str, int] = {}
    for name in names:
        for result in verbs()[name].results:
            found |= {key: len(dims) for key, dims in result.dims().items() if key not in ASIDE}
    return sorted(found, key=lambda key: found[key] > 0)


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
                if _plain(value) and value is not None
            }
            return state.with_(experiment=verb.name, options={**state.options, **own})
    return state.with_(experiment=next(iter(available), ""))


def read(query: str) -> PageState:
    """The state that an address holds. Raises `ValueError`, in one sentence, for what does not fit."""
    if len(query) > LONGEST:
        raise ValueError(f"the address has {len(query)} characters: at most {LONGEST} are read")
    given = dict(parse_qsl(query.removeprefix("?"), keep_blank_values=True, max_num_fields=100))
    if "system" not in given:
        raise ValueError("the address names no system")
    state = opened(given["system"], given.get("start", ""))
    words = {name: value for name, value in choices_words(state).items() if f"f.{name}" in given}
    changes = {
        name: _choice(name, given[f"f.{name}"], available) for name, available in words.items()
    }
    for key, value in given.items():
        if key.startswith("f.") and key[2:] not in words:
            changes[known_name(key[2:], state.knobs, "number")] = _number(key[2:], value)
    if changes:
        state = taken(state.with_(changes={}), changes)
    theory_names, experiment_names = theories_of(state.system), experiments_of(state.system)
    if "theory" in given:
        names = tuple(
            dict.fromkeys(
                known_name(name, theory_names, "theory") for name in given["theory"].split(",")
            )
        )[:SHOWN]
        state = state.with_(theories=names, show=())
    if given.get("experiment"):
        state = state.with_(
            experiment=known_name(given["experiment"], experiment_names, "experiment")
        )
    options = {}
    for key, value in given.items():
        if key.startswith("o."):
            name, _, option = key[2:].rpartition(".")
            verb = verbs()[known_name(name, {**theory_names, **experiment_names}, "theory")]
            options[name, option] = option_of(
                state, name, known_name(option, verb.options, "option"), value
            )
    if "theory" in given or "experiment" in given or options:
        state = state.with_(options=options)
    for letter in ("x", "y"):
        if letter in given:
            name, _, rest = given[letter].partition(":")
            span = checked_range(state, known_name(name, state.knobs, "number"), rest)
            state = state.with_(**{letter: name, "span" if letter == "x" else "y_span": span})
    available = observables(state)
    shown = (
        tuple(known_name(name, available, "observable") for name in given["show"].split(","))[
            :SHOWN
        ]
        if "show" in given
        else ()
    )
    state = state.with_(
        show=shown
        or tuple(name for name in state.show if name in available)
        or tuple(available[:1])
    )
    state = state.with_(log_y=given["log"] == "y" if "log" in given else state.log_y)
    if "order" in given:
        state = state.with_(order=known_name(given["order"], available, "observable"))
    for key, (low, high) in {"measured": MEASURED, "seeds": SEEDS}.items():
        if key in given:
            number = _number(key, given[key])
            if not (low <= number <= high and number.is_integer()):
                raise ValueError(f"{key} = {number:g}: must be an integer from {low} to {high}")
            state = state.with_(**{key: int(number)})
    return state


def checked_range(state: PageState, name: str, words: str) -> Range:
    """The range "LOW:HIGH[:log]" of a number. Raises `ValueError` for a range that the system does
    not allow."""
    low, high, *scale = (*words.split(":"), "", "")[: max(2, words.count(":") + 1)]
    over = {name: (_number(name, low), _number(name, high), *[word for word in scale if word])}
    (axis,) = axes_of(state.instance, over, 1, whole=True)
    return axis.low, axis.high, axis.log


def choices_words(state: PageState) -> dict[str, tuple[Any, Sequence[Any]]]:
    """Every field that is not a number -> its value, and the allowed words (none for a whole number
    or a formula)."""
    return {
        name: (value, _words(declaration))
        for name, declaration, value in choices_of(state.opening.system)
    }


def _words(declaration: Any) -> tuple[str, ...]:
    if bool in declaration.annotations:
        return ("True", "False")
    return tuple(str(word) for word in declaration.choices if "(" not in str(word))


def _choice(name: str, value: str, available: tuple[Any, Sequence[Any]]) -> Any:
    now, words = available
    if isinstance(now, bool) and value in ("True", "False"):
        return value == "True"
    if isinstance(now, int) and not words:
        number = _number(name, value)
        return int(number) if number.is_integer() else number  # the field refuses it, with its name
    return value


def known_name(name: str, available: Any, what: str) -> str:
    """The name, if it is one of the known names. Raises `ValueError` with the nearest one
    otherwise."""
    if name not in available:
        raise ValueError(
            f"there is no {what} {name[:80]!r} here{nearest(name[:80], list(available))}"
        )
    return name


def _number(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        raise ValueError(f"{name[:80]} = {value[:40]}: must be a number") from None
    if math.isnan(number):
        raise ValueError(f"{name[:80]} = {value[:40]}: must be a number")
    return number
