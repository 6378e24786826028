"""The named figures of kernel regression."""

from functools import partial
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

from orderparam.core.study import Comparison, Curve, study
from orderparam.kernels import finite_rank
from orderparam.plotting.curves import caption, plot_panel
from orderparam.systems.kernel_regression.experiment import gaussian_design, gp_regression, network_posterior
from orderparam.systems.kernel_regression.images import image_pool
from orderparam.systems.kernel_regression.model import KernelRegression
from orderparam.systems.kernel_regression.theory import (
    cavity,
    equivalent_kernel,
    renormalization_group,
    self_consistent,
    self_consistent_on_pool,
)


def sample_sizes(largest: float, smallest: float = 5, points: int = 40) -> list[float]:
    """A smooth grid of training-set sizes for theory lines."""
    return np.geomspace(smallest, largest, points).tolist()


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
        table = comparison.agreement[label].sel(observable="test_error")
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
        f"{p['dataset']}, {p['task']}, {p['activation']} network with {p['depth']} hidden layer(s), T = {p['temperature']:g}. "
        f"Dots: mean over {p['seeds']} random training sets (network: {p['network_seeds']}), bars: standard error; "
        "error on the images outside the training set.",
        95,
    )
    return figure


def _deviations(axes: Any, table: xr.Dataset, marker: int, colour: int) -> None:
    from orderparam.plotting.style import COLOURS, MARKERS

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


def draw_double_descent(comparison: Comparison) -> Any:
    """Test error against examples per mode, one panel a temperature."""
    panels = comparison.panels
    figure, rows = plt.subplots(1, len(panels), figsize=(3.0 * len(panels), 3.2), sharey=True, squeeze=False)
    rank = comparison.parameters["rank"]
    for axes, panel in zip(rows[0], panels):
        plot_panel(axes, comparison.theories(panel), comparison.experiments(panel), "n_train", "test_error", title=panel)
        axes.axvline(rank, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
        if axes is not rows[0][0]:
            axes.set_ylabel("")
    rows[0][0].legend([line for line in rows[0][0].get_lines() if not line.get_label().startswith("_")][:1], ["self-consistent"])
    p = comparison.parameters
    caption(
        figure,
        f"{rank} modes of eigenvalue 1/{rank}, target power 1, label noise {p['noise']:g}. Dots: mean of {p['seeds']} Gaussian "
        f"designs, bars: standard error. Dotted: P = {rank}. The ridge T = {p['noise']:g} is the best one at every P.",
        105,
    )
    return figure


@study(
    "double-descent-finite-rank",
    title="Overfitting at the interpolation threshold of a finite-rank kernel, and the ridge that removes it",
    source="Canatar, Bordelon, Pehlevan 2021",
    draw=draw_double_descent,
    seconds=(25, 300),
    observables=("test_error", "train_error"),
    full={"seeds": 1000},
)
def double_descent_finite_rank(
    rank: int = 50,
    noise: float = 0.25,
    temperatures: tuple[float, ...] = (0.01, 0.1, 0.25),
    n_train: tuple[int, ...] = (10, 20, 30, 40, 50, 60, 80, 120, 200),
    seeds: int = 60,
) -> list[Curve]:
    curves = []
    for temperature in temperatures:
        system = KernelRegression(finite_rank(rank, 1 / rank), 10, temperature, noise)
        panel = f"$T$ = {temperature:g}"
        grid = {"n_train": sample_sizes(max(n_train), 5, 80)}
        curves.append(Curve(f"self-consistent, T = {temperature:g}", self_consistent, system, grid, panel=panel))
        curves.append(
            Curve(
                f"Gaussian features, T = {temperature:g}",
                gaussian_design,
                system,
                {"n_train": n_train},
                seeds=seeds,
                batch_seeds=True,
                panel=panel,
            )
        )
    return curves
