"""The figures of exit times: against dimension, with one look or two at each sample, and against the batch size."""

import math
from typing import Any

import numpy as np
import xarray as xr

from orderparam.core.study import Comparison, Curve, study
from orderparam.plotting.curves import caption, draw_line
from orderparam.plotting.measured import dots, power_law
from orderparam.plotting.style import COLOURS
from orderparam.systems.multi_index.experiment import exit_chain, overlap_chain
from orderparam.systems.multi_index.model import SphericalSGD
from orderparam.systems.multi_index.theory import exit_time, overlap_flow

_WAYS = ("one look", "two looks")
_DEGREES = {1: "$\\ell = 1$", 2: "$\\ell = 2$", 3: "$\\ell = 3$"}


def _slope(theory: xr.Dataset) -> float:
    """Slope of ln n against ln d of a theory over its dimensions."""
    return float(np.polyfit(np.log(theory["input_dim"].values), np.log(theory["exit_samples"].values), 1)[0])


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
        slope, half = power_law(runs["input_dim"].values, runs["exit_samples"])
        draw_line(axes, theory, "input_dim", "exit_samples", number, None)
        dots(
            axes,
            runs["input_dim"],
            runs["exit_samples"],
            number,
            f"{_DEGREES[degree]}: $n\\sim d^{{{slope:.2f}\\pm{half:.2f}}}$  [{_slope(theory):.2f}]",
        )
    axes.set(
        xscale="log", yscale="log", xlabel="input dimension $d$", ylabel="samples $n$ until $|m| = 1/2$", ylim=(8, None)
    )
    axes.legend(loc="lower right", title="information exponent: fit to the runs [theory]")
    caption(
        figure,
        "Spherical one-pass SGD, one neuron, student = target = normalised Hermite polynomial of degree l, "
        "correlation loss, "
        "learning rate 0.5, 0.1, 0.5/sqrt(d). Lines: mean first-passage time of the diffusing overlap; dots: mean over "
        f"{comparison.parameters['seeds']} runs with standard errors. Exponents: 95% "
        "interval, and the slope of the theory over the same d; asymptotically n ~ d, d log d, d^2.",
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
        dots(left, x, runs["norm"].squeeze(drop=True), number)
        (theory,) = comparison.theories(f"exit, {way}").values()
        (runs,) = comparison.experiments(f"exit, {way}").values()
        slope, half = power_law(runs["input_dim"].values, runs["exit_samples"])
        draw_line(right, theory, "input_dim", "exit_samples", number, None)
        words = f"{way}: $d^{{{slope:.2f}\\pm{half:.2f}}}$ [{_slope(theory):.2f}]"
        dots(right, runs["input_dim"], runs["exit_samples"], number, words)
    left.set(xscale="log", xlabel="samples per dimension $n/d$", ylabel="overlap $|m|$")
    right.set(xscale="log", yscale="log", xlabel="input dimension $d$", ylabel="samples $n$ until $|m| = 0.3$")
    left.legend()
    right.legend(title="fit to the runs [theory]")
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
        dots(panel, runs["batch_size"], runs[name], 1, "SGD")
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
