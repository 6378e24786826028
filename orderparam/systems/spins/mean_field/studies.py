"""The named figure of the mean-field magnet: order, fluctuations, the Landau function and
hysteresis."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from orderparam.comparison import Curve, study
from orderparam.plotting import Panel, horizontal
from orderparam.systems.spins.mean_field.experiment import glauber
from orderparam.systems.spins.mean_field.model import MeanFieldMagnet
from orderparam.systems.spins.mean_field.theory import (
    CRITICAL_BINDER,
    exact_magnet,
    landau,
    mean_field,
    spinodal,
)

BRANCHES = {"stable": "along", "metastable": "against"}  # branch -> where the dynamics starts


@study(
    "mean-field-magnet",
    title=(
        "Heat-bath dynamics of a mean-field magnet follows exact sums of finite size, and stays "
        "metastable for 1500 sweeps in fields up to 0.4 of the spinodal one"
    ),
    source="Weiss 1907; Landau 1937; Glauber 1963",
    seconds=(30, 1200),
    observables=("absolute_magnetisation", "binder"),
    explained=(
        "Below right the theory describes infinitely many spins. Exact sums for 4000 spins, taken "
        "over one sign of the magnetisation, are smaller by 0.005 to 0.03 %, and the measurements "
        "agree with these sums within 1.3 standard errors."
    ),
    full={"spins": (100, 1000, 10_000), "large": 20_000, "sweeps": 4000, "seeds": 8},
    columns=2,
    panels=lambda p: [
        Panel(
            "temperature",
            "absolute_magnetisation",
            by="spins",
            where={"part": "order"},
            text={"infinite": r"$N\to\infty$"},
            xlim=(None, 2.0),
            beside=dict.fromkeys(p["spins"][:-1], (np.inf, "right")),
        ),
        Panel(
            "temperature",
            "binder",
            by="spins",
            where={"part": "order"},
            reference=[horizontal(CRITICAL_BINDER, "$N\\to\\infty$, $T=1$")],
            beside={p["spins"][-1]: (1.05, "below")},
        ),
        Panel(
            "order_parameter",
            (
                "Landau function $f(m) - f(0)$",
                lambda data: data["landau_function"] - data["landau_function"].isel(point=100),
            ),
            by="temperature",
            where={"part": "landau"},
            xlabel="$m$",
            title="theory alone",
            xlim=(None, 1.4),
            beside=dict.fromkeys(p["landau_temperatures"], (np.inf, "right")),
        ),
        Panel(
            "field",
            "magnetisation",
            by="branch",
            where={"part": "hysteresis"},
            ylim=(-1.15, None),
            beside={"stable": (0.2, "below"), "metastable": (0.1, "below"), "unstable": 0.1},
            colours=dict.fromkeys((*BRANCHES, "unstable"), "#6A3D9A"),
        ),
    ],
    caption=r"""
        The energy of $N$ spins is $H = -(\sum s)^2/2N - h\sum s$. Above, $h$ = 0: colours are $N$;
        lines are exact sums at every $N$, marks heat-bath dynamics, and the grey line is the limit
        $N\to\infty$. Below left, theory alone: colours are $T$; free energy $f$ of a state of
        magnetisation $m$ (the Landau function) at $h = {tilt}$. Below right: the stable
        state (along the field), the metastable one (against it) and the unstable one between them;
        metastable and unstable states meet at the spinodal field. Marks: {large} spins at $T =
        {cold}$ with {sweeps} sweeps, started along all fields, and against those below 0.6 of the
        spinodal field.
    """,
)
def mean_field_magnet(
    spins: tuple[int, ...] = (50, 200, 800),
    temperatures: tuple[float, ...] = (0.5, 0.7, 0.85, 0.95, 1.0, 1.05, 1.15, 1.3, 1.5),
    cold: float = 0.6,
    fields: tuple[float, ...] = (0.02, 0.05, 0.08, 0.12, 0.2, 0.3),
    landau_temperatures: tuple[float, ...] = (0.7, 0.9, 1.0, 1.2),
    tilt: float = 0.01,
    large: int = 4000,
    replicas: int = 4,
    sweeps: int = 1500,
    seeds: int = 4,
) -> Iterator[Curve]:
    fine = {"temperature": tuple(np.linspace(0.3, 1.7, 113).tolist())}
    dynamics = partial(glauber, replicas=replicas, sweeps=sweeps)
    yield Curve(
        "infinite", mean_field, MeanFieldMagnet(1.0), fine, facets={"part": "order"}, baseline=True
    )
    for count in spins:
        system, facets = MeanFieldMagnet(1.0, spins=count), {"part": "order", "spins": count}
        yield Curve("theory", exact_magnet, system, fine, facets=facets)
        yield Curve(
            "heat bath", dynamics, system, {"temperature": temperatures}, seeds, True, facets=facets
        )
    over = {"temperature": landau_temperatures}
    yield Curve("theory", landau, MeanFieldMagnet(1.0, tilt), over, facets={"part": "landau"})
    system = MeanFieldMagnet(cold, spins=large)
    # at the spinodal itself the root is double
    end = (1 - 1e-6) * float(spinodal(system).spinodal_field)
    for branch, start in BRANCHES.items():
        facets, last = (
            {"part": "hysteresis", "branch": branch},
            max(fields) if branch == "stable" else end,
        )
        every = {"field": tuple(np.linspace(0, last, 121).tolist())}
        kept = tuple(
            field
            for field in fields
            if field < (1 if branch == "stable" else 0.6) * last or field == last
        )
        yield Curve("theory", partial(mean_field, branch=branch), system, every, facets=facets)
        yield Curve(
            "heat bath",
            partial(dynamics, start=start),
            system,
            {"field": kept},
            seeds,
            True,
            facets=facets,
        )
    facets = {"part": "hysteresis", "branch": "unstable"}
    yield Curve("theory", partial(mean_field, branch="unstable"), system, every, facets=facets)
