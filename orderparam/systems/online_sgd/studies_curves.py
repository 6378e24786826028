"""The figures of learning curves on the Saad-Solla line, and of what a smaller learning rate buys and costs."""

from functools import partial
from typing import Any

from orderparam.core.study import Comparison, Curve, study
from orderparam.plotting.curves import caption
from orderparam.plotting.measured import dots
from orderparam.plotting.style import COLOURS
from orderparam.systems.online_sgd.chain import overlap_chain
from orderparam.systems.online_sgd.flow import overlap_flow
from orderparam.systems.online_sgd.model import CommitteeSGD
from orderparam.systems.online_sgd.network import network_sgd
from orderparam.systems.online_sgd.phases import PhasePoint, phase_chain, phase_flow
from orderparam.systems.online_sgd.start import InSpanStart

_VEIGA = "Veiga, Stephan, Loureiro, Krzakala, Zdeborova 2022"
_RISK = r"population risk $R = \frac{1}{2}\,\mathrm{E}(f^* - f)^2$"


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
            dots(axes, x, runs["population_risk"].squeeze("noise"), number, filled=bool(filled))
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
    seconds=(60, 20_000),
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


def _draw_trade_off(comparison: Comparison) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.6, 4.2))
    p = comparison.parameters
    (long,) = comparison.theories("long").values()
    (runs,) = comparison.experiments("runs").values()
    for number, delta in enumerate(p["deltas"]):
        line, measured = long.sel(rate_exponent=delta), runs.sel(rate_exponent=delta)
        axes.plot(line["sample_ratio"], line["population_risk"], color=COLOURS[number], label=rf"$\delta = {delta:g}$")
        dots(axes, measured["sample_ratio"].isel(seed=0), measured["population_risk"], number)
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
    horizon: float = 1000.0,
    long_horizon: float = 1e5,
    seeds: int = 6,
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
