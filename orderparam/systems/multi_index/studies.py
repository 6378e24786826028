"""The figures: exit times against dimension, one look or two at each sample, batches, the staircase, and the table of
exponents."""

import math
from typing import Any

import numpy as np
import xarray as xr

from orderparam.core.study import Comparison, Curve, study
from orderparam.plotting.curves import caption, draw_line
from orderparam.plotting.style import COLOURS, MARKERS
from orderparam.systems.multi_index.experiment import exit_chain, network_sgd, overlap_chain
from orderparam.systems.multi_index.exponents import sgd_samples
from orderparam.systems.multi_index.model import SphericalSGD
from orderparam.systems.multi_index.tabulate import WeakLearnability, hardness, measured_hermite_power
from orderparam.systems.multi_index.theory import exit_time, overlap_flow

_WAYS = ("one look", "two looks")
_TARGETS = ("z", "z**2", "He3(z)", "z1*z2", "z1*z2*z3", "sign(z1*z2*z3)")
_DEGREES = {1: "$\\ell = 1$", 2: "$\\ell = 2$", 3: "$\\ell = 3$"}


def exit_exponent(runs: xr.Dataset) -> tuple[float, float]:
    """Slope of ln(mean n) against ln d, and half its 95% interval (least squares, weighted by the standard errors of
    the means)."""
    x, samples = np.log(runs["input_dim"].values), runs["exit_samples"]
    mean = samples.mean("seed").values
    weight = mean**2 / (samples.var("seed", ddof=1).values / samples.sizes["seed"])
    centre = np.sum(weight * x) / np.sum(weight)
    spread = np.sum(weight * (x - centre) ** 2)
    return float(np.sum(weight * (x - centre) * np.log(mean)) / spread), float(1.96 / np.sqrt(spread))


def _dots(axes: Any, x: Any, runs: xr.Dataset, y: str, number: int, label: str | None) -> None:
    """Mean and standard error in the colour of the theory with the same number."""
    values = runs[y]
    error = values.std("seed", ddof=1) / math.sqrt(runs.sizes["seed"])
    axes.errorbar(
        x,
        values.mean("seed"),
        error,
        fmt=MARKERS[number],
        color=COLOURS[number],
        markerfacecolor="white",
        label=label,
        zorder=3,
    )


def _exits(degree: int, dims: tuple[int, ...], seeds: int) -> list[Curve]:
    formula = "z" if degree == 1 else f"He{degree}(z)/sqrt({math.factorial(degree)})"
    system = SphericalSGD(
        target=formula,
        student=formula,
        learning_rate={1: 0.5, 2: 0.1, 3: 0.5}[degree],
        rate_exponent=max(degree / 2 - 1, 0.0),
        horizon=40.0 * max(dims),
    )
    over = {"input_dim": dims}
    panel = f"exit {degree}"
    return [
        Curve(f"diffusion of the overlap, l = {degree}", exit_time, system, over, panel=panel),
        Curve(f"SGD, l = {degree}", exit_chain, system, over, seeds=seeds, batch_seeds=True, panel=panel),
    ]


def _draw_exits(comparison: Comparison) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.4, 4.0))
    for number, degree in enumerate((1, 2, 3)):
        (theory,) = comparison.theories(f"exit {degree}").values()
        (runs,) = comparison.experiments(f"exit {degree}").values()
        slope, half = exit_exponent(runs)
        draw_line(axes, theory, "input_dim", "exit_samples", number, None)
        _dots(
            axes,
            runs["input_dim"],
            runs,
            "exit_samples",
            number,
            f"{_DEGREES[degree]}: $n\\sim d^{{{slope:.2f}\\pm{half:.2f}}}$",
        )
    axes.set(
        xscale="log", yscale="log", xlabel="input dimension $d$", ylabel="samples $n$ until $|m| = 1/2$", ylim=(8, None)
    )
    axes.legend(loc="lower right", title="information exponent: fit to the runs")
    caption(
        figure,
        "Spherical one-pass SGD, one neuron, student = target = normalised Hermite polynomial of degree l, "
        "correlation loss, "
        "learning rate 0.5, 0.1, 0.5/sqrt(d). Lines: mean first-passage time of the diffusing overlap; dots: mean over "
        f"{comparison.parameters['seeds']} runs. Known: n ~ d, d log d, d^2.",
    )
    return figure


