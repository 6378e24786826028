"""The reference: a page for each topic and each package, made of the registry, the declarations of
fields, and the docstrings.

Not mkdocstrings: what a page shows (the fields of a system with their ranges, options with their
defaults, dimensions of results, which theory belongs to which experiment) is known to the registry
and not to a reader of source files.
"""

import dataclasses
import functools
import html
import importlib
import inspect
import typing
from collections.abc import Iterable, Iterator
from typing import Any

from _site.docstrings import annotation, inline, meanings, prose, signature, table, value
from _site.names import CONTRACT, Name, packages, public, title, topics
from orderparam.core.declared import topic_of
from orderparam.core.fields import Declaration, declarations
from orderparam.core.result import Result
from orderparam.core.system import Record, System
from orderparam.core.verb import Theory, Verb
from orderparam.plotting.text import label

_USUAL = {  # of results, where the docstring of a result does not say more
    "converged": "whether the iteration converged",
    "residual": "what is left of the equation that is solved",
    "steps": "iterations",
    "valid": "whether the theory holds at these parameters",
}
_CONTRACT = (
    "sweep",
    "theory",
    "experiment",
    "System",
    "parameter",
    "structure",
    "part",
    "Result",
    "theories",
    "experiments",
)
_SECTIONS = (
    "Names of `orderparam`",
    "Systems",
    "Theories",
    "Experiments",
    "Results",
    "Parts of systems",
    "Functions",
    "Classes",
    "Constants",
)


def pages() -> dict[str, str]:
    """Path below `reference/` -> markdown."""
    names = sorted(public(), key=lambda name: name.name.lower())
    made = {"index.md": _index(names)}
    for page in (CONTRACT, *topics(), *packages()):
        made[f"{page}.md"] = (
            "\n\n".join(_page(page, [name for name in names if name.page == page])) + "\n"
        )
    return made


def _index(names: Iterable[Name]) -> str:
    """All public names, page by page."""
    lines = [
        "# Reference",
        "Every public name, page by page, made from the registry and the docstrings. Quantities "
        "carry no units: each docstring says what is measured in what. Arrays have named "
        "dimensions, which become those of an `xarray.Dataset`.",
    ]
    listed: dict[str, list[str]] = {}
    for name in names:
        listed.setdefault(name.page, []).append(f"[`{name.name}`]({name.page}.md#{name.name})")
    for head, group in (("The package", (CONTRACT,)), ("Topics", topics()), ("Tools", packages())):
        lines.append(f"## {head}")
        lines += [f"**[{title(page)}]({page}.md)**  \n{' '.join(listed[page])}" for page in group]
    return "\n\n".join(lines) + "\n"


def _page(page: str, names: list[Name]) -> Iterator[str]:
    """The parts of a page: what the package is, and its names section by section."""
    where = (
        "orderparam"
        if page == CONTRACT
        else f"orderparam.systems.{page}"
        if page in topics()
        else f"orderparam.{page}"
    )
    module = importlib.import_module(where)
    yield f"# {title(page)}"
    beside = (
        f" · [the theory](../theory/{page}.md) · [its studies](../gallery/by-topic.md#{page})"
        if page in topics()
        else ""
    )
    yield f"`{where}`{beside}"
    yield _introduction(module.__doc__)
    sections: dict[str, list[Name]] = {}
    for name in names:
        sections.setdefault(_section(name.thing), []).append(name)
    if page == CONTRACT:
        order = {name: place for place, name in enumerate(_CONTRACT)}
        sections = {
            _SECTIONS[0]: sorted(
                names, key=lambda one: (order.get(one.name, len(order)), one.name.lower())
            )
        }
    for head in _SECTIONS:
        if head in sections:
            yield f"## {head}"
            for name in sections[head]:
                yield from _entry(name)


def _introduction(text: str | None) -> str:
    """The docstring of a package; the example that it ends with, if it does, is code."""
    before, marker, example = inspect.cleandoc(text or "").partition("\nimport orderparam as op")
    return prose(before) + (
        f"\n\n```python\nimport orderparam as op{example.rstrip()}\n```" if marker else ""
    )


def _section(thing: Any) -> str:
    if isinstance(thing, Verb):
        return "Theories" if isinstance(thing, Theory) else "Experiments"
    if isinstance(thing, type):
        kinds = {System: "Systems", Result: "Results", Record: "Parts of systems"}
        return next((head for kind, head in kinds.items() if issubclass(thing, kind)), "Classes")
    return "Functions" if callable(thing) else "Constants"


def _entry(name: Name) -> Iterator[str]:
    """The heading of a name and what is said of it."""
    yield f"### `{name.name}` {{: #{name.name} }}"
    thing = name.thing
    if isinstance(thing, Verb):
        yield from _verb(thing)
    elif isinstance(thing, type) and issubclass(thing, Record):
        yield prose(thing.__doc__, declarations(thing))
        yield _parameters(thing)
        yield from _methods(thing)
    elif isinstance(thing, type) and issubclass(thing, Result) and thing is not Result:
        yield from _result(thing)
    elif isinstance(thing, type):
        yield from _class(name.name, thing)
    elif callable(thing):
        given = inspect.signature(thing).parameters
        yield signature(name.name, thing)
        yield prose(thing.__doc__, given)
    else:
        yield f"```python\n{name.name} = {_constant(thing)}\n```"


