"""Where a system begins: at a curve of a study that has it, else at numbers that its contract allows.

A study's curves are systems with numbers that a physicist chose, arrays and spectra among them, a theory, an axis and its range:
all that a page needs to begin with.
"""

import dataclasses
import functools
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from orderparam.core import registry
from orderparam.core.fields import Declaration, declarations, is_number
from orderparam.core.given import makers
from orderparam.core.grid import numeric
from orderparam.core.names import nearest
from orderparam.core.registry import index, room_of
from orderparam.core.study import Curve, find
from orderparam.core.system import Record, System
from orderparam.core.verb import Experiment, Theory, Verb, unwrap

SIZE = 100.0  # of a whole number that has no default
ENOUGH = 8  # values along a curve that say what range it is worth to be seen on


@dataclass(frozen=True)
class Opening:
    """A system to begin with. study, position: the curve of a study that it is of, where it is of one."""

    system: System
    study: str = ""
    position: int = 0
    curve: Curve | None = None

    @property
    def name(self) -> str:
        """As it stands in an address: "hopfield-capacity:3"; empty where there is no study."""
        return f"{self.study}:{self.position}" if self.study else ""


def system_name(kind: type) -> str:
    return f"{room_of(kind.__module__)}.{kind.__name__}"


@functools.cache
def kinds() -> dict[str, type[System]]:
    """Every system by name."""
    return registry.systems()


def kind_of(name: str) -> type[System]:
    """Raises `ValueError` with the nearest name."""
    if name not in kinds():
        raise ValueError(f"there is no system {name!r}{nearest(name, list(kinds()))}")
    return kinds()[name]


@functools.cache
def verbs() -> dict[str, Verb]:
    """Every theory and experiment by name."""
    return {**registry.theories(), **registry.experiments()}


@functools.cache
def theories_of(system: str) -> dict[str, Theory]:
    """The theories that take this system."""
    return {name: verb for name, verb in verbs().items() if isinstance(verb, Theory) and _takes(verb, system)}


@functools.cache
def experiments_of(system: str) -> dict[str, Experiment]:
    """The experiments that take this system."""
    return {name: verb for name, verb in verbs().items() if isinstance(verb, Experiment) and _takes(verb, system)}


def _takes(verb: Verb, system: str) -> bool:
    return any(issubclass(kind_of(system), one) for one in verb.systems)


@functools.lru_cache(maxsize=32)
def curves_of(study: str) -> tuple[Curve, ...]:
    """The curves of a study at its quick size. Raises whatever its data raise that are not there."""
    chosen = find(study)
    return tuple(chosen.build(**chosen.parameters()))


def start_of(name: str) -> Opening:
    """The start of that name, "STUDY:POSITION". Raises `ValueError` where there is none."""
    study, _, place = name.rpartition(":")
    if not place.isdecimal() or len(place) > 4 or not any(e.kind == "study" and e.name == study for e in index()):
        raise ValueError(f"start = {name[:80]!r}: must be STUDY:POSITION")
    curves = curves_of(study)
    if int(place) >= len(curves):
        raise ValueError(f"start = {name!r}: study {study!r} has {len(curves)} curves")
    curve = curves[int(place)]
    return Opening(curve.system, study, int(place), curve)


@functools.lru_cache(maxsize=256)
def first_start(name: str) -> Opening:
    """Where a system begins. Raises `ValueError` with a sentence on how to make one where it holds arrays that no study has."""
    kind = kind_of(name)
    best: tuple[int, Opening] | None = None
    for entry in sorted(_studies(room_of(kind.__module__)), key=lambda entry: entry.details.get("seconds") or (99, 99)):
        try:
            curves = curves_of(entry.name)
        except (ValueError, OSError):  # data that are not here, and cannot be fetched
            continue
        for position, curve in enumerate(curves):
            if type(curve.system) is kind and (best is None or _rank(curve) < best[0]):
                best = _rank(curve), Opening(curve.system, entry.name, position, curve)
        if best is not None and best[0] == 0:
            break
    return best[1] if best is not None else Opening(_by_contract(kind))


def _studies(room: str) -> Iterator[Any]:
    return (entry for entry in index() if entry.kind == "study" and entry.room == room)


