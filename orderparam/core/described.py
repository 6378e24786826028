"""Descriptions of theories and experiments (their fields and options, in words), kept on disk from
one command to the next, because importing a theory takes seconds.

All descriptions lie in one file beside the compiled programs, each under a digest of the source
that it describes.
"""

import json
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from orderparam.core import bounds
from orderparam.core.compilation_cache import ENVIRONMENT_VARIABLE, folder_of_programs
from orderparam.core.names import nearest
from orderparam.core.paths import state_of_files

_FILE = "descriptions.json"


@dataclass(frozen=True)
class Kind:
    """The description of a class of systems: the names of its fields, the names of those without a
    default, and the meaning, allowed values and default of every declared field.

    numbers: field -> meaning, limits, and whether it is an integer or may be infinite, for fields
    of one number.
    """

    name: str
    fields: Sequence[str]
    needed: Sequence[str]
    rows: Sequence[Sequence[str | None]] = ()
    numbers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def check(self, given: Mapping[str, str]) -> None:
        """Raises `ValueError` for texts of these fields that are not numbers, or not allowed."""
        for name, declared in self.numbers.items():
            if name in given:
                number = number_in(given[name], name)
                limits, integer, infinite = (declared[k] for k in ("limits", "integer", "infinite"))
                if not bounds.holds(number, limits, integer, infinite):
                    must_be = bounds.allowed(limits, integer, infinite)
                    meaning = declared["meaning"]
                    refusal = bounds.refusal(name, str(number), must_be, meaning, infinite)
                    raise ValueError(f"{self.name}.{refusal}")


@dataclass(frozen=True)
class Described:
    """The description of a theory or an experiment. options: name, allowed values and default.
    needs: what it needs of single fields and options."""

    name: str
    kind: str
    doc: str
    systems: Sequence[Kind]
    options: Sequence[Sequence[str]]
    observables: Sequence[str]
    needs: Sequence[str] = ()


def number_in(text: str, path: str) -> float:
    """The number in the text of a field. Raises `ValueError` where there is none, and for one that
    is too large for a double."""
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{path} = {text}: must be a number") from None
    if math.isinf(number) and any(map(str.isdigit, text)):
        raise ValueError(f"{path} = {text}: is beyond the largest number, 1.8e308")
    return number


def fitting(
    kinds: Sequence[Kind], options: Sequence[str], heads: set[str]
) -> tuple[int, list[str]]:
    """The system that has all these fields, and those of the names that are options.

    Of several that do, the first that needs no other field, or else the first: a theory names the
    system that it is used with most before the others. Raises `ValueError` with the nearest name
    where no system has all fields.
    """
    own = [
        name for name in heads if name in options and not any(name in kind.fields for kind in kinds)
    ]
    unknown = [sorted(heads - {*kind.fields, *own}) for kind in kinds]
    missing = [[name for name in kind.needed if name not in heads] for kind in kinds]
    chosen = min(range(len(kinds)), key=lambda i: (len(unknown[i]), bool(missing[i])))
    if unknown[chosen]:
        name, kind = unknown[chosen][0], kinds[chosen]
        raise ValueError(
            f"{kind.name} has no field {name!r}{nearest(name, [*kind.fields, *options])}"
        )
    return chosen, own


def kept(name: str, files: Sequence[Path]) -> Described | None:
    """The stored description of that name, if there is one and its source files have not
    changed."""
    stored = _read(state_of_files(files)).get(name)
    if stored is None:
        return None
    return Described(**{**stored, "systems": [Kind(**kind) for kind in stored["systems"]]})


def keep(described: Described, files: Sequence[Path]) -> None:
    """Stores a description, where there is a folder for it."""
    state = state_of_files(files)
    with suppress(OSError, ValueError):
        place = _place()
        if place is not None:
            text = json.dumps(
                {"state": state, "known": {**_read(state), described.name: asdict(described)}}
            )
            aside = place.with_name(f"{place.name}.{os.getpid()}.new")
            aside.write_text(text)
            aside.replace(place)


def _place() -> Path | None:
    return (
        None
        if os.environ.get(ENVIRONMENT_VARIABLE, "").lower() == "off"
        else folder_of_programs() / _FILE
    )


def _read(state: str) -> dict[str, Any]:
    try:
        place = _place()
        found = {} if place is None else json.loads(place.read_text())
        return found["known"] if found.get("state") == state else {}
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
    ):  # missing, or altered since it was written
        return {}
