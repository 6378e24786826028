"""Completions for the shell: theories, experiments and studies; fields and options of the given
theory; words of a field."""

from collections.abc import Iterator
from typing import Any

from orderparam.core.registry import index


def verbs(incomplete: str) -> list[tuple[str, str]]:
    """Theories and experiments by their full names, and by the function's name where only one topic
    has it."""
    entries = [entry for entry in index() if entry.kind in ("theory", "experiment")]
    bare = [entry.name.rpartition(".")[2] for entry in entries]
    found = [(entry.name, entry.summary) for entry in entries]
    found += [(name, entry.summary) for name, entry in zip(bare, entries) if bare.count(name) == 1]
    return [(name, summary) for name, summary in found if name.startswith(incomplete)]


def experiments(incomplete: str) -> list[tuple[str, str]]:
    """The experiments whose names begin with these letters, each with its summary."""
    return [
        (e.name, e.summary)
        for e in index()
        if e.kind == "experiment" and e.name.startswith(incomplete)
    ]


def studies(incomplete: str) -> list[tuple[str, str]]:
    """The studies whose names begin with these letters, each with its title."""
    return [
        (e.name, str(e.details.get("title")))
        for e in index()
        if e.kind == "study" and e.name.startswith(incomplete)
    ]


def listed(incomplete: str) -> list[tuple[str, str]]:
    """The names that `list` accepts: studies, kinds of things, theories and experiments."""
    kinds = [
        (name, f"all {name}")
        for name in ("theories", "experiments", "systems")
        if name.startswith(incomplete)
    ]
    return [*kinds, *studies(incomplete), *verbs(incomplete)]


def arguments(ctx: Any, incomplete: str) -> list[tuple[str, str]]:
    """NAME= for the fields and options of the given theory, and after NAME= the words of that
    field."""
    from orderparam.core.registry import find

    try:
        entries = dict(_arguments(find(ctx.params["name"])))
    except Exception:  # without a description there are no completions
        return []
    name, equals, _ = incomplete.partition("=")
    if not equals:
        return [
            (f"{field}=", meaning)
            for field, (meaning, _) in entries.items()
            if field.startswith(incomplete)
        ]
    words = entries[name][1] if name in entries else ()
    return [
        (choice, "")
        for choice in (f"{name}={word}" for word in words)
        if choice.startswith(incomplete)
    ]


def _arguments(verb: Any) -> Iterator[tuple[str, tuple[str, tuple[Any, ...]]]]:
    """Name -> meaning and words."""
    from orderparam.core.fields import declarations
    from orderparam.core.given import concrete, makers

    for kind in concrete(verb.systems):
        for name, declaration in declarations(kind).items():
            made = (
                tuple(maker.__name__ for maker in makers(declaration))
                if declaration.kind == "part"
                else ()
            )
            yield name, (declaration.meaning, declaration.choices or made)
    for name in verb.options:
        yield name, ("option", verb.choices(name))
