"""`orderparam list`: what can be run, and the parameters of one study."""

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from orderparam.cli.errors import clear_errors
from orderparam.cli.terminal import console, duration, plain, short

if TYPE_CHECKING:
    from orderparam.core.study import Study


def list_studies(
    words: Annotated[
        list[str] | None, typer.Argument(help="A study, to see its parameters; or any words, to choose studies.")
    ] = None,
) -> None:
    """What can be run, room by room: name, what it shows, source, time. With a name: the parameters of that study."""
    with clear_errors():
        from orderparam.core.study import find, studies

        known, word = studies(), " ".join(words or [])
        if not word:
            study_list(known)
        elif word not in known and (chosen := {name: study for name, study in known.items() if study.mentions(word)}):
            study_list(chosen)
        else:
            one_study(find(word))


def study_list(studies: Mapping[str, "Study"]) -> None:
    """The studies room by room: name, what it shows, source (where the terminal has room for it), time."""
    from rich.table import Table

    out = console()
    sources = out.width >= 110
    table = Table(header_style="bold", box=None, pad_edge=False)
    for column in ("study", "what it shows", *(["source"] if sources else [])):
        table.add_column(column, no_wrap=column == "study")
    for column in ("quick", "full"):
        table.add_column(column, justify="right", no_wrap=True)
    for i, room in enumerate(sorted({study.room for study in studies.values()})):
        if i:
            table.add_row()
        table.add_row(f"[bold cyan]{room.replace('_', ' ')}[/]")
        for name, study in studies.items():
            if study.room == room:
                quick, full = map(duration, study.seconds)
                table.add_row(name, plain(study.title), *([plain(study.source)] if sources else []), quick, full)
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
