"""The named figure of networks of largest stability: basins of attraction."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel
from orderparam.plotting.measured import dots
from orderparam.plotting.style import ink
from orderparam.systems.associative_memory.optimal.experiment import trained_network
from orderparam.systems.associative_memory.optimal.model import OptimalStability
from orderparam.systems.associative_memory.optimal.theory import basin, overlaps


def draw_edge(axes: Any, comparison: Comparison) -> None:
    """Draw the edge of the basin: the overlap that one step leaves unchanged, while larger overlaps
    grow and smaller ones fall.

    In a run the edge is found by linear interpolation between the starts just below and just above
    it.
    """
    (line,) = comparison.theories(part="edge").values()
    axes.plot(line["load"], line["basin_edge"], color=ink())
    for number, data in enumerate(comparison.experiments(part="steps").values()):
        start = data["start"].values
        gain = (data["overlap"].isel(time=1).squeeze(drop=True) - data["start"]).transpose(
            "seed", "start"
        )
        edges = [
            float(start[k] - own[k] * (start[k + 1] - start[k]) / (own[k + 1] - own[k]))
            for own in gain.values
            for k in np.flatnonzero((own[:-1] < 0) & (own[1:] >= 0))[-1:]
        ]
        if len(edges) == data.sizes["seed"]:
            load = data.attrs["facets"]["load"]
            dots(axes, [load], xr.DataArray(edges, dims="seed"), number)
    axes.set(xlabel=r"load $\alpha$", ylabel="edge of the basin $m_b$", ylim=(-0.04, 1.04))


@study(
    "optimal-stability-basins",
    title="Networks with the largest stability follow the map of strong dilution, within 0.03 "
    "after one step",
    source="Krauth, Mézard, Nadal 1988; Gardner 1988",
    seconds=(55, 2400),
    observables=("overlap",),
    gallery={
        "loads": (0.3, 0.5, 0.7, 1.0),
        "starts_at": (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98),
        "inputs": 80,
        "seeds": 16,
    },
    full={"inputs": 100, "neurons": 20_000, "seeds": 16, "starts": 50},
    columns=3,
    panels=lambda p: [
        Panel(
            "start",
            "overlap",
            by="load",
            where={"part": "steps", "time": 1},
            title="after 1 step",
            ylabel="overlap",
        ),
        Panel(
            "start",
            "overlap",
            by="load",
            where={"part": "steps", "time": 3},
            title="after 3 steps",
            ylabel="overlap",
        ),
        Freehand(draw_edge),
    ],
    caption=r"""
        {neurons} neurons with {inputs} inputs each; their couplings have the largest stability.
        $\alpha$: patterns per input; {starts} initial states in a run. Lines: the map of the
        overlap for strong dilution, which is exact for one step of any network with many inputs.
        Right: edge $m_b$ of the basin of attraction, the overlap that one step leaves unchanged; it
        is zero up to $\alpha$ = 0.4194. Points are shown where $m_b$ lies between two of the
        measured starts in every run.
    """,
    explained=(
        "The map holds for many inputs. With 80 inputs the measured overlaps differ from it by up "
        "to 0.024 after one step and by up to 0.2 after three. Control: at load 0.5 and start 0.9 "
        "the overlap after one step lies 0.035, 0.020, 0.011 and 0.005 below the map with 20, 40, "
        "80 and 160 inputs."
    ),
)
def optimal_stability_basins(
    loads: tuple[float, ...] = (0.3, 0.5, 1.0),
    starts_at: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9),
    inputs: int = 40,
    neurons: int = 1000,
    starts: int = 20,
    seeds: int = 4,
) -> Iterator[Curve]:
    fine, measured = {"start": tuple(np.linspace(0, 1, 101).tolist())}, {"start": starts_at}
    for load in loads:
        system, facets = (
            OptimalStability(load, inputs=inputs, neurons=neurons),
            {"part": "steps", "load": load},
        )
        yield Curve("theory", partial(overlaps, steps=3), system, fine, facets=facets)
        yield Curve(
            "trained network",
            partial(trained_network, steps=3, starts=starts),
            system,
            measured,
            seeds,
            facets=facets,
        )
    loads_of_edge = {"load": tuple(np.linspace(0.05, 1.9, 75).tolist())}
    yield Curve("theory", basin, OptimalStability(1.0), loads_of_edge, facets={"part": "edge"})
