"""`orderparam predict`: the learning curve of a person's own data."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orderparam.cli.arguments import architecture, check_finite, free_folder, widths_of
from orderparam.cli.errors import clear_errors, warnings_in_one_line
from orderparam.cli.limits import SEEDS, within_memory
from orderparam.cli.terminal import console, new_table, plain

if TYPE_CHECKING:
    from orderparam.learning_curves import Forecast, Problem

AUTOMATIC = "auto"


def predict(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="Your data (.csv, .tsv, .parquet, .feather, .xlsx, .npz, .npy), or: digits, mnist, cifar10."
        ),
    ],
    target: Annotated[str | None, typer.Option("--target", help="Column or array to predict; several with commas.")] = None,
    task: Annotated[
        str | None, typer.Option("--task", help="regression, even-odd, A-vs-B, A-vs-rest, one-hot (default: from the target).")
    ] = None,
    arch: Annotated[
        str,
        typer.Option(
            "--arch",
            metavar="ARCH[,ARCH...]",
            help="Networks whose infinite-width limit learns, fc:DEPTH\\[xWIDTH]:ACTIVATION; of several that of largest "
            "evidence. auto: relu and erf of depth 1 to 3.",
        ),
    ] = AUTOMATIC,
    temperature: Annotated[
        float | None, typer.Option("--temperature", min=0, help="Ridge on the Gram matrix (default: the best by leave-one-out).")
    ] = None,
    reach: Annotated[
        float | None,
        typer.Option("--reach", metavar="ERROR", help="Also: rows needed for this error (share of the target's variance)."),
    ] = None,
    groups: Annotated[
        str | None, typer.Option("--groups", metavar="COLUMN", help="Rows of one group are held out together.")
    ] = None,
    time: Annotated[
        str | None, typer.Option("--time", metavar="COLUMN", help="Held-out rows are later than those learned.")
    ] = None,
    width: Annotated[
        str | None, typer.Option("--width", metavar="N[,N...]", help="Also: what a Bayesian network of these widths would gain.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=2, max=SEEDS, help="Random training sets per measured point.")] = 16,
    out: Annotated[Path | None, typer.Option("--out", help="New folder of the result (default: results/predict-NAME).")] = None,
) -> None:
    """Predict the learning curve of your own data, out to 100 times as many examples as you have."""
    with clear_errors(), warnings_in_one_line(), within_memory():
        archs = [] if arch == AUTOMATIC else arch.split(",")
        for one in archs:
            architecture(one)
        widths = widths_of(width)
        check_finite("--temperature", temperature)
        if reach is not None and not 0 < reach < math.inf:
            raise ValueError(f"--reach {reach}: must be a finite number > 0, an error as a share of the target's variance")
        from orderparam.learning_curves.choice import TRIED
        from orderparam.learning_curves.forecast import forecast_problem
        from orderparam.learning_curves.problem import from_file
        from orderparam.learning_curves.report import save_forecast

        problem = from_file(file, target, task, groups, time)
        folder = free_folder(out, f"predict-{Path(problem.name.split('/')[0]).stem}")
        result = forecast_problem(problem, arch=archs or TRIED, ridge=temperature, orders=seeds)
        print_columns(problem)
        print_forecast(result, folder)
        print_answers(result, reach)
        save_forecast(result, folder)
        if widths:
            _widths(result, widths)


def print_columns(problem: "Problem") -> None:
    """What was done to the columns of a table."""
    if not problem.columns:
        return
    table = new_table("column", "taken for", "what was done", "inputs")
    alike: dict[tuple[str, str], list[Any]] = {}
    for one in problem.columns:
        alike.setdefault((one.kind, one.done), []).append(one)
    for (kind, done), ones in alike.items():
        names = ", ".join(one.name for one in ones[:6]) + (f", … ({len(ones)})" if len(ones) > 6 else "")
        table.add_row(plain(names), kind, plain(done), str(sum(one.inputs for one in ones)))
    console().print(table, "")


def print_forecast(result: "Forecast", folder: Path) -> None:
    """A predicted learning curve beside the measured points."""
    from orderparam.core.agreement import estimate
    from orderparam.core.text import with_error

    out, problem = console(), result.problem
    out.print(f"[bold]{plain(f'{problem.name}: {problem.task}, {result.arch}')}[/]\n")
    for note in result.notes:
        out.print(f"note: {plain(note)}", highlight=False, soft_wrap=True)
    names = (
        ("wrong", "log loss")
        if problem.classes
        else (f"root mean square in {problem.names[0]}",)
        if len(problem.names) == 1
        else ()
    )
    table = new_table("examples", "measured error", "predicted", "95 % interval", *names, right=True)
    mean, error = estimate(result.measured, "test_error")
    measured = [int(n) for n in result.measured["n_train"].values]
    for n in [*measured[:-1:2], measured[-1], *(result.examples * k for k in (2, 3, 10, 30, 100))]:
        value, low, high = result.at(n)
        shown = with_error(float(mean.sel(n_train=n)), float(error.sel(n_train=n))) if n in measured else ""
        times = f" ({n // result.examples} x your data)" if n > result.examples else ""
        table.add_row(f"{n}{times}", shown, f"{value:.4g}", f"{low:.3g} to {high:.3g}", *_further(result, n))
    out.print(table)
    low, high = (share * result.leave_one_out for share in result.law.floor_interval)
    lines = [
        f"unit                 error 1: the variance of {plain(', '.join(problem.names))}, {result.unit:.4g} (that of the mean)",
        f"power law            error ~ n^-{result.exponent():.2f} over the next decade of data",
        f"floor                {low:.3g} to {high:.3g} with 95 % (none at all: probability {result.law.without_floor:.2f})",
        f"best ridge           {result.best_ridge:.3g} (used {result.ridge:.3g}), leave-one-out error {result.leave_one_out:.4g}",
        f"figure: {folder / 'figure.png'} (and .pdf); numbers: {folder / 'summary.json'}, {folder / 'forecast.zarr'}",
    ]
    out.print("\n" + "\n".join(lines), highlight=False, soft_wrap=True)


def _further(result: "Forecast", n: int) -> list[str]:
    if result.problem.classes:
        return ["{:.3g} ({:.2g} to {:.2g})".format(*result.at(n, name)) for name in ("error_rate", "log_loss")]
    return ["{:.4g} ({:.3g} to {:.3g})".format(*result.in_units(n))] if len(result.problem.names) == 1 else []


def print_answers(result: "Forecast", reach: float | None) -> None:
    """What would bring more: data, another kernel, another ridge; and the rows that an error needs."""
    out = console()
    out.print()
    table = new_table("what brings more", "change of the error")
    gain, least, most = result.gain_of_doubling()
    table.add_row("twice the data", f"{-gain:+.1%} ({-most:+.1%} to {-least:+.1%})")
    if result.ridge != result.best_ridge:
        best = min(result.candidates, key=lambda one: one.arch != result.arch)
        table.add_row(f"the best ridge, {result.best_ridge:.3g}", f"{best.leave_one_out / result.leave_one_out - 1:+.1%}")
    chosen = result.candidates[0]
    for one in result.candidates:
        mark = "used: largest evidence" if one is chosen else f"{one.leave_one_out / chosen.leave_one_out - 1:+.1%}"
        table.add_row(
            f"{one.arch}, log evidence {one.log_evidence * one.examples:.1f}", f"{mark} (leave-one-out {one.leave_one_out:.4g})"
        )
    out.print(table)
    if reach is not None:
        needed, low, high = result.rows_for(reach)
        out.print(f"\nrows for an error of {reach:g}: {_rows(needed)} (95 %: {_rows(low)} to {_rows(high)})", highlight=False)


def _rows(count: float) -> str:
    return f"{count:.3g}" if math.isfinite(count) else "more than 100 x your data"


def _widths(result: "Forecast", widths: list[float]) -> None:
    import numpy as np

    from orderparam.data import Dataset, Targets
    from orderparam.systems.proportional.predict import predict_width

    problem, (_, size, activation) = result.problem, result.arch.split(":")
    shuffled = np.random.default_rng(0).permutation(len(problem.inputs))
    data = problem.dataset or Dataset(problem.inputs, np.zeros(len(shuffled)), problem.name)
    targets = Targets(problem.task, shuffled, problem.targets[shuffled])
    report = predict_width(
        data.take(shuffled), targets, widths, temperature=result.ridge, depth=int(size.split("x")[0]), activation=activation
    )
    print_widths(report)


def print_widths(report: Any) -> None:
    """What networks of finite width would gain over their infinite limit."""
    table = new_table("width", "error of the average network", "of one network", "gain over infinite width", right=True)
    for width in report["width"].values:
        row = report.sel(width=width)
        doubt = "" if bool(row["trusted"]) else " (theory unsure)"
        errors = (f"{float(row[name]):.4g}" for name in ("test_bias", "test_error"))
        table.add_row(f"{width:g}", *errors, f"{float(row['gain']):+.1%}{doubt}")
    table.add_row("infinite", *(f"{float(report[f'infinite_{name}']):.4g}" for name in ("test_bias", "test_error")), "")
    out = console()
    out.print(f"\nfinite width, {report.attrs['n_train']} training examples, T = {report.attrs['temperature']:.3g},")
    out.print("squared errors on held-out examples as shares of the variance; gain: of one network from the posterior")
    out.print(table)
    out.print(report.attrs["verdict"], highlight=False)
