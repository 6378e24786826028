"""The figures of one-pass SGD: the phase diagram, each of its regimes, and the price of a smaller learning rate."""

import math
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from orderparam.core.study import Comparison, Curve, study
from orderparam.plotting.curves import caption
from orderparam.plotting.style import COLOURS, MARKERS
from orderparam.systems.online_sgd.chain import overlap_chain
from orderparam.systems.online_sgd.flow import overlap_flow
from orderparam.systems.online_sgd.model import CommitteeSGD
from orderparam.systems.online_sgd.network import network_sgd
from orderparam.systems.online_sgd.phases import (
    PhasePoint,
    measured_moving_time,
    moving_time,
    phase_chain,
    phase_flow,
    region,
    residual_chain,
    residual_theory,
    time_exponent,
)
from orderparam.systems.online_sgd.start import InSpanStart, TeacherStart

_VEIGA = "Veiga, Stephan, Loureiro, Krzakala, Zdeborova 2022"
_REGION_COLOURS = {
    "perfect learning": COLOURS[2],
    "Saad-Solla line": COLOURS[0],
    "noise dominated": COLOURS[4],
    "no differential equation": "0.4",
}
_POINTS = ((0.0, 0.5), (0.25, 0.25), (0.0, 0.0), (0.25, -0.25), (0.0, -0.375), (0.25, -0.5), (0.0, -0.75))
_RISK = "population risk $R$"