@study(
    "sgd-exit-times",
    title="How many samples SGD needs to find a direction",
    source="Ben Arous, Gheissari, Jagannath 2021, theorem 1.3; Arnaboldi et al. 2023",
    full={"dims": (128, 512, 2048, 8192, 32768), "cubic_dims": (32, 64, 128, 256, 512), "seeds": 256},
    seconds=(60, 3600),
    observables=("exit_samples",),
    draw=_draw_exits,
)
def sgd_exit_times(
    dims: tuple[int, ...] = (128, 512, 2048), cubic_dims: tuple[int, ...] = (48, 96, 192), seeds: int = 96
) -> list[Curve]:
    return [*_exits(1, dims, seeds), *_exits(2, dims, seeds), *_exits(3, cubic_dims, seeds)]


def _draw_reuse(comparison: Comparison) -> Any:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.6))
    for number, way in enumerate(_WAYS):
        (theory,) = comparison.theories(f"path, {way}").values()
        (runs,) = comparison.experiments(f"path, {way}").values()
        x = theory["sample_ratio"].values.ravel()
        left.plot(x, theory["norm"].values.ravel(), color=COLOURS[number], label=f"{way}")
        _dots(left, x, runs.squeeze(drop=True), "norm", number, None)
        (theory,) = comparison.theories(f"exit, {way}").values()
        (runs,) = comparison.experiments(f"exit, {way}").values()
        slope, half = exit_exponent(runs)
        draw_line(right, theory, "input_dim", "exit_samples", number, None)
        _dots(right, runs["input_dim"], runs, "exit_samples", number, f"{way}: $d^{{{slope:.2f}\\pm{half:.2f}}}$")
    left.set(xscale="log", xlabel="samples per dimension $n/d$", ylabel="overlap $|m|$")
    right.set(xscale="log", yscale="log", xlabel="input dimension $d$", ylabel="samples $n$ until $|m| = 0.3$")
    left.legend()
    right.legend(title="fit to the runs")
    p = comparison.parameters
    caption(
        figure,
        "Target -He3/sqrt 6 (information exponent 3, generative exponent 1), student erf(z/sqrt 2), correlation "
        "loss; one look: "
        f"learning rate 1/sqrt d; two looks: first step 1, learning rate 0.3. Left: d = {p['path_dim']}, all runs "
        "from m = 0.1, lines: "
        "flow d -> infinity. Right: random starts, lines: mean first-passage time; one look is steeper than its "
        f"asymptotic d^2 at these d. {p['seeds']} runs, standard "
        "errors.",
    )
    return figure


@study(
    "sgd-data-reuse",
    title="A second look at each sample removes the information exponent",
    source="Dandi et al. 2024, Arnaboldi et al. 2024",
    full={"dims": (64, 256, 1024, 4096), "one_look_dims": (32, 64, 128, 256), "path_dim": 4096, "seeds": 256},
    seconds=(60, 3600),
    observables=("exit_samples", "norm"),
    draw=_draw_reuse,
)
def sgd_data_reuse(
    dims: tuple[int, ...] = (64, 256, 1024),
    one_look_dims: tuple[int, ...] = (32, 64, 128),
    path_dim: int = 512,
    seeds: int = 64,
) -> list[Curve]:
    base = SphericalSGD(
        target="-He3(z)/sqrt(6)", student="erf(z/sqrt(2))", exit_overlap=0.3, start="signed", horizon=1e5
    )
    ways = {
        "one look": base.with_(learning_rate=1.0, rate_exponent=0.5),
        "two looks": base.with_(learning_rate=0.3, repetition=1.0),
    }
    curves = []
    for way, system in ways.items():
        over = {"input_dim": one_look_dims if way == "one look" else dims}
        curves += [
            Curve(f"diffusion, {way}", exit_time, system, over, panel=f"exit, {way}"),
            Curve(f"SGD, {way}", exit_chain, system, over, seeds=seeds, batch_seeds=True, panel=f"exit, {way}"),
        ]
        path = system.with_(input_dim=path_dim, first_overlap=0.1, horizon=30.0, records=16)
        one = {"input_dim": (path_dim,)}
        curves += [
            Curve(f"flow, {way}", overlap_flow, path, one, panel=f"path, {way}"),
            Curve(f"path of SGD, {way}", overlap_chain, path, one, seeds=seeds, batch_seeds=True, panel=f"path, {way}"),
        ]
    return curves