def _rank(curve: Curve) -> int:
    """How good a start a curve is: a theory along one number first."""
    numbers = [name for name, values in curve.over.items() if numeric(values)]
    theory = isinstance(unwrap(curve.fn)[0], Theory)
    along = len(curve.over) == 1 and any(len(curve.over[name]) >= ENOUGH for name in numbers)
    return 0 if theory and along else 1 if theory and numbers else 2 if theory else 3


def _by_contract(kind: type[System]) -> System:
    """A system at its defaults; numbers without one at what their contract allows, parts by the first that makes them."""
    missing = []
    values: dict[str, Any] = {}
    for name, declaration in declarations(kind).items():
        if kind.__dataclass_fields__[name].default is not dataclasses.MISSING:
            continue
        found = _usual(declaration)
        if found is None:
            missing.append(name)
        else:
            values[name] = found
    if missing:
        ways = [word for word in dir(kind) if word.startswith("from_") and inspect.ismethod(getattr(kind, word))]
        how = f"{kind.__name__}.{ways[0]}(...)" if ways else f"{kind.__name__}({', '.join(declarations(kind))})"
        raise ValueError(
            f"{kind.__name__} holds {', '.join(missing)}, which no slider makes: in Python, orderparam.systems."
            f"{room_of(kind.__module__)}.{how} makes one, and op.sweep evaluates its theories"
        )
    return kind(**values)


def is_whole(declaration: Declaration) -> bool:
    """Whether a field counts something, so that an experiment asks for a whole number."""
    return declaration.integer or int in declaration.annotations or declaration.meaning.startswith(("number of", "dimension"))


def bounds(declaration: Declaration) -> tuple[float | None, float | None]:
    """The least and the largest value allowed, or what it must stay above or below."""
    low = next((x for x in (declaration.limits["minimum"], declaration.limits["above"]) if x is not None), None)
    high = next((x for x in (declaration.limits["maximum"], declaration.limits["below"]) if x is not None), None)
    return low, high


def _usual(declaration: Declaration) -> Any:
    """A value that a field without a default may have; None where it takes arrays or parts that hold some."""
    if declaration.kind == "part":
        for maker in makers(declaration):
            if isinstance(maker, type) and issubclass(maker, Record):
                values = {name: _usual(one) for name, one in needed(maker).items()}
                if None not in values.values():
                    return maker(**values)
        return None
    if declaration.choices:
        return declaration.choices[0]
    if declaration.kind == "parameter" and () not in declaration.shapes:
        return None
    whole, (low, high) = is_whole(declaration), bounds(declaration)
    if low is not None and high is not None:
        middle = (low + high) / 2
        return round(middle) if whole else middle
    usual = SIZE if whole else 1.0
    usual = max(usual, low + 1 if low is not None else usual)
    usual = min(usual, high / 2 if high is not None and high > 0 else usual)
    return int(usual) if whole else usual


def needed(kind: type[Record]) -> dict[str, Declaration]:
    """Its fields without a default."""
    fields = kind.__dataclass_fields__
    return {name: one for name, one in declarations(kind).items() if fields[name].default is dataclasses.MISSING}


def numbers_of(record: Any, path: str = "") -> Iterator[tuple[str, Declaration, float]]:
    """Dotted name, declaration and value of every single number of a system and of its parts."""
    for name, declaration in declarations(record).items():
        value = getattr(record, name)
        if declaration.kind == "part" and isinstance(value, Record):
            yield from numbers_of(value, f"{path}{name}.")
        elif declaration.kind == "parameter" and is_number(value):
            yield path + name, declaration, float(value)


def choices_of(record: Any, path: str = "") -> Iterator[tuple[str, Declaration, Any]]:
    """Dotted name, declaration and value of every field that is no number and that a menu or a whole number can change."""
    for name, declaration in declarations(record).items():
        value = getattr(record, name)
        if declaration.kind == "part" and isinstance(value, Record):
            yield from choices_of(value, f"{path}{name}.")
        elif declaration.choices or (declaration.kind == "structure" and isinstance(value, bool | int | str)):
            yield path + name, declaration, value
