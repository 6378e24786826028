"""The figures of targets with several directions: the staircase, and the table of sample complexities."""

import math
from typing import Any

import numpy as np

from orderparam.core.study import Comparison, Curve, study
from orderparam.plotting.curves import caption
from orderparam.plotting.measured import dots, mean_and_error
from orderparam.plotting.style import COLOURS
from orderparam.systems.multi_index.experiment import network_sgd, overlap_chain
from orderparam.systems.multi_index.exponents import sgd_samples
from orderparam.systems.multi_index.model import SphericalSGD
from orderparam.systems.multi_index.tabulate import WeakLearnability, hardness, measured_hermite_power
from orderparam.systems.multi_index.theory import overlap_flow

_TARGETS = ("z", "z**2", "He3(z)", "z1*z2", "z1*z2*z3", "sign(z1*z2*z3)")


def _draw_staircase(comparison: Comparison) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8.2, 3.5), sharey=True)
    for panel, name in zip(axes, comparison.panels):
        theory = next(iter(comparison.theories(name).values())).isel(input_dim=-1)
        x = theory["sample_ratio"].values
        for index in range(theory.sizes["index"]):
            line = theory["overlap"].isel(index=index)
            panel.plot(x, line, color=COLOURS[index], label=f"$m_{index + 1}$")
            for number, runs in enumerate(comparison.experiments(name).values()):
                part = runs.isel(index=index).squeeze(drop=True)
                dots(panel, x, part["overlap"], number, colour=COLOURS[index], filled=bool(number))
        panel.set(xscale="log", xlabel="samples per dimension $n/d$", title=f"$y$ = {name}")
    axes[0].set_ylabel("overlap with each direction")
    axes[0].legend()
    p = comparison.parameters
    caption(
        figure,
        "One neuron, sigma = He1 + He2/2 + He3/6, correlation loss, learning rate 0.05. Lines: flow from all "
        f"overlaps = {p['first']:g}; open "
        f"circles: exact chain, d = {p['dim']}; filled squares: network with all weights, d = {p['network_dim']}; "
        f"means over {p['seeds']} "
        "runs, standard errors. With its stairs (leap 1) the target shows one direction after the other; without them (leap 3) "
        "nothing moves in this time.",
    )
    return figure


@study(
    "leap-staircase",
    title="SGD climbs a staircase of directions",
    source="Abbe, Boix-Adsera, Misiakiewicz 2022, 2023",
    full={"dim": 100_000, "network_dim": 4096, "seeds": 64, "horizon": 200.0},
    seconds=(45, 1800),
    observables=("overlap",),
    draw=_draw_staircase,
)
def leap_staircase(
    dim: int = 2048, network_dim: int = 256, first: float = 0.02, horizon: float = 80.0, seeds: int = 8
) -> list[Curve]:
    curves = []
    for formula in ("z1 + z1*z2 + z1*z2*z3", "z1*z2*z3"):
        system = SphericalSGD(
            target=formula,
            student="He1(z) + He2(z)/2 + He3(z)/6",
            learning_rate=0.05,
            first_overlap=first,
            horizon=horizon,
            records=14,
        )
        chain, network = system.with_(input_dim=dim), system.with_(input_dim=network_dim)
        curves += [
            Curve(f"flow, {formula}", overlap_flow, chain, {"input_dim": (dim,)}, panel=formula),
            Curve(f"chain, {formula}", overlap_chain, chain, {"input_dim": (dim,)}, seeds, True, panel=formula),
            Curve(
                f"network, {formula}", network_sgd, network, {"input_dim": (network_dim,)}, seeds, True, panel=formula
            ),
        ]
    return curves


def _draw_table(comparison: Comparison) -> Any:
    import matplotlib.pyplot as plt

    (theory,), (runs,) = comparison.theories().values(), comparison.experiments().values()
    names = [str(name) for name in theory["target"].values]
    rows = []
    for name in names:
        one = theory.sel(target=name)
        leap, generative, degree = (float(one[key]) for key in ("leap", "generative_leap", "degree"))
        kernel = "$e^d$" if math.isinf(degree) else "$d$" if degree == 1 else f"$d^{{{degree:.0f}}}$"
        sgd = sgd_samples(None if math.isinf(leap) else int(leap), 8).replace("log", "\\log ").replace(" ", "\\,")
        best = "$d$" if generative <= 2 else f"$d^{{{generative:.0f}/2}}$"
        threshold = float(one["threshold"])
        recovery = "$\\infty$" if math.isinf(threshold) else f"{threshold:.4g}"
        rows.append(
            [
                name,
                f"{float(one['information']):.0f}",
                f"{leap:.0f}",
                f"{generative:.0f}",
                kernel,
                f"${sgd}$",
                best,
                recovery,
            ]
        )
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(7.6, 5.2), height_ratios=(1, 1.1))
    top.axis("off")
    header = ["target", "information", "leap", "gen. leap", "kernels", "one-pass SGD", "best algorithm", "its $n/d$"]
    cells = top.table(rows, colLabels=header, loc="center", cellLoc="center", edges="horizontal")
    cells.scale(1, 1.35)
    cells.auto_set_column_width(range(len(header)))
    for order in range(theory.sizes["order"]):
        x = np.arange(len(names)) + 0.15 * (order - 1.5)
        bottom.bar(
            x,
            theory["hermite_power"].isel(order=order),
            0.13,
            color=COLOURS[order],
            alpha=0.55,
            label=f"degree {order + 1}",
        )
        mean, error = mean_and_error(runs["hermite_power"].isel(order=order))
        bottom.errorbar(x, mean, error, fmt="o", color="black", markersize=3)
    bottom.set_xticks(range(len(names)), names)
    bottom.set_ylabel("power of $g$ in each degree")
    bottom.set_yscale("symlog", linthresh=0.1)
    bottom.set_ylim(-0.05, 60)
    bottom.legend(ncols=4, loc="upper left")
    caption(
        figure,
        "Samples needed to learn the whole target with a kernel, and to find all directions with one-pass SGD and with the "
        "best known efficient algorithm (last column: the n/d from which it finds the first); e^d: more than any power. "
        "Below: sum of squared Hermite coefficients of each "
        f"degree; bars: exact, dots: {comparison.parameters['seeds']} samples of "
        f"{comparison.parameters['samples']} points.",
    )
    return figure


@study(
    "weak-learnability-table",
    title="Kernels, one-pass SGD and the best algorithm, target by target",
    source="Abbe et al. 2023; Damian et al. 2024; Troiani et al. 2024",
    full={"samples": 2_000_000, "seeds": 16},
    seconds=(10, 300),
    observables=("hermite_power",),
    draw=_draw_table,
)
def weak_learnability_table(samples: int = 100_000, seeds: int = 8) -> list[Curve]:
    over = {"target": _TARGETS}
    system = WeakLearnability(samples=samples)
    return [
        Curve("exact", hardness, system, over),
        Curve("random samples", measured_hermite_power, system, over, seeds=seeds),
    ]
