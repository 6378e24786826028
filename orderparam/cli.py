"""The command line: `orderparam list`, `run`, `show`, `predict`.

Nothing heavy is imported before a command needs it. What a person can get wrong ends in one line on standard error and exit
status 2, never in a traceback.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import orderparam

if TYPE_CHECKING:
    from orderparam.core.study import Comparison
    from orderparam.systems.kernel_regression.forecast import Forecast

app = typer.Typer(
    name="orderparam",
    help="The statistical physics of learning in neural networks: theory and measurement side by side.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Mistakes of the user and of the machine as one line; exit status 2."""
    from rich.console import Console

    try:
        yield
    except KeyboardInterrupt:
        print("interrupted; finished points are kept: the same command goes on where it stopped", file=sys.stderr)
        raise typer.Exit(130) from None
    except Exception as error:
        from orderparam.core.sweep import SweepError

        if not isinstance(error, ValueError | OSError | SweepError):
            raise
        text = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.filename else str(error)
        Console(stderr=True, soft_wrap=True).print(f"[red]error:[/] {_plain(text)}", highlight=False)
        raise typer.Exit(2) from None


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Warnings without the source line that raised them."""
    import warnings

    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
        yield


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _version(wanted: bool) -> None:
    if wanted:
        print(f"orderparam {orderparam.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    pass


@app.command("list")
def list_studies() -> None:
    """What can be run: name, what it shows, source, time."""
    from rich.console import Console
    from rich.table import Table

    with _clear_errors():
        from orderparam.core.study import studies

        console = Console()
        table = Table(header_style="bold", show_lines=False, box=None, pad_edge=False)
        for column in ("study", "what it shows", "source"):
            table.add_column(column, no_wrap=column == "study")
        for column in ("quick", "full"):
            table.add_column(column, justify="right", no_wrap=True)
        for name, study in studies().items():
            quick, full = study.seconds
            table.add_row(name, study.title, study.source, _duration(quick), _duration(full))
        (console if console.is_terminal else Console(width=160)).print(table)


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="A study; `orderparam list` shows them.")],
    full: Annotated[bool, typer.Option("--full", help="The sizes of the published figure.")] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a parameter; may be repeated.")
    ] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", help="Number of independent repetitions (--set seeds=N).")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the result [default: results/NAME].")] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Local processes for the experiments.")] = None,
    dask: Annotated[str | None, typer.Option("--dask", metavar="ADDRESS", help="Dask scheduler for the experiments.")] = None,
) -> None:
    """Run a study: theories and experiment, agreement table, figure, result. Interrupted, it goes on where it stopped."""
    with _clear_errors(), _warnings_in_one_line():
        from orderparam.core.study import compare, find

        if workers is not None and dask is not None:
            raise ValueError("--workers and --dask exclude one another")
        study = find(name)
        changes = dict(_setting(text) for text in settings or [])
        if seeds is not None:
            changes["seeds"] = str(seeds)
        study.parameters(full, changes)
        folder = out or Path("results") / _folder(name, full, changes)
        comparison = compare(study, full=full, settings=changes, out=folder, executor=dask or workers, progress=None)
        _print(comparison, folder)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ValueError(f"--set {text}: write NAME=VALUE")
    return name.strip(), value.strip()


def _folder(name: str, full: bool, changes: dict[str, str]) -> str:
    """A folder of its own for every choice of parameters."""
    parts = [name, *(["full"] if full else []), *(f"{key}={value}" for key, value in sorted(changes.items()))]
    return "-".join(parts).replace("/", "_").replace(" ", "")


@app.command()
def show(result: Annotated[Path, typer.Argument(help="The folder of a finished run.")]) -> None:
    """Print a finished run again: its parameters and its agreement table."""
    with _clear_errors():
        from orderparam.core.study import load

        _print(load(result), result)


def _print(comparison: "Comparison", folder: Path) -> None:
    from rich.console import Console

    from orderparam.core.table import tables

    console = Console()
    if not console.is_terminal:
        console = Console(width=160)  # nothing is cut in a file or a pipe
    summary: dict[str, Any] = comparison.summary
    console.print(f"[bold]{_plain(summary['title'])}[/]  [dim]{_plain(summary['source'])}[/]")
    settings = ", ".join(f"{key} = {_short(value)}" for key, value in summary["parameters"].items())
    console.print(f"[dim]{_plain(settings)}[/]\n", highlight=False)
    for label, table in comparison.agreement.items():
        for one in tables(label, table):
            console.print(one)
            console.print()
    for record in summary["curves"]:
        if record["failed"] or record["unconverged"]:
            console.print(
                f"[yellow]{_plain(record['label'])}: of {record['points']} points {record['failed']} failed, "
                f"{record['unconverged']} did not converge[/]"
            )
    console.print(f"{_duration(summary['seconds'])}; figure: {folder / 'figure.png'} (and .pdf)", highlight=False, soft_wrap=True)
    console.print(f"data: {folder / 'result.zarr'}, summary: {folder / 'summary.json'}", highlight=False, soft_wrap=True)


def _short(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(_short(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


@app.command()
def predict(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Your data (.csv, .tsv, .npz, .npy), or: digits, mnist, cifar10.")],
    target: Annotated[str | None, typer.Option("--target", help="Column or array to predict.")] = None,
    task: Annotated[
        str | None, typer.Option("--task", help="regression, even-odd, A-vs-B, A-vs-rest, one-hot [default: from the target].")
    ] = None,
    arch: Annotated[
        str, typer.Option("--arch", help="Network whose infinite-width limit learns: fc:DEPTH[xWIDTH]:ACTIVATION.")
    ] = "fc:1:relu",
    temperature: Annotated[
        float | None, typer.Option("--temperature", min=0, help="Ridge on the Gram matrix [default: the best by leave-one-out].")
    ] = None,
    width: Annotated[
        str | None, typer.Option("--width", metavar="N[,N...]", help="Also: what a Bayesian network of these widths would gain.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=2, help="Random training sets per measured point.")] = 8,
    out: Annotated[Path | None, typer.Option("--out", help="New folder of the result [default: results/predict-NAME].")] = None,
) -> None:
    """Predict the learning curve of your own data, out to 100 times as many examples as you have."""
    with _clear_errors(), _warnings_in_one_line():
        from orderparam.networks import parse
        from orderparam.systems.kernel_regression.forecast import forecast, save_forecast, user_pool

        kernel, widths = parse(arch).nngp, _widths(width)
        data, targets = user_pool(file, target, task)
        name = data.name
        folder = out or _new_folder(Path("results") / f"predict-{Path(name.split('/')[0]).stem}")
        if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise ValueError(f"{out} is not empty; choose another folder with --out")
        result = forecast(data.inputs, targets.values, kernel, temperature=temperature, seeds=seeds)
        title = f"{name}: {targets.name}, {arch}"
        save_forecast(result, folder, title, {"data": name, "task": targets.name, "architecture": arch})
        _print_forecast(result, title, folder)
        if widths:
            from orderparam.systems.proportional.predict import predict_width

            _, size, activation = arch.split(":")
            depth = int(size.split("x")[0])
            _print_widths(
                predict_width(data, targets, widths, temperature=result.temperature, depth=depth, activation=activation)
            )


def _widths(text: str | None) -> list[float]:
    try:
        widths = [float(int(part)) for part in text.split(",")] if text else []
    except ValueError:
        raise ValueError(f"--width {text}: write one or more integers, such as 50,200,1000") from None
    if any(width < 1 for width in widths):
        raise ValueError(f"--width {text}: widths must be at least 1")
    return widths


def _print_widths(report: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(header_style="bold", box=None, pad_edge=False)
    for column in ("width", "test error", "gain over infinite width"):
        table.add_column(column, justify="right")
    for width in report["width"].values:
        row = report.sel(width=width)
        doubt = "" if bool(row["trusted"]) else " (theory unsure)"
        table.add_row(f"{width:g}", f"{float(row['test_error']):.4g}", f"{float(row['gain']):+.1%}{doubt}")
    table.add_row("infinite", f"{float(report['infinite_test_error']):.4g}", "")
    console = Console()
    console.print(f"\nfinite width, {report.attrs['n_train']} training examples, T = {report.attrs['temperature']:.3g}:")
    console.print(table)
    console.print(report.attrs["verdict"], highlight=False)


@app.command()
def exponents(
    target: Annotated[str, typer.Argument(help='A function of z1, z2, ..., such as "z1*z2*z3" or "sign(z1*z2)".')],
) -> None:
    """How hard a target is to find: information, leap and generative exponents, and the sample sizes that follow."""
    with _clear_errors(), _warnings_in_one_line():
        from orderparam.systems.multi_index import exponents as exponents_of

        print(exponents_of(target))


def _new_folder(path: Path) -> Path:
    """The path itself, or with the first number that is free."""
    candidates = (path if i == 1 else path.with_name(f"{path.name}-{i}") for i in range(1, 10**6))
    return next(candidate for candidate in candidates if not candidate.exists())


def _print_forecast(result: "Forecast", title: str, folder: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from orderparam.core.agreement import estimate
    from orderparam.core.table import with_error

    console = Console()
    console.print(f"[bold]{_plain(title)}[/]\n")
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
        f"figure: {folder / 'figure.png'} (and .pdf); numbers: {folder / 'forecast.zarr'}",
    ]
    console.print("\n" + "\n".join(lines), highlight=False, soft_wrap=True)


def main() -> None:
    app()


if __name__ == "__main__":
    main()
