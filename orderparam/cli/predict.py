"""`orderparam predict`: the learning curve of a person's own data."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orderparam.cli.arguments import (
    architecture,
    check_file,
    check_finite,
    check_free,
    free_folder,
    widths_of,
)
from orderparam.cli.errors import clear_errors, warnings_in_one_line
from orderparam.cli.forecasts import (
    Goal,
    print_answers,
    print_columns,
    print_forecast,
    print_new_rows,
    print_sentences,
    print_widths,
)
from orderparam.cli.limits import SEEDS, within_memory
from orderparam.cli.stopping import print_stop
from orderparam.cli.terminal import console, plain

if TYPE_CHECKING:
    import pandas as pd

    from orderparam.learning_curves import Forecast, Problem

AUTOMATIC = "auto"


File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Your data (.csv, .tsv, .parquet, .feather, .xlsx, .npz, .npy), or: digits, "
        "mnist, cifar10.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option("--target", help="Column or array to predict; several with commas."),
]
Task = Annotated[
    str | None,
    typer.Option(
        "--task",
        help="regression, even-odd, A-vs-B, A-vs-rest, one-hot (default: from the target).",
    ),
]
Arch = Annotated[
    str,
    typer.Option(
        "--arch",
        metavar="ARCH[,ARCH...]",
        help="Networks in the limit of infinite width, fc:DEPTH\\[xWIDTH]:ACTIVATION; of "
        "several, the one of largest evidence is used. auto: relu and erf of depth 1 to 3. If "
        "given, the forecast is for the network.",
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option(
        "--temperature",
        min=0,
        help="Ridge on the Gram matrix (default: the best by leave-one-out).",
    ),
]
Estimator = Annotated[
    str | None,
    typer.Option(
        "--estimator",
        metavar="PATH",
        help="The learner instead of the best of a network, boosted trees, a forest and ridge "
        "regression: the import path of any scikit-learn estimator, such as "
        "sklearn.ensemble.HistGradientBoostingRegressor.",
    ),
]
Reach = Annotated[
    str | None,
    typer.Option(
        "--reach",
        metavar="\\[MEASURE=]ERROR",
        help="Also: rows needed for this. 5%: error rate of classes; rmse=12: in the target's "
        "unit; r2=0.9; log_loss=0.2; share=0.1: of the target's variance. A bare number: error "
        "rate of classes, share of the variance of numbers.",
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="COLUMN",
        help="Column of groups: rows of one group are held out together.",
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="COLUMN",
        help="Column of times: held-out rows are later than training rows.",
    ),
]
New = Annotated[
    str | None,
    typer.Option(
        "--new",
        metavar="FILE",
        help="A table of rows that the learner will meet, with or without the target: do they "
        "differ from yours, and what does a network err on them?",
    ),
]
Missing = Annotated[
    str | None,
    typer.Option(
        "--missing",
        metavar="WORD[,WORD...]",
        help="Words that mark a missing value, in addition to NA and the like.",
    ),
]
Width = Annotated[
    str | None,
    typer.Option(
        "--width",
        metavar="N[,N...]",
        help="Also predict the gain of Bayesian networks of these widths.",
    ),
]
Stop = Annotated[
    bool,
    typer.Option(
        "--stop",
        help="Also: the best time to stop gradient descent of the network, and what it gains "
        "over the best ridge.",
    ),
]
Seeds = Annotated[
    int,
    typer.Option("--seeds", min=2, max=SEEDS, help="Random training sets per measured point."),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="New folder of the result (default: results/predict-NAME)."),
]


def predict(
    file: File,
    target: Target = None,
    task: Task = None,
    arch: Arch = AUTOMATIC,
    temperature: Temperature = None,
    estimator: Estimator = None,
    reach: Reach = None,
    groups: Groups = None,
    time: Time = None,
    new: New = None,
    missing: Missing = None,
    width: Width = None,
    stop: Stop = False,
    seeds: Seeds = 16,
    out: Out = None,
) -> None:
    """Predict the learning curve of your own data, out to 100 times as many examples as you
    have."""
    with clear_errors(), warnings_in_one_line(), within_memory():
        check_file(file)
        if out is not None:
            check_free(out)
        if new is not None:
            check_file(new)
        archs = [] if arch == AUTOMATIC else arch.split(",")
        for one in archs:
            if not re.fullmatch(r"fc:[1-9]:(relu|erf)", one):  # whose kernels need no JAX
                architecture(one)
        widths = widths_of(width)
        check_finite("--temperature", temperature)
        goal = None if reach is None else goal_of(reach)
        _check_together(estimator, archs, temperature, stop, groups, time)
        from orderparam.learning_curves.forecast import forecast_problem
        from orderparam.learning_curves.problem import NO_TARGET, from_file
        from orderparam.learning_curves.report import save_forecast

        gaps = words_for_gaps(missing)
        problem = from_file(file, target, task, groups, time, gaps)
        if problem.notes and problem.notes[0].startswith(NO_TARGET):
            console().print(f"{plain(problem.notes[0])}\n", highlight=False, soft_wrap=True)
        further = None if new is None else _further_rows(new, gaps, problem)
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
            if further is not None:
                print_new_rows(result, further)
            save_forecast(result, folder)
        if stop:
            _stop(result)
        if widths:
            _widths(result, widths)


def _check_together(
    estimator: str | None,
    archs: Sequence[str],
    temperature: float | None,
    stop: bool,
    groups: str | None,
    time: str | None,
) -> None:
    """Raises `ValueError` for options that exclude one another."""
    if estimator is not None and (archs or temperature is not None):
        raise ValueError(
            f"--estimator {estimator}: cannot be combined with --arch or --temperature, which "
            "belong to a network"
        )
    if stop and (estimator is not None or groups is not None or time is not None):
        raise ValueError(
            "--stop: is for a network and for rows drawn at random; leave --estimator, "
            "--groups and --time out"
        )


def _further_rows(file: str, gaps: list[str], problem: "Problem") -> "pd.DataFrame":
    """The table of --new. Raises `ValueError` if it lacks a column that the forecast needs."""
    from orderparam.core.reading import reading
    from orderparam.learning_curves.drift import encoding_for
    from orderparam.learning_curves.problem import table_of

    table = table_of(file, gaps)
    with reading(Path(file)):
        encoding_for(problem, table)
    return table


def words_for_gaps(text: str | None) -> list[str]:
    """The words in `--missing`. Raises `ValueError` for an empty one."""
    words = [] if text is None else [word.strip() for word in text.split(",")]
    if not all(words):
        raise ValueError(
            f"--missing {text!r}: write one or more words with commas between them, such as "
            "x,unknown"
        )
    return words


MEASURES = {
    "share": "test_error",
    "error_rate": "error_rate",
    "rmse": "rmse",
    "r2": "r2",
    "log_loss": "log_loss",
}


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
    """Raises `ValueError` for a measure that the target does not have, and for an error rate that
    is not below 1."""
    if problem.classes and goal[1] is None and goal[0] >= 1:
        raise ValueError(f"--reach {text}: an error rate must be below 1; write 5% or 0.05")
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
            else "several columns"
        )
        lacking = {"rmse": "root mean square error"}.get(goal[1], goal[1].replace("_", " "))
        *allowed, last = (f"{one}=" for one, name in MEASURES.items() if name in measures)
        raise ValueError(
            f"--reach {text}: a target of {what} has no {lacking}; give {', '.join(allowed)} or "
            f"{last}"
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
