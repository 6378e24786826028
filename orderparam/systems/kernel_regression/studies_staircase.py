"""Figure of a kernel on the sphere, which learns one polynomial degree after the other."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from orderparam.core.agreement import estimate
from orderparam.core.study import Comparison, Curve, study
from orderparam.networks.fully_connected import fully_connected
from orderparam.plotting.curves import caption, plot_panel, yerror
from orderparam.plotting.style import COLOURS, MARKERS
from orderparam.systems.kernel_regression.figures import sample_sizes
from orderparam.systems.kernel_regression.sphere import SphereRegression, self_consistent_by_degree, sphere_regression

DEGREES = (1, 3)


def draw_staircase(comparison: Comparison) -> Any:
    """One column an input dimension: the error above, the learnability of the linear and the cubic harmonics below."""
    p = comparison.parameters
    columns = len(comparison.panels)
    figure, rows = plt.subplots(2, columns, figsize=(3.9 * columns, 5.2), sharex=True, sharey="row", squeeze=False)
    for column, (panel, dim) in enumerate(zip(comparison.panels, p["input_dims"])):
        top, bottom = rows[0][column], rows[1][column]
        theories, experiments = comparison.theories(panel), comparison.experiments(panel)
        plot_panel(top, theories, experiments, "n_train", "test_error")
        top.set_title(panel, loc="right")
        line, dots = next(iter(theories.values())), next(iter(experiments.values()))
        cubic = dim * (dim - 1) * (dim + 4) // 6  # harmonics of degree 3
        for number, degree in enumerate(DEGREES):
            bottom.plot(line["n_train"], line["learnability"].isel(degree=degree), color=COLOURS[number])
            mean, error = estimate(dots.isel(degree=degree), "learnability")
            bottom.errorbar(
                dots["n_train"], mean, yerror(error), fmt=MARKERS[number], color=COLOURS[number], label=f"degree {degree}"
            )
        for axes in (top, bottom):
            for size in (dim, cubic):
                axes.axvline(size, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
        for size, name in ((dim, "$d$"), (cubic, "$N_3$")):
            top.text(size, 1.01, name, transform=top.get_xaxis_transform(), ha="center", fontsize=8, color="0.4")
        top.axhline(p["cubic_power"], color="0.6", linewidth=0.8, linestyle="--", zorder=0)
        top.set_xlabel("")
        bottom.set_xlabel("training examples $P$")
        for axes, name in ((top, "test error (mean squared)"), (bottom, "learnability")):
            axes.set_ylabel("" if column else name)
    handles, _ = rows[0][0].get_legend_handles_labels()
    rows[0][0].legend(handles, ["self-consistent theory", "measured"], loc="lower left")
    rows[1][0].legend(loc="lower right")
    caption(
        figure,
        f"{p['activation']} network kernel, one hidden layer, inputs uniform on the sphere in d dimensions; target: linear "
        f"(power {1 - p['cubic_power']:g}) plus cubic harmonic ({p['cubic_power']:g}, dashed line), T = {p['temperature']:g}. "
        "Learnability: mean over all harmonics of a degree. Dotted: the numbers of linear and of cubic harmonics, d and "
        f"$N_3$ = d(d-1)(d+4)/6. Dots: mean of {p['seeds']} "
        "training sets, bars: standard error; averages over the sphere are exact.",
        110,
    )
    return figure


@study(
    "staircase-gp",
    title="Regression on the sphere learns one polynomial degree after the other: linear at P ~ d, cubic at P ~ d^3",
    source="Bordelon, Canatar, Pehlevan 2020; Canatar, Bordelon, Pehlevan 2021; Ringel et al. 2025",
    draw=draw_staircase,
    seconds=(60, 1800),
    full={
        "input_dims": (10, 20),
        "n_train": (5, 10, 20, 40, 100, 200, 500, 1000, 2000, 5000, 10_000),
        "max_degree": 15,
        "seeds": 10,
    },
)
def staircase_gp(
    input_dims: tuple[int, ...] = (7, 14),
    activation: str = "erf",
    cubic_power: float = 0.2,
    temperature: float = 1e-4,
    n_train: tuple[int, ...] = (4, 8, 16, 32, 64, 128, 256, 512, 1024),
    max_degree: int = 9,
    seeds: int = 8,
) -> list[Curve]:
    curves = []
    architecture = fully_connected(1, None, activation)
    power = np.array([0, 1 - cubic_power, 0, cubic_power])
    for dim in input_dims:
        panel = f"$d$ = {dim}"
        system = SphereRegression.from_architecture(architecture, dim, power, 10, temperature, max_degree=max_degree)
        grid = {"n_train": sample_sizes(2 * max(n_train), min(n_train), 80)}
        curves.append(Curve(f"self-consistent, d = {dim}", self_consistent_by_degree, system, grid, panel=panel))
        curves.append(Curve(f"measured, d = {dim}", sphere_regression, system, {"n_train": n_train}, seeds=seeds, panel=panel))
    return curves
