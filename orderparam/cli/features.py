"""`orderparam features`: the learning curve of a linear model on a person's own features."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orderparam.cli.arguments import check_file, check_finite, free_folder
from orderparam.cli.errors import clear_errors, warnings_in_one_line
from orderparam.cli.forecasts import print_columns
from orderparam.cli.limits import SEEDS, within_memory
from orderparam.cli.predict import words_for_gaps
from orderparam.cli.stopping import print_stop
from orderparam.cli.terminal import console, new_table, plain

if TYPE_CHECKING:
    from rich.table import Table

File = Annotated[
    str,
    typer.Argument(
        metavar="FEATURES",
        help="Features, one row for each example (.npy, .npz, .csv, .tsv, .parquet ...).",
    ),
]
Targets = Annotated[
    str | None,
    typer.Argument(
        metavar="TARGETS", help="Targets: a .npy file, or a column or array of FEATURES."
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        "--task", help="regression, even-odd, A-vs-B, A-vs-rest (default: from the target)."
    ),
]
Loss = Annotated[str, typer.Option("--loss", help="square, logistic or hinge.")]
Ridge = Annotated[
    float | None,
    typer.Option(
        "--ridge",
        help="Penalty added to the sum of losses, features / sqrt(p) (default: the best).",
    ),
]
Missing = Annotated[
    str | None,
    typer.Option(
        "--missing",
        metavar="WORD[,WORD...]",
        help="Words of a table that mark a missing value, in addition to NA and the like.",
    ),
]
Stop = Annotated[
    bool,
    typer.Option(
        "--stop",
        help="Also: the best time to stop gradient descent, and its gain over the best ridge.",
    ),
]
Seeds = Annotated[
    int,
    typer.Option("--seeds", min=2, max=SEEDS, help="Random training sets per measured point."),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="New folder of the result (default: results/features-NAME)."),
]


def features(
    file: File,
    targets: Targets = None,
    task: Task = None,
    loss: Loss = "square",
    ridge: Ridge = None,
    missing: Missing = None,
    stop: Stop = False,
    seeds: Seeds = 8,
    out: Out = None,
) -> None:
    """Predict the learning curve and the best penalty of a linear model on your own features, such
    as a network's embeddings."""
    with clear_errors(), warnings_in_one_line(), within_memory():
        check_finite("--ridge", ridge)
        if stop and loss != "square":
            raise ValueError(f"--stop: is for the square loss; --loss is {loss}")
        check_file(file)
        from orderparam.core.registry import find_tool

        user_features, forecast_features, save_features = (
            find_tool(f"random_features.{name}")
            for name in ("user_features", "forecast_features", "save_features")
        )
        problem = user_features(file, targets, task, words_for_gaps(missing))
        with free_folder(out, f"features-{Path(problem.name.split('/')[0]).stem}") as folder:
            result = forecast_features(problem.inputs, problem.values, loss, ridge, seeds)
            title = f"{problem.name}: {problem.task}, {loss} loss"
            print_columns(problem)
            for note in problem.notes:
                console().print(f"note: {plain(note)}", highlight=False, soft_wrap=True)
            print_features(result, title, folder)
            if stop:
                when_to_stop = find_tool("training_in_time.when_to_stop")
                print_stop(when_to_stop(problem.inputs, problem.values), ", features / sqrt(p)")
            save_features(result, folder, title, {"data": problem.name, "task": problem.task})


def print_features(result: Any, title: str, folder: Path) -> None:
    """The learning curve of a linear model in given features, predicted and measured, and the
    penalty; result: what `forecast_features` returned.
    """
    out = console()
    out.print(f"[bold]{plain(title)}[/]\n")
    kind = "error" if result.error == "test_error" else "wrong signs"
    classified = result.error == "test_error" and bool(
        result.predicted["classification_error"].notnull().all()
    )
    out.print(_curve(result, kind, classified))
    out.print("\nBeyond your data: the measured curve, continued by the modes of the features.")
    out.print(_beyond(result, kind))
    unit = (
        f"one target for each of {result.classes} classes, together of variance 1"
        if result.classes
        else "targets are -1 and 1"
        if classified or result.error != "test_error"
        else "targets have variance 1"
    )
    lines = [
        "ridge        penalty added to the sum of losses; features scaled by 1/sqrt(p); in "
        "scikit-learn",
        f"             {result.other_penalty}",
        f"errors       on those of the {result.examples} examples that were not trained on; {unit}",
        f"check        prediction within {result.deviation:.1%} (root mean square) of the "
        "measured points",
        f"figure: {folder / 'figure.png'} (and .pdf); numbers: {folder / 'forecast.zarr'}",
    ]
    if classified or result.loss != "square":
        lines.insert(
            3,
            "approximate  the theory takes each class as Gaussian, with one covariance for all; "
            "real data are not",
        )
    out.print("\n" + "\n".join(lines), highlight=False, soft_wrap=True)


def _curve(result: Any, kind: str, classified: bool) -> "Table":
    """A row for each number of training examples, measured beside predicted; `kind` names the
    error, and `classified` adds the classification error."""
    from orderparam.core.text import with_error
    from orderparam.running.estimate import estimate

    measured = {kind: result.error}
    if classified:
        measured["wrong classes" if result.classes else "wrong signs"] = "classification_error"
    pairs = {f"measured {word}": name for word, name in measured.items()}
    pairs["effective parameters"] = "effective_dimension"
    columns = [column for word in pairs for column in (word, "predicted")]
    table = new_table("examples", "ridge", *columns, right=True)
    estimates = {name: estimate(result.measured, name) for name in pairs.values()}
    for n in result.measured["n_train"].values:
        theory = result.predicted.sel(n_train=n)
        cells = []
        for name, (mean, error) in estimates.items():
            cells.append(with_error(float(mean.sel(n_train=n)), float(error.sel(n_train=n))))
            cells.append(f"{float(theory[name]):.4g}")
        table.add_row(f"{n}", f"{float(theory['ridge']):.3g}", *cells)
    return table


def _beyond(result: Any, kind: str) -> "Table":
    """The error with once, twice, 10 and 100 times as many examples as there are."""
    table = new_table("examples", kind, "95 % interval", right=True)
    for times in (1, 2, 10, 100):
        row = result.ahead.interp(n_train=times * result.examples)
        table.add_row(
            f"{times * result.examples} ({times} x your data)",
            f"{float(row[result.error]):.4g}",
            f"{float(row['lower']):.3g} to {float(row['upper']):.3g}",
        )
    return table
