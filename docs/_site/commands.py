"""The page of the commands, made from what they say of themselves."""

import html
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from _site.docstrings import inline, prose, table
from orderparam.cli.commands import app


def commands() -> str:
    """Every command with its arguments and options, as markdown."""
    group: Any = get_command(app)
    lines = ["# Commands", prose(group.help)]
    for name, command in group.commands.items():
        lines += [f"## `orderparam {name}` {{: #{name} }}", prose(command.help)]
        rows = list(_rows(command))
        if rows:
            lines.append(table(("argument or option", "meaning", "default"), rows))
    return "\n\n".join(lines) + "\n"


def _rows(command: Any) -> Iterator[tuple[str, str, str]]:
    for given in command.params:
        is_argument = given.param_type_name == "argument"
        names = [given.name.upper()] if is_argument else [*given.opts, *given.secondary_opts]
        shown = " ".join(f"<code>{name}</code>" for name in names)
        default = (
            ""
            if given.default in (None, False, [], ()) or callable(given.default)
            else html.escape(str(given.default))
        )
        yield (
            shown,
            inline(getattr(given, "help", "") or ""),
            "needed" if is_argument and given.required else default,
        )
