"""All commands of the command line, put together."""

import inspect
from collections.abc import Callable
from typing import Annotated

import typer

import orderparam
from orderparam.cli.cite import cite
from orderparam.cli.design import design
from orderparam.cli.errors import Commands
from orderparam.cli.explore import explore
from orderparam.cli.exponents import exponents
from orderparam.cli.features import features
from orderparam.cli.inspection import inspect as inspect_network
from orderparam.cli.list import list_all
from orderparam.cli.new_system import new_system
from orderparam.cli.phases import phases
from orderparam.cli.predict import predict
from orderparam.cli.run import run
from orderparam.cli.scaling_law import scaling_law
from orderparam.cli.show import show
from orderparam.cli.solve import solve
from orderparam.cli.width import width

app = typer.Typer(
    name="orderparam",
    cls=Commands,
    help="The statistical physics of learning in neural networks: theory and measurement side by "
    "side.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _help(command: Callable[..., None]) -> str:
    """The docstring of a command, with each paragraph on one line, because the terminal wraps
    it."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(one.split()) for one in paragraphs)


app.command("list", help=_help(list_all))(list_all)
for command in (
    run,
    solve,
    phases,
    show,
    predict,
    features,
    design,
    exponents,
    scaling_law,
    width,
    inspect_network,
    explore,
    cite,
    new_system,
):
    app.command(help=_help(command))(command)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"orderparam {orderparam.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
