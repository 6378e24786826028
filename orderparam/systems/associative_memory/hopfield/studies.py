"""The named figures of the Hopfield model: its phase diagram, and recall at zero temperature."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from orderparam.analysis.phases.study import diagram_curve, phases_panel
from orderparam.comparison import Comparison, Curve, between, study
from orderparam.plotting import Freehand, Panel, vertical
from orderparam.plotting.measured import dots
from orderparam.plotting.style import COLOURS, DASHES, ink
from orderparam.systems.associative_memory.hopfield.dynamics import (
    generating_functional,
    parallel_steps,
    statistical_neurodynamics,
)
from orderparam.systems.associative_memory.hopfield.experiment import recall
from orderparam.systems.associative_memory.hopfield.model import Hopfield
from orderparam.systems.associative_memory.hopfield.phase_lines import phase_lines
from orderparam.systems.associative_memory.hopfield.theory import (
    replica_symmetric,
    zero_temperature,
)

# ------------------------------------------------------------------------------------------------
# The phase diagram with its four lines, drawn by a function of its own.

# the text of each line, and the load and temperature where it begins
_LINES = {
    "glass_temperature": ("$T_g$: spin glass below", (0.003, 1.37)),
    "retrieval_temperature": ("$T_M$: recall", (0.106, 0.33)),
    "global_temperature": ("$T_c$", (0.026, 0.36)),
    "replicon_temperature": ("", (0.0, 0.0)),  # named in the inset
}
LOST = 0.5  # mean overlap below which a pattern counts as lost


def draw_lines(axes: Any, comparison: Comparison) -> None:
    """Draw the transition temperatures against load, and the measured states.

    A measured state is a filled point where the pattern is recalled and an open point where it is
    lost. The inset shows the line below which replica symmetry of the retrieval state is broken.
    """
    (data,) = comparison.theories(part="lines").values()
    inset = axes.inset_axes((0.62, 0.63, 0.36, 0.16))
    for number, (name, (text, place)) in enumerate(_LINES.items()):
        there = data[name] > 0
        look = {"color": ink(), "linestyle": DASHES[number], "linewidth": 1.0}
        for one in (axes, inset):
            one.plot(data["load"][there], data[name][there], **look)
        axes.annotate(text, place, fontsize=7)
    for number, runs in enumerate(comparison.experiments(part="recall").values()):
        overlap = runs["overlap"].mean("seed")
        load = np.full(overlap.sizes["temperature"], runs.attrs["facets"]["load"])
        for there, face in ((overlap > LOST, COLOURS[number]), (overlap <= LOST, "none")):
            look = {"facecolor": face, "edgecolor": COLOURS[number], "zorder": 3}
            axes.scatter(load[there], runs["temperature"][there], s=16, **look)
    inset.set(xlim=(0.08, 0.142), ylim=(0, 0.04), xticks=(0.1, 0.13))
    inset.annotate("$T_R$", (0.115, 0.014), fontsize=7)
    inset.tick_params(labelsize=6)
    axes.set(
        xlabel=r"load $\alpha$",
        ylabel="temperature $T$",
        ylim=(0, None),
        xlim=(0, float(data["load"].max())),
    )


CAPACITY = 0.138  # Amit, Gutfreund, Sompolinsky 1987


@study(
    "hopfield-phase-diagram",
    title="Hopfield networks recall as in theory until close to the end of recall, where some lose "
    "the pattern",
    source="Amit, Gutfreund, Sompolinsky 1985, 1987",
    seconds=(50, 2400),
    observables=("overlap", "energy"),
    gallery={"spins": 4000, "networks": 2, "seeds": 16},
    full={"spins": 10_000, "networks": 8, "sweeps": 200, "seeds": 8},
    columns=3,
    panels=[
        Freehand(draw_lines, "phase diagram"),
        Panel("temperature", "overlap", by="load", where={"part": "recall"}),
        Panel("temperature", "energy", by="load", where={"part": "recall"}),
    ],
    caption=r"""
        Left: transition lines of the replica-symmetric theory; $\alpha$: patterns for each spin. A
        spin glass exists below $T_g$, and retrieval states exist below $T_M$. Below $T_c$, a line
        that ends at $\alpha$ = 0.052, retrieval states have the lowest free energy. Below $T_R$
        (inset) their replica symmetry is broken. Points: the measurements of the other panels, open
        where the mean overlap with the pattern is below 0.5. Middle, right: lines: retrieval
        states; points: {networks} networks of {spins} spins in a run, which start at a pattern and
        follow the heat bath; averages over the second half of {sweeps} sweeps. Beyond $T_M$ the
        pattern is lost.
    """,
    explained=(
        "Close to $T_M$ some networks leave the retrieval state: the 16 runs at load 0.1 and T = "
        "0.3 have overlaps from 0.31 to 0.97. Control at load 0.1, where $T_M$ = 0.315: at T = "
        "0.25, 3 of 48 networks of 1000 spins and none of 24 networks of 4000 spins leave it; at "
        "T = 0.3, 19 of 48 (40 %) and 6 of 24 (25 %) do, a difference that chance explains. At "
        "load 0.05 and T = 0.5 the overlap lies 0.074(19) below the theory with 1000 spins and "
        "0.001(2) above it with 4000. Far below $T_M$ almost no spin is ever wrong, so that the "
        "error bars are tiny."
    ),
)
def hopfield_phase_diagram(
    loads: tuple[float, ...] = (0.02, 0.05, 0.1),
    temperatures: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7),
    spins: int = 1000,
    networks: int = 4,
    sweeps: int = 60,
    seeds: int = 4,
) -> Iterator[Curve]:
    measured = partial(recall, networks=networks, sweeps=sweeps)
    fine, coarse = (
        {"temperature": tuple(np.linspace(0, 0.8, 161).tolist())},
        {"temperature": temperatures},
    )
    # in the replica-symmetric theory the line T_c bends back at the load 0.0516, where it ends
    every = np.concatenate(
        [
            np.geomspace(0.001, 0.04, 24),
            np.linspace(0.042, 0.15, 55),
            np.linspace(0.0504, 0.0516, 7),
        ]
    )
    yield Curve(
        "theory", phase_lines, Hopfield(0.1), {"load": np.sort(every)}, facets={"part": "lines"}
    )
    for load in loads:
        system, facets = Hopfield(load, spins=spins), {"part": "recall", "load": load}
        yield Curve("theory", replica_symmetric, system, fine, facets=facets)
        yield Curve("heat bath", measured, system, coarse, seeds, facets=facets)


@study(
    "hopfield-capacity",
    title=(
        "The Hopfield model recalls patterns up to a load of 0.138; "
        "the higher the load, the nearer the first state must be to the pattern"
    ),
    source="Amit, Gutfreund, Sompolinsky 1987",
    seconds=(60, 3600),
    observables=("overlap", "energy"),
    explained=(
        "In the gallery's figure, with up to 1,000 spins, no overlap lies beyond three standard "
        "errors. At full size, a figure of its own with up to 4,000 spins, two overlaps are larger "
        "than the limit: by 0.06(2) % with 500 spins at the load 0.1 and by 0.19(4) % with 4,000 "
        "spins at 0.13. The theory describes the states of lowest energy near a pattern, and spins "
        "that start at the pattern come to rest in the first local minimum; whether this is the "
        "cause was not tested."
    ),
    full={
        "spins": (500, 1000, 2000, 4000),
        "networks": 16,
        "seeds": 16,
        "sweeps": 400,
        "basin_spins": 2000,
    },
    columns=3,
    panels=[
        Panel("load", "overlap", by="spins", where={"part": "capacity"}),
        Panel(
            "load",
            "success",
            by="spins",
            where={"part": "capacity"},
            reference=[vertical(CAPACITY, r"$\alpha_c$")],
        ),
        Panel("start", "success", by="load", where={"part": "basin"}),
    ],
    caption=r"""
        Networks of $N$ spins at temperature 0; spins are updated one after another until all are at
        rest; {networks} networks in a run. Left, middle: networks start at a pattern; the line is
        the limit $N\to\infty$, which ends at the load $\alpha_c = 0.138$. Right: {basin_spins}
        spins; networks start at the overlap on the axis. A pattern counts as recalled if the final
        overlap is at least 0.9.
    """,
)
def hopfield_capacity(
    spins: tuple[int, ...] = (250, 500, 1000),
    loads: tuple[float, ...] = (0.06, 0.1, 0.12, 0.13, 0.14, 0.15, 0.16, 0.18),
    basin_loads: tuple[float, ...] = (0.04, 0.08, 0.12),
    starts: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9),
    basin_spins: int = 500,
    networks: int = 16,
    sweeps: int = 100,
    seeds: int = 4,
) -> Iterator[Curve]:
    fine = {"load": tuple(np.linspace(0.04, 0.1379, 99).tolist())}
    measured = partial(recall, networks=networks, sweeps=sweeps)
    yield Curve("theory", zero_temperature, Hopfield(0.1), fine, facets={"part": "capacity"})
    for count in spins:
        facets = {"part": "capacity", "spins": count}
        yield Curve(
            "at rest", measured, Hopfield(0.1, spins=count), {"load": loads}, seeds, facets=facets
        )
    for load in basin_loads:
        facets = {"part": "basin", "load": load}
        yield Curve(
            "at rest",
            measured,
            Hopfield(load, spins=basin_spins),
            {"start": starts},
            seeds,
            facets=facets,
        )


_TIME = (
    "parallel steps $t$",
    lambda data: xr.DataArray(np.arange(data.sizes["time"]), dims="time"),
)


def draw_edge(axes: Any, comparison: Comparison) -> None:
    """Draw the overlap after the last step against the overlap at the start."""
    for number, data in enumerate(comparison.theories(part="edge").values()):
        axes.plot(data["start"], data["overlap"][..., -1], color=ink(), linestyle=DASHES[number])
    for number, data in enumerate(comparison.experiments(part="edge").values()):
        dots(axes, data["start"], data["overlap"][..., -1], number, colour=ink(), filled=not number)
    p = comparison.parameters
    axes.set(title=rf"$\alpha$ = {p['edge_load']:g}", xlabel="overlap at the start $m_0$")
    axes.set_ylabel(f"overlap after {p['steps']} steps")


@study(
    "hopfield-dynamics",
    title=(
        "Parallel recall depends on all earlier steps: a theory of one step recalls too much near "
        "the edge of the basin"
    ),
    source="Amari, Maginu 1988; Bolle et al. 2004 (arXiv:cond-mat/0307499)",
    seconds=(40, 1800),
    observables=("overlap",),
    gallery={"spins": 8000, "edge_spins": (2000, 250), "paths": 1 << 19},
    full={
        "spins": 10_000,
        "edge_spins": (10_000, 1000),
        "networks": 16,
        "seeds": 16,
        "paths": 1 << 20,
    },
    columns=3,
    panels=[
        Panel(_TIME, "overlap", by="start", facet="load", where={"part": "path"}),
        Freehand(draw_edge),
    ],
    caption=r"""
        Overlap with a pattern, of {networks} networks in a run; all spins are updated at once at
        temperature 0. $\alpha$: patterns per spin; $m_0$: overlap at the start. Correlations over
        all steps: generating functional, exact for many spins. Over one step: equations of Amari
        and Maginu. Right: starts around the edge of the basin of attraction; dots: {edge_spins[0]}
        spins, squares: {edge_spins[1]} spins.
    """,
    explained=(
        "Near the edge of the basin of attraction some networks of finite size recall the "
        "pattern and some do not. Their mean overlap therefore lies above the exact theory of "
        "many spins for starts below the edge, and below it for starts above the edge. The "
        "difference shrinks with more spins."
    ),
)
def hopfield_dynamics(
    loads: tuple[float, ...] = (0.08, 0.12),
    starts: tuple[float, ...] = (0.2, 0.35, 0.5),
    edge_load: float = 0.12,
    edge_starts: tuple[float, ...] = (0.1, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.9),
    spins: int = 2000,
    edge_spins: tuple[int, ...] = (1000, 250),
    steps: int = 10,
    networks: int = 8,
    paths: int = 1 << 17,
    seeds: int = 8,
) -> Iterator[Curve]:
    places: list[tuple[str, float, Sequence[float], Sequence[float], int, tuple[int, ...]]]
    places = [("path", load, starts, starts, paths, (spins,)) for load in loads]
    places.append(
        ("edge", edge_load, between(edge_starts, 30), edge_starts, paths // 4, edge_spins)
    )
    for part, load, fine, coarse, drawn, counts in places:
        facets = {"part": part, "load": load}
        exact = partial(generating_functional, steps=steps, paths=drawn)
        short = partial(statistical_neurodynamics, steps=steps)
        for label, theory in (("correlations over all steps", exact), ("over one step", short)):
            yield Curve(label, theory, Hopfield(load), {"start": fine}, facets=facets)
        for count in counts:
            run = partial(parallel_steps, networks=networks, steps=steps)
            system, over = Hopfield(load, spins=count), {"start": coarse}
            yield Curve(f"{count} spins", run, system, over, seeds, facets=facets)


# ------------------------------------------------------------------------------------------------
# The phases of the Hopfield model, found by comparing the free energies of its solutions.

_BRANCHES = ("retrieval", "spin glass")


_PLANE = phases_panel("load", "temperature", order="overlap", branches=("stable", *_BRANCHES))
# phase -> load and temperature at which its name stands
_NAMES = {
    "retrieval": (0.006, 0.1),
    "metastable\nretrieval": (0.062, 0.08),
    "spin glass": (0.09, 0.85),
    "paramagnet": (0.02, 1.3),
}


_LINE_WORDS = {
    "jump, stable": "retrieval is lowest",
    "end of a branch, retrieval": "retrieval exists",
    "end of a branch, stable": "spin glass exists",
}


def draw_plane(axes: Any, comparison: Comparison) -> None:
    """Draw the phases with their names."""
    _PLANE.function(axes, comparison)
    for line in axes.get_lines():
        line.set_label(_LINE_WORDS.get(line.get_label(), "_"))
    for name, place in _NAMES.items():
        shade = "black" if name == "retrieval" else "white"
        axes.annotate(name, place, color=ink() if name == "paramagnet" else shade, fontsize=8)


@study(
    "hopfield-plane",
    title=(
        "In theory the Hopfield model at T = 0 retrieves patterns below a load of 0.138; below "
        "0.05 retrieval states have the lowest free energy"
    ),
    source="Amit, Gutfreund, Sompolinsky 1985, 1987",
    seconds=(40, 300),
    gallery={"resolution": 64},
    full={"resolution": 128},
    panels=[Freehand(draw_plane)],
    caption=r"""
        Replica-symmetric theory; nothing is measured. $\alpha$: patterns per spin. Colour: overlap
        with a pattern in the state of lowest free energy, which is 0 where retrieval is metastable;
        white: paramagnet; {resolution} squares along each axis. The legend says which state exists
        below a line, or has the lowest free energy there. At the lowest temperatures the solid line
        bends back to smaller loads; this is an artefact of replica symmetry.
    """,
)
def hopfield_plane(resolution: int = 32, most_load: float = 0.16) -> list[Curve]:
    over, order = (
        {"load": (0.002, most_load), "temperature": (0.01, 1.45)},
        ("overlap", "self_overlap"),
    )
    options: dict[str, Any] = {"branches": _BRANCHES, "resolution": resolution, "accuracy": 1e-4}
    return [diagram_curve(replica_symmetric, Hopfield(0.1), over, order=order, **options)]
