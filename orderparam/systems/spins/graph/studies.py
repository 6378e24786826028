"""The named figure of the Potts model: random regular graphs against the cavity method."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import xarray as xr

from orderparam.comparison import Curve, study
from orderparam.plotting import Panel, vertical
from orderparam.systems.spins.graph.experiment import regular_graph_clusters
from orderparam.systems.spins.graph.model import RegularPotts
from orderparam.systems.spins.graph.theory import cavity


def _phase(data: xr.Dataset) -> xr.DataArray:
    """Whether the theory is ordered, where the transition from one phase to the other is a jump."""
    return (data["absolute_magnetisation"] > 1e-3) & (data.attrs["facets"]["states"] > 2)


def _transition(states: int, degree: int) -> float:
    """The temperature at which the ordered and the disordered phase of the Potts model on a random
    regular graph have equal free energies."""
    if states == 2:  # the limit, where the transition is continuous
        return float(1 / np.log(degree / (degree - 2)))
    return float(1 / np.log((states - 2) / ((states - 1) ** (1 - 2 / degree) - 1)))


@study(
    "potts-regular-graph",
    title="The Potts model on random regular graphs follows the cavity method on both sides of its "
    "transitions",
    source="Bethe 1935; Potts 1952; Mezard, Montanari 2009; Swendsen, Wang 1987",
    seconds=(45, 1800),
    observables=("energy", "absolute_magnetisation"),
    gallery={
        "temperatures": (0.65, 0.8, 0.9, 0.95, 0.98, 1.02, 1.06, 1.1, 1.15, 1.18, 1.23, 1.27),
        "sweeps": 800,
        "seeds": 16,
    },
    full={"sites": 20_000, "sweeps": 2000, "seeds": 8},
    panels=lambda p: [
        Panel(
            "temperature",
            name,
            facet="states",
            jump=_phase,
            reference=[vertical(partial(_transition, degree=p["degree"]))],
        )
        for name in ("energy", "absolute_magnetisation")
    ],
    caption="The Potts model with $q$ states. Each run draws a new graph of {sites} sites with "
    "{degree} neighbours each, and simulates {replicas} replicas for {sweeps} sweeps from the "
    "ordered state. Dotted: both phases have equal free energies, at a transition of first order "
    "if $q$ > 2; the ordered state is metastable from there to the end of its line. Above that "
    "end the iteration that starts from order reaches the disordered state, on which the blue line "
    "goes on. In the disordered phase $\\langle|m|\\rangle$ is of order $1/\\sqrt{{N}}$ at $N$ "
    "sites.",
    explained=(
        "The cavity method describes infinite graphs. With N sites the energy of the disordered "
        "phase differs from its value there by a constant over N (measured for 250 to 4000 "
        "sites), and the magnetisation by a term of order 1/sqrt(N)."
    ),
)
def potts_regular_graph(
    states: tuple[int, ...] = (2, 3, 6),
    degree: int = 4,
    sites: int = 1000,
    temperatures: tuple[float, ...] = (0.65, 0.8, 0.9, 0.97, 1.05, 1.12, 1.25),
    replicas: int = 4,
    sweeps: int = 400,
    seeds: int = 4,
) -> Iterator[Curve]:
    measured = partial(regular_graph_clusters, replicas=replicas, sweeps=sweeps)
    for q in states:
        system, facets = RegularPotts(1.0, sites, degree, q), {"states": q}
        end = float(1 / np.log1p(q / (degree - 2)))  # where disorder becomes unstable
        fine = {"temperature": tuple(np.linspace(0.6 * end, 1.3 * end, 141).tolist())}
        points = {"temperature": tuple((end * np.array(temperatures)).tolist())}
        yield Curve("ordered", partial(cavity, branch="ordered"), system, fine, facets=facets)
        yield Curve(
            "disordered",
            partial(cavity, branch="disordered"),
            system,
            fine,
            facets=facets,
            baseline=True,
        )
        yield Curve("Swendsen-Wang", measured, system, points, seeds, facets=facets)