def _mean_and_error(values: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    return values.mean("seed").values, (values.std("seed", ddof=1) / math.sqrt(values.sizes["seed"])).values


def _dots(axes: Any, x: Any, values: xr.DataArray, number: int, label: str | None = None, filled: bool = False) -> None:
    mean, error = _mean_and_error(values)
    colour = COLOURS[number]
    face = colour if filled else "white"
    axes.errorbar(x, mean, error, fmt=MARKERS[number % 6], color=colour, markerfacecolor=face, label=label, zorder=3)


def _slope(x: np.ndarray, values: xr.DataArray) -> tuple[float, float]:
    """Exponent of a power law through means over seeds, and half its 95% interval."""
    mean, error = _mean_and_error(values)
    weight = (mean / np.maximum(error, 1e-3 * mean)) ** 2
    logs = np.log(x)
    centre = np.sum(weight * logs) / np.sum(weight)
    spread = np.sum(weight * (logs - centre) ** 2)
    return float(np.sum(weight * (logs - centre) * np.log(mean)) / spread), float(1.96 / np.sqrt(spread))


def _name(kappa: float, delta: float) -> str:
    return f"kappa = {kappa:g}, delta = {delta:g}"


def _draw_phases(comparison: Comparison) -> Any:
    import matplotlib.pyplot as plt

    figure, (plane, scaling) = plt.subplots(1, 2, figsize=(9.2, 4.2), width_ratios=(1, 1.15))
    kappa = np.linspace(0, 1, 2)
    plane.fill_between(kappa, -kappa, 1, color=COLOURS[2], alpha=0.2, linewidth=0)
    plane.fill_between(kappa, -kappa - 0.5, -kappa, color=COLOURS[4], alpha=0.25, linewidth=0)
    plane.plot(kappa, -kappa, color=COLOURS[0], linewidth=2)
    plane.text(0.55, 0.6, "perfect learning", ha="center", color=COLOURS[2])
    plane.text(0.6, -0.56, "Saad-Solla", ha="left", color=COLOURS[0], rotation=-31)
    plane.text(0.66, -1.04, "noise dominated", ha="center", color="#8a5d00", rotation=-31)
    plane.text(0.3, -1.3, "no differential equation", ha="center", color="0.3")
    for number, (one, other) in enumerate(_POINTS):
        (theory,) = comparison.theories(_name(one, other)).values()
        (runs,) = comparison.experiments(_name(one, other)).values()
        colour = _REGION_COLOURS[region(one, other)]
        dims = runs["input_dim"].values
        slope, half = _slope(dims, runs["samples"])
        plane.plot(one, other, MARKERS[number % 6], color=colour, markersize=7, clip_on=False, zorder=5)
        words = f"$({one:g}, {other:g})$: {slope:.2f}±{half:.2f} [{time_exponent(one, other):g}]"
        scaling.plot(theory["input_dim"], np.maximum(theory["samples"], 1), color=colour)
        mean, error = _mean_and_error(runs["samples"])
        face = "white" if one else colour
        scaling.errorbar(dims, mean, error, fmt=MARKERS[number % 6], color=colour, markerfacecolor=face, label=words)
    plane.set(xlim=(0, 1), ylim=(-1.5, 1), xlabel=r"width exponent $\kappa$", ylabel=r"learning-rate exponent $\delta$")
    scaling.set(
        xscale="log", yscale="log", xlabel="input dimension $d$", ylabel="samples until the overlaps have moved by 0.1"
    )
    top = scaling.get_ylim()[1]
    scaling.set_ylim(0.5, top * 1e4)
    scaling.legend(loc="upper left", title=r"$(\kappa, \delta)$: measured exponent [predicted]", fontsize=7, ncols=1)
    caption(
        figure,
        r"width $= p_0 d^\kappa$, learning rate $\propto d^{-\delta}$; teacher of 2 units, label noise 0.001. "
        r"Right: lines: flow with both "
        f"terms at finite d, dots: exact chain of the overlaps, {comparison.parameters['seeds']} runs. Below the "
        "noise-dominated "
        "phase one step is enough, and no flow describes it.",
        width=140,
    )
    return figure


@study(
    "sgd-phase-diagram",
    title="Phase diagram of one-pass SGD: width and learning rate against dimension",
    source=f"{_VEIGA}, Fig. 1",
    full={
        "dims": (1_000, 10_000, 100_000),
        "wide_dims": (256, 1296, 4096),
        "large_dims": (1e3, 1e5, 1e7, 1e9),
        "wide_large_dims": (256, 4096, 20_736, 65_536),
        "seeds": 64,
    },
    seconds=(80, 3600),
    observables=("samples",),
    draw=_draw_phases,
)
def sgd_phase_diagram(
    dims: tuple[int, ...] = (100, 400, 1600),
    wide_dims: tuple[int, ...] = (81, 256, 625),
    large_dims: tuple[float, ...] = (1e3, 1e5, 1e7),
    wide_large_dims: tuple[float, ...] = (256.0, 4096.0, 20_736.0),
    seeds: int = 16,
) -> list[Curve]:
    curves = []
    for kappa, delta in _POINTS:
        few_steps = kappa + delta < 0  # large dimensions cost nothing there
        chosen = (wide_large_dims if few_steps else wide_dims) if kappa else (large_dims if few_steps else dims)
        base = 1 if kappa else 4
        point = PhasePoint(
            input_dim=int(chosen[-1]),
            width_exponent=kappa,
            rate_exponent=delta,
            base_width=base,
            first_record=0.02,
            horizon=6.0 if kappa + delta > -0.5 else 1e5,
            records=40,
            largest_width=max(round(base * d**kappa) for d in chosen),
        )
        panel = _name(kappa, delta)
        curves += [
            Curve(f"flow, {panel}", moving_time, point, {"input_dim": chosen}, panel=panel),
            Curve(f"SGD, {panel}", measured_moving_time, point, {"input_dim": chosen}, seeds, True, panel=panel),
        ]
    return curves


def _draw_saad_solla(comparison: Comparison) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.6, 4.0))
    p = comparison.parameters
    for number, noise in enumerate(p["noises"]):
        (long,) = comparison.theories(f"long, noise {noise:g}").values()
        label = rf"$\Delta = {noise:g}$"
        axes.plot(
            long["sample_ratio"].values.ravel(),
            long["population_risk"].values.ravel(),
            color=COLOURS[number],
            label=label,
        )
        for filled, runs in enumerate(comparison.experiments(f"noise {noise:g}").values()):
            x = runs["sample_ratio"].isel(seed=0).values.ravel()
            _dots(axes, x, runs["population_risk"].squeeze("noise"), number, filled=bool(filled))
    axes.set(xscale="log", yscale="log", xlabel="samples per dimension $n/d$", ylabel=_RISK)
    axes.legend()
    caption(
        figure,
        f"Student of {p['width']}, teacher of {p['teacher_width']} units, erf(x/sqrt 2), learning rate = width. "
        "Lines: flow; open: network, "
        f"filled: exact chain of the overlaps, both d = {p['dim']}; {p['seeds']} runs, standard errors. Runs "
        "leave the plateau at random "
        "times that scatter the more the smaller d.",
    )
    return figure


