"""`orderparam run`: a study's theories and its experiment, side by side."""

from pathlib import Path
from typing import Annotated

import typer

from orderparam.cli.arguments import result_folder, setting
from orderparam.cli.comparison import print_comparison
from orderparam.cli.errors import clear_errors, warnings_in_one_line
from orderparam.cli.limits import check_parameters, check_workers, within_memory


def run(
    name: Annotated[str, typer.Argument(help="A study (`orderparam list` shows them), or one of your own: FILE.py:NAME.")],
    full: Annotated[bool, typer.Option("--full", help="The sizes of the published figure.")] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a parameter; may be repeated.")
    ] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", help="Number of independent repetitions (--set seeds=N).")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the result (default: results/NAME-SETTINGS).")] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Local processes for the experiments.")] = None,
    dask: Annotated[str | None, typer.Option("--dask", metavar="ADDRESS", help="Dask scheduler for the experiments.")] = None,
) -> None:
    """Run a study: theories and experiment, agreement table, figure, result. Interrupted, it goes on where it stopped."""
    with clear_errors(), warnings_in_one_line(), within_memory():
        from orderparam.core.study import compare, find

        if workers is not None and dask is not None:
            raise ValueError("--workers and --dask exclude one another")
        check_workers(workers)
        study = find(name)
        changes = dict(setting(text) for text in settings or [])
        if seeds is not None:
            changes["seeds"] = str(seeds)
        check_parameters(study, study.parameters(full, changes), changes)
        folder = out or Path("results") / result_folder(study.name, full, changes)
        executor = workers if dask is None else dask
        comparison = compare(study, full=full, settings=changes, out=folder, executor=executor)
        print_comparison(comparison, folder)
