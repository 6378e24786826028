"""Reads a system, and the options of a theory, from texts: `n_train=400 spectrum=power_law
spectrum.capacity=1.5 branch=retrieval`.

How a field is read follows from its declaration. Numbers, words and truth values are written out;
an array is `1,2,3` (rows separated by `;`) or a file (.npy, .csv, .txt); a part is given by the
name of its class, or of a function that returns it, and the arguments of that by dotted names.
Where only one class or function can make the part, its name may be left out.

A parser of dataclasses (tyro, jsonargparse) is not used: it needs the class before it can read its
fields, which means importing it. Here the given fields choose the class, ranges (`0.1:10:log`)
stand for grids, and a theory that was described before is read without an import.
"""

import dataclasses
import inspect
import sys
import typing
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orderparam.core.described import Kind, fitting, number_in
from orderparam.core.names import near, nearest
from orderparam.core.paths import expanded

if TYPE_CHECKING:
    from orderparam.core.fields import Declaration
    from orderparam.core.system import System
    from orderparam.core.verb import Verb

FILES = (".npy", ".csv", ".txt")


def assignments(texts: Sequence[str]) -> dict[str, str]:
    """The names and values in a list of texts "NAME=VALUE"."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not all(name.split(".")):
            raise ValueError(f"{text}: write NAME=VALUE")
        if not value:
            raise ValueError(f"{name}: the value after = is empty")
        if name in found:
            raise ValueError(f"{name} is given twice")
        found[name] = value
    return found


def read(
    verb: "Verb", given: Mapping[str, str], swept: Mapping[str, float]
) -> tuple["System", dict[str, Any]]:
    """Makes the system and the options of a theory or experiment from texts. Fields in `swept`
    already have values.

    Where the theory takes several classes of systems, the first class that has all these fields is
    chosen. Raises `ValueError` for names that are neither a field nor an option, for values that do
    not fit, and for missing fields, which are listed with their meaning.
    """
    kinds = concrete(verb.systems)
    if not kinds:
        raise ValueError(f"{verb.name} takes any system: call it in Python")
    place, options = fitting(
        [kind_of(kind) for kind in kinds], list(verb.options), heads_of([*given, *swept])
    )
    chosen = kinds[place]
    own = {name: text for name, text in given.items() if name.partition(".")[0] not in options}
    system = _record(chosen, {**own, **{name: repr(value) for name, value in swept.items()}}, "")
    return system, {name: read_option(verb, name, given[name]) for name in options}


def heads_of(names: Sequence[str]) -> set[str]:
    """The fields and options that dotted names begin with."""
    return {name.partition(".")[0] for name in names}


def kind_of(kind: type) -> Kind:
    """The names of the fields of a class of systems."""
    return Kind(kind.__name__, _fields(kind), _missing(kind, set()))


def concrete(kinds: Sequence[type]) -> list[type["System"]]:
    """The concrete classes of some system classes: an abstract class, or the base of several, is
    replaced by its subclasses."""
    from orderparam.core.system import System

    found: list[type[System]] = []
    for kind in kinds:
        if inspect.isabstract(kind):
            found += concrete(kind.__subclasses__())
        elif kind is not System:
            found.append(kind)
    return found


def _fields(kind: type) -> list[str]:
    return [field.name for field in dataclasses.fields(kind) if field.init]


def _missing(kind: type, heads: set[str]) -> list[str]:
    needed = [
        field.name
        for field in dataclasses.fields(kind)
        if field.init and field.default is dataclasses.MISSING
    ]
    return [name for name in needed if name not in heads]


def _record(kind: type, given: Mapping[str, str], path: str) -> Any:
    """A record from the texts of its fields; `path` is its place in the system, with a dot at the
    end."""
    from orderparam.core.fields import declarations

    declared = declarations(kind)
    own = _grouped(given)
    for name in own:
        if name not in _fields(kind):
            raise ValueError(
                f"{kind.__name__} has no field {path + name!r}{nearest(name, _fields(kind))}"
            )
    if missing := _missing(kind, set(own)):
        wanted = [
            f"{path}{name} ({declared[name].meaning}{_how(declared[name])})" for name in missing
        ]
        raise ValueError(f"{kind.__name__} needs {', '.join(wanted)}")
    return kind(**{name: _field(declared[name], texts, path + name) for name, texts in own.items()})


def _grouped(given: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Groups assignments by the first part of their dotted names: first part -> {rest of the name:
    text}."""
    groups: dict[str, dict[str, str]] = {}
    for name, text in given.items():
        head, _, rest = name.partition(".")
        groups.setdefault(head, {})[rest] = text
    return groups