@study(
    "sgd-saad-solla",
    title="Plateau, specialisation, and the floor set by label noise",
    source=f"Saad, Solla 1995; {_VEIGA}, Fig. 2",
    full={
        "dim": 10_000,
        "width": 8,
        "teacher_width": 4,
        "horizon": 1000.0,
        "long_horizon": 1e4,
        "seeds": 16,
        "noises": (0.0, 1e-4, 1e-3, 1e-2),
    },
    seconds=(70, 20_000),
    observables=("population_risk",),
    draw=_draw_saad_solla,
)
def sgd_saad_solla(
    dim: int = 200,
    width: int = 4,
    teacher_width: int = 2,
    noises: tuple[float, ...] = (0.0, 1e-3, 1e-2),
    horizon: float = 300.0,
    long_horizon: float = 3000.0,
    seeds: int = 8,
) -> list[Curve]:
    system = CommitteeSGD(
        input_dim=dim, width=width, teacher_width=teacher_width, learning_rate=float(width), horizon=horizon, records=14
    )
    curves = []
    for noise in noises:
        over, panel = {"noise": (noise,)}, f"noise {noise:g}"
        long = system.with_(horizon=long_horizon, records=80, input_dim=10**9)
        curves += [
            Curve(f"long flow, {panel}", overlap_flow, long, over, panel=f"long, {panel}"),
            Curve(f"flow, {panel}", overlap_flow, system, over, panel=panel),
            Curve(f"network, {panel}", network_sgd, system, over, seeds, True, panel=panel),
            Curve(f"chain, {panel}", overlap_chain, system, over, seeds, True, panel=panel),
        ]
    return curves


def _draw_perfect(comparison: Comparison) -> Any:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.7))
    p = comparison.parameters
    (theory,) = comparison.theories("path").values()
    (runs,) = comparison.experiments("path").values()
    dims = runs["input_dim"].values
    for number, dim in enumerate(dims):
        line, dots = theory.sel(input_dim=dim), runs.sel(input_dim=dim)
        scale = float(dim) ** p["delta"]
        left.plot(line["sample_ratio"] / scale, line["population_risk"], color=COLOURS[number], label=f"$d = {dim:g}$")
        _dots(left, dots["sample_ratio"].isel(seed=0) / scale, dots["population_risk"], number)
    for number, delta in enumerate(p["deltas"]):
        (theory,) = comparison.theories(f"residual, delta {delta:g}").values()
        (runs,) = comparison.experiments(f"residual, delta {delta:g}").values()
        slope, half = _slope(runs["input_dim"].values, runs["population_risk"])
        right.plot(theory["input_dim"], theory["population_risk"], color=COLOURS[number])
        label = rf"$\delta = {delta:g}$: $d^{{{slope:.3f}\pm{half:.3f}}}$"
        _dots(right, runs["input_dim"], runs["population_risk"], number, label)
    left.set(xscale="log", yscale="log", xlabel=r"$n / d^{1+\delta}$, " + rf"$\delta = {p['delta']:g}$", ylabel=_RISK)
    right.set(xscale="log", yscale="log", xlabel="input dimension $d$", ylabel="residual risk $R_\\infty$")
    left.legend()
    right.legend()
    caption(
        figure,
        f"Width = teacher width = {p['width']}, learning rate = width d^-delta, label noise 0.01. Dots: exact "
        "chain of the overlaps, "
        f"{p['seeds']} runs. Left, lines: flow with both terms at that d. Right: runs started at the teacher; "
        "lines: closed form; the risk falls with d in spite of "
        "the label noise, as d^-delta.",
    )
    return figure


