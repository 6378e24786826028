"""`orderparam cite`: BibTeX of the package and of the sources of a study."""

from typing import Annotated

import typer

from orderparam.cli import completion
from orderparam.cli.errors import clear_errors
from orderparam.core.registry import outline


def cite(
    study: Annotated[
        str | None,
        typer.Argument(
            help="a study (`orderparam list` shows them); without one, the entry of the package "
            "alone.",
            autocompletion=completion.studies,
        ),
    ] = None,
) -> None:
    """Print BibTeX entries: of the package, and of every source that a study names."""
    with clear_errors():
        import orderparam
        from orderparam.citations import bibtex, package_entry, works_of

        entries = [package_entry(orderparam.__version__)]
        if study is not None:
            entries.append(bibtex(works_of(_source_of(study))))
        print("\n\n".join(filter(None, entries)))


def _source_of(study: str) -> str:
    """The source of a study. The study is imported where its outline does not contain the
    source."""
    found = outline(study)
    if found is not None:
        return found.source
    from orderparam.comparison import find

    return find(study).source
