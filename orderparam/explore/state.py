"""The state of a page as one record, which is written as an address, as Python and as commands; and
its changes, each of which is checked."""

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from functools import cached_property, partial
from typing import Any
from urllib.parse import urlencode

import numpy as np

from orderparam.analysis.phases.axes import axes_of
from orderparam.core.fields import is_number
from orderparam.core.given import read_option
from orderparam.core.names import nearest
from orderparam.core.system import System, replace
from orderparam.core.verb import unwrap
from orderparam.explore.knobs import Knob, knobs
from orderparam.explore.opening import Opening, first_opening, opening_of
from orderparam.explore.systems import (
    choices_of,
    verbs,
)
from orderparam.explore.written import Python, Unwritten, call, text, texts

POINTS = 65  # number of points of a curve
SHOWN = 4  # largest numbers of observables and theories on one page
MEASURED = (2, 40)  # smallest and largest number of points of an experiment
SEEDS = (1, 100)
# largest factor above the size in a study or a default: a larger size would fill the machine
MOST = 20
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
                f"measured = op.sweep({fn}, system, {{{self.x!r}: {self.places!r}}}, "
                f"seeds={self.seeds})"
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


def checked_range(state: PageState, name: str, words: str) -> Range:
    """The range "LOW:HIGH[:log]" of a number. Raises `ValueError` for a range that the system does
    not allow."""
    low, high, *scale = (*words.split(":"), "", "")[: max(2, words.count(":") + 1)]
    over = {name: (number(name, low), number(name, high), *[word for word in scale if word])}
    (axis,) = axes_of(state.instance, over, 1, whole=True)
    return axis.low, axis.high, axis.log


def known_name(name: str, available: Any, what: str) -> str:
    """The name, if it is one of the known names. Raises `ValueError` with the nearest one
    otherwise."""
    if name not in available:
        raise ValueError(
            f"there is no {what} {name[:80]!r} here{nearest(name[:80], list(available))}"
        )
    return name


def number(name: str, value: str) -> float:
    """The number that a text stands for. Raises `ValueError`."""
    try:
        found = float(value)
    except ValueError:
        raise ValueError(f"{name[:80]} = {value[:40]}: must be a number") from None
    if math.isnan(found):
        raise ValueError(f"{name[:80]} = {value[:40]}: must be a number")
    return found
