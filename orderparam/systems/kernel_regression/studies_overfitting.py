"""Figures of overfitting: the interpolation threshold, and the tails of a spectrum that make it harmless."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from orderparam.core.study import Comparison, Curve, study
from orderparam.kernels import Spectrum, finite_rank
from orderparam.plotting.curves import caption, plot_panel
from orderparam.systems.kernel_regression.experiment import gaussian_design
from orderparam.systems.kernel_regression.figures import sample_sizes
from orderparam.systems.kernel_regression.model import KernelRegression
from orderparam.systems.kernel_regression.theory import self_consistent


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


def draw_benign_tail(comparison: Comparison) -> Any:
    """Test and train error against examples: one column a total weight of the tail."""
    p = comparison.parameters
    figure, rows = plt.subplots(
        2, len(comparison.panels), figsize=(3.0 * len(comparison.panels), 4.8), sharex=True, sharey="row", squeeze=False
    )
    for panel, (top, bottom) in zip(comparison.panels, rows.T):
        for observable, axes in (("test_error", top), ("train_error", bottom)):
            plot_panel(axes, comparison.theories(panel), comparison.experiments(panel), "n_train", observable)
            axes.axvline(p["rank"], color="0.6", linewidth=0.8, linestyle=":", zorder=0)
            axes.set_ylabel(observable.replace("_", " ") if axes in rows[:, 0] else "")
        top.set_title(panel)
        top.set_ylim(0.06, 40)
        top.set_xlabel("")
    handles, labels = rows[0][-1].get_legend_handles_labels()
    figure.legend(handles, [label.rsplit(",", 1)[0] for label in labels], loc="outside upper center", ncols=2)
    caption(
        figure,
        f"{p['rank']} modes of eigenvalue 1/{p['rank']} with target power 1, label noise {p['noise']:g}. Tail: "
        f"{p['tail_modes']} modes of total weight c and no target, T = {p['temperature']:g}; ridge: no tail, T = c. Dots: mean "
        f"of {p['seeds']} Gaussian designs, bars: standard error; without a tail not at P = {p['rank']} (dotted), where the mean "
        "does not exist. With the tail the training labels, noise included, are fitted; the test error is that of the ridge "
        "up to terms of order P/(tail modes).",
        115,
    )
    return figure


@study(
    "benign-tail",
    title="Many tiny modes are a ridge: noise is interpolated, and the interpolation peak is gone",
    source="Canatar, Bordelon, Pehlevan 2021; Howard et al. 2024; Bartlett, Long, Lugosi, Tsigler 2020",
    draw=draw_benign_tail,
    seconds=(60, 1200),
    observables=("test_error", "train_error"),
    full={"tail_modes": 20_000, "seeds": 400},
)
def benign_tail(
    rank: int = 50,
    noise: float = 0.25,
    weights: tuple[float, ...] = (0.0, 0.05, 0.5),
    tail_modes: int = 4000,
    temperature: float = 1e-8,
    n_train: tuple[int, ...] = (10, 20, 35, 50, 70, 100, 200),
    seeds: int = 40,
) -> list[Curve]:
    curves = []
    grid = {"n_train": sample_sizes(max(n_train), min(n_train), 80)}
    for weight in weights:
        panel = f"tail of total weight $c$ = {weight:g}" if weight else "no tail"
        counts = np.array([rank, tail_modes if weight else 0])
        tail = Spectrum(np.array([1 / rank, weight / tail_modes]), np.array([1.0, 0.0]), counts)
        systems = {"tail": KernelRegression(tail, 10, temperature, noise)}
        if weight:
            systems["ridge"] = KernelRegression(finite_rank(rank, 1 / rank), 10, weight, noise)
        sizes = n_train if weight else tuple(size for size in n_train if size != rank)
        for name, system in systems.items():
            curves.append(Curve(f"self-consistent, {name}, c = {weight:g}", self_consistent, system, grid, panel=panel))
            curves.append(
                Curve(
                    f"Gaussian features, {name}, c = {weight:g}",
                    gaussian_design,
                    system,
                    {"n_train": sizes},
                    seeds=seeds,
                    panel=panel,
                )
            )
    return curves
