"""The named figure of networks of largest stability: basins of attraction."""

from functools import partial

import numpy as np

from orderparam.core.study import Curve, study
from orderparam.plotting import Panel, horizontal
from orderparam.systems.associative_memory.optimal.experiment import trained_network
from orderparam.systems.associative_memory.optimal.model import OptimalStability
from orderparam.systems.associative_memory.optimal.theory import basin, overlaps


@study(
    "optimal-stability-basins",
    title="Basins of attraction of networks of largest stability",
    source="Krauth, Mézard, Nadal 1988; Gardner 1988",
    seconds=(55, 2400),
    observables=("overlap", "stability"),
    full={"inputs": 400, "seeds": 16, "starts": 200},
    columns=3,
    panels=lambda p: [
        Panel("start", "overlap", by="load", where={"part": "first", "time": 1}, title="after 1 step", ylabel="overlap"),
        Panel("start", "overlap", by="load", where={"part": "third", "time": 3}, title="after 3 steps", ylabel="overlap"),
        Panel("load", "basin_edge", where={"part": "edge"}, reference=[horizontal(1.0)]),
    ],
    caption=r"""
        Layered networks of {inputs} neurons a layer, trained to optimality, {starts} starts in a run; lines: the map of
        the overlap. Right: the unstable fixed point, from beyond which a pattern attracts; zero up to $\alpha$ = 0.4194.
    """,
)
def optimal_stability_basins(
    loads: tuple[float, ...] = (0.3, 0.5, 1.0),
    starts_at: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9),
    inputs: int = 100,
    starts: int = 50,
    seeds: int = 4,
) -> list[Curve]:
    fine = {"start": tuple(np.linspace(0, 1, 101).tolist())}
    curves = []
    for part, steps in (("first", 1), ("third", 3)):
        for load in loads:
            system, facets = OptimalStability(load, inputs=inputs), {"part": part, "load": load}
            run = partial(trained_network, steps=steps, starts=starts)
            curves += [
                Curve("theory", partial(overlaps, steps=steps), system, fine, facets=facets),
                Curve("trained layers", run, system, {"start": starts_at}, seeds, True, facets=facets),
            ]
    loads_of_edge = {"load": tuple(np.linspace(0.05, 1.9, 75).tolist())}
    return [*curves, Curve("theory", basin, OptimalStability(1.0), loads_of_edge, facets={"part": "edge"})]
