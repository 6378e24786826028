"""Figures of learning curves on real images."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

from orderparam.core.study import Comparison, Curve, study
from orderparam.plotting.curves import caption, draw_dots, draw_line, plot_panel
from orderparam.plotting.style import COLOURS, MARKERS
from orderparam.systems.kernel_regression.experiment import gp_regression, network_posterior
from orderparam.systems.kernel_regression.figures import sample_sizes
from orderparam.systems.kernel_regression.images import image_pool
from orderparam.systems.kernel_regression.theory import (
    cavity,
    equivalent_kernel,
    renormalization_group,
    self_consistent_on_pool,
)


def draw_learning_curve(comparison: Comparison) -> Any:
    """Test error against training examples; below, how far the measurement is from each theory."""
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(4.8, 5.0), sharex=True, height_ratios=(3, 1), gridspec_kw={"hspace": 0.05}
    )
    theories, experiments = comparison.theories(), comparison.experiments()
    plot_panel(top, theories, experiments, "n_train", "test_error")
    top.set_xlabel("")
    top.legend(loc="lower left")
    for number, label in enumerate(experiments):
        table = comparison.agreement[label]["test_error"]
        for theory in table["theory"].values:
            deviation = table.sel(theory=theory)["relative_deviation"]
            if float(np.abs(deviation).max()) < 0.4:  # a theory that is off by more is told apart above
                _deviations(bottom, table.sel(theory=theory), number, list(theories).index(str(theory)))
    bottom.axhline(0, color="0.6", linewidth=0.8, zorder=0)
    bottom.set_ylabel("measured\n/ theory − 1")
    bottom.set_xlabel("training examples $P$")
    bottom.yaxis.set_major_formatter("{x:+.0%}")
    p = comparison.parameters
    caption(
        figure,
        f"{p['dataset']}, {p['task']}, {p['activation']} network with {_layers(p['depth'])}, T = {p['temperature']:g}. "
        f"Dots: mean over {p['seeds']} random training sets (network: {p['network_seeds']}), bars: standard error; "
        "error on the images outside the training set.",
        95,
    )
    return figure


def _deviations(axes: Any, table: xr.Dataset, marker: int, colour: int) -> None:
    relative = table["relative_deviation"]
    error = table["standard_error"] / table["theory_value"]
    shift = 1 + 0.03 * colour
    axes.errorbar(
        table["n_train"] * shift,
        relative,
        np.nan_to_num(error),
        fmt=MARKERS[marker],
        color=COLOURS[colour],
        markerfacecolor="white" if marker else None,
        markersize=3.5,
    )


@study(
    "digits-learning-curve",
    title="Measured learning curve of real digits with three theories, and a finite network's posterior",
    source="Canatar, Bordelon, Pehlevan 2021; Howard et al. 2024; Ringel et al. 2025, Fig. 2.1",
    draw=draw_learning_curve,
    seconds=(60, 900),
    observables=("test_error", "train_error"),
    full={
        "n_train": (8, 16, 32, 64, 128, 256, 512, 800),
        "with_cavity": True,
        "seeds": 100,
        "network_n_train": (8, 16, 32, 64, 128, 256),
        "network_seeds": 8,
        "width": 512,
    },
)
def digits_learning_curve(
    dataset: str = "digits",
    task: str = "even-odd",
    activation: str = "relu",
    depth: int = 1,
    temperature: float = 0.1,
    n_train: tuple[int, ...] = (8, 16, 32, 64, 128, 256, 512),
    seeds: int = 20,
    width: int = 64,
    network_n_train: tuple[int, ...] = (8, 16, 32),
    network_seeds: int = 12,
    with_cavity: bool = False,
) -> list[Curve]:
    pool = image_pool(dataset, task, activation, depth, temperature=temperature, width=width)
    grid = {"n_train": sample_sizes(max(n_train))}
    curves = [Curve("cavity", cavity, pool, {"n_train": n_train})] if with_cavity else []
    return [
        Curve("effective ridge", self_consistent_on_pool, pool, grid),
        Curve("RG decimation", partial(renormalization_group, residual="self_consistent_on_pool"), pool, grid),
        Curve("equivalent kernel", equivalent_kernel, pool, grid),
        *curves,
        Curve("Gaussian process", gp_regression, pool, {"n_train": n_train}, seeds=seeds),
        Curve(f"network, width {width}", network_posterior, pool, {"n_train": network_n_train}, seeds=network_seeds),
    ]



def draw_binary_images(comparison: Comparison) -> Any:
    """Held-out error against training examples: one column a task, one row a temperature."""
    p = comparison.parameters
    tasks, temperatures = comparison.panels, p["temperatures"]
    measured = {task: data["test_error"].mean("seed") for task in tasks for data in comparison.experiments(task).values()}
    figure, rows = plt.subplots(
        len(temperatures), len(tasks), figsize=(2.3 * len(tasks) + 0.6, 1.9 * len(temperatures) + 1.3), sharex=True, sharey="col",
        squeeze=False,
    )  # fmt: skip
    for row, temperature in zip(rows, temperatures):
        for axes, task in zip(row, tasks):
            lowest, highest = 0.5 * float(measured[task].min()), 1.3 * float(measured[task].max())
            drawn = ((draw_line, comparison.theories(task)), (draw_dots, comparison.experiments(task)))
            for draw, curves in drawn:
                for number, (label, data) in enumerate(curves.items()):
                    part = data.sel(temperature=temperature)
                    draw(axes, part, "n_train", "test_error", number, label.removesuffix(f", {task}"))
                    if float(part["test_error"].max()) < lowest:
                        axes.text(
                            0.04, 0.04, f"{label.removesuffix(f', {task}')}: below {_above(part['test_error'])}",
                            transform=axes.transAxes, fontsize=7, color=COLOURS[number],
                        )  # fmt: skip
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_ylim(lowest, highest)
            ticks = [tick for tick in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2) if lowest < tick < highest]
            axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.set_yticks([], minor=True)
            if axes in rows[0]:
                axes.set_title(task)
            if axes in rows[-1]:
                axes.set_xlabel("training examples $P$")
        row[0].set_ylabel(f"$T$ = {_scientific(temperature)}\ntest error")
    handles, labels = rows[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    caption(
        figure,
        f"Gaussian-process regression with the {p['activation']} network kernel of {_layers(p['depth'])}, on pools of "
        f"{p['pool']} images of two classes, y = ±1. Mean squared error on the images of the pool outside the training set. "
        f"Dots: mean over {p['seeds']} random training sets (the same at every T), bars: standard error. RG: modes of "
        f"learnability below {p['threshold']:g} integrated out. "
        "Equivalent-kernel lines leave the axes where the error they predict is too small.",
        125,
    )
    return figure


def _layers(depth: int) -> str:
    return f"{depth} hidden layer{'s' if depth > 1 else ''}"


def _scientific(value: float) -> str:
    """A temperature as text: 0.1, or a power of ten where that is shorter."""
    if value >= 0.01:
        return f"{value:g}"
    mantissa, exponent = f"{value:.0e}".split("e")
    factor = "" if mantissa == "1" else rf"{mantissa}\cdot"
    return f"${factor}10^{{{int(exponent)}}}$"


def _above(values: xr.DataArray) -> str:
    """The next number of one digit above all values, or the next power of ten where they are tiny."""
    highest = float(values.max())
    if highest > 0.01:
        return f"{np.ceil(10 * highest) / 10:g}"
    return f"$10^{{{int(np.floor(np.log10(highest))) + 1}}}$"


@study(
    "gpr-binary-images",
    title="Regression on four binary image tasks: effective ridge and RG follow the data, the equivalent kernel does not",
    source="Cohen, Malka, Ringel 2021; Howard et al. 2024; Ringel et al. 2025, Fig. 2.1",
    draw=draw_binary_images,
    seconds=(85, 3600),
    observables=("test_error", "population_error"),
    full={"pool": 10_000, "n_train": (10, 30, 100, 300, 1000, 3000), "seeds": 20},
)
def gpr_binary_images(
    tasks: tuple[str, ...] = ("mnist:3-vs-8", "mnist:4-vs-9", "cifar10:cat-vs-dog", "cifar10:airplane-vs-ship"),
    activation: str = "erf",
    depth: int = 1,
    pool: int = 1200,
    temperatures: tuple[float, ...] = (1e-8, 1e-3, 0.1),
    n_train: tuple[int, ...] = (10, 20, 50, 100, 200, 400),
    threshold: float = 0.01,
    seeds: int = 12,
) -> list[Curve]:
    common = (activation, depth, pool, temperatures, n_train, threshold, seeds)
    return [curve for text in tasks for curve in _task_curves(text, *common)]


def _task_curves(
    text: str,
    activation: str,
    depth: int,
    pool: int,
    temperatures: Sequence[float],
    n_train: Sequence[int],
    threshold: float,
    seeds: int,
) -> list[Curve]:
    dataset, colon, task = text.partition(":")
    if not colon:
        raise ValueError(f"tasks = {text!r}: write DATASET:TASK, such as mnist:3-vs-8")
    system = image_pool(dataset, task, activation, depth, pool, min(n_train), temperatures[0])
    grid = {"temperature": temperatures, "n_train": sample_sizes(max(n_train), min(n_train), 25)}
    measured = {"temperature": temperatures, "n_train": n_train}
    panel = f"{'MNIST' if dataset == 'mnist' else dataset.upper()}, {task.replace('-', ' ')}"
    group = partial(renormalization_group, threshold=threshold, residual="self_consistent_on_pool")
    return [
        Curve(f"effective ridge, {panel}", self_consistent_on_pool, system, grid, panel=panel),
        Curve(f"RG decimation, {panel}", group, system, grid, panel=panel),
        Curve(f"equivalent kernel, {panel}", equivalent_kernel, system, grid, panel=panel),
        Curve(f"measured, {panel}", gp_regression, system, measured, seeds=seeds, paired=("temperature",), panel=panel),
    ]
