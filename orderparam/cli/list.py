"""`orderparam list`: the studies, theories, experiments and systems, and the parameters of one of
them."""

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from orderparam.cli import completion
from orderparam.cli.errors import clear_errors
from orderparam.cli.terminal import console, duration, new_table, plain, short
from orderparam.core.declared import Entry
from orderparam.core.names import near, nearest
from orderparam.core.outline import Outline
from orderparam.core.registry import index, outline


def list_all(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="theories, experiments or systems; one name, to see its parameters; or any words, "
            "to choose among studies.",
            autocompletion=completion.listed,
        ),
    ] = None,
) -> None:
    """List all studies, topic by topic: name, title, source, time. With a name, print the
    parameters of that study or theory."""
    with clear_errors():
        first, *rest = words or [""]
        word = " ".join(words or [])
        if first in _KINDS or (rest and first in _SINGULAR):
            _list_kind(_SINGULAR.get(first, first), " ".join(rest))
            return
        entries = [entry for entry in index() if entry.kind == "study"]
        chosen = [entry for entry in entries if not word or _mentions(entry, word)]
        exact = word in {entry.name for entry in entries}
        if not exact and _is_verb(word):
            from orderparam.cli.parameters import one_verb

            one_verb(word)
            return
        if chosen and not exact:
            study_list(chosen)
            return
        if not exact and ".py" not in word:
            raise ValueError(f"nothing is called {word!r}{_nearest_name(word)}")
        one_study(_outlined(word))


_KINDS = {"theories": "theory", "experiments": "experiment", "systems": ""}
_SINGULAR = {"theory": "theories", "experiment": "experiments", "system": "systems"}


def _outlined(name: str) -> Outline:
    """The outline of a study from its source; the study is imported where its source is not
    enough."""
    found = outline(name)
    if found is not None:
        return found
    from orderparam.comparison import find

    study = find(name)
    words = (
        study.name,
        study.title,
        study.source,
        inspect.cleandoc(study.build.__doc__ or ""),
        study.build.__module__,
    )
    return Outline(*words, study.seconds, study.defaults, study.gallery, study.full)


def _nearest_name(word: str) -> str:
    """The study, theory or experiment with the nearest name, or how to list them."""
    names = {entry.name for entry in index() if entry.kind in ("study", "theory", "experiment")}
    names |= {name.rpartition(".")[2] for name in names}
    how = (
        "orderparam list shows the studies; list theories, list experiments and list systems the "
        "rest"
    )
    return near(word, sorted(names), 0.7) or f"; {how}"


def _is_verb(word: str) -> bool:
    """True if a theory or an experiment has that name, with or without its topic."""
    return any(
        word in (entry.name, entry.name.rpartition(".")[2])
        for entry in index()
        if entry.kind in ("theory", "experiment")
    )


def _list_kind(kind: str, word: str) -> None:
    """Prints all theories, experiments or systems that mention the word."""
    if kind == "systems":
        from orderparam.cli.parameters import systems_of

        rows = systems_of()
    else:
        rows = [(entry.name, entry.summary) for entry in index() if entry.kind == _KINDS[kind]]
    chosen = [
        row
        for row in rows
        if word.lower().replace("_", " ") in " ".join(row).lower().replace("_", " ")
    ]
    if not chosen:
        raise ValueError(
            f"no {_KINDS[kind] or 'system'} mentions "
            f"{word!r}{nearest(word, [name for name, _ in rows])}"
        )
    table = new_table(_KINDS[kind] or "system", "what it is")
    table.columns[0].no_wrap = True
    for name, summary in sorted(chosen):
        table.add_row(name, plain(summary))
    out = console()
    out.print(table)
    if kind != "systems":
        out.print(
            "\n[dim]orderparam list NAME shows its parameters, orderparam solve NAME "
            "PARAMETER=VALUE ... solves it[/]"
        )


def _mentions(entry: Entry, word: str) -> bool:
    """True if a study mentions the word in its name, topic, title or source."""
    text = f"{entry.name} {entry.topic} {entry.details.get('title')} {entry.details.get('source')}"
    return word.lower().replace("_", " ") in text.lower().replace("_", " ")


def study_list(studies: Sequence[Entry]) -> None:
    """The studies topic by topic: name, what it shows, source (where the terminal is wide enough),
    time."""
    out = console()
    sources = out.width >= 110
    table = new_table("study", "what it shows", *(["source"] if sources else []))
    table.columns[0].no_wrap = True
    for column in ("quick", "full"):
        table.add_column(column, justify="right", no_wrap=True)
    for i, topic in enumerate(sorted({study.topic for study in studies})):
        if i:
            table.add_row()
        table.add_row(f"[bold cyan]{topic.replace('_', ' ')}[/]")
        for study in sorted(studies, key=lambda study: study.name):
            if study.topic == topic:
                title, source, seconds = (
                    study.details.get(name) for name in ("title", "source", "seconds")
                )
                times = map(duration, seconds) if seconds else ("", "")
                table.add_row(
                    study.name,
                    plain(title or ""),
                    *([plain(source or "")] if sources else []),
                    *times,
                )
    out.print(table)
    out.print(
        "\n[dim]orderparam list NAME shows a study's source and parameters, orderparam run NAME "
        "runs it[/]"
    )


def one_study(study: Outline) -> None:
    """A study's title, source and parameters, at its three sizes."""
    out = console()
    out.print(f"[bold]{plain(study.title)}[/]  [dim]{plain(study.source)}[/]")
    if study.doc:
        out.print(plain(study.doc), highlight=False)
    table = new_table(
        "parameter",
        f"quick ({duration(study.seconds[0])})",
        "gallery",
        f"full ({duration(study.seconds[1])})",
    )
    larger = [study.parameters("gallery"), study.parameters("full")]
    for name, quick in study.defaults.items():
        cells = (
            plain(short(size[name])) if size[name] != quick else "[dim]same[/]" for size in larger
        )
        table.add_row(name, plain(short(quick)), *cells)
    out.print()
    out.print(table)
    sizes = "--size gallery or --size full takes that column"
    out.print(f"\n[dim]orderparam run {study.name} --set NAME=VALUE changes one, {sizes}[/]")
    if study.module.startswith("orderparam."):
        out.print(
            "[dim]its figure, and how far theory and measurement are apart: "
            f"{gallery_page(study.name)}[/]",
            soft_wrap=True,
        )


def gallery_page(name: str) -> str:
    """The address of a study's page: on the site in the package's metadata if there is one, and
    otherwise the file that `make docs` writes."""
    from importlib.metadata import metadata

    urls = dict(url.split(", ", 1) for url in metadata("orderparam").get_all("Project-URL") or [])
    page = f"{urls.get('Documentation', 'site').rstrip('/')}/gallery/{name}.html"
    made = "Documentation" in urls or Path(page).exists()
    return page if made else f"{page}, once `make docs` has written it"
