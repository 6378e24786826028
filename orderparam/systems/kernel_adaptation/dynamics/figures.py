"""Training in time beside the equilibrium of the theory, and ways to prune: several observables on one set of axes."""

from collections.abc import Callable
from typing import Any

import xarray as xr

from orderparam.core.study import Comparison
from orderparam.plotting.measured import dots, mean_and_error
from orderparam.plotting.style import COLOURS, DASHES, GREY, ink
from orderparam.systems.kernel_adaptation.two_layers.experiment.sampled import FAR
from orderparam.systems.kernel_adaptation.two_layers.figures import neurons_outside

H_2 = 2  # its place among the modes of relu units, h_0, h_1, h_2 and h_4


def _in_time(comparison: Comparison) -> tuple[xr.Dataset, xr.Dataset, dict[str, xr.Dataset]]:
    """The theory, the infinitely wide network, and the runs by their label."""
    theory, wide = comparison.theories().values()
    return theory, wide, {run.attrs["label"]: run for run in comparison.experiments().values()}


def _band(axes: Any, run: xr.Dataset, values: xr.DataArray, number: int, label: str, dash: Any = "-") -> None:
    """Mean over seeds as a line, its standard error as a band."""
    time = run["time"].values.reshape(-1, run.sizes["record"])[0]
    mean, error = (part.ravel() for part in mean_and_error(values))
    axes.plot(time, mean, color=COLOURS[number], linestyle=dash, label=label)
    axes.fill_between(time, mean - error, mean + error, color=COLOURS[number], alpha=0.25, linewidth=0)


def _bands(axes: Any, comparison: Comparison, of: Callable[[xr.Dataset, str], xr.DataArray]) -> None:
    """What `of` takes from the runs, of their training set ("train") or fresh inputs ("test")."""
    runs = _in_time(comparison)[2]
    run, back = runs["from the prior"], runs["from the target"]
    shown = ((run, "train", "training set"), (run, "test", "fresh inputs"), (back, "test", "fresh, from the target"))
    for number, (data, which, label) in enumerate(shown):
        _band(axes, data, of(data, which), number, label, DASHES[number])


def _over_time(axes: Any, loc: str = "upper left", **settings: Any) -> None:
    """A legend inside the axes, and not in that of the figure: colours mean something else on every set of axes."""
    handles, texts = axes.get_legend_handles_labels()
    axes.legend(handles, texts, fontsize=7, loc=loc)
    for handle in handles:
        handle.set_label("_")
    axes.set(xscale="log", xlabel="training time", **settings)


def _level(axes: Any, value: float, label: str, colour: str) -> None:
    axes.axhline(value, color=colour, linestyle=":", linewidth=1, label=label)


def draw_errors(axes: Any, comparison: Comparison) -> None:
    """On the training set and on fresh inputs, from the prior; on fresh inputs from the target."""
    _bands(axes, comparison, lambda data, which: data[f"{which}_error"])
    _over_time(axes, "lower left", yscale="log", ylim=(4e-3, None), ylabel="mean squared error")


def draw_component(axes: Any, comparison: Comparison) -> None:
    """The target's component of the output, on the training set and on fresh inputs."""
    theory, wide, _ = _in_time(comparison)
    _bands(axes, comparison, lambda data, which: data[f"{which}_learnability"].isel(mode=H_2))
    _level(axes, float(theory["learnability"].isel(mode=H_2).item()), "theory", ink())
    _level(axes, float(wide["learnability"].isel(mode=H_2).item()), "infinitely wide", GREY)
    _over_time(axes, ylabel="learnability of $h_2$", ylim=(-0.05, 1.8))


def draw_specialised(axes: Any, comparison: Comparison) -> None:
    """Neurons that are far along the target."""
    theory, _, runs = _in_time(comparison)
    _band(axes, runs["from the prior"], runs["from the prior"]["specialised"], 1, "from the prior", DASHES[1])
    _level(axes, neurons_outside(theory, comparison.parameters["width"]).item(), "theory", ink())
    _over_time(axes, ylabel=f"neurons with $|w\\cdot w_*| > {FAR:g}$", ylim=(0, None))


def draw_selections(axes: Any, comparison: Comparison) -> None:
    """What is kept of the most adapted network: leading directions, units of the largest read-out, random directions."""
    trained = next(data for data in comparison.curves().values() if data.attrs["label"] == "trained")
    at = trained.isel(chi=-1)
    rank = at["rank"].values.reshape(-1, at.sizes["kept"])[0]
    names = {"": "leading directions", "magnitude_": "units of largest read-out", "random_": "random directions"}
    for number, (name, label) in enumerate(names.items()):
        dots(axes, rank, at[f"{name}accuracy"], number, label, colour=COLOURS[3 + number], linestyle="-", filled=number == 0)
    axes.set(xscale="log", xlabel="directions or units kept $k$", ylim=(0, 1))
