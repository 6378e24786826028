"""`orderparam predict`: the learning curve of a person's own data."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orderparam.cli.arguments import architecture, check_file, check_finite, free_folder, widths_of
from orderparam.cli.errors import clear_errors, warnings_in_one_line
from orderparam.cli.limits import SEEDS, within_memory
from orderparam.cli.stopping import print_stop
from orderparam.cli.terminal import console, new_table, plain

if TYPE_CHECKING:
    from orderparam.learning_curves import Forecast, Problem

AUTOMATIC = "auto"


def predict(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Your data (.csv, .tsv, .parquet, .feather, .xlsx, .npz, .npy), or: digits, mnist, cifar10.",
        ),
    ],
    target: Annotated[
        str | None,
        typer.Option("--target", help="Column or array to predict; several with commas."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            "--task",
            help="regression, even-odd, A-vs-B, A-vs-rest, one-hot (default: from the target).",
        ),
    ] = None,
    arch: Annotated[
        str,
        typer.Option(
            "--arch",
            metavar="ARCH[,ARCH...]",
            help="Networks in the limit of infinite width, fc:DEPTH\\[xWIDTH]:ACTIVATION; of several, the one of largest "
            "evidence is used. auto: relu and erf of depth 1 to 3. If given, the forecast is for the network.",
        ),
    ] = AUTOMATIC,
    temperature: Annotated[
        float | None,
        typer.Option(
            "--temperature",
            min=0,
            help="Ridge on the Gram matrix (default: the best by leave-one-out).",
        ),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            "--estimator",
            metavar="PATH",
            help="The learner instead of the best of a network, boosted trees, a forest and ridge regression: the import path of "
            "any scikit-learn estimator, such as sklearn.ensemble.HistGradientBoostingRegressor.",
        ),
    ] = None,
    reach: Annotated[
        str | None,
        typer.Option(
            "--reach",
            metavar="\\[MEASURE=]ERROR",
            help="Also: rows needed for this. 5%: error rate of classes; rmse=12: in the target's unit; r2=0.9; log_loss=0.2; "
            "share=0.1: of the target's variance. A bare number: error rate of classes, share of the variance of numbers.",
        ),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            "--groups",
            metavar="COLUMN",
            help="Column of groups: rows of one group are held out together.",
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            "--time",
            metavar="COLUMN",
            help="Column of times: held-out rows are later than training rows.",
        ),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            "--missing",
            metavar="WORD[,WORD...]",
            help="Words that mark a missing value, in addition to NA and the like.",
        ),
    ] = None,
    width: Annotated[
        str | None,
        typer.Option(
            "--width",
            metavar="N[,N...]",
            help="Also predict the gain of Bayesian networks of these widths.",
        ),
    ] = None,
    stop: Annotated[
        bool,
        typer.Option(
            "--stop",
            help="Also: the best time to stop gradient descent of the network, and what it gains over the best ridge.",
        ),
    ] = False,
    seeds: Annotated[
        int,
        typer.Option("--seeds", min=2, max=SEEDS, help="Random training sets per measured point."),
    ] = 16,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="New folder of the result (default: results/predict-NAME)."),
    ] = None,
) -> None:
    """Predict the learning curve of your own data, out to 100 times as many examples as you have."""
    with clear_errors(), warnings_in_one_line(), within_memory():
        check_file(file)
        archs = [] if arch == AUTOMATIC else arch.split(",")
        for one in archs:
            architecture(one)
        widths = widths_of(width)
        check_finite("--temperature", temperature)
        goal = None if reach is None else goal_of(reach)
        if estimator is not None and (archs or temperature is not None):
            raise ValueError(
                f"--estimator {estimator}: cannot be combined with --arch or --temperature, which belong to a network"
            )
        if stop and (estimator is not None or groups is not None or time is not None):
            raise ValueError(
                "--stop: is for a network and for rows drawn at random; leave --estimator, --groups and --time out"
            )
        from orderparam.learning_curves.forecast import forecast_problem
        from orderparam.learning_curves.problem import from_file
        from orderparam.learning_curves.report import save_forecast

        problem = from_file(file, target, task, groups, time, words_for_gaps(missing))
        with free_folder(out, f"predict-{Path(problem.name.split('/')[0]).stem}") as folder:
            if goal is not None:
                check_goal(problem, reach, goal)
            result = forecast_problem(
                problem, estimator=estimator, arch=archs or None, ridge=temperature, orders=seeds
            )
            print_sentences(result, goal)
            print_columns(problem)
            print_forecast(result, folder)
            print_answers(result)
            save_forecast(result, folder)
        if stop:
            _stop(result)
        if widths:
            _widths(result, widths)


def words_for_gaps(text: str | None) -> list[str]:
    """The words in `--missing`. Raises `ValueError` for an empty one."""
    words = [] if text is None else [word.strip() for word in text.split(",")]
    if not all(words):
        raise ValueError(
            f"--missing {text!r}: write one or more words with commas between them, such as x,unknown"
        )
    return words


MEASURES = {
    "share": "test_error",
    "error_rate": "error_rate",
    "rmse": "rmse",
    "r2": "r2",
    "log_loss": "log_loss",
}
Goal = tuple[float, str | None]


def goal_of(text: str) -> Goal:
    """The goal in --reach: a number, and its measure (None if it is not given). Raises
    `ValueError` for anything else."""
    name, _, value = text.rpartition("=")
    percent = value.endswith("%")
    try:
        number = float(value.rstrip(" %")) / (100 if percent else 1)
    except ValueError:
        number = math.nan
    if not (0 < number < math.inf) or name not in ("", *MEASURES):
        allowed = ", ".join(f"{one}=NUMBER" for one in MEASURES)
        raise ValueError(
            f"--reach {text}: must be a finite number > 0, a percentage, or one of {allowed}"
        )
    measure = MEASURES[name] if name else "error_rate" if percent else None
    if number >= 1 and measure in ("r2", "error_rate"):
        raise ValueError(f"--reach {text}: must be below 1")
    return number, measure


def check_goal(problem: "Problem", text: str | None, goal: Goal) -> None:
    """Raises `ValueError` for a measure that the target does not have."""
    measures = (
        "test_error",
        "r2",
        *(
            ("error_rate", "log_loss")
            if problem.classes
            else ("rmse",)
            if len(problem.names) == 1
            else ()
        ),
    )
    if goal[1] is not None and goal[1] not in measures:
        what = (
            "classes"
            if problem.classes
            else "numbers"
            if len(problem.names) == 1
            else "several targets"
        )
        allowed = ", ".join(one for one, name in MEASURES.items() if name in measures)
        raise ValueError(f"--reach {text}: of {what} must be one of {allowed}")


def print_sentences(result: "Forecast", goal: Goal | None) -> None:
    """Prints the answer in words, for the requested learner and for the best one."""
    out = console()
    for one in (result, result.best):
        if one is not None:
            which = (
                ""
                if result.best is None
                else ", asked for"
                if one is result
                else ", the best of those compared"
            )
            out.print(
                f"[bold]{plain(one.learner + which)}.[/] {plain(one.sentence(*(goal or ())))}",
                highlight=False,
                soft_wrap=True,
            )
            if one.problem.classes:
                last = one.measured.isel(n_train=-1).mean("seed")
                sure, right = float(last["confidence"]), 1 - float(last["error_rate"])
                out.print(
                    f"Its probabilities say {sure:.1%} on average, and it is right in {right:.1%}.",
                    highlight=False,
                )
    out.print()


def print_columns(problem: "Problem") -> None:
    """Prints how every column of a table was treated."""
    if not problem.columns:
        return
    table = new_table("column", "taken for", "what was done", "inputs")
    alike: dict[tuple[str, str], list[Any]] = {}
    for one in problem.columns:
        alike.setdefault((one.kind, one.done), []).append(one)
    for (kind, done), ones in alike.items():
        names = ", ".join(one.name for one in ones[:6]) + (
            f", … ({len(ones)})" if len(ones) > 6 else ""
        )
        table.add_row(plain(names), kind, plain(done), str(sum(one.inputs for one in ones)))
    console().print(table, "")


def print_forecast(result: "Forecast", folder: Path) -> None:
    """Prints a predicted learning curve with the measured points."""
    from orderparam.core.text import with_error
    from orderparam.running.estimate import estimate

    out, problem = console(), result.problem
    out.print(f"[bold]{plain(f'{problem.name}: {problem.task}, {result.learner}')}[/]\n")
    for note in result.notes:
        out.print(f"note: {plain(note)}", highlight=False, soft_wrap=True)
    names = (
        ("wrong", "log loss")
        if problem.classes
        else (f"root mean square in {problem.names[0]}",)
        if len(problem.names) == 1
        else ()
    )
    table = new_table(
        "examples", "measured error", "predicted", "95 % interval", *names, right=True
    )
    mean, error = estimate(result.measured, "test_error")
    measured = [int(n) for n in result.measured["n_train"].values]
    for n in [*measured[:-1:2], measured[-1], *(result.examples * k for k in (2, 3, 10, 30, 100))]:
        value, low, high = result.at(n)
        shown = (
            with_error(float(mean.sel(n_train=n)), float(error.sel(n_train=n)))
            if n in measured
            else ""
        )
        times = f" ({n // result.examples} x your data)" if n > result.examples else ""
        table.add_row(
            f"{n}{times}", shown, f"{value:.4g}", f"{low:.3g} to {high:.3g}", *_further(result, n)
        )
    out.print(table)
    low, high = (share * result.leave_one_out for share in result.law.floor_interval)
    lines = [
        f"unit                 an error of 1 is the variance of {plain(', '.join(problem.names))}, {result.unit:.4g}",
        f"power law            error ~ n^-{result.exponent():.2f} over the next decade of data",
        f"floor                {low:.3g} to {high:.3g} (95 %); there is none with probability {result.law.without_floor:.2f}",
        *(
            [
                f"best ridge           {result.best_ridge:.3g} (used {result.ridge:.3g}), "
                f"last measured error {result.leave_one_out:.4g}"
            ]
            if result.estimator is None
            else []
        ),
        f"figure: {folder / 'figure.png'} (and .pdf); numbers: {folder / 'summary.json'}, {folder / 'forecast.zarr'}",
    ]
    out.print("\n" + "\n".join(lines), highlight=False, soft_wrap=True)


def _further(result: "Forecast", n: int) -> list[str]:
    if result.problem.classes:
        return [
            "{:.3g} ({:.2g} to {:.2g})".format(*result.at(n, name))
            for name in ("error_rate", "log_loss")
        ]
    return (
        ["{:.4g} ({:.3g} to {:.3g})".format(*result.in_units(n))]
        if len(result.problem.names) == 1
        else []
    )


def print_answers(result: "Forecast") -> None:
    """Prints what would lower the error: rows, columns, another learner, another network or
    ridge."""
    out = console()
    out.print()
    table = new_table("what brings more", "change of the error (95 %)")
    gain, least, most = result.gain_of_doubling()
    table.add_row("twice the rows", f"{-gain:+.1%} ({-most:+.1%} to {-least:+.1%})")
    if result.columns_halved:
        ratio, low, high = (one - 1 for one in result.columns_halved)
        table.add_row(
            "half of the columns, drawn at random", f"{ratio:+.1%} ({low:+.1%} to {high:+.1%})"
        )
    own = next((one for one in result.compared if one.name == result.learner), None)
    for one in result.compared:
        if own is not None and one is not own:
            ratio, low, high = (number - 1 for number in one.against(own))
            wrong = f", wrong {one.error_rate:.3g}" if result.problem.classes else ""
            words = f"{ratio:+.1%} ({low:+.1%} to {high:+.1%}); error {one.error:.4g}{wrong} with {one.examples} rows"
            table.add_row(plain(f"{one.name} instead"), words)
    if result.estimator is None and result.ridge != result.best_ridge:
        table.add_row(
            f"the best ridge, {result.best_ridge:.3g}", "not measured here: leave --temperature out"
        )
    out.print(table)
    if result.estimator is None:
        chosen = result.candidates[0]
        kernels = new_table(
            f"networks, on {chosen.examples} rows", "log evidence", "leave-one-out error there"
        )
        for kernel in result.candidates:
            used = " (used: largest evidence)" if kernel is chosen else ""
            evidence = f"{kernel.log_evidence * kernel.examples:.1f}"
            kernels.add_row(f"{kernel.arch}{used}", evidence, f"{kernel.leave_one_out:.4g}")
        out.print()
        out.print(kernels)
        lower = min(result.candidates, key=lambda kernel: kernel.leave_one_out)
        if lower is not chosen:
            out.print(
                f"{lower.arch} has the lower leave-one-out error there, but the lower evidence, too, which is the probability of "
                f"all targets together and scatters less. --arch {lower.arch} forecasts it instead.",
                highlight=False,
                soft_wrap=True,
            )


def _stop(result: "Forecast") -> None:
    """When to stop the wide network of the forecast, on the rows that its kernel is made of."""
    from orderparam.core.registry import find_tool

    stop = find_tool("training_in_time.when_to_stop_network")
    found = stop(architecture(result.arch), result.problem.inputs, result.problem.targets)
    console().print(f"\n[bold]network {result.arch} of infinite width[/]", highlight=False)
    print_stop(found)


def _widths(result: "Forecast", widths: list[float]) -> None:
    import numpy as np

    from orderparam.core.registry import find_tool
    from orderparam.data import Dataset, Targets

    problem, (_, size, activation) = result.problem, result.arch.split(":")
    shuffled = np.random.default_rng(0).permutation(len(problem.inputs))
    data = problem.dataset or Dataset(problem.inputs, np.zeros(len(shuffled)), problem.name)
    targets = Targets(problem.task, shuffled, problem.targets[shuffled])
    report = find_tool("proportional.predict_width")(
        data.take(shuffled),
        targets,
        widths,
        temperature=result.ridge,
        depth=int(size.split("x")[0]),
        activation=activation,
    )
    print_widths(report)


def print_widths(report: Any) -> None:
    """Prints the gain of networks of finite width over their infinite limit."""
    table = new_table(
        "width",
        "error of the average network",
        "of one network",
        "gain over infinite width",
        right=True,
    )
    for width in report["width"].values:
        row = report.sel(width=width)
        doubt = "" if bool(row["trusted"]) else " (theory unsure)"
        errors = (f"{float(row[name]):.4g}" for name in ("test_bias", "test_error"))
        table.add_row(f"{width:g}", *errors, f"{float(row['gain']):+.1%}{doubt}")
    table.add_row(
        "infinite",
        *(f"{float(report[f'infinite_{name}']):.4g}" for name in ("test_bias", "test_error")),
        "",
    )
    out = console()
    out.print(
        f"\nfinite width, {report.attrs['n_train']} training examples, T = {report.attrs['temperature']:.3g},"
    )
    out.print(
        "squared errors on held-out examples as shares of the variance; gain: of one network from the posterior"
    )
    out.print(table)
    out.print(report.attrs["verdict"], highlight=False)
