"""`orderparam scaling-law`: the law of a person's own training runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orderparam.cli.arguments import check_file, free_folder
from orderparam.cli.errors import clear_errors, warnings_in_one_line
from orderparam.cli.limits import within_memory
from orderparam.cli.terminal import console, new_table, plain

if TYPE_CHECKING:
    from orderparam.analysis.scaling_law import ScalingLaw

_BEYOND = (10.0, 100.0)  # factors above the largest compute of the runs


File = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="Your runs (.csv, .tsv, .json, .jsonl, .parquet ...)."),
]
Loss = Annotated[str, typer.Option("--loss", help="Column of the final loss.")]
Params = Annotated[
    str | None, typer.Option("--params", help="Column of the number of parameters N.")
]
Data = Annotated[
    str | None, typer.Option("--data", help="Column of the number of samples or tokens D.")
]
Unique = Annotated[
    str | None, typer.Option("--unique", help="Column of the number of unique samples.")
]
Run = Annotated[
    str | None,
    typer.Option("--run", help="Column of the run's name, where each logged step is a row."),
]
Runs = Annotated[
    Path | None, typer.Option("--runs", help="A second table: sizes of each run, by name.")
]
Form = Annotated[
    str,
    typer.Option(
        "--form",
        help="additive, kaplan, repeated; offset, power, broken; auto: chosen from your runs.",
    ),
]
Compute = Annotated[
    str | None,
    typer.Option(
        "--compute",
        metavar="C[,C...]",
        help="Compute budgets to split between size and data (default: 10 and 100 times the "
        "largest).",
    ),
]
Flops = Annotated[
    float, typer.Option("--flops", help="Floating-point operations per parameter and sample.")
]
Bootstrap = Annotated[
    int, typer.Option("--bootstrap", min=20, max=10_000, help="Number of bootstrap fits.")
]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="New folder of the result (default: results/scaling-law-NAME)."),
]


def scaling_law(
    file: File,
    loss: Loss = "loss",
    params: Params = None,
    data: Data = None,
    unique: Unique = None,
    run: Run = None,
    runs: Runs = None,
    form: Form = "auto",
    compute: Compute = None,
    flops: Flops = 6.0,
    bootstrap: Bootstrap = 200,
    out: Out = None,
) -> None:
    """Fit the scaling law of your own training runs: exponents, floor, the best size for a budget,
    and warnings about numbers that the runs do not determine."""
    with clear_errors(), warnings_in_one_line(), within_memory():
        if params is None and data is None:
            raise ValueError(
                "name the column of the sizes: --params COLUMN, --data COLUMN, or both"
            )
        budgets = _budgets(compute)
        for path in filter(None, (file, runs)):
            check_file(str(path))
        from orderparam.analysis.scaling_law import scaling_law as fit
        from orderparam.analysis.scaling_law.tables import read_runs

        chosen = read_runs(
            file,
            loss=loss,
            parameters=params,
            samples=data,
            unique=unique,
            run=run,
            configuration=runs,
            flops=flops,
        )
        with free_folder(out, f"scaling-law-{file.stem}") as folder:
            with console().status(f"fitting {len(chosen)} runs, {bootstrap} times again"):
                law = fit(chosen, form=form, bootstrap=bootstrap)
            _print(law, budgets)
            _write(law, budgets, folder, file)
        console().print(
            f"\nfigure: {plain(str(folder / 'figure.png'))}; numbers: "
            f"{plain(str(folder / 'summary.json'))}",
            soft_wrap=True,
        )


def _budgets(text: str | None) -> list[float]:
    try:
        budgets = [float(part) for part in text.split(",")] if text else []
    except ValueError:
        raise ValueError(
            f"--compute {text}: write one or more numbers, such as 1e21,1e23"
        ) from None
    if any(not 0 < budget < float("inf") for budget in budgets):
        raise ValueError(f"--compute {text}: must be positive and finite")
    return budgets


def _shares(law: "ScalingLaw", budgets: list[float]) -> list[Any]:
    if law.runs.parameters is None or law.runs.samples is None:
        return []
    return [
        law.allocate(budget)
        for budget in budgets or [times * float(law.runs.compute.max()) for times in _BEYOND]
    ]


def _print(law: "ScalingLaw", budgets: list[float]) -> None:
    out = console()
    out.print(
        f"[bold]{law.form}[/]: {len(law.runs)} runs, scatter {law.scatter:.2%}\n", highlight=False
    )
    numbers = new_table("number", "value", "95 % interval", right=True)
    for name, value in law.values.items():
        interval = law.intervals[name]
        numbers.add_row(name, f"{value:.5g}", f"{interval.low:.4g} to {interval.high:.4g}")
    out.print(numbers, "")
    if len(law.held_out) > 1:
        errors = ", ".join(f"{name} {error:.2%}" for name, error in law.held_out.items())
        out.print(
            "prediction error on the quarter of the runs with most compute, fitted to the other "
            f"three: {errors}"
        )
    shares = _shares(law, budgets)
    if shares:
        best = new_table("compute", "best parameters", "samples", "loss", right=True)
        for share in shares:
            cells = [f"{one.value:.4g} ({one.low:.3g} to {one.high:.3g})" for one in share[1:]]
            best.add_row(f"{share.compute:.3g}", *cells)
        out.print(best)
        most = max(share.compute for share in shares) / float(law.runs.compute.max())
        if most > 1:
            out.print(
                f"These budgets lie up to {most:.3g} times beyond your largest run. The intervals "
                f"assume that the law {law.form!r} holds there, too. Your runs cannot show that, "
                "and the risk grows with the distance.",
                highlight=False,
            )
    if law.outliers:
        out.print(
            "runs far from the law, given little weight in the fit: rows "
            f"{', '.join(map(str, law.outliers[:10]))}"
        )
    for warning in law.warnings:
        out.print(f"[yellow]note:[/] {plain(warning)}")


def _write(law: "ScalingLaw", budgets: list[float], folder: Path, file: Path) -> None:
    import xarray as xr

    from orderparam.analysis.scaling_law.figure import draw_law
    from orderparam.plotting import house_style
    from orderparam.plotting.folder import write_folder

    def draw() -> Any:
        with house_style():
            return draw_law(law)

    runs = law.runs
    columns = {
        "loss": runs.loss,
        "parameters": runs.parameters,
        "samples": runs.samples,
        "unique": runs.unique,
    }
    columns["fitted_loss"] = law.predict(runs.parameters, runs.samples, runs.unique)[0]
    data = xr.Dataset(
        {name: ("run", column) for name, column in columns.items() if column is not None}
    )
    summary = {
        "file": str(file),
        "runs": len(runs),
        "form": law.form,
        "values": law.values,
        "intervals": {
            name: [interval.low, interval.high] for name, interval in law.intervals.items()
        },
        "scatter": law.scatter,
        "outliers": law.outliers,
        "held_out": law.held_out,
        "warnings": law.warnings,
        "allocations": [
            {
                "compute": share.compute,
                **{name: list(getattr(share, name)) for name in ("parameters", "samples", "loss")},
            }
            for share in _shares(law, budgets)
        ],
    }
    write_folder(folder, {"runs": data}, draw, summary)
