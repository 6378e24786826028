"""Training in time against the equilibrium of the theory, and ways to prune: several observables on one set of axes."""

from typing import Any

import numpy as np
import xarray as xr

from orderparam.core.study import Comparison
from orderparam.plotting.measured import dots, mean_and_error
from orderparam.plotting.style import COLOURS, DASHES, GREY


def _in_time(comparison: Comparison) -> tuple[xr.Dataset, dict[str, xr.Dataset]]:
    """The theory, and the runs by their label."""
    (theory,) = comparison.theories(part="in time").values()
    return theory, {run.attrs["label"]: run for run in comparison.experiments(part="in time").values()}


def _band(axes: Any, run: xr.Dataset, values: xr.DataArray, number: int, label: str, dash: Any = "-") -> None:
    """Mean over seeds as a line, its standard error as a band."""
    time = run["time"].values.reshape(-1, run.sizes["record"])[0]
    mean, error = (part.ravel() for part in mean_and_error(values))
    axes.plot(time, mean, color=COLOURS[number], linestyle=dash, label=label)
    axes.fill_between(time, mean - error, mean + error, color=COLOURS[number], alpha=0.25, linewidth=0)


def _own_legend(axes: Any, **settings: Any) -> None:
    """A legend inside the axes, and not in that of the figure: colours mean something else on every set of axes."""
    handles, texts = axes.get_legend_handles_labels()
    axes.legend(handles, texts, fontsize=7)
    for handle in handles:
        handle.set_label("_")
    axes.set(**settings)


def _over_time(axes: Any, **settings: Any) -> None:
    _own_legend(axes, xscale="log", xlabel="training time", **settings)


def draw_errors(axes: Any, comparison: Comparison) -> None:
    """From the prior."""
    run = _in_time(comparison)[1]["from the prior"]
    for number, (name, label) in enumerate((("train_error", "training set"), ("test_error", "fresh inputs"))):
        _band(axes, run, run[name], number, label)
    _over_time(axes, ylabel="mean squared error", ylim=(0, None))


def draw_components(axes: Any, comparison: Comparison) -> None:
    """h_1 and h_3 over their equilibrium values."""
    theory, runs = _in_time(comparison)
    run, back = runs["from the prior"], runs["from the target"]
    level = np.ravel(theory["learnability"])
    shown = (
        (run, "test_learnability", 0, "$h_1$"),
        (run, "test_learnability", 1, "$h_3$"),
        (back, "test_learnability", 1, "$h_3$, from the target"),
        (run, "train_learnability", 1, "$h_3$ on the training set"),
    )
    for number, (data, name, mode, label) in enumerate(shown):
        _band(axes, data, data[name].isel(mode=mode) / level[mode], number, label, DASHES[number])
    axes.axhline(1.0, color=GREY, linewidth=0.8, zorder=0)
    _over_time(axes, ylabel="component / its equilibrium", ylim=(-0.1, 1.8))


def draw_specialised(axes: Any, comparison: Comparison) -> None:
    """Neurons beyond the barrier."""
    theory, runs = _in_time(comparison)
    for number, (label, run) in enumerate(runs.items()):
        _band(axes, run, run["specialised"], number, label, DASHES[number])
    axes.axhline(theory["specialised"].item(), color=GREY, linestyle=":", label="theory, equilibrium")
    axes.set_yscale("symlog")
    _over_time(axes, ylabel="neurons with $|w\\cdot w_*| > 1/2$", ylim=(0, None))


def draw_equilibrium(axes: Any, comparison: Comparison) -> None:
    """Averages over a training run against the posterior on the same data set."""
    *trained, posterior = comparison.experiments(part="equilibrium").values()
    names = (("$f_1$", "output", 0), ("$f_3$", "output", 1), ("$d\\langle\\rho^2\\rangle/v$", "spread", None))
    for number, data in enumerate(trained):
        for place, (_, name, mode) in enumerate(names):
            values, reference = (one[name] if mode is None else one[name].isel(mode=mode) for one in (data, posterior))
            label = data.attrs["label"] if place == 0 else None
            dots(axes, [place + 0.16 * (number - 0.5)], values / reference, number, label)
    axes.axhline(1.0, color=GREY, linewidth=0.8, zorder=0)
    axes.set_xticks(range(len(names)), [label for label, _, _ in names])
    _own_legend(axes, ylabel="training / posterior by HMC", xlim=(-0.5, 2.5), ylim=(0.95, 1.05))


def draw_selections(axes: Any, comparison: Comparison) -> None:
    """What is kept of the most adapted network: leading directions, units of the largest read-out, random directions."""
    trained = next(data for data in comparison.curves().values() if data.attrs["label"] == "trained")
    at = trained.isel(chi=-1)
    rank = at["rank"].values.reshape(-1, at.sizes["kept"])[0]
    names = {"": "leading directions", "magnitude_": "units of largest read-out", "random_": "random directions"}
    for number, (name, label) in enumerate(names.items()):
        dots(axes, rank, at[f"{name}accuracy"], number, label, colour=COLOURS[3 + number], linestyle="-", filled=number == 0)
    axes.set(xscale="log", xlabel="directions or units kept $k$", ylim=(0, 1))
