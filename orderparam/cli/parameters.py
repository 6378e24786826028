"""The parameters of one theory or experiment, as its contract says: meaning, what is allowed, default."""

import dataclasses
import inspect
from typing import TYPE_CHECKING, Any

from orderparam.cli.terminal import console, new_table, plain, short
from orderparam.core.given import concrete, makers

if TYPE_CHECKING:
    from orderparam.core.fields import Declaration


def one_verb(name: str) -> None:
    """What a theory or experiment takes and gives."""
    from orderparam.core.fields import declarations
    from orderparam.core.registry import find
    from orderparam.core.verb import Theory

    verb, out = find(name), console()
    kind = "theory" if isinstance(verb, Theory) else "experiment"
    out.print(f"[bold]{plain(verb.name)}[/]  [dim]{kind}[/]")
    out.print(plain(inspect.cleandoc(verb.fn.__doc__ or "")), highlight=False)
    for system in concrete(verb.systems):
        fields = new_table("parameter", "meaning", "allowed", "default", title=f"\n{system.__name__}")
        fields.columns[0].no_wrap = True
        for field, declaration in declarations(system).items():
            default = system.__dataclass_fields__[field].default
            shown = "[bold]needed[/]" if default is dataclasses.MISSING else plain(short(_named(default)))
            fields.add_row(field, plain(declaration.meaning), plain(_allowed(declaration)), shown)
        out.print(fields)
    if verb.options:
        options = new_table("option", "allowed", "default", title="\noptions")
        for option, parameter in verb.options.items():
            words = ", ".join(map(str, verb.choices(option)))
            options.add_row(option, plain(words), plain(short(_named(parameter.default))))
        out.print(options)
    observables = ", ".join(dict.fromkeys(name for result in verb.results for name in result.dims()))
    out.print(f"\ngives: {observables}", highlight=False)
    out.print(f"[dim]orderparam solve {verb.name} NAME=VALUE ...[/]", highlight=False)


def systems_of() -> list[tuple[str, str]]:
    """Every system and the first sentence of what is said of it."""
    from orderparam.core.registry import systems

    return [
        (name, (kind.__doc__ or "").partition("\n\n")[0].replace("\n", " ").partition(". ")[0])
        for name, kind in systems().items()
    ]


def _named(value: Any) -> Any:
    """A value, or the name it goes by."""
    return value if isinstance(value, str | int | float | tuple | type(None)) else getattr(value, "name", type(value).__name__)


def _allowed(declaration: "Declaration") -> str:
    """What may be given, in words."""
    if declaration.choices:
        return ", ".join(map(str, declaration.choices))
    if declaration.kind == "part":
        names = [maker.__name__ for maker in makers(declaration)]
        return f"made by {', '.join(names)}" if names else "made in Python"
    array = "" if () in declaration.shapes else f"array ({', '.join(declaration.shapes[0])}), "
    if declaration.kind == "structure":
        kinds = [kind.__name__ for kind in declaration.annotations if isinstance(kind, type) and kind is not type(None)]
        return " or ".join({"int": "an integer", "float": "a number", "bool": "true or false"}.get(kind, kind) for kind in kinds)
    return array + declaration.allowed
