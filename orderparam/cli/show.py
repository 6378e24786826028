"""`orderparam show`: prints a finished run again."""

from pathlib import Path
from typing import Annotated

import typer

from orderparam.cli.comparison import print_comparison
from orderparam.cli.errors import clear_errors


def show(
    result: Annotated[
        Path,
        typer.Argument(
            help="The folder of a finished run, or a study or the beginning of a folder's name: "
            "its newest run."
        ),
    ],
) -> None:
    """Print a finished run again: its parameters and its agreement table."""
    with clear_errors():
        from orderparam.cli.finished import finished_run

        folder = finished_run(result)
        from orderparam.comparison import load

        finished = load(folder)
        try:
            print_comparison(finished, folder)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"{folder} is damaged ({type(error).__name__}: {error})") from None
