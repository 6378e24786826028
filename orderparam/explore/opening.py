"""The system on which a page opens: given by the table of starts, by a curve of a study, or by
numbers that its fields allow.

The curves of a study are systems whose numbers, arrays and spectra a physicist chose.
"""

import dataclasses
import functools
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from orderparam.comparison import Curve, find
from orderparam.core.declared import topic_of
from orderparam.core.fields import Declaration, declarations
from orderparam.core.given import makers
from orderparam.core.grid import numeric
from orderparam.core.registry import index
from orderparam.core.system import Record, System, replace
from orderparam.core.verb import Theory, unwrap
from orderparam.explore.starts import FirstFigure, starts
from orderparam.explore.systems import bounds, is_whole, kind_of, needed

SIZE = 100.0  # value of a whole number that has no default
ENOUGH = 8  # fewest values along a curve that determine its range


@dataclass(frozen=True)
class Opening:
    """The system on which a page opens.

    study, position: the curve of a study from which the system is taken, if any. fields: the fields
    that differ from that curve. start: its row in the table of starts. curve: the curve that
    determines the figure, where there is no such row.
    """

    system: System
    study: str = ""
    position: int = 0
    fields: Mapping[str, Any] = field(default_factory=dict)
    start: FirstFigure | None = None
    curve: Curve | None = None

    @property
    def name(self) -> str:
        """The name in an address, "hopfield-capacity:3"; empty where the name of the system is
        enough."""
        return f"{self.study}:{self.position}" if self.study and self.start is None else ""


@functools.lru_cache(maxsize=32)
def curves_of(study: str) -> tuple[Curve, ...]:
    """The curves of a study at its quick size. Raises the exceptions of missing data."""
    chosen = find(study)
    return tuple(chosen.build(**chosen.parameters()))


def opening_of(name: str) -> Opening:
    """The opening of that name, "STUDY:POSITION". Raises `ValueError` where there is none."""
    study, _, place = name.rpartition(":")
    if (
        not place.isdecimal()
        or len(place) > 4
        or not any(e.kind == "study" and e.name == study for e in index())
    ):
        raise ValueError(f"start = {name[:80]!r}: must be STUDY:POSITION")
    curves = curves_of(study)
    if int(place) >= len(curves):
        raise ValueError(f"start = {name!r}: study {study!r} has {len(curves)} curves")
    curve = curves[int(place)]
    return Opening(curve.system, study, int(place), curve=curve)


@functools.lru_cache(maxsize=256)
def first_opening(name: str) -> Opening:
    """The opening of a system. Raises `ValueError` with a sentence on how to make the system where
    it holds arrays that no study has."""
    kind = kind_of(name)
    if name in starts():
        return _by_table(kind, starts()[name])
    return _by_study(kind) or Opening(_by_contract(kind, {}))


def _by_table(kind: type[System], start: FirstFigure) -> Opening:
    if not start.study:
        return Opening(_by_contract(kind, start.fields), fields=start.fields, start=start)
    curves = curves_of(start.study)
    fitting = [
        i
        for i, one in enumerate(curves)
        if type(one.system) is kind and start.curve in ("", one.key)
    ]
    if not fitting:
        names = ", ".join(one.key for one in curves if type(one.system) is kind)
        raise ValueError(
            f"start of {start.system}: study {start.study} has no curve {start.curve!r} of it; it "
            f"has {names}"
        )
    system = replace(curves[fitting[0]].system, dict(start.fields))
    return Opening(system, start.study, fitting[0], start.fields, start)


def _by_study(kind: type[System]) -> Opening | None:
    """The opening from the best curve among the studies of the system's topic."""
    best: tuple[int, Opening] | None = None
    for entry in sorted(
        _studies(topic_of(kind.__module__)),
        key=lambda entry: entry.details.get("seconds") or (99, 99),
    ):
        try:
            curves = curves_of(entry.name)
        except (ValueError, OSError):  # data that are missing and cannot be fetched
            continue
        for position, curve in enumerate(curves):
            if type(curve.system) is kind and (best is None or _rank(curve) < best[0]):
                best = _rank(curve), Opening(curve.system, entry.name, position, curve=curve)
        if best is not None and best[0] == 0:
            break
    return best[1] if best is not None else None


def _studies(topic: str) -> Iterator[Any]:
    return (entry for entry in index() if entry.kind == "study" and entry.topic == topic)


def _rank(curve: Curve) -> int:
    """The rank of a curve as an opening: a theory along one number comes first."""
    numbers = [name for name, values in curve.over.items() if numeric(values)]
    theory = isinstance(unwrap(curve.fn)[0], Theory)
    along = len(curve.over) == 1 and any(len(curve.over[name]) >= ENOUGH for name in numbers)
    return 0 if theory and along else 1 if theory and numbers else 2 if theory else 3


def _by_contract(kind: type[System], fields: Mapping[str, Any]) -> System:
    """A system with these fields, the others at their defaults or at an allowed value, and its
    parts made by the first class or function that makes them."""
    missing = []
    values: dict[str, Any] = {}
    for name, declaration in declarations(kind).items():
        if name in fields or kind.__dataclass_fields__[name].default is not dataclasses.MISSING:
            continue
        found = _usual(declaration)
        if found is None:
            missing.append(name)
        else:
            values[name] = found
    if missing:
        ways = [
            word
            for word in dir(kind)
            if word.startswith("from_") and inspect.ismethod(getattr(kind, word))
        ]
        how = (
            f"{kind.__name__}.{ways[0]}(...)"
            if ways
            else f"{kind.__name__}({', '.join(declarations(kind))})"
        )
        raise ValueError(
            f"{kind.__name__} holds {', '.join(missing)}, which no slider makes: in Python, "
            f"orderparam.systems.{topic_of(kind.__module__)}.{how} makes one, and op.sweep "
            "evaluates its theories"
        )
    own = {name: value for name, value in fields.items() if "." not in name}
    of_parts = {name: value for name, value in fields.items() if "." in name}
    system = kind(**values, **own)
    return replace(system, of_parts) if of_parts else system


def _usual(declaration: Declaration) -> Any:
    """An allowed value for a field without a default; None for a field of arrays, or of parts that
    hold arrays."""
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
