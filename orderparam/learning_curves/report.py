"""A forecast as a figure and as files."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orderparam.learning_curves.result import Forecast


def draw_forecast(result: "Forecast") -> Any:
    """Draw the predicted error with its interval, and the measured points; for classes, also the
    error rate."""
    from orderparam.plotting import Panel, figure_of, horizontal, house_style, labelled, vertical
    from orderparam.plotting.style import COLOURS

    data, measured = result.predicted, result.measured
    shown = {"predicted (95 % interval)": data, "measured on held-out examples": measured}
    now = vertical(result.examples, "your data")
    floor = result.law.floor * result.leave_one_out
    low, high = result.floor_interval
    sure = low > 0
    guides = [now, *([horizontal(floor, f"floor ({low:.2g} to {high:.2g})")] if sure else [])]
    panels = [
        Panel(
            "n_train",
            "test_error",
            log="xy",
            reference=guides,
            ylabel="error / variance of the target",
        )
    ]
    bands = [("test_error", "lower", "upper")]
    if result.problem.classes:
        panels.append(
            Panel(
                "n_train", "error_rate", log="xy", reference=[now], ylabel="share of wrong classes"
            )
        )
        bands.append(("error_rate", "error_rate_lower", "error_rate_upper"))
    gain, least, most = result.gain_of_doubling()
    words = (
        (
            f"The floor is not known: it may be none (probability {result.law.without_floor:.2f}) "
            f"or up to {high:.2g}."
        )
        if not sure
        else ""
    )
    ridge = f"Ridge {result.ridge:.3g}. " if result.estimator is None else ""
    with house_style():
        figure = figure_of(
            labelled(shown),
            panels,
            title=f"{result.problem.name}, {result.learner}",
            caption=f"{ridge}Twice the data: {gain:.0%} less error ({least:.0%} to {most:.0%}). "
            f"{words} The last measured point is {_last(result)}.",
        )
        ahead = data.sel(n_train=slice(float(measured["n_train"][-1]), None))
        for axes, (_, lower, upper) in zip(figure.axes, bands):
            axes.fill_between(
                ahead["n_train"],
                ahead[lower],
                ahead[upper],
                color=COLOURS[0],
                alpha=0.18,
                linewidth=0,
            )
            axes.set_ylim(bottom=min(axes.get_ylim()[0], 0.95 * float(ahead[lower].min())))
        return figure


def _last(result: "Forecast") -> str:
    if result.problem.ordered:
        return "of later rows"
    return (
        "leave-one-out"
        if result.measured["n_train"][-1] == result.examples - 1
        else "of held-out rows"
    )


def in_a_sentence(result: "Forecast", reach: float | None = None, name: str | None = None) -> str:
    """The sentence of `Forecast.sentence`."""
    n, classes = result.examples, bool(result.problem.classes)
    main = "error_rate" if classes else "rmse" if len(result.problem.names) == 1 else "test_error"
    now, twice = (_predicted(result, main, size) for size in (n, 2 * n))
    beside = "" if main != "rmse" else f", R² {1 - result.at(n)[0]:.3g}"
    words = [
        (
            f"With your {n:,} rows the {_title(result, main)} is {now}{beside}. Twice the rows: "
            f"{twice}."
        )
    ]
    if reach is not None:
        asked = name or ("error_rate" if classes else "test_error")
        needed, low, high = result.rows_for(reach, asked)
        goal = _number(reach, asked)
        if asked != "error_rate":
            goal = f"R² {goal}" if asked == "r2" else f"A {_title(result, asked)} of {goal}"
        furthest = int(result.predicted["n_train"][-1])
        if needed <= furthest:
            ends = (
                f"{_rows(low)}-{_rows(high)}"
                if high <= furthest
                else f"{_rows(low)} to more than {furthest:,}"
            )
            words.append(
                f"{goal} {'needs' if needed <= n else 'would need'} about {_rows(needed)} rows "
                f"({ends})."
            )
        else:
            luck = (
                f"; at the lower end of the interval {_rows(low)} rows are enough"
                if low <= furthest
                else ""
            )
            left = (
                f"{furthest:,} rows, {furthest / n:.0f} times yours, are predicted to leave "
                f"{_predicted(result, asked, furthest)}"
            )
            words.append(f"{goal} is out of reach: {left}{luck}.")
    return " ".join(words)


def _title(result: "Forecast", name: str) -> str:
    return {
        "error_rate": "error rate",
        "rmse": f"root mean square error in {result.problem.names[0]}",
        "test_error": "squared error as a share of the variance",
        "log_loss": "log loss",
        "r2": "R²",
    }[name]


def _predicted(result: "Forecast", name: str, n: float) -> str:
    """A measure at a size with its interval."""
    ends = (
        result.in_units(n)
        if name == "rmse"
        else result.at(n, "test_error" if name == "r2" else name)
    )
    if name == "r2":
        middle, low, high = 1 - ends[0], 1 - ends[2], 1 - ends[1]
    else:
        middle, low, high = ends
    return (
        f"{_number(middle, name)} "
        f"({_number(low, name, bare=True)}-{_number(high, name, bare=True)})"
    )


def _number(value: float, name: str, bare: bool = False) -> str:
    if name == "error_rate":
        return f"{100 * value:.3g}" + ("" if bare else " %")
    return f"{value:.3g}" if abs(value) < 1000 else f"{float(f'{value:.4g}'):,.0f}"


def _rows(count: float) -> str:
    return f"{float(f'{count:.2g}'):,.0f}"


def save_forecast(result: "Forecast", out: Path) -> None:
    """`figure.png`, `figure.pdf`, both curves as `forecast.zarr`, and all numbers as `summary.json`
    in a new folder."""
    from orderparam.plotting.folder import write_folder

    data = {"predicted": result.predicted, "measured": result.measured}
    write_folder(
        out,
        data,
        lambda: draw_forecast(result),
        json.loads(json.dumps(result.summary(), default=float)),
    )