@study(
    "sgd-perfect-learning",
    title="Small learning rates learn perfectly: the residual risk falls as d^-delta",
    source=f"{_VEIGA}, Fig. 3",
    full={"dims": (64, 256, 1024, 4096), "seeds": 64, "width": 2, "horizon": 400.0},
    seconds=(60, 10_000),
    observables=("population_risk",),
    draw=_draw_perfect,
)
def sgd_perfect_learning(
    dims: tuple[int, ...] = (64, 256, 1024),
    deltas: tuple[float, ...] = (0.25, 0.5),
    delta: float = 0.5,
    width: int = 1,
    horizon: float = 24.0,
    seeds: int = 32,
) -> list[Curve]:
    point = PhasePoint(base_width=width, teacher_width=width, noise=0.01, horizon=horizon, largest_width=width)
    over = {"input_dim": dims}
    path = point.with_(rate_exponent=delta)
    settled = point.with_(start=TeacherStart(), records=200, horizon=horizon / 2)
    curves = [
        Curve("flow", phase_flow, path, over, panel="path"),
        Curve("SGD", phase_chain, path, over, seeds, True, panel="path"),
    ]
    for one in deltas:
        panel, late = f"residual, delta {one:g}", settled.with_(rate_exponent=one)
        curves += [
            Curve(f"closed form, delta {one:g}", residual_theory, late, over, panel=panel),
            Curve(f"end of SGD, delta {one:g}", residual_chain, late, over, seeds, True, panel=panel),
        ]
    return curves


def _draw_noise(comparison: Comparison) -> Any:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.7), width_ratios=(1.4, 1))
    p = comparison.parameters
    theories = comparison.theories()
    (runs,) = comparison.experiments().values()
    both, limit = theories["flow, both terms"], theories["limit: noise only"]
    dims = runs["input_dim"].values
    for number, dim in enumerate(dims):
        scale = float(dim) ** (2 * p["delta"])
        line, dots = both.sel(input_dim=dim), runs.sel(input_dim=dim)
        left.plot(
            line["sample_ratio"] / scale,
            line["population_risk"],
            color=COLOURS[number],
            label=f"$d = 10^{{{math.log10(dim):.0f}}}$",
        )
        _dots(left, dots["sample_ratio"].isel(seed=0) / scale, dots["population_risk"], number)
    last = limit.isel(input_dim=-1)
    left.plot(
        last["sample_ratio"] / float(dims[-1]) ** (2 * p["delta"]),
        last["population_risk"],
        "k:",
        label=r"$d \to \infty$",
    )
    spread = runs["population_risk"].isel(record=-1).std("seed", ddof=1).values
    relative = 1 / math.sqrt(2 * (runs.sizes["seed"] - 1))
    right.errorbar(dims, spread, spread * relative, fmt="o", color="black", label="standard deviation over runs")
    guide = spread[0] * (dims / dims[0]) ** -(0.5 + p["delta"])
    right.plot(dims, guide, color="0.5", linestyle="--", label=rf"$d^{{-{0.5 + p['delta']:g}}}$")
    deviation = np.abs(both.isel(record=-1)["population_risk"] - limit.isel(record=-1)["population_risk"])
    right.plot(dims, deviation, color=COLOURS[1], label="flow minus its limit")
    left.set(xscale="log", xlabel=r"$n / d^{1 + 2\delta}$", ylabel=_RISK)
    right.set(xscale="log", yscale="log", xlabel="input dimension $d$", ylabel="at the last time")
    left.legend()
    right.legend()
    caption(
        figure,
        f"kappa = 0, delta = {p['delta']:g}, student of 4 and teacher of 2 units, label noise 0.001; {p['seeds']} "
        "runs of the exact chain, "
        "standard errors. Finite-size effects fade slowly: the learning term is smaller than the noise by "
        "d^delta only.",
    )
    return figure