def _how(declaration: "Declaration") -> str:
    """How to give an argument that is not a number."""
    if declaration.kind == "part":
        names = [maker.__name__ for maker in makers(declaration)]
        return f"; one of {', '.join(names)}" if len(names) > 1 else ""
    if declaration.kind == "parameter" and () not in declaration.shapes:
        return f"; {' x '.join(declaration.shapes[0])} numbers, or a file {', '.join(FILES)}"
    return f"; one of {', '.join(map(str, declaration.choices))}" if declaration.choices else ""


def _field(declaration: "Declaration", texts: Mapping[str, str], path: str) -> Any:
    """The value of one field from the texts given for it."""
    text = texts.get("", "")
    inner = {name: value for name, value in texts.items() if name}
    if declaration.kind == "part" and (inner or declaration.convert is None):
        return _part(declaration, text, inner, path)
    if inner:
        name = next(iter(inner))
        raise ValueError(f"{path} has no fields of its own ({name} asked for)")
    if text.lower() == "none" and type(None) in declaration.annotations:
        return None
    if declaration.kind == "parameter":
        return _numbers(text, path, declaration.shapes)
    if declaration.kind == "part" or declaration.convert is not None:
        return text
    return _word(text, path, declaration.annotations, declaration.choices)


def _part(declaration: "Declaration", text: str, inner: Mapping[str, str], path: str) -> Any:
    """A part of a system, from the name of its class or function and the arguments of that."""
    named = {maker.__name__: maker for maker in makers(declaration)}
    parse = named.get("parse")
    if parse is not None and text and text not in named and not inner:
        return parse(text)
    if not named:
        raise ValueError(
            f"{path} ({declaration.meaning}) cannot be given as text: make the system in Python "
            "and call the theory on it"
        )
    if not text and len(named) > 1:
        raise ValueError(f"{path}: say what makes it, one of {', '.join(named)}")
    name = text or next(iter(named))
    if name not in named:
        raise ValueError(
            f"{path} = {name}: must be one of {', '.join(named)}{near(name, list(named))}"
        )
    maker = named[name]
    return (
        _record(maker, inner, f"{path}.") if isinstance(maker, type) else _made(maker, inner, path)
    )


def _made(maker: Any, inner: Mapping[str, str], path: str) -> Any:
    """Calls a function with arguments read from texts."""
    signature, hints, own = inspect.signature(maker), typing.get_type_hints(maker), _grouped(inner)
    for name in own:
        if name not in signature.parameters:
            raise ValueError(
                f"{maker.__name__} has no argument "
                f"{path}.{name}{nearest(name, list(signature.parameters))}"
            )
    arguments: dict[str, Any] = {}
    for name, argument in signature.parameters.items():
        if name in own:
            arguments[name] = _argument(hints.get(name, Any), own[name], f"{path}.{name}")
        elif argument.default is argument.empty and argument.kind is not argument.VAR_KEYWORD:
            raise ValueError(f"{path} = {maker.__name__} needs {path}.{name}")
    return maker(**arguments)


def _argument(hint: Any, texts: Mapping[str, str], path: str) -> Any:
    from orderparam.core.fields import alternatives, words_of

    if inner := [name for name in texts if name]:
        raise ValueError(f"{path} has no fields of its own ({inner[0]} asked for)")
    kinds = alternatives(hint)
    words = words_of(kinds)
    if words or {bool, int, str} & set(kinds):
        return _word(texts[""], path, kinds, words)
    classes = [kind for kind in kinds if isinstance(kind, type) and dataclasses.is_dataclass(kind)]
    if classes:
        raise ValueError(
            f"{path} is a {classes[0].__name__}, which has no text: make the system in Python"
        )
    shapes = tuple(tuple(getattr(kind, "dim_str", "").split()) for kind in kinds)
    return _numbers(texts[""], path, shapes if any(shapes) else ((), ("entry",)))


