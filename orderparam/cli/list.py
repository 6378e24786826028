"""`orderparam list`: what can be run, and the parameters of one study."""

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from orderparam.cli.errors import clear_errors
from orderparam.cli.terminal import console, duration, plain, short
from orderparam.core.registry import Entry, index

if TYPE_CHECKING:
    from orderparam.core.study import Study


def list_studies(
    words: Annotated[
        list[str] | None, typer.Argument(help="A study, to see its parameters; or any words, to choose studies.")
    ] = None,
) -> None:
    """What can be run, room by room: name, what it shows, source, time. With a name: the parameters of that study."""
    with clear_errors():
        known, word = [entry for entry in index() if entry.kind == "study"], " ".join(words or [])
        chosen = [entry for entry in known if not word or _mentions(entry, word)]
        if chosen and word not in {entry.name for entry in known}:
            study_list(chosen)
            return
        from orderparam.core.study import find

        one_study(find(word))


def _mentions(entry: Entry, word: str) -> bool:
    """Whether the word stands in a study's name, room, title or source."""
    text = f"{entry.name} {entry.room} {entry.details.get('title')} {entry.details.get('source')}"
    return word.lower().replace("_", " ") in text.lower().replace("_", " ")


def study_list(studies: Sequence[Entry]) -> None:
    """The studies room by room: name, what it shows, source (where the terminal has room for it), time."""
    from rich.table import Table

    out = console()
    sources = out.width >= 110
    table = Table(header_style="bold", box=None, pad_edge=False)
    for column in ("study", "what it shows", *(["source"] if sources else [])):
        table.add_column(column, no_wrap=column == "study")
    for column in ("quick", "full"):
        table.add_column(column, justify="right", no_wrap=True)
    for i, room in enumerate(sorted({study.room for study in studies})):
        if i:
            table.add_row()
        table.add_row(f"[bold cyan]{room.replace('_', ' ')}[/]")
        for study in sorted(studies, key=lambda study: study.name):
            if study.room == room:
                title, source, seconds = (study.details.get(name) for name in ("title", "source", "seconds"))
                times = map(duration, seconds) if seconds else ("", "")
                table.add_row(study.name, plain(title or ""), *([plain(source or "")] if sources else []), *times)
    out.print(table)
    out.print("\n[dim]orderparam list NAME shows a study's source and parameters, orderparam run NAME runs it[/]")


def one_study(study: "Study") -> None:
    """A study's title, source and parameters, at their quick and full values."""
    from rich.table import Table

    out = console()
    out.print(f"[bold]{plain(study.title)}[/]  [dim]{plain(study.source)}[/]")
    if study.build.__doc__:
        out.print(plain(inspect.cleandoc(study.build.__doc__)), highlight=False)
    table = Table(header_style="bold", box=None, pad_edge=False)
    for column in ("parameter", f"quick ({duration(study.seconds[0])})", f"full ({duration(study.seconds[1])})"):
        table.add_column(column)
    full = study.parameters(full=True)
    for name, quick in study.defaults.items():
        table.add_row(name, plain(short(quick)), plain(short(full[name])) if full[name] != quick else "[dim]same[/]")
    out.print()
    out.print(table)
    out.print(f"\n[dim]orderparam run {study.name} --set NAME=VALUE changes one, --full takes the right column[/]")
