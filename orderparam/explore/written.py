"""Writes a system as Python and as arguments of the command line, with the same numbers to the last
digit."""

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np

from orderparam.core.declared import topic_of
from orderparam.core.fields import declarations, is_number
from orderparam.core.given import makers, read
from orderparam.core.system import Record, as_arrays
from orderparam.core.verb import Verb

ENTRIES = 12  # largest number of entries of an array that is written out


class Unwritten(ValueError):
    """A system with a part that cannot be written out."""


def same(one: Any, other: Any) -> bool:
    """True if two systems have the same structure and the same numbers."""
    first, second = as_arrays(one), as_arrays(other)
    return bool(eqx.tree_equal(first, second))


class Python:
    """Writes the Python that makes a record, and the imports that it needs. Raises `Unwritten`."""

    def __init__(self) -> None:
        self.imports: dict[str, set[str]] = {}

    def name(self, thing: Any) -> str:
        """The name of a class or function, imported from its public package."""
        own = getattr(thing, "__qualname__", thing.__name__)
        module = thing.__module__
        for public in _above(module):
            if getattr(importlib.import_module(public), own, None) is thing:
                module = public
                break
        self.imports.setdefault(module, set()).add(own)
        return own

    def __call__(self, record: Any) -> str:
        arguments = [f"{name}={self._value(value)}" for name, value in _given(record).items()]
        return f"{self.name(type(record))}({', '.join(arguments)})"

    def _value(self, value: Any) -> str:
        return self(value) if isinstance(value, Record) else repr(value)

    @property
    def lines(self) -> list[str]:
        return [
            f"from {module} import {', '.join(sorted(names))}"
            for module, names in sorted(self.imports.items())
        ]


def _above(module: str) -> list[str]:
    """The packages that contain a module, beginning with the outermost below `orderparam.systems`
    or `orderparam`."""
    parts = module.split(".")
    first = 3 if parts[:2] == ["orderparam", "systems"] else 2
    return [".".join(parts[:n]) for n in range(first, len(parts))]


def texts(verb: Verb, system: Any) -> dict[str, str]:
    """Field -> text, as `orderparam solve` reads it. Raises `Unwritten` where that command would
    read another system."""
    found = dict(_texts(system, ""))
    try:
        again, _ = read(verb, found, {})
    except ValueError as error:
        raise Unwritten(str(error)) from None
    if type(again) is not type(system) or not same(again, system):
        raise Unwritten(f"{type(system).__name__} cannot be written in words")
    return found


def _texts(record: Any, path: str) -> list[tuple[str, str]]:
    found = []
    for name, value in _given(record).items():
        if isinstance(value, Record):
            by_name = {maker.__name__: maker for maker in makers(declarations(record)[name])}
            if by_name.get(type(value).__name__) is not type(value):
                raise Unwritten(f"{path}{name} is made by no name")
            found += [(f"{path}{name}", type(value).__name__), *_texts(value, f"{path}{name}.")]
        else:
            found.append((f"{path}{name}", text(value)))
    return found


def text(value: Any) -> str:
    """A number, word or list of numbers as `orderparam solve` reads it."""
    if isinstance(value, list | tuple):
        return ",".join(map(text, value))
    return repr(value) if is_number(value) else str(value)


def _given(record: Any) -> dict[str, Any]:
    """The fields that are not at their default, as a person writes them. The caller checks that
    they make the same system."""
    written: dict[str, Any] = {}
    for name in declarations(record):
        field, value = record.__dataclass_fields__[name], getattr(record, name)
        if field.default is not dataclasses.MISSING and _is_default(
            record, name, field.default, value
        ):
            continue
        written[name] = _plain(name, value)
    try:
        again = type(record)(**written)
    except (ValueError, TypeError) as error:
        raise Unwritten(str(error)) from None
    if not same(again, record):
        raise Unwritten(f"{type(record).__name__} cannot be written out")
    return written


def _is_default(record: Any, name: str, default: Any, value: Any) -> bool:
    if is_number(value) and is_number(default):
        return float(value) == float(default)
    try:
        return bool(
            eqx.tree_equal(as_arrays(declarations(record)[name](default)), as_arrays(value))
        )
    except (ValueError, TypeError):
        return False


def _plain(name: str, value: Any) -> Any:
    if is_number(value):
        number = value.item() if hasattr(value, "item") else value
        return int(number) if isinstance(number, int) else float(number)
    if isinstance(value, bool | str | type(None) | Record):
        return value
    if isinstance(value, tuple) and all(isinstance(one, int | float | str) for one in value):
        return value
    if isinstance(value, np.ndarray | jax.Array) and value.ndim == 1 and value.size <= ENTRIES:
        return [float(one) for one in np.asarray(value)]
    if isinstance(word := getattr(value, "name", None), str):
        return word  # an activation, which its name makes; `_given` checks that it does
    raise Unwritten(f"{name} holds {type(value).__name__}")


def call(fn: Any, options: Mapping[str, Any], python: Python) -> str:
    """The call of a theory or experiment with its options, in Python."""
    name = python.name(fn)
    return (
        f"partial({name}, {', '.join(f'{key}={value!r}' for key, value in options.items())})"
        if options
        else name
    )


def topic(system: Any) -> str:
    """The topic that a system belongs to."""
    return topic_of(type(system).__module__)