def _constant(thing: Any) -> str:
    """A number or words as they are, the keys of a dictionary, the classes of an annotation."""
    if isinstance(thing, dict):
        return repr(sorted(thing))
    return repr(thing) if isinstance(thing, str | int | float | tuple) else annotation(thing)


def _verb(verb: Verb) -> Iterator[str]:
    """A theory or an experiment: how it is called, what it says, its options and what it gives."""
    yield signature(verb.fn.__name__, verb.fn)
    yield prose(verb.fn.__doc__, verb.options)
    if verb.options:
        rows = []
        said = meanings(verb.fn.__doc__, list(verb.options))
        for name, option in verb.options.items():
            allowed = ", ".join(_code(word) for word in verb.choices(name)) or _code(
                annotation(option.annotation), quoted=False
            )
            default = (
                "needed"
                if option.default is option.empty
                else _code(value(option.default), quoted=False)
            )
            rows.append((f"<code>{name}</code>", inline(said.get(name, "")), allowed, default))
        yield table(("option", "meaning", "allowed", "default"), rows)
    for name, need in verb.needs.items():
        yield f'<p class="facts">Needs: <code>{name}</code> {inline(str(need))}.</p>'
    facts = [f"Gives {' or '.join(f'<code>{kind.__name__}</code>' for kind in verb.results)}."]
    if isinstance(verb, Theory) and not verb.traced:
        facts.append("Runs on the host: it is neither compiled nor batched.")
    elif isinstance(verb, Theory) and not verb.differentiable:
        facts.append("Not differentiable.")
    facts.append(f"On the command line: <code>orderparam solve {verb.name} NAME=VALUE ...</code>")
    yield f'<p class="facts">{" ".join(facts)}</p>'


def _code(word: Any, quoted: bool = True) -> str:
    return f"<code>{html.escape(repr(word) if quoted else str(word), quote=False)}</code>"


def _parameters(kind: type[Record]) -> str:
    """The fields of a system: meaning, what is allowed, default."""
    rows = []
    for name, declaration in declarations(kind).items():
        default = kind.__dataclass_fields__[name].default
        shown = "needed" if default is dataclasses.MISSING else _code(value(default), quoted=False)
        rows.append(
            (f"<code>{name}</code>", inline(declaration.meaning), _allowed(declaration), shown)
        )
    return table(("parameter", "meaning", "allowed", "default"), rows) if rows else ""


def _allowed(declaration: Declaration) -> str:
    if declaration.choices:
        return ", ".join(_code(word) for word in declaration.choices)
    if declaration.kind == "part" or (declaration.kind == "structure" and declaration.convert):
        return " or ".join(
            _code(annotation(kind), quoted=False) for kind in declaration.annotations
        )
    if declaration.kind == "structure":
        bound = "" if declaration.allowed == "a finite number" else f" {declaration.allowed}"
        return " or ".join(
            _code(annotation(kind), quoted=False) for kind in declaration.annotations
        ) + html.escape(bound)
    shapes = [f"array ({', '.join(dims)})" if dims else "" for dims in declaration.shapes]
    array = " or ".join(filter(None, shapes))
    return html.escape(", ".join(filter(None, (array, declaration.allowed))))


def _result(kind: type[Result]) -> Iterator[str]:
    """A result: its docstring, and a table of its fields with their dimensions and meaning."""
    fields = kind.dims()
    said: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        said |= meanings(one.__doc__, list(fields))
    yield prose(kind.__doc__, fields)
    hints = typing.get_type_hints(kind)
    rows = []
    for name, dims in fields.items():
        dtype = {"Bool": "true or false", "Int": "integer"}.get(
            annotation(hints[name]).partition("[")[0], ""
        )
        shape = html.escape(f"({', '.join(dims)})" if dims else dtype or "number")
        meaning = said.get(name) or _USUAL.get(name) or _words(name, topic_of(kind.__module__))
        rows.append((f"<code>{name}</code>", shape, inline(meaning)))
    yield table(("field", "dimensions", "meaning"), rows)


def _words(name: str, topic: str) -> str:
    """What the figures of a topic call an observable, as far as that is more than its name."""

    def called(name: str) -> str:
        words, symbol = label(name, topic)
        return words if symbol or words != name.replace("_", " ") else ""

    base = name.removesuffix("_error")
    if name != base and not called(name) and called(base):
        return f"standard error of `{base}`"
    return called(name)


def _class(name: str, kind: type) -> Iterator[str]:
    """Any other class: how it is made, what it says, its fields and its public methods."""
    yield signature(name, kind)
    fields = (
        [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    )
    yield prose(kind.__doc__, fields)
    yield from _methods(kind)


def _methods(kind: type) -> Iterator[str]:
    """The public methods and properties that have a docstring."""
    rows = []
    for name, member in vars(kind).items():
        is_value = isinstance(member, property | functools.cached_property)
        function = (
            member.fget
            if isinstance(member, property)
            else getattr(member, "func", getattr(member, "__func__", member))
        )
        if name.startswith("_") or not inspect.isfunction(function) or not function.__doc__:
            continue
        given = [
            one for one in inspect.signature(function).parameters if one not in ("self", "cls")
        ]
        called = name if is_value else f"{name}({', '.join(given)})"
        rows.append(
            (
                _code(called, quoted=False),
                inline(" ".join(inspect.cleandoc(function.__doc__).split())),
            )
        )
    if rows:
        yield table(("method or property", "what it gives"), rows)
