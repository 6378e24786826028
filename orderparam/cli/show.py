"""`orderparam show`: a finished run again."""

from pathlib import Path
from typing import Annotated

import typer

from orderparam.cli.comparison import print_comparison
from orderparam.cli.errors import clear_errors


def show(result: Annotated[Path, typer.Argument(help="The folder of a finished run.")]) -> None:
    """Print a finished run again: its parameters and its agreement table."""
    with clear_errors():
        from orderparam.core.study import load

        print_comparison(load(result), result)
