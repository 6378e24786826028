"""What the commands print."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from orderparam.core.study import Comparison, Study
    from orderparam.systems.kernel_regression.forecast import Forecast
    from orderparam.systems.random_features.forecast import FeatureForecast


def _console() -> "Console":
    """As wide as the terminal; in a file or a pipe so wide that nothing is cut."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=160)


def plain(text: str) -> str:
    """The text with nothing in it read as markup."""
    from rich.markup import escape

    return escape(text)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def study_list(studies: Mapping[str, "Study"]) -> None:
    """The studies room by room: name, what it shows, source (where the terminal has room for it), time."""
    from rich.table import Table

    console = _console()
    sources = console.width >= 110
    table = Table(header_style="bold", box=None, pad_edge=False)
    for column in ("study", "what it shows", *(["source"] if sources else [])):
        table.add_column(column, no_wrap=column == "study")
    for column in ("quick", "full"):
        table.add_column(column, justify="right", no_wrap=True)
    for i, room in enumerate(sorted({study.room for study in studies.values()})):
        if i:
            table.add_row()
        table.add_row(f"[bold cyan]{room.replace('_', ' ')}[/]")
        for name, study in studies.items():
            if study.room == room:
                quick, full = map(_duration, study.seconds)
                table.add_row(name, plain(study.title), *([plain(study.source)] if sources else []), quick, full)
    console.print(table)
    console.print("\n[dim]orderparam list NAME shows a study's source and parameters, orderparam run NAME runs it[/]")


def one_study(study: "Study") -> None:
    """A study's title, source and parameters, at their quick and full values."""
    from rich.table import Table

    console = _console()
    console.print(f"[bold]{plain(study.title)}[/]  [dim]{plain(study.source)}[/]")
    if study.build.__doc__:
        console.print(plain(inspect.cleandoc(study.build.__doc__)), highlight=False)
    table = Table(header_style="bold", box=None, pad_edge=False)
    for column in ("parameter", f"quick ({_duration(study.seconds[0])})", f"full ({_duration(study.seconds[1])})"):
        table.add_column(column)
    full = study.parameters(full=True)
    for name, quick in study.defaults.items():
        table.add_row(name, plain(_short(quick)), plain(_short(full[name])) if full[name] != quick else "[dim]same[/]")
    console.print()
    console.print(table)
    console.print(f"\n[dim]orderparam run {study.name} --set NAME=VALUE changes one, --full takes the right column[/]")


def comparison(finished: "Comparison", folder: Path) -> None:
    """A finished study: its parameters, its agreement tables, what failed, and where the files are."""
    from orderparam.core.table import tables

    console = _console()
    summary: dict[str, Any] = finished.summary
    console.print(f"[bold]{plain(summary['title'])}[/]  [dim]{plain(summary['source'])}[/]")
    settings = ", ".join(f"{key} = {_short(value)}" for key, value in summary["parameters"].items())
    console.print(f"[dim]{plain(settings)}[/]\n", highlight=False)
    for label, table in finished.agreement.items():
        for one in tables(label, table, console.width):
            console.print(one)
            console.print()
    for record in summary["curves"]:
        if record["failed"] or record["unconverged"]:
            console.print(
                f"[yellow]{plain(record['label'])}: of {record['points']} points {record['failed']} failed, "
                f"{record['unconverged']} did not converge[/]"
            )
    console.print(f"{_duration(summary['seconds'])}; figure: {folder / 'figure.png'} (and .pdf)", highlight=False, soft_wrap=True)
    console.print(f"data: {folder / 'result.zarr'}, summary: {folder / 'summary.json'}", highlight=False, soft_wrap=True)