def makers(declaration: "Declaration") -> Iterator[Any]:
    """The classes and functions that make a part: public names in the package of the part's class
    and in the system's topic."""
    from orderparam.core.declared import topic_of

    kinds = tuple(
        kind
        for kind in declaration.annotations
        if isinstance(kind, type) and kind is not type(None)
    )
    modules = [kind.__module__ for kind in kinds]
    modules += [module.rpartition(".")[0] for module in modules]
    modules += [
        f"orderparam.systems.{topic_of(declaration.owner.__module__)}",
        declaration.owner.__module__,
    ]
    seen: set[int] = set()
    for module in dict.fromkeys(modules):
        for name, thing in (
            vars(sys.modules.get(module, object)).items() if module in sys.modules else ()
        ):
            if (
                name.startswith("_")
                or id(thing) in seen
                or getattr(thing, "__name__", None) != name
            ):
                continue
            if _makes(thing, kinds):
                seen.add(id(thing))
                yield thing


def _makes(thing: Any, kinds: tuple[type, ...]) -> bool:
    if isinstance(thing, type):
        return (
            issubclass(thing, kinds)
            and dataclasses.is_dataclass(thing)
            and not inspect.isabstract(thing)
        )
    if not inspect.isfunction(thing):
        return False
    try:
        hints = typing.get_type_hints(thing)
    except (NameError, TypeError):
        return False
    made = hints.pop("return", None)
    records = [
        hint for hint in hints.values() if isinstance(hint, type) and dataclasses.is_dataclass(hint)
    ]
    return isinstance(made, type) and issubclass(made, kinds) and not records


def read_option(verb: "Verb", name: str, text: str) -> Any:
    """The value of an option of a theory, read as its annotation says."""
    return _word(text, name, verb.kinds(name), verb.choices(name))


def _word(text: str, path: str, kinds: Sequence[Any], words: Sequence[Any]) -> Any:
    """A choice, a truth value, None, whole numbers or a number."""
    for word in words:
        if text == str(word):
            return word
    if type(None) in kinds and text.lower() == "none":
        return None
    if bool in kinds and text.lower() in ("true", "false"):
        return text.lower() == "true"
    several = any(typing.get_origin(kind) is tuple for kind in kinds)
    for kind in (int, float):
        if kind in kinds or several:
            try:
                parts = [
                    kind(float(part)) if kind is int and float(part).is_integer() else kind(part)
                    for part in text.split(",")
                ]
            except (ValueError, OverflowError):
                continue
            if len(parts) == 1 and not (several and kind not in kinds):
                return parts[0]
            if several:
                return tuple(parts)
    if str in kinds:
        return text
    if words:
        choices = [str(word) for word in words]
        raise ValueError(
            f"{path} = {text}: must be one of {', '.join(choices)}{near(text, choices)}"
        )
    wanted = {bool: "true or false", int: "an integer", float: "a number"}
    named = " or ".join(wanted[kind] for kind in kinds if kind in wanted)
    if not named:
        raise ValueError(f"{path} has no text: call it in Python")
    raise ValueError(f"{path} = {text}: must be {named}")


def _numbers(text: str, path: str, shapes: Sequence[tuple[str, ...]]) -> Any:
    """A number, or an array, written out or read from a file."""
    scalar, wanted = () in shapes, [dims for dims in shapes if dims]
    if not wanted:
        return number_in(text, path)
    try:
        number = float(text)
        return number if scalar else [number]
    except ValueError:
        pass
    if text.endswith(FILES):
        return _from_file(expanded(text), path)
    try:
        rows = [[float(part) for part in row.split(",")] for row in text.split(";")]
    except ValueError:
        raise ValueError(
            f"{path} = {text}: must be numbers such as 1,2,3 or a file {', '.join(FILES)}"
        ) from None
    return rows if len(rows) > 1 else rows[0]


def _from_file(file: Path, path: str) -> Any:
    import numpy as np

    from orderparam.core.reading import existing, read_npy, reading

    try:
        existing(file, FILES)
        if file.suffix == ".npy":
            return read_npy(file)
        with reading(file), warnings.catch_warnings():
            # an empty file: the field that it is meant for refuses it
            warnings.simplefilter("ignore")
            return np.loadtxt(file, delimiter="," if file.suffix == ".csv" else None)
    except ValueError as error:
        raise ValueError(f"{path} = {' '.join(str(error).split())}") from None
