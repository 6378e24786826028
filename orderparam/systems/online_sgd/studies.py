"""Studies of one-pass SGD: learning curves, and the phase diagram of width and learning rate."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel
from orderparam.plotting.measured import dots, fitted_power, power_law
from orderparam.plotting.style import COLOURS, GREY, MARKERS, ink
from orderparam.systems.online_sgd.experiment import (
    measured_moving_time,
    measured_residual_risk,
    overlap_chain,
    phase_chain,
    trained_network,
)
from orderparam.systems.online_sgd.model import (
    CommitteeSGD,
    InSpanStart,
    PhasePoint,
    TeacherStart,
    region,
    time_exponent,
)
from orderparam.systems.online_sgd.phases import moving_time, phase_flow, residual_risk
from orderparam.systems.online_sgd.theory import overlap_flow

# ------------------------------------------------------------------------------------------------
# The figure of learning curves on the Saad-Solla line.


@study(
    "sgd-saad-solla",
    title=("SGD rests on a plateau, specialises, and ends at an error floor that label noise sets"),
    source="Saad, Solla 1995; Veiga, Stephan, Loureiro, Krzakala, Zdeborova 2022, Fig. 2",
    gallery={"seeds": 16},
    full={
        "dim": 1000,
        "width": 8,
        "teacher_width": 4,
        "seeds": 16,
        "noises": (0.0, 1e-4, 1e-3, 1e-2),
    },
    seconds=(60, 6000),
    observables=("test_error",),
    explained=(
        "Runs leave the plateau at random times, and the slowest runs dominate the mean. Control "
        "with 32 chains without label noise: after the plateau their mean is 41(17) to 152(61) % "
        "above the flow with 100 inputs, and 21(13) to 23(13) % above it with 1600 inputs; their "
        "median is within 17 % and 4 % of the flow. Before the end of the plateau their means "
        "deviate from the flow by up to 7(3) % and 0.6(6) %."
    ),
    panels=[
        Panel(
            "sample_ratio",
            "test_error",
            by="noise",
            where={"label": ("long flow", "network", "chain")},
            log="xy",
        )
    ],
    caption=r"""
        Student of {width} and teacher of {teacher_width} units, activation erf$(x/\sqrt{{2}})$,
        learning rate = width; $\Delta$ (colours): variance of the label noise. The network and the
        exact Markov chain of the overlaps have $d$ = {dim}; the "long flow", drawn to longer times,
        is that of $d \to \infty$. Runs leave the plateau at random times, which scatter more at
        smaller $d$.
    """,
)
def sgd_saad_solla(
    dim: int = 100,
    width: int = 4,
    teacher_width: int = 2,
    noises: tuple[float, ...] = (0.0, 1e-3, 1e-2),
    horizon: float = 1000.0,
    long_horizon: float = 3000.0,
    seeds: int = 8,
) -> Iterator[Curve]:
    system = CommitteeSGD(
        input_dim=dim,
        width=width,
        teacher_width=teacher_width,
        learning_rate=float(width),
        horizon=horizon,
        records=14,
    )
    long = system.with_(horizon=long_horizon, records=80, input_dim=10**9)
    over, same = {"noise": noises}, {"times": "of the runs"}
    yield Curve("long flow", overlap_flow, long, over, facets={"times": "long"})
    yield Curve("flow", overlap_flow, system, over, facets=same)
    yield Curve("network", trained_network, system, over, seeds, True, facets=same)
    yield Curve("chain", overlap_chain, system, over, seeds, True, facets=same)


# ------------------------------------------------------------------------------------------------
# Panels that the studies of the phase diagram draw by functions of their own: the plane of
# exponents, and power laws with measured exponents.

_REGION_COLOURS = {
    "perfect learning": COLOURS[2],
    "Saad-Solla line": COLOURS[0],
    "noise dominated": COLOURS[4],
    "no differential equation": GREY,
}


def draw_plane(axes: Any, comparison: Comparison) -> None:
    """Draw the phases in the plane (kappa, delta), and the points at which SGD is run."""
    kappa = np.linspace(0, 1, 2)
    axes.fill_between(kappa, -kappa, 1, color=COLOURS[2], alpha=0.2, linewidth=0)
    axes.fill_between(kappa, -kappa - 0.5, -kappa, color=COLOURS[4], alpha=0.25, linewidth=0)
    axes.plot(kappa, -kappa, color=COLOURS[0], linewidth=2)
    axes.text(0.55, 0.6, "perfect learning", ha="center", color=COLOURS[2])
    along: dict[str, Any] = {"ha": "center", "va": "center", "rotation": -17}
    axes.text(0.75, -0.63, "Saad-Solla", color=COLOURS[0], **along)
    axes.text(0.62, -0.88, "noise dominated", color=COLOURS[4], **along)
    axes.text(0.3, -1.3, "no differential equation", ha="center", color=GREY)
    for number, (one, other) in enumerate(_points(comparison)):
        colour = _REGION_COLOURS[region(one, other)]
        axes.plot(
            one, other, MARKERS[number % 6], color=colour, markersize=7, clip_on=False, zorder=5
        )
    axes.set(
        xlim=(0, 1),
        ylim=(-1.5, 1),
        xlabel=r"width exponent $\kappa$",
        ylabel=r"learning-rate exponent $\delta$",
    )


def draw_times(axes: Any, comparison: Comparison) -> None:
    """Draw the number of samples until the overlaps have changed, against d.

    Lines are the flow, marks the runs; the legend gives the exponents fitted to the runs.
    """
    for number, (one, other) in enumerate(_points(comparison)):
        theory, runs = _pair(comparison, kappa=one, delta=other)
        slope, half = power_law(runs["input_dim"].values, runs["samples"])
        words = f"$({one:g}, {other:g})$: {slope:z.2f}±{half:.2f} [{time_exponent(one, other):g}]"
        colour = _REGION_COLOURS[region(one, other)]
        axes.plot(theory["input_dim"], np.maximum(theory["samples"], 1), color=colour)
        dots(axes, runs["input_dim"], runs["samples"], number, words, colour=colour, filled=not one)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="input dimension $d$",
        ylabel="samples until the overlaps have moved by 0.1",
    )


def draw_residuals(axes: Any, comparison: Comparison) -> None:
    """Draw the residual risk against d: closed form, runs, and the exponents of both."""
    from matplotlib.lines import Line2D

    handles = []
    for number, delta in enumerate(comparison.parameters["deltas"]):
        theory, runs = _pair(comparison, delta=delta)
        slope, half = power_law(runs["input_dim"].values, runs["test_error"])
        exact, _ = fitted_power(
            theory["input_dim"].values,
            theory["test_error"].values,
            np.zeros(theory.sizes["input_dim"]),
        )
        colour = COLOURS[3 + number]  # the first three are dimensions
        axes.plot(theory["input_dim"], theory["test_error"], color=colour)
        label = rf"$\delta = {delta:g}$: $d^{{{slope:.3f}\pm{half:.3f}}}$ [{exact:.3f}]"
        dots(axes, runs["input_dim"], runs["test_error"], number, colour=colour)
        look: dict[str, Any] = {
            "color": colour,
            "marker": MARKERS[number],
            "markerfacecolor": "white",
        }
        handles.append(Line2D([], [], label=label, **look))
    axes.legend(handles=handles, loc="lower left", title="fit [closed form]")
    axes.set(
        xscale="log", yscale="log", xlabel="input dimension $d$", ylabel="residual risk $R_\\infty$"
    )
    axes.set_ylim(0.3 * axes.get_ylim()[0], None)  # room for the legend


def draw_deviations(axes: Any, comparison: Comparison) -> None:
    """Draw, at the last time and against d, the standard deviation of the runs and the difference
    between the flow at this d and its limit.
    """
    (limit,) = comparison.theories(terms="noise").values()
    both, runs = (data["test_error"].isel(record=-1) for data in _pair(comparison, terms="both"))
    dims, power = runs["input_dim"].values, -(0.5 + comparison.parameters["delta"])
    spread = runs.std("seed", ddof=1).values
    relative = 1 / np.sqrt(2 * (runs.sizes["seed"] - 1))
    axes.errorbar(dims, spread, spread * relative, fmt="s", color=ink(), markerfacecolor="white")
    look = {"color": GREY, "linestyle": "--"}
    axes.plot(dims, spread[-1] * (dims / dims[-1]) ** power, **look)
    axes.plot(dims, np.abs(both - limit["test_error"].isel(record=-1)), color=ink())
    fit, half = fitted_power(dims[1:], spread[1:], (spread * relative)[1:])
    axes.set_title(f"scatter $\\sim d^x$, $x$ = {fit:.3f} ± {half:.3f}")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="input dimension $d$",
        ylabel="deviation of $R$ at the last time",
    )


def _pair(comparison: Comparison, **facets: Any) -> tuple[xr.Dataset, xr.Dataset]:
    """The theory and the runs with these facets."""
    (theory,) = comparison.theories(**facets).values()
    (runs,) = comparison.experiments(**facets).values()
    return theory, runs


def _points(comparison: Comparison) -> list[tuple[float, float]]:
    """The points (kappa, delta) that are run."""
    return [
        (data.attrs["facets"]["kappa"], data.attrs["facets"]["delta"])
        for data in comparison.experiments().values()
    ]


# ------------------------------------------------------------------------------------------------
# The figures of the phase diagram: the time scale of learning at each of its points, the two phases
# beside the Saad-Solla line, and the effects of a smaller learning rate on the error floor and on
# the number of samples.

VEIGA = "Veiga, Stephan, Loureiro, Krzakala, Zdeborova 2022"
_POINTS = (
    (0.0, 0.5),
    (0.25, 0.25),
    (0.0, 0.0),
    (0.25, -0.25),
    (0.0, -0.375),
    (0.25, -0.5),
    (0.0, -0.75),
)


def _scaled_time(words: str, horizon: float) -> tuple:
    """Axis label and times in units of `clock`."""
    return words, lambda data: horizon * data["sample_ratio"] / data["sample_ratio"].isel(record=-1)


@study(
    "sgd-phase-diagram",
    title=(
        "One pass of SGD: the samples it takes grow with the dimension as the phases of width and "
        "learning rate predict"
    ),
    source=f"{VEIGA}, Fig. 1",
    gallery={"seeds": 32},
    full={
        "dims": (100, 300, 1000, 3000),
        "wide_dims": (81, 256, 625, 1296),
        "large_dims": (1e3, 1e5, 1e7, 1e9),
        "wide_large_dims": (256, 4096, 20_736, 65_536),
        "seeds": 64,
    },
    seconds=(85, 3600),
    observables=("samples",),
    panels=[Freehand(draw_plane), Freehand(draw_times)],
    caption=(
        r"Width $p = p_0 d^\kappa$, learning rate $p_0 d^{{-\delta}}$, with $p_0 = 4$ for $\kappa "
        r"= 0$ and $p_0 = 1$ otherwise; teacher of 2 units, label noise 0.001. Right: number of "
        r"samples until the overlaps have changed by 0.1, root mean square over units. Lines: flow "
        r"with both terms at finite $d$; marks: exact Markov chain of the overlaps, {seeds} runs; "
        r"legend: $(\kappa, \delta)$, measured exponent with 95% interval [predicted exponent]. "
        r"Below the noise-dominated phase one step changes the overlaps by more than order one, "
        r"and no flow describes it."
    ),
)
def sgd_phase_diagram(
    dims: tuple[int, ...] = (100, 300, 1000),
    wide_dims: tuple[int, ...] = (81, 256, 625),
    large_dims: tuple[float, ...] = (1e3, 1e5, 1e7),
    wide_large_dims: tuple[float, ...] = (256.0, 625.0, 4096.0),
    seeds: int = 16,
) -> Iterator[Curve]:
    for kappa, delta in _POINTS:
        few_steps = kappa + delta < 0  # large dimensions cost nothing there
        chosen = (
            (wide_large_dims if few_steps else wide_dims)
            if kappa
            else (large_dims if few_steps else dims)
        )
        point = PhasePoint(
            input_dim=chosen[-1],
            width_exponent=kappa,
            rate_exponent=delta,
            base_width=1 if kappa else 4,
            first_record=0.02,
            horizon=6.0 if kappa + delta > -0.5 else 1e5,
            records=40,
        )
        over, facets = {"input_dim": chosen}, {"kappa": kappa, "delta": delta}
        yield Curve("flow", moving_time, point, over, facets=facets)
        yield Curve("SGD", measured_moving_time, point, over, seeds, True, facets=facets)


@study(
    "sgd-perfect-learning",
    title=(
        "In the limit of many inputs small learning rates learn perfectly: the residual risk "
        "falls as a power of the dimension"
    ),
    source=f"{VEIGA}, Fig. 3",
    gallery={"seeds": 64},
    full={"dims": (64, 256, 1024, 4096), "seeds": 64, "width": 2, "horizon": 100.0},
    seconds=(45, 10_000),
    observables=("test_error",),
    panels=lambda p: [
        Panel(
            _scaled_time(rf"$n / d^{{1+\delta}}$, $\delta = {p['delta']:g}$", p["horizon"]),
            "test_error",
            by="input_dim",
            where={"label": ("flow", "SGD")},
            log="xy",
        ),
        Freehand(draw_residuals),
    ],
    caption=r"""
        Width = teacher width = {width}, learning rate = width $\times d^{{-\delta}}$, label noise
        0.01. SGD: exact Markov chain of the overlaps. Left, colours are dimensions; lines: flow
        with the learning and the noise term of a step, at the $d$ of the runs. Right, colours are
        $\delta$: runs that start at the teacher (marks), and the closed form for weak noise
        (lines). Despite the label noise the risk falls as $d^{{-\delta}}$ for large $d$; legend:
        exponent fitted to the runs with 95% interval [exponent of the closed form].
    """,
)
def sgd_perfect_learning(
    dims: tuple[int, ...] = (64, 256, 1024),
    deltas: tuple[float, ...] = (0.25, 0.5),
    delta: float = 0.5,
    width: int = 1,
    horizon: float = 24.0,
    seeds: int = 32,
) -> Iterator[Curve]:
    point = PhasePoint(base_width=width, teacher_width=width, noise=0.01, horizon=horizon)
    over, learning = {"input_dim": dims}, {"from": "outside"}
    path = point.with_(rate_exponent=delta)
    settled = point.with_(start=TeacherStart(), records=200, horizon=horizon / 2)
    yield Curve("flow", phase_flow, path, over, facets=learning)
    yield Curve("SGD", phase_chain, path, over, seeds, True, facets=learning)
    for one in deltas:
        late, facets = settled.with_(rate_exponent=one), {"from": "the teacher", "delta": one}
        yield Curve("closed form", residual_risk, late, over, facets=facets)
        yield Curve("end of SGD", measured_residual_risk, late, over, seeds, True, facets=facets)


@study(
    "sgd-noise-dominated",
    title=(
        "At large learning rates the noise term alone determines the risk, within 1 % from "
        "ten million inputs on"
    ),
    source=f"{VEIGA}, Fig. 4",
    gallery={"dims": (1e3, 1e5, 1e7, 1e9), "seeds": 128},
    full={"dims": (1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9), "seeds": 512},
    seconds=(40, 300),
    observables=("test_error",),
    panels=lambda p: [
        Panel(
            _scaled_time(r"$n / d^{1+2\delta}$", p["horizon"]),
            "test_error",
            by="input_dim",
            log="x",
        ),
        Freehand(draw_deviations),
    ],
    caption=r"""
        Width of order $d^0$ and learning rate of order $d^{{-\delta}}$, $\delta$ = {delta}; student
        of 4 and teacher of 2 units, label noise 0.001. SGD: exact Markov chain of the overlaps.
        Dashed, left: the limit $d\to\infty$, the flow with the noise term alone, under the line of
        the largest $d$. Right, line: distance of the flow at $d$ from this limit; squares: standard
        deviation of the risk over runs; dashed: its law for large $d$, $d^{{-(1/2 + \delta)}}$,
        through the last point; $x$: exponent fitted without the first point, 95 % interval.
        Finite-size effects vanish slowly, because the learning term is smaller than the noise by a
        factor $d^\delta$ only.
    """,
)
def sgd_noise_dominated(
    dims: tuple[float, ...] = (1e3, 1e5, 1e7),
    delta: float = -0.375,
    horizon: float = 10.0,
    seeds: int = 64,
) -> Iterator[Curve]:
    point = PhasePoint(rate_exponent=delta, first_record=0.2, horizon=horizon, records=12)
    over, both = {"input_dim": dims}, {"terms": "both"}
    limit = point.with_(input_dim=dims[-1])
    yield Curve("flow", phase_flow, point, over, facets=both)
    yield Curve(
        "$d \\to \\infty$",
        partial(phase_flow, terms="noise"),
        limit,
        {},
        facets={"terms": "noise"},
        baseline=True,
    )
    yield Curve("SGD", phase_chain, point, over, seeds, True, facets=both)


@study(
    "sgd-trade-off",
    title="A smaller learning rate needs more samples, and by the flow it lowers the error floor",
    source=f"{VEIGA}, Fig. 5",
    gallery={"seeds": 16},
    full={"horizon": 10_000.0, "seeds": 32},
    seconds=(80, 6000),
    observables=("test_error",),
    panels=[
        Panel(
            "sample_ratio",
            "test_error",
            by="rate_exponent",
            where={"label": ("long flow", "SGD")},
            log="xy",
        )
    ],
    caption=r"""
        $d$ = {dim}, student of 4 and teacher of 2 units, learning rate $4 d^{{-\delta}}$, label
        noise 0.001; the student's first weights are in the span of the teacher's. Long flow: with
        the learning and the noise term of a step, to larger $n/d$ than the runs. SGD: exact Markov
        chain of the overlaps up to $n/d$ = {horizon:g}, where only the runs with the largest rate
        have reached their error floor. In the flow, a rate that is smaller by a factor
        $d^{{-\delta}}$ lowers the floor by this factor or a larger one, and needs about $d^\delta$
        times the samples.
    """,
)
def sgd_trade_off(
    dim: int = 1000,
    deltas: tuple[float, ...] = (0.0, 0.25, 0.375, 0.5),
    horizon: float = 1000.0,
    long_horizon: float = 1e5,
    seeds: int = 6,
) -> Iterator[Curve]:
    point = PhasePoint(
        input_dim=dim,
        clock="samples",
        first_record=1.0,
        horizon=horizon,
        records=14,
        start=InSpanStart(),
    )
    long = point.with_(horizon=long_horizon, records=60)
    over, same = {"rate_exponent": deltas}, {"times": "of the runs"}
    yield Curve("long flow", partial(phase_flow, stiff=True), long, over, facets={"times": "long"})
    yield Curve("flow", phase_flow, point, over, facets=same)
    yield Curve("SGD", phase_chain, point, over, seeds, True, facets=same)
