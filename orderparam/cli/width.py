"""`orderparam width`: how a network's sizes and its best learning rate depend on its width."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orderparam.cli.arguments import check_file, free_folder
from orderparam.cli.errors import clear_errors, warnings_in_one_line
from orderparam.cli.limits import within_memory
from orderparam.cli.terminal import console, new_table, plain

if TYPE_CHECKING:
    from orderparam.observables.width_transfer import WidthTransfer


def width(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Your runs (.csv, .tsv, .json, .jsonl, .parquet ...)."),
    ],
    width_column: Annotated[
        str, typer.Option("--width", help="Column of the network's width.")
    ] = "width",
    learning_rate: Annotated[
        str, typer.Option("--learning-rate", help="Column of the learning rate.")
    ] = "learning_rate",
    seed: Annotated[
        str | None, typer.Option("--seed", help='Column of the seed (default: "seed", if any).')
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            "--loss", help='Column of the loss (default: "loss", if any); empty: diverged.'
        ),
    ] = None,
    activations: Annotated[
        str | None,
        typer.Option(
            "--activations", metavar="A,B,..", help="Columns of the layers' sizes, input to output."
        ),
    ] = None,
    updates: Annotated[
        str | None,
        typer.Option(
            "--updates", metavar="A,B,..", help="Columns of their first updates, input to output."
        ),
    ] = None,
    optimiser: Annotated[
        str | None, typer.Option("--optimiser", help="sgd or adam (default: compare with both).")
    ] = None,
    at_rate: Annotated[
        float | None,
        typer.Option("--at-rate", help="Learning rate of the updates (default: the least common)."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="New folder of the result (default: results/width-NAME)."),
    ] = None,
) -> None:
    """Find the parametrisation of a network from runs at several widths, and whether its best
    learning rate depends on the width."""
    with clear_errors(), warnings_in_one_line(), within_memory():
        check_file(str(file))
        from orderparam.observables.width_transfer import width as measure

        found = measure(
            file,
            width=width_column,
            learning_rate=learning_rate,
            seed=seed,
            loss=loss,
            activations=_names("--activations", activations),
            updates=_names("--updates", updates),
            optimiser=optimiser,  # type: ignore[arg-type]  # it is checked there
            at_rate=at_rate,
        )
        if not (found.activation or found.update or found.shift):
            raise ValueError(f"{file}: there is nothing to say; {'; '.join(found.notes)}")
        with free_folder(out, f"width-{file.stem}") as folder:
            _print(found)
            _write(found, folder, file)
        console().print(
            f"\nfigure: {plain(str(folder / 'figure.png'))}; numbers: "
            f"{plain(str(folder / 'summary.json'))}",
            soft_wrap=True,
        )


def _names(option: str, text: str | None) -> list[str]:
    names = [part.strip() for part in text.split(",")] if text else []
    if not all(names) or len(set(names)) < len(names):
        raise ValueError(f"{option} {text}: write different names of columns, such as h1,h2,f")
    return names


def _print(found: "WidthTransfer") -> None:
    out = console()
    if found.activation:
        table = new_table("activation", "exponent", "95 %", "p of 0", right=True)
        for name, one in found.activation.items():
            table.add_row(*_cells(name, one))
        out.print(table, "")
    if found.update:
        titles = [f"{name} {optimiser}" for name, optimiser in found.predictions]
        table = new_table("update", "exponent", "95 %", "p of 0", *titles, right=True)
        for k, (name, one) in enumerate(found.update.items()):
            predicted = [f"{growth.update[k]:g}" for growth in found.predictions.values()]
            table.add_row(*_cells(name, one), *predicted)
        out.print(table)
        out.print(f"parametrisation: {plain(found.parametrisation)}\n", soft_wrap=True)
    if found.shift is not None:
        _print_shift(found)
    for note in found.notes:
        out.print(f"[yellow]note:[/] {plain(note)}", soft_wrap=True)


def _cells(name: str, one: Any) -> list[str]:
    return [name, f"{one.value:.3f}", f"{one.low:.3f} to {one.high:.3f}", f"{one.p_value:.2g}"]


def _print_shift(found: "WidthTransfer") -> None:
    shift, out = found.shift, console()
    assert shift is not None
    table = new_table("width", "best rate", "error, octaves", "off the others", "p", right=True)
    for one in shift.optima:
        off = shift.far.get(one.width)
        has_error = one.error == one.error
        table.add_row(
            f"{one.width:g}",
            f"{2**one.rate:.4g}",
            f"{one.error:.2g}" if has_error else "on the grid",
            "" if off is None else f"{off.value:+z.2f}",
            "" if off is None else f"{off.p_value:.2g}",
        )
    out.print(table)
    out.print(f"{plain(found.sentence())}", highlight=False, soft_wrap=True)
    if shift.excess is not None:
        value, low, high = (_percent(factor - 1) for factor in shift.excess)
        out.print(
            "the largest width at the best rate of the smallest: "
            f"loss higher by {value} (95 %: {low} to {high})",
            highlight=False,
            soft_wrap=True,
        )


def _percent(part: float) -> str:
    return f"{100 * part:.2g} %" if part < 1 else f"{100 * part:.0f} %"


def _write(found: "WidthTransfer", folder: Path, file: Path) -> None:
    import numpy as np
    import xarray as xr

    from orderparam.observables.width_figure import draw_width
    from orderparam.plotting import house_style
    from orderparam.plotting.folder import write_folder

    def draw() -> Any:
        with house_style():
            return draw_width(found)

    runs = found.runs
    columns = {"width": runs.width, "learning_rate": runs.rate, **runs.activations, **runs.updates}
    if runs.loss is not None:
        columns["loss"] = runs.loss
    data = xr.Dataset({name: ("run", np.asarray(column)) for name, column in columns.items()})
    shift = found.shift

    def number(value: float) -> float | None:
        return float(value) if np.isfinite(value) else None

    sizes = {**found.activation, **found.update}
    summary = {
        "file": str(file),
        "exponents": {
            name: {"value": one.value, "interval": [one.low, one.high], "p_value": one.p_value}
            for name, one in sizes.items()
        },
        "predictions": {
            f"{name} {optimiser}": list(growth.update)
            for (name, optimiser), growth in found.predictions.items()
        },
        "parametrisation": found.parametrisation,
        "best_rate": None
        if shift is None
        else {
            "exponent": number(shift.exponent),
            "interval": [number(end) for end in shift.interval],
            "verdict": shift.verdict,
            "optima": {f"{o.width:g}": [float(2**o.rate), number(o.error)] for o in shift.optima},
            "excess": shift.excess,
        },
        "notes": list(found.notes),
    }
    write_folder(folder, {"runs": data}, draw, summary)
