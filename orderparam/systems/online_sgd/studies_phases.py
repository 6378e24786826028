"""The figures of the phase diagram: how fast anything moves at a point of it, and what is special off the Saad-Solla line."""

import math
from functools import partial
from typing import Any

import numpy as np

from orderparam.core.study import Comparison, Curve, study
from orderparam.plotting.curves import caption
from orderparam.plotting.measured import dots, power_law
from orderparam.plotting.style import COLOURS, MARKERS
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
from orderparam.systems.online_sgd.start import TeacherStart

_VEIGA = "Veiga, Stephan, Loureiro, Krzakala, Zdeborova 2022"
_REGION_COLOURS = {
    "perfect learning": COLOURS[2],
    "Saad-Solla line": COLOURS[0],
    "noise dominated": COLOURS[4],
    "no differential equation": "0.4",
}
_POINTS = ((0.0, 0.5), (0.25, 0.25), (0.0, 0.0), (0.25, -0.25), (0.0, -0.375), (0.25, -0.5), (0.0, -0.75))
_RISK = r"population risk $R = \frac{1}{2}\,\mathrm{E}(f^* - f)^2$"


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
        slope, half = power_law(dims, runs["samples"])
        plane.plot(one, other, MARKERS[number % 6], color=colour, markersize=7, clip_on=False, zorder=5)
        words = f"$({one:g}, {other:g})$: {slope:z.2f}±{half:.2f} [{time_exponent(one, other):g}]"
        scaling.plot(theory["input_dim"], np.maximum(theory["samples"], 1), color=colour)
        dots(scaling, dims, runs["samples"], number, words, colour=colour, filled=not one)
    plane.set(xlim=(0, 1), ylim=(-1.5, 1), xlabel=r"width exponent $\kappa$", ylabel=r"learning-rate exponent $\delta$")
    scaling.set(
        xscale="log", yscale="log", xlabel="input dimension $d$", ylabel="samples until the overlaps have moved by 0.1"
    )
    top = scaling.get_ylim()[1]
    scaling.set_ylim(0.5, top * 1e4)
    scaling.legend(loc="upper left", title=r"$(\kappa, \delta)$: measured exponent [predicted]", fontsize=7, ncols=1)
    caption(
        figure,
        r"width $p = p_0 d^\kappa$, learning rate $p_0 d^{-\delta}$, $p_0 = 4$ for $\kappa = 0$, else 1; teacher of 2 units, "
        "label noise 0.001. Right: change of the overlaps, root mean square over units; lines: flow with both "
        f"terms at finite d, dots: exact chain of the overlaps, {comparison.parameters['seeds']} runs; exponents with "
        "95% intervals. Below the noise-dominated phase one step is enough, and no flow describes it.",
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
    seconds=(85, 3600),
    observables=("samples",),
    draw=_draw_phases,
)
def sgd_phase_diagram(
    dims: tuple[int, ...] = (100, 300, 1000),
    wide_dims: tuple[int, ...] = (81, 256, 625),
    large_dims: tuple[float, ...] = (1e3, 1e5, 1e7),
    wide_large_dims: tuple[float, ...] = (256.0, 625.0, 4096.0),
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


def _draw_perfect(comparison: Comparison) -> Any:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.7))
    p = comparison.parameters
    (theory,) = comparison.theories("path").values()
    (runs,) = comparison.experiments("path").values()
    dims = runs["input_dim"].values
    for number, dim in enumerate(dims):
        line, measured = theory.sel(input_dim=dim), runs.sel(input_dim=dim)
        scale = float(dim) ** p["delta"]
        left.plot(line["sample_ratio"] / scale, line["population_risk"], color=COLOURS[number], label=f"$d = {dim:g}$")
        dots(left, measured["sample_ratio"].isel(seed=0) / scale, measured["population_risk"], number)
    for number, delta in enumerate(p["deltas"]):
        (theory,) = comparison.theories(f"residual, delta {delta:g}").values()
        (runs,) = comparison.experiments(f"residual, delta {delta:g}").values()
        slope, half = power_law(runs["input_dim"].values, runs["population_risk"])
        right.plot(theory["input_dim"], theory["population_risk"], color=COLOURS[number])
        exact = np.polyfit(np.log(theory["input_dim"]), np.log(theory["population_risk"]), 1)[0]
        label = rf"$\delta = {delta:g}$: $d^{{{slope:.3f}\pm{half:.3f}}}$ [{exact:.3f}]"
        dots(right, runs["input_dim"], runs["population_risk"], number, label)
    left.set(xscale="log", yscale="log", xlabel=r"$n / d^{1+\delta}$, " + rf"$\delta = {p['delta']:g}$", ylabel=_RISK)
    right.set(xscale="log", yscale="log", xlabel="input dimension $d$", ylabel="residual risk $R_\\infty$")
    left.legend()
    right.legend(title="fit to the runs [closed form]")
    caption(
        figure,
        f"Width = teacher width = {p['width']}, learning rate = width d^-delta, label noise 0.01. Dots: exact "
        "chain of the overlaps, "
        f"{p['seeds']} runs. Left, lines: flow with both terms at that d. Right: runs started at the teacher; "
        "lines: closed form; the risk falls with d in spite of "
        "the label noise, as d^-delta for large d; exponents with 95% intervals.",
    )
    return figure


@study(
    "sgd-perfect-learning",
    title="Small learning rates learn perfectly: the residual risk falls as d^-delta",
    source=f"{_VEIGA}, Fig. 3",
    full={"dims": (64, 256, 1024, 4096), "seeds": 64, "width": 2, "horizon": 400.0},
    seconds=(45, 10_000),
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
        line, measured = both.sel(input_dim=dim), runs.sel(input_dim=dim)
        left.plot(
            line["sample_ratio"] / scale,
            line["population_risk"],
            color=COLOURS[number],
            label=f"$d = 10^{{{math.log10(dim):.0f}}}$",
        )
        dots(left, measured["sample_ratio"].isel(seed=0) / scale, measured["population_risk"], number)
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
    right.set(xscale="log", yscale="log", xlabel="input dimension $d$", ylabel="deviation of $R$ at the last time")
    left.legend()
    right.legend()
    caption(
        figure,
        f"kappa = 0, delta = {p['delta']:g}, student of 4 and teacher of 2 units, label noise 0.001; {p['seeds']} "
        "runs of the exact chain, "
        "standard errors. Right, dashed: d^-(1/2 + delta) through the first point. Finite-size effects fade slowly: the learning "
        "term is smaller than the noise by "
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
