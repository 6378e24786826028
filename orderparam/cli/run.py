"""`orderparam run`: a study's theories and its experiment, side by side."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from orderparam.cli.arguments import changes_of, chosen_size, result_folder
from orderparam.cli.comparison import print_comparison
from orderparam.cli.errors import clear_errors, warnings_in_one_line
from orderparam.cli.finished import keep_printed, printed_before
from orderparam.cli.limits import check_parameters, check_workers, within_memory
from orderparam.core.registry import outline
from orderparam.running.lock import alone


def run(
    name: Annotated[
        str,
        typer.Argument(
            help="A study (`orderparam list` shows them), or one of your own: FILE.py:NAME."
        ),
    ],
    size: Annotated[
        str,
        typer.Option(
            "--size",
            help="quick, gallery (the size of the documentation) or full (the sizes of the "
            "source).",
        ),
    ] = "quick",
    full: Annotated[bool, typer.Option("--full", help="The same as --size full.")] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a parameter; may be repeated."),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", help="Number of independent repetitions (--set seeds=N)."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder of the result (default: results/NAME-SETTINGS)."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Local processes for the experiments.")
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option("--dask", metavar="ADDRESS", help="Dask scheduler for the experiments."),
    ] = None,
) -> None:
    """Run a study: theories and experiment, agreement table, figure, result. An interrupted run
    resumes when the command is given again."""
    with clear_errors(), warnings_in_one_line() as warned, within_memory():
        if workers is not None and dask is not None:
            raise ValueError("--workers and --dask exclude one another")
        check_workers(workers)
        changes = changes_of(settings or [], seeds)
        chosen = chosen_size(size, full)
        outlined = outline(name)
        if outlined is not None:  # a study that its source refuses need not be imported
            parameters = outlined.parameters(chosen, changes)
            check_parameters(outlined, parameters, changes)
            folder = out or Path("results") / result_folder(name, chosen, changes)
            asked = f"{name} {chosen} {parameters}"
            with alone(folder):
                before = printed_before(folder, asked)
            if before is not None:
                print(before, end="")
                return
        from orderparam.comparison import compare, find

        study = find(name)
        check_parameters(study, study.parameters(chosen, changes), changes)
        folder = out or Path("results") / result_folder(study.name, chosen, changes)
        executor = workers if dask is None else dask
        comparison = compare(study, size=chosen, settings=changes, out=folder, executor=executor)
        text = print_comparison(comparison, folder)
        if outlined is not None and not warned:
            with suppress(OSError):  # a full disk
                keep_printed(folder, asked, text)