def _draw_batches(comparison: Comparison) -> Any:
    import matplotlib.pyplot as plt

    (theory,), (runs,) = comparison.theories().values(), comparison.experiments().values()
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.4))
    for panel, name, words in zip(axes, ("exit_samples", "exit_steps"), ("samples $n$", "steps $n/b$")):
        draw_line(panel, theory, "batch_size", name, 0, "first-passage theory")
        _dots(panel, runs["batch_size"], runs, name, 1, "SGD")
        panel.axvline(comparison.parameters["dim"] ** 1.5, color="0.6", linestyle=":", label="$b = d^{\\ell/2}$")
        panel.set(xscale="log", yscale="log", xlabel="batch size $b$", ylabel=f"{words} until $|m| = 1/2$")
    axes[1].legend()
    p = comparison.parameters
    caption(
        figure,
        f"Information exponent 3, d = {p['dim']}, learning rate 0.5 b / sqrt(d) for batches of b, {p['seeds']} "
        "runs, standard errors. The "
        "theory takes the gradient noise of a sample whatever the batch; it holds for b well below d^(3/2).",
    )
    return figure


@study(
    "sgd-batch-size",
    title="Large batches save steps but no samples",
    source="Arnaboldi et al. 2024 (batch size and time complexity)",
    full={"dim": 128, "batches": (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048), "seeds": 256},
    seconds=(60, 1200),
    observables=("exit_samples", "exit_steps"),
    draw=_draw_batches,
)
def sgd_batch_size(dim: int = 64, batches: tuple[int, ...] = (1, 8, 64, 256), seeds: int = 96) -> list[Curve]:
    formula = "He3(z)/sqrt(6)"
    system = SphericalSGD(
        input_dim=dim,
        target=formula,
        student=formula,
        learning_rate=0.5,
        rate_exponent=0.5,
        gradient="sum",
        horizon=60.0 * dim,
    )
    over = {"batch_size": batches}
    return [
        Curve("first-passage theory", exit_time, system, over),
        Curve("SGD", exit_chain, system, over, seeds=seeds, batch_seeds=True),
    ]


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
                values = part["overlap"]
                error = values.std("seed", ddof=1) / math.sqrt(part.sizes["seed"])
                filled = COLOURS[index] if number else "white"
                panel.errorbar(
                    x, values.mean("seed"), error, fmt=MARKERS[number], color=COLOURS[index], markerfacecolor=filled
                )
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
        "runs. With its stairs (leap 1) the target shows one direction after the other; without them (leap 3) "
        "nothing moves in this time.",
    )
    return figure


@study(
    "leap-staircase",
    title="SGD climbs a staircase of directions",
    source="Abbe, Boix-Adsera, Misiakiewicz 2022, 2023",
    full={"dim": 100_000, "network_dim": 4096, "seeds": 64, "horizon": 200.0},
    seconds=(60, 1800),
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
        leap, generative, degree = (float(one[key]) for key in ("leap", "generative", "degree"))
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
    header = ["target", "information", "leap", "generative", "kernels", "one-pass SGD", "best algorithm", "its $n/d$"]
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
        values = runs["hermite_power"].isel(order=order)
        error = values.std("seed", ddof=1) / math.sqrt(runs.sizes["seed"])
        bottom.errorbar(x, values.mean("seed"), error, fmt="o", color="black", markersize=3)
    bottom.set_xticks(range(len(names)), names)
    bottom.set_ylabel("power of $g$ in each degree")
    bottom.set_yscale("symlog", linthresh=0.1)
    bottom.set_ylim(-0.05, 60)
    bottom.legend(ncols=4, loc="upper left")
    caption(
        figure,
        "Samples needed to learn the whole target with a kernel, to find all directions with one-pass SGD, and "
        "to find the first with the "
        "best known efficient algorithm (last column: the n/d from which it does). Below: sum of squared Hermite "
        "coefficients of each "
        f"degree; bars: exact, dots: {comparison.parameters['seeds']} samples of "
        f"{comparison.parameters['samples']} points.",
    )
    return figure


@study(
    "weak-learnability-table",
    title="Kernels, one-pass SGD and the best algorithm, target by target",
    source="Abbe et al. 2023; Damian et al. 2024; Troiani et al. 2024",
    full={"samples": 2_000_000, "seeds": 16},
    seconds=(20, 120),
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
