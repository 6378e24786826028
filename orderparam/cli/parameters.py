"""The parameters of one theory or experiment: meaning, allowed values and default."""

import dataclasses
import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orderparam.cli.terminal import console, new_table, plain, short
from orderparam.core.described import Described, Kind, fitting, keep, kept
from orderparam.core.given import concrete, heads_of, kind_of, makers
from orderparam.core.registry import full_name, index, source_files

if TYPE_CHECKING:
    from orderparam.core.fields import Declaration
    from orderparam.core.system import System


def one_verb(name: str) -> None:
    """Prints the arguments and results of a theory or experiment."""
    verb, out = described(name), console()
    out.print(f"[bold]{plain(verb.name)}[/]  [dim]{verb.kind}[/]")
    out.print(plain(verb.doc), highlight=False)
    for system in verb.systems:
        fields = new_table("parameter", "meaning", "allowed", "default", title=f"\n{system.name}")
        fields.columns[0].no_wrap = True
        for field, meaning, allowed, default in system.rows:
            fields.add_row(
                field,
                plain(meaning or ""),
                plain(allowed or ""),
                "[bold]needed[/]" if default is None else plain(default),
            )
        out.print(fields)
    if verb.options:
        options = new_table("option", "allowed", "default", title="\noptions")
        for option, words, default in verb.options:
            options.add_row(option, plain(words), plain(default))
        out.print(options)
    if verb.needs:
        out.print(plain(f"\nneeds: {'; '.join(verb.needs)}"), highlight=False)
    out.print(f"\ngives: {', '.join(verb.observables)}", highlight=False)
    if line := _import_of(verb):
        out.print(plain(line), highlight=False)
    out.print(f"[dim]orderparam solve {verb.name} NAME=VALUE ...[/]", highlight=False)


def _import_of(verb: Described) -> str:
    """The import that its example needs; empty for one outside of this package."""
    topic, _, name = verb.name.rpartition(".")
    modules = [entry.module for entry in index() if entry.name == verb.name]
    if not modules or not modules[0].startswith(f"orderparam.systems.{topic}."):
        return ""
    spec = importlib.util.find_spec(f"orderparam.systems.{topic}")
    exported = Path(spec.origin).read_text() if spec is not None and spec.origin else ""
    systems = [system.name for system in verb.systems if re.search(rf"\b{system.name}\b", exported)]
    return f"from orderparam.systems.{topic} import {', '.join([*systems, name])}"


def described(name: str) -> Described:
    """The description of a theory or experiment; it is imported where no description is stored."""
    full, files = full_name(name), source_files()
    found = kept(full, files)
    if found is None:
        found = _described(full)
        # not for a person's own file, and not without docstrings (Python -OO)
        if sys.flags.optimize < 2 and found.name in {entry.name for entry in index()}:
            keep(found, files)
    return found


def check_fields(name: str, given: Mapping[str, str]) -> None:
    """Refuses unknown names of fields and options of a theory or experiment, and numbers that are
    not allowed, if its description is stored.
    """
    outlined = kept(full_name(name), source_files())
    if outlined is not None and outlined.systems:
        options = [option for option, *_ in outlined.options]
        place, _ = fitting(outlined.systems, options, heads_of(list(given)))
        outlined.systems[place].check(given)


def _described(name: str) -> Described:
    from orderparam.core.registry import find
    from orderparam.core.verb import Theory

    verb = find(name)
    systems = [kind_in_words(system) for system in concrete(verb.systems)]
    options = [
        [option, ", ".join(map(str, verb.choices(option))), short(_named(parameter.default))]
        for option, parameter in verb.options.items()
    ]
    observables = list(dict.fromkeys(name for result in verb.results for name in result.dims()))
    kind = "theory" if isinstance(verb, Theory) else "experiment"
    needs = [f"{field} {need}" for field, need in verb.needs.items()]
    doc = inspect.cleandoc(verb.fn.__doc__ or "")
    return Described(verb.name, kind, doc, systems, options, observables, needs)


def kind_in_words(system: type["System"]) -> Kind:
    """The fields of a system in words: meaning, allowed values and default."""
    from orderparam.core.fields import declarations

    rows: list[list[str | None]] = []
    numbers = {}
    for field, declaration in declarations(system).items():
        default = system.__dataclass_fields__[field].default
        shown = None if default is dataclasses.MISSING else short(_named(default))
        rows.append([field, declaration.meaning, _allowed(declaration), shown])
        is_number = declaration.kind == "parameter" and declaration.annotations == (float,)
        if is_number and declaration.convert is None:
            declared = ("meaning", "limits", "integer", "infinite")
            numbers[field] = {name: getattr(declaration, name) for name in declared}
    return dataclasses.replace(kind_of(system), rows=rows, numbers=numbers)


def systems_of() -> list[tuple[str, str]]:
    """Every system and the first sentence of its documentation."""
    from orderparam.core.registry import systems

    return [
        (name, (kind.__doc__ or "").partition("\n\n")[0].replace("\n", " ").partition(". ")[0])
        for name, kind in systems().items()
    ]


def _named(value: Any) -> Any:
    """A value, or its name where it has one."""
    return (
        value
        if isinstance(value, str | int | float | tuple | type(None))
        else getattr(value, "name", type(value).__name__)
    )


def _allowed(declaration: "Declaration") -> str:
    """The allowed values in words."""
    if declaration.choices:
        return ", ".join(map(str, declaration.choices))
    if declaration.kind == "part":
        names = [maker.__name__ for maker in makers(declaration)]
        return f"made by {', '.join(names)}" if names else "made in Python"
    array = "" if () in declaration.shapes else f"array ({', '.join(declaration.shapes[0])}), "
    if declaration.kind == "structure":
        kinds = [
            kind.__name__
            for kind in declaration.annotations
            if isinstance(kind, type) and kind is not type(None)
        ]
        words = {"int": "an integer", "float": "a number", "bool": "true or false"}
        limited = any(bound is not None for bound in declaration.limits.values())
        limits = f" {declaration.allowed}" if limited else ""
        return " or ".join(words.get(kind, kind) for kind in kinds) + limits
    return array + declaration.allowed