@study(
    "sgd-noise-dominated",
    title="Large learning rates: noise alone, strong finite-size effects",
    source=f"{_VEIGA}, Fig. 4",
    full={"dims": (1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9), "seeds": 512},
    seconds=(40, 300),
    observables=("population_risk",),
    draw=_draw_noise,
)
def sgd_noise_dominated(
    dims: tuple[float, ...] = (1e3, 1e5, 1e7), delta: float = -0.375, horizon: float = 10.0, seeds: int = 64
) -> list[Curve]:
    point = PhasePoint(rate_exponent=delta, first_record=0.2, horizon=horizon, records=12, largest_width=4)
    over = {"input_dim": dims}
    return [
        Curve("flow, both terms", phase_flow, point, over),
        Curve("limit: noise only", partial(phase_flow, terms="noise"), point, over),
        Curve("SGD", phase_chain, point, over, seeds, True),
    ]


def _draw_trade_off(comparison: Comparison) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.6, 4.2))
    p = comparison.parameters
    (long,) = comparison.theories("long").values()
    (runs,) = comparison.experiments("runs").values()
    for number, delta in enumerate(p["deltas"]):
        line, dots = long.sel(rate_exponent=delta), runs.sel(rate_exponent=delta)
        axes.plot(line["sample_ratio"], line["population_risk"], color=COLOURS[number], label=rf"$\delta = {delta:g}$")
        _dots(axes, dots["sample_ratio"].isel(seed=0), dots["population_risk"], number)
    axes.set(xscale="log", yscale="log", xlabel=f"samples per dimension $n/d$, $d = {p['dim']}$", ylabel=_RISK)
    axes.legend(title=r"learning rate $p\,d^{-\delta}$")
    caption(
        figure,
        f"d = {p['dim']}, student of 4 and teacher of 2 units, label noise 0.001, first student inside the "
        "teacher's span. Lines: flow with both "
        f"terms; dots: exact chain of the overlaps, {p['seeds']} runs, standard errors. A learning rate smaller "
        "by d^-delta lowers the floor by "
        "as much and needs d^delta more samples.",
    )
    return figure


@study(
    "sgd-trade-off",
    title="The price of a smaller learning rate: n ~ d^(1+delta)",
    source=f"{_VEIGA}, Fig. 5",
    full={"horizon": 10_000.0, "seeds": 32},
    seconds=(80, 6000),
    observables=("population_risk",),
    draw=_draw_trade_off,
)
def sgd_trade_off(
    dim: int = 1000,
    deltas: tuple[float, ...] = (0.0, 0.25, 0.375, 0.5),
    horizon: float = 300.0,
    long_horizon: float = 1e5,
    seeds: int = 8,
) -> list[Curve]:
    point = PhasePoint(
        input_dim=dim,
        clock="samples",
        first_record=1.0,
        horizon=horizon,
        records=14,
        start=InSpanStart(),
        largest_width=4,
    )
    long = point.with_(horizon=long_horizon, records=60)
    over = {"rate_exponent": deltas}
    return [
        Curve("long flow", partial(phase_flow, stiff=True), long, over, panel="long"),
        Curve("flow", phase_flow, point, over, panel="runs"),
        Curve("SGD", phase_chain, point, over, seeds, True, panel="runs"),
    ]
