"""A forecast as a figure and as files."""

import json
from pathlib import Path
from typing import Any

from orderparam.core.folder import write_folder
from orderparam.learning_curves.forecast import Forecast


def draw_forecast(result: Forecast) -> Any:
    """Predicted error with its interval, and the measured points; for classes the share of wrong ones beside it."""
    from orderparam.plotting import Panel, figure_of, horizontal, house_style, labelled, vertical
    from orderparam.plotting.style import COLOURS

    data, measured = result.predicted, result.measured
    shown = {"predicted (95 % interval)": data, "measured on held-out examples": measured}
    now = vertical(result.examples, "your data")
    floor = result.law.floor * result.leave_one_out
    low, high = (share * result.leave_one_out for share in result.law.floor_interval)
    sure = result.law.floor_interval[0] > 0
    guides = [now, *([horizontal(floor, f"floor ({low:.2g} to {high:.2g})")] if sure else [])]
    panels = [Panel("n_train", "test_error", log="xy", reference=guides, ylabel="error / variance of the target")]
    bands = [("test_error", "lower", "upper")]
    if result.problem.classes:
        panels.append(Panel("n_train", "error_rate", log="xy", reference=[now], ylabel="share of wrong classes"))
        bands.append(("error_rate", "error_rate_lower", "error_rate_upper"))
    gain, least, most = result.gain_of_doubling()
    words = (
        f"The floor is not known: it may be none (probability {result.law.without_floor:.2f}) or up to {high:.2g}."
        if not sure
        else ""
    )
    with house_style():
        figure = figure_of(
            labelled(shown),
            panels,
            title=f"{result.problem.name}, {result.arch}",
            caption=f"Ridge {result.ridge:.3g}. Twice the data: {gain:.0%} less error ({least:.0%} to {most:.0%}). {words} "
            f"The last measured point is {'leave-one-out' if not result.problem.ordered else 'of later rows'}.",
        )
        ahead = data.sel(n_train=slice(float(measured["n_train"][-1]), None))
        for axes, (_, lower, upper) in zip(figure.axes, bands):
            axes.fill_between(ahead["n_train"], ahead[lower], ahead[upper], color=COLOURS[0], alpha=0.18, linewidth=0)
            axes.set_ylim(bottom=min(axes.get_ylim()[0], 0.95 * float(ahead[lower].min())))
        return figure


def save_forecast(result: Forecast, out: Path) -> None:
    """`figure.png`, `figure.pdf`, both curves as `forecast.zarr`, and all numbers as `summary.json` in a new folder."""
    data = {"predicted": result.predicted, "measured": result.measured}
    write_folder(out, data, lambda: draw_forecast(result), json.loads(json.dumps(result.summary(), default=float)))
