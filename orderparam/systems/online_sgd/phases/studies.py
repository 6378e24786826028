"""The figures of the phase diagram: how fast anything moves at a point of it, what is special off the Saad-Solla line, and what a
smaller learning rate buys and costs."""

from collections.abc import Iterator
from functools import partial

from orderparam.core.study import Curve, study
from orderparam.plotting import Freehand, Panel
from orderparam.systems.online_sgd.committee.start import InSpanStart, TeacherStart
from orderparam.systems.online_sgd.phases.experiment import measured_moving_time, measured_residual_risk, phase_chain
from orderparam.systems.online_sgd.phases.figures import draw_deviations, draw_plane, draw_residuals, draw_times
from orderparam.systems.online_sgd.phases.model import PhasePoint
from orderparam.systems.online_sgd.phases.theory import moving_time, phase_flow, residual_risk

VEIGA = "Veiga, Stephan, Loureiro, Krzakala, Zdeborova 2022"
_POINTS = ((0.0, 0.5), (0.25, 0.25), (0.0, 0.0), (0.25, -0.25), (0.0, -0.375), (0.25, -0.5), (0.0, -0.75))


def _scaled_time(words: str, horizon: float) -> tuple:
    """Axis label and times in units of `clock`."""
    return words, lambda data: horizon * data["sample_ratio"] / data["sample_ratio"].isel(record=-1)


@study(
    "sgd-phase-diagram",
    title="Phase diagram of one-pass SGD: width and learning rate against dimension",
    source=f"{VEIGA}, Fig. 1",
    full={
        "dims": (1_000, 10_000, 100_000),
        "wide_dims": (256, 1296, 4096),
        "large_dims": (1e3, 1e5, 1e7, 1e9),
        "wide_large_dims": (256, 4096, 20_736, 65_536),
        "seeds": 64,
    },
    seconds=(85, 3600),
    observables=("samples",),
    panels=[Freehand(draw_plane), Freehand(draw_times)],
    caption=r"""
        Width $p = p_0 d^\kappa$, learning rate $p_0 d^{{-\delta}}$, $p_0 = 4$ for $\kappa = 0$, else 1; teacher of 2 units,
        label noise 0.001. Right: change of the overlaps, root mean square over units; lines: flow with both terms at finite
        $d$, marks: exact chain of the overlaps, {seeds} runs; legend: $(\kappa, \delta)$, measured exponent with 95% interval
        [predicted]. Below the noise-dominated phase one step is enough, and no flow describes it.
    """,
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
        chosen = (wide_large_dims if few_steps else wide_dims) if kappa else (large_dims if few_steps else dims)
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
    title="Small learning rates learn perfectly: the residual risk falls as d^-delta",
    source=f"{VEIGA}, Fig. 3",
    full={"dims": (64, 256, 1024, 4096), "seeds": 64, "width": 2, "horizon": 400.0},
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
        Width = teacher width = {width}, learning rate = width $d^{{-\delta}}$, label noise 0.01. SGD: exact chain of the
        overlaps. Left: flow with both terms at that $d$. Right: runs started at the teacher, and the closed form; the risk
        falls with $d$ in spite of the label noise, as $d^{{-\delta}}$ for large $d$; legend: fit to the runs with 95%
        interval [closed form].
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
    title="Large learning rates: noise alone, strong finite-size effects",
    source=f"{VEIGA}, Fig. 4",
    full={"dims": (1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9), "seeds": 512},
    seconds=(40, 300),
    observables=("test_error",),
    panels=lambda p: [
        Panel(_scaled_time(r"$n / d^{1+2\delta}$", p["horizon"]), "test_error", by="input_dim", log="x"),
        Freehand(draw_deviations),
    ],
    caption=r"""
        $\kappa = 0$, $\delta$ = {delta}, student of 4 and teacher of 2 units, label noise 0.001; SGD: exact
        chain of the overlaps. Right, dashed: $d^{{-(1/2 + \delta)}}$ through the first point. Finite-size effects fade slowly:
        the learning term is smaller than the noise by $d^\delta$ only.
    """,
)
def sgd_noise_dominated(
    dims: tuple[float, ...] = (1e3, 1e5, 1e7), delta: float = -0.375, horizon: float = 10.0, seeds: int = 64
) -> Iterator[Curve]:
    point = PhasePoint(rate_exponent=delta, first_record=0.2, horizon=horizon, records=12)
    over, both = {"input_dim": dims}, {"terms": "both"}
    limit = point.with_(input_dim=dims[-1])
    yield Curve("flow", phase_flow, point, over, facets=both)
    yield Curve("$d \\to \\infty$", partial(phase_flow, terms="noise"), limit, {}, facets={"terms": "noise"}, baseline=True)
    yield Curve("SGD", phase_chain, point, over, seeds, True, facets=both)


@study(
    "sgd-trade-off",
    title="The price of a smaller learning rate: n ~ d^(1+delta)",
    source=f"{VEIGA}, Fig. 5",
    full={"horizon": 10_000.0, "seeds": 32},
    seconds=(80, 6000),
    observables=("test_error",),
    panels=[Panel("sample_ratio", "test_error", by="rate_exponent", where={"label": ("long flow", "SGD")}, log="xy")],
    caption="""
        $d$ = {dim}, student of 4 and teacher of 2 units, learning rate $4 d^{{-\\delta}}$, label noise 0.001, first student in
        the teacher's span. Flow with both terms; SGD: exact chain of the overlaps. A learning rate smaller by
        $d^{{-\\delta}}$ lowers the floor by as much and needs $d^\\delta$ more samples.
    """,
)
def sgd_trade_off(
    dim: int = 1000,
    deltas: tuple[float, ...] = (0.0, 0.25, 0.375, 0.5),
    horizon: float = 1000.0,
    long_horizon: float = 1e5,
    seeds: int = 6,
) -> Iterator[Curve]:
    point = PhasePoint(input_dim=dim, clock="samples", first_record=1.0, horizon=horizon, records=14, start=InSpanStart())
    long = point.with_(horizon=long_horizon, records=60)
    over, same = {"rate_exponent": deltas}, {"times": "of the runs"}
    yield Curve("long flow", partial(phase_flow, stiff=True), long, over, facets={"times": "long"})
    yield Curve("flow", phase_flow, point, over, facets=same)
    yield Curve("SGD", phase_chain, point, over, seeds, True, facets=same)
