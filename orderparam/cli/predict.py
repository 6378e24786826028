"""`orderparam predict`: the learning curve of a person's own data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orderparam.cli.arguments import architecture, check_finite, free_folder, widths_of
from orderparam.cli.errors import clear_errors, warnings_in_one_line
from orderparam.cli.limits import SEEDS, within_memory
from orderparam.cli.terminal import console, plain

if TYPE_CHECKING:
    from orderparam.systems.kernel_regression.forecast import Forecast


def predict(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Your data (.csv, .tsv, .npz, .npy), or: digits, mnist, cifar10.")],
    target: Annotated[str | None, typer.Option("--target", help="Column or array to predict.")] = None,
    task: Annotated[
        str | None, typer.Option("--task", help="regression, even-odd, A-vs-B, A-vs-rest, one-hot (default: from the target).")
    ] = None,
    arch: Annotated[
        str, typer.Option("--arch", help="Network whose infinite-width limit learns: fc:DEPTH\\[xWIDTH]:ACTIVATION.")
    ] = "fc:1:relu",
    temperature: Annotated[
        float | None, typer.Option("--temperature", min=0, help="Ridge on the Gram matrix (default: the best by leave-one-out).")
    ] = None,
    width: Annotated[
        str | None, typer.Option("--width", metavar="N[,N...]", help="Also: what a Bayesian network of these widths would gain.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=2, max=SEEDS, help="Random training sets per measured point.")] = 8,
    out: Annotated[Path | None, typer.Option("--out", help="New folder of the result (default: results/predict-NAME).")] = None,
) -> None:
    """Predict the learning curve of your own data, out to 100 times as many examples as you have."""
    with clear_errors(), warnings_in_one_line(), within_memory():
        from orderparam.systems.kernel_regression.forecast import forecast, save_forecast, user_pool

        kernel, widths = architecture(arch).nngp, widths_of(width)
        check_finite("--temperature", temperature)
        data, targets = user_pool(file, target, task)
        name = data.name
        folder = free_folder(out, f"predict-{Path(name.split('/')[0]).stem}")
        result = forecast(data.inputs, targets.values, kernel, temperature=temperature, seeds=seeds)
        title = f"{name}: {targets.name}, {arch}"
        print_forecast(result, title, folder, targets.scale)
        save_forecast(result, folder, title, {"data": name, "task": targets.name, "architecture": arch})
        if widths:
            from orderparam.systems.proportional.predict import predict_width

            _, size, activation = arch.split(":")
            depth = int(size.split("x")[0])
            print_widths(predict_width(data, targets, widths, temperature=result.temperature, depth=depth, activation=activation))


def print_forecast(result: "Forecast", title: str, folder: Path, scale: float) -> None:
    """A predicted learning curve beside the measured points; scale: the unit of the targets, in units of the labels."""
    from rich.table import Table

    from orderparam.core.agreement import estimate
    from orderparam.core.text import with_error

    out = console()
    out.print(f"[bold]{plain(title)}[/]\n")
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
    out.print(table)
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
    out.print("\n" + "\n".join(lines), highlight=False, soft_wrap=True)


def print_widths(report: Any) -> None:
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
    out = console()
    out.print(f"\nfinite width, {report.attrs['n_train']} training examples, T = {report.attrs['temperature']:.3g},")
    out.print("squared errors on held-out examples, summed over the outputs; gain: of one network from the posterior")
    out.print(table)
    out.print(report.attrs["verdict"], highlight=False)
