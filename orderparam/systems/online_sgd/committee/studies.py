"""The figure of learning curves on the Saad-Solla line."""

from collections.abc import Iterator

from orderparam.core.study import Curve, study
from orderparam.plotting import Panel
from orderparam.systems.online_sgd.committee.experiment import overlap_chain, trained_network
from orderparam.systems.online_sgd.committee.model import CommitteeSGD
from orderparam.systems.online_sgd.committee.theory import overlap_flow


@study(
    "sgd-saad-solla",
    title="Plateau, specialisation, and the floor set by label noise",
    source="Saad, Solla 1995; Veiga, Stephan, Loureiro, Krzakala, Zdeborova 2022, Fig. 2",
    full={
        "dim": 10_000,
        "width": 8,
        "teacher_width": 4,
        "horizon": 3000.0,
        "long_horizon": 1e4,
        "seeds": 16,
        "noises": (0.0, 1e-4, 1e-3, 1e-2),
    },
    seconds=(60, 20_000),
    observables=("test_error",),
    explained="Runs leave the plateau at random times: while some of them are still on it, their mean is no longer the flow.",
    panels=[Panel("sample_ratio", "test_error", by="noise", where={"label": ("long flow", "network", "chain")}, log="xy")],
    caption="""
        Student of {width}, teacher of {teacher_width} units, erf$(x/\\sqrt{{2}})$, learning rate = width. Network and exact
        chain of the overlaps: $d$ = {dim}; long flow: $d \\to \\infty$. Runs leave the plateau at random times that scatter the
        more the smaller $d$.
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
        input_dim=dim, width=width, teacher_width=teacher_width, learning_rate=float(width), horizon=horizon, records=14
    )
    long = system.with_(horizon=long_horizon, records=80, input_dim=10**9)
    over, same = {"noise": noises}, {"times": "of the runs"}
    yield Curve("long flow", overlap_flow, long, over, facets={"times": "long"})
    yield Curve("flow", overlap_flow, system, over, facets=same)
    yield Curve("network", trained_network, system, over, seeds, True, facets=same)
    yield Curve("chain", overlap_chain, system, over, seeds, True, facets=same)