def _short(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(_short(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def widths(report: Any) -> None:
    """What networks of finite width would gain over their infinite limit."""
    from rich.table import Table

    table = Table(header_style="bold", box=None, pad_edge=False)
    for column in ("width", "error of the average network", "of one network", "gain over infinite width"):
        table.add_column(column, justify="right")
    for width in report["width"].values:
        row = report.sel(width=width)
        doubt = "" if bool(row["trusted"]) else " (theory unsure)"
        errors = (f"{float(row[name]):.4g}" for name in ("test_bias", "test_error"))
        table.add_row(f"{width:g}", *errors, f"{float(row['gain']):+.1%}{doubt}")
    table.add_row("infinite", *(f"{float(report[f'infinite_{name}']):.4g}" for name in ("test_bias", "test_error")), "")
    console = _console()
    console.print(f"\nfinite width, {report.attrs['n_train']} training examples, T = {report.attrs['temperature']:.3g},")
    console.print("squared errors on held-out examples, summed over the outputs; gain: of one network from the posterior")
    console.print(table)
    console.print(report.attrs["verdict"], highlight=False)


def forecast(result: "Forecast", title: str, folder: Path, scale: float) -> None:
    """A predicted learning curve beside the measured points; scale: the unit of the targets, in units of the labels."""
    from rich.table import Table

    from orderparam.core.agreement import estimate
    from orderparam.core.table import with_error

    console = _console()
    console.print(f"[bold]{plain(title)}[/]\n")
    mean, error = estimate(result.measured, "test_error")
    table = Table(header_style="bold", box=None, pad_edge=False)
    for column in ("examples", "measured error", "predicted", "95 % interval"):
        table.add_column(column, justify="right")
    measured = [int(n) for n in result.measured["n_train"].values]
    for n in [*measured, *(result.examples * k for k in (1, 3, 10, 30, 100))]:
        value, low, high = result.at(n)
        shown = with_error(float(mean.sel(n_train=n)), float(error.sel(n_train=n))) if n in measured else ""
        times = f" ({n // result.examples} x your data)" if n not in measured and n > result.examples else ""
        table.add_row(f"{n}{times}", shown, f"{value:.4g}", f"{low:.3g} to {high:.3g}")
    console.print(table)
    low, high = result.exponent_interval
    lines = [
        f"power law            error ~ n^-{result.exponent:.2f}  ({low:.2f} to {high:.2f}) over the next decade of data",
        f"best ridge           {result.best_temperature:.3g}, leave-one-out error {result.leave_one_out:.4g}"
        f" (used: {result.temperature:.3g})",
        f"effective dimension  {result.effective_dimension:.0f} directions learned from {result.examples} examples",
        f"check                prediction within {result.deviation:.1%} (root mean square) of the measured points",
        *([f"unit                 errors are fractions of the target's variance, {scale**2:.4g}"] if scale != 1 else []),
        f"figure: {folder / 'figure.png'} (and .pdf); numbers: {folder / 'forecast.zarr'}",
    ]
    console.print("\n" + "\n".join(lines), highlight=False, soft_wrap=True)


def features(result: "FeatureForecast", title: str, folder: Path) -> None:
    """The learning curve of a linear model in given features, predicted and measured, and the penalty."""
    from rich.table import Table

    from orderparam.core.agreement import estimate
    from orderparam.core.table import with_error

    console = _console()
    console.print(f"[bold]{plain(title)}[/]\n")
    table = Table(header_style="bold", box=None, pad_edge=False)
    kind = "error" if result.error == "test_error" else "wrong signs"
    for column in ("examples", "ridge", f"measured {kind}", "predicted", "effective parameters", "predicted"):
        table.add_column(column, justify="right")
    mean, error = estimate(result.measured, result.error)
    used, spread = estimate(result.measured, "effective_dimension")
    for n in result.measured["n_train"].values:
        theory = result.predicted.sel(n_train=n)
        table.add_row(
            f"{n}",
            f"{float(theory['ridge']):.3g}",
            with_error(float(mean.sel(n_train=n)), float(error.sel(n_train=n))),
            f"{float(theory[result.error]):.4g}",
            with_error(float(used.sel(n_train=n)), float(spread.sel(n_train=n))),
            f"{float(theory['effective_dimension']):.4g}",
        )
    console.print(table)
    lines = [
        "ridge        beside the summed loss, features divided by the root of their number; in scikit-learn",
        f"             {result.other_penalty}",
        f"errors       over all {result.examples} examples, training examples included",
        f"check        prediction within {result.deviation:.1%} (root mean square) of the measured points",
        f"figure: {folder / 'figure.png'} (and .pdf); numbers: {folder / 'forecast.zarr'}",
    ]
    if result.loss != "square":
        lines.insert(3, "approximate  classes are taken as two Gaussians of one covariance, which real data are not")
    console.print("\n" + "\n".join(lines), highlight=False, soft_wrap=True)
