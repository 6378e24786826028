"""The systems of the registry, their theories and experiments, and their fields."""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

from orderparam.core import registry
from orderparam.core.declared import topic_of
from orderparam.core.fields import Declaration, declarations, is_number
from orderparam.core.names import nearest
from orderparam.core.system import Record, System
from orderparam.core.verb import Experiment, Theory, Verb


def system_name(kind: type) -> str:
    """The name of a class of systems: topic and class, such as `spins.MeanFieldMagnet`."""
    return f"{topic_of(kind.__module__)}.{kind.__name__}"


@functools.cache
def kinds() -> dict[str, type[System]]:
    """Every system by name."""
    return registry.systems()


def kind_of(name: str) -> type[System]:
    """The class of systems of that name. Raises `ValueError` with the nearest name."""
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
    return {
        name: verb
        for name, verb in verbs().items()
        if isinstance(verb, Theory) and _takes(verb, system)
    }


@functools.cache
def experiments_of(system: str) -> dict[str, Experiment]:
    """The experiments that take this system."""
    return {
        name: verb
        for name, verb in verbs().items()
        if isinstance(verb, Experiment) and _takes(verb, system)
    }


def _takes(verb: Verb, system: str) -> bool:
    return any(issubclass(kind_of(system), one) for one in verb.systems)


# Names of fields that are counts: theories take any number, experiments ask `System.size` for a
# whole one.
COUNTS = frozenset(
    [
        "batch_size",
        "channels",
        "copies",
        "count",
        "drawn",
        "heads",
        "input_dim",
        "key_width",
        "modes",
        "n_points",
        "n_train",
        "neurons",
        "sites",
        "spins",
        "target_dim",
        "tokens",
        "total",
        "width",
        "width_per_head",
    ]
)


def is_whole(declaration: Declaration) -> bool:
    """True if a field is a count, for which an experiment needs a whole number."""
    return (
        declaration.integer
        or int in declaration.annotations
        or declaration.name in COUNTS
        or declaration.meaning.startswith(("number of", "dimension"))
    )


def bounds(declaration: Declaration) -> tuple[float | None, float | None]:
    """The smallest and the largest allowed value; either may be excluded."""
    low = next(
        (x for x in (declaration.limits["minimum"], declaration.limits["above"]) if x is not None),
        None,
    )
    high = next(
        (x for x in (declaration.limits["maximum"], declaration.limits["below"]) if x is not None),
        None,
    )
    return low, high


def needed(kind: type[Record]) -> dict[str, Declaration]:
    """The fields of a system without a default."""
    fields = kind.__dataclass_fields__
    return {
        name: one
        for name, one in declarations(kind).items()
        if fields[name].default is dataclasses.MISSING
    }


def numbers_of(record: Any, path: str = "") -> Iterator[tuple[str, Declaration, float]]:
    """Dotted name, declaration and value of every single number of a system and of its parts."""
    for name, declaration in declarations(record).items():
        value = getattr(record, name)
        if declaration.kind == "part" and isinstance(value, Record):
            yield from numbers_of(value, f"{path}{name}.")
        elif declaration.kind == "parameter" and is_number(value):
            yield path + name, declaration, float(value)


def choices_of(record: Any, path: str = "") -> Iterator[tuple[str, Declaration, Any]]:
    """Dotted name, declaration and value of every field that is not a number and that a menu or a
    whole number can change."""
    for name, declaration in declarations(record).items():
        value = getattr(record, name)
        if declaration.kind == "part" and isinstance(value, Record):
            yield from choices_of(value, f"{path}{name}.")
        elif declaration.choices or (
            declaration.kind == "structure" and isinstance(value, bool | int | str)
        ):
            yield path + name, declaration, value


def title_of(name: str) -> str:
    """The class of a system in words: "MeanFieldMagnet" becomes "Mean field magnet"."""
    spaced = "".join(
        f" {c.lower()}" if c.isupper() and i else c for i, c in enumerate(name.rpartition(".")[2])
    )
    return spaced.strip()


def about(kind: type) -> str:
    """The first paragraph of the docstring of a system."""
    return " ".join((kind.__doc__ or "").partition("\n\n")[0].split())
