"""`orderparam inspect`: the order parameters of a trained network, from files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orderparam.cli.arguments import free_folder
from orderparam.cli.errors import clear_errors, warnings_in_one_line
from orderparam.cli.limits import within_memory
from orderparam.cli.terminal import console, plain

if TYPE_CHECKING:
    from orderparam.observables.inspection import Inspection


def inspect(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...", help="Activations and weights (.npy, .npz, .safetensors)."
        ),
    ],
    target: Annotated[
        str | None,
        typer.Option("--target", help="Targets: the name of an array in FILE, or a .npy file."),
    ] = None,
    init: Annotated[
        str | None,
        typer.Option("--init", help="The same arrays before training, under the same names."),
    ] = None,
    seeds: Annotated[
        list[str] | None,
        typer.Option("--seeds", help="The same arrays of another training; may be repeated."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer permutations.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="New folder of the result (default: results/inspect-NAME)."),
    ] = None,
) -> None:
    """Measure a trained network: similarity and alignment of its layers, outliers and tails of its
    weights, dimension; each with an interval and a null hypothesis."""
    with clear_errors(), warnings_in_one_line(), within_memory():
        from orderparam.core.paths import expanded
        from orderparam.core.reading import existing

        endings = (".npy", ".npz", ".safetensors")
        for file in (*files, *([init] if init else []), *(seeds or [])):
            existing(expanded(file), endings)
        from orderparam.observables.inspection import inspect as measure

        with free_folder(out, f"inspect-{Path(files[0]).stem}") as folder:
            with console().status("measuring"):
                found = measure(files, targets=target, initial=init, seeds=seeds or (), quick=quick)
            console().print(plain(str(found)), highlight=False, soft_wrap=True)
            _write(found, folder)
        console().print(
            f"report: {plain(str(folder / 'report.html'))}; numbers: "
            f"{plain(str(folder / 'forecast.zarr'))}",
            soft_wrap=True,
        )


def _write(found: "Inspection", folder: Path) -> None:
    from orderparam.core.paths import whole_file
    from orderparam.plotting.folder import write_folder

    numbers = {
        head: {one.name: [one.value, one.low, one.high, one.p_value] for one in part}
        for head, part in (
            *found.layers.items(),
            *found.weights.items(),
            ("network", found.network),
        )
    }
    summary = {"title": found.title, "numbers": numbers, "missing": found.missing}
    write_folder(folder, {"observed": found.dataset()}, found.figure, summary)
    with whole_file(folder / "report.html") as aside:
        aside.write_text(found.html())
