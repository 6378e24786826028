"""The named figures of the Ising model: the square lattice against its exact solutions, crossings of ratios, pictures."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from orderparam.core.study import Curve, study
from orderparam.plotting import Freehand, Panel, horizontal, vertical
from orderparam.systems.spins.lattice.experiment import configuration, correlations, quench, swendsen_wang
from orderparam.systems.spins.lattice.figures import (
    draw_configuration,
    draw_crossings,
    draw_opposite,
    draw_quenched,
    draw_scaling,
    draw_walls,
)
from orderparam.systems.spins.lattice.finite import enumerated, kaufman, torus_correlation
from orderparam.systems.spins.lattice.infinite import critical_correlation, onsager
from orderparam.systems.spins.lattice.model import CRITICAL_TEMPERATURE, IsingLattice

UNIVERSAL_RATIO = 0.61069  # Binder's ratio of large square tori at T_c (Kamieniarz, Blöte 1993)


@study(
    "ising-square",
    title="The Ising model on the square lattice: Swendsen-Wang against Onsager, Kaufman and Yang",
    source="Onsager 1944; Kaufman 1949; Yang 1952; Swendsen, Wang 1987",
    seconds=(45, 3600),
    observables=("energy", "heat_capacity", "absolute_magnetisation"),
    full={"lengths": (8, 16, 32, 64, 128), "sweeps": 4000, "replicas": 8, "seeds": 8},
    columns=3,
    panels=[
        Panel("temperature", name, by="length", reference=[vertical(CRITICAL_TEMPERATURE, "$T_c$")])
        for name in ("energy", "heat_capacity", "absolute_magnetisation")
    ],
    caption=r"""
        $L\times L$ torus, no field; lines: Kaufman's exact finite torus, grey: infinite lattice (right: spontaneous
        magnetisation). {replicas} replicas of {sweeps} sweeps each in a run.
    """,
)
def ising_square(
    lengths: tuple[int, ...] = (8, 16, 32),
    temperatures: tuple[float, ...] = (1.6, 1.9, 2.1, 2.2, 2.269, 2.35, 2.5, 2.8, 3.2),
    replicas: int = 4,
    sweeps: int = 400,
    seeds: int = 4,
) -> Iterator[Curve]:
    fine = {"temperature": tuple(np.linspace(1.4, 3.4, 101).tolist())}
    measured = partial(swendsen_wang, replicas=replicas, sweeps=sweeps)
    yield Curve("infinite lattice", onsager, IsingLattice(2.0), fine, baseline=True)
    for length in lengths:
        system, facets = IsingLattice(2.0, (length, length)), {"length": length}
        yield Curve("exact", kaufman, system, fine, facets=facets)
        yield Curve("Swendsen-Wang", measured, system, {"temperature": temperatures}, seeds, True, facets=facets)


@study(
    "ising-binder",
    title="Where ratios of moments cross: the critical temperature of the Ising model from small lattices",
    source="Binder 1981; Kamieniarz, Blöte 1993; Swendsen, Wang 1987",
    seconds=(45, 3600),
    observables=("binder",),
    full={"lengths": (4, 8, 16, 32, 64, 128), "sweeps": 10_000, "replicas": 8, "seeds": 16},
    columns=2,
    panels=[
        Panel(
            "temperature",
            "binder",
            by="length",
            reference=[vertical(CRITICAL_TEMPERATURE, "$T_c$"), horizontal(UNIVERSAL_RATIO, "large $L$, $T_c$")],
        ),
        Freehand(draw_crossings),
    ],
    caption=r"""
        $L\times L$ torus, Swendsen-Wang with improved estimators, {replicas} replicas of {sweeps} sweeps in a run; line: all
        configurations of the 4 x 4 torus. Right: zeros of parabolas through differences of successive sizes.
    """,
)
def ising_binder(
    lengths: tuple[int, ...] = (4, 8, 16, 32),
    temperatures: tuple[float, ...] = (2.2, 2.22, 2.24, 2.26, 2.28, 2.3, 2.32, 2.34),
    replicas: int = 4,
    sweeps: int = 800,
    seeds: int = 4,
) -> Iterator[Curve]:
    over = {"temperature": temperatures}
    measured = partial(swendsen_wang, replicas=replicas, sweeps=sweeps)
    small = IsingLattice(2.0, (4, 4))
    fine = {"temperature": tuple(np.linspace(min(temperatures), max(temperatures), 57).tolist())}
    yield Curve("exact", enumerated, small, fine, facets={"length": 4})
    yield from (
        Curve("Swendsen-Wang", measured, small.with_(shape=(n, n)), over, seeds, True, facets={"length": n}) for n in lengths
    )


@study(
    "ising-scaling",
    title="Finite-size scaling of the Ising model: temperature and exponents of the transition from small lattices",
    source="Fisher, Barber 1972; Binder 1981; Onsager 1944",
    seconds=(60, 3600),
    observables=("energy",),
    full={"lengths": (16, 32, 64, 128), "sweeps": 10_000, "seeds": 8},
    draw=draw_scaling,
)
def ising_scaling(
    lengths: tuple[int, ...] = (16, 32, 64),
    temperatures: tuple[float, ...] = (2.235, 2.25, 2.262, 2.272, 2.285, 2.3),
    replicas: int = 4,
    sweeps: int = 1400,
    seeds: int = 4,
) -> Iterator[Curve]:
    over = {"temperature": temperatures}
    measured = partial(swendsen_wang, replicas=replicas, sweeps=sweeps)
    for length in lengths:
        system, facets = IsingLattice(2.2, (length, length)), {"length": length}
        yield Curve("exact", kaufman, system, over, facets=facets)
        yield Curve("Swendsen-Wang", measured, system, over, seeds, True, facets=facets)


@study(
    "ising-correlations",
    title="Critical correlations of the Ising model against the exact ones of the plane and of the torus",
    source="McCoy, Wu 1973; Di Francesco, Saleur, Zuber 1987; Wolff 1988",
    seconds=(45, 3600),
    observables=("correlation",),
    full={"lengths": (8, 16, 32, 64, 128, 256), "sweeps": 10_000, "seeds": 8},
    columns=2,
    panels=[Panel("steps", "correlation", by="length", log="xy"), Freehand(draw_opposite)],
    caption=r"""
        Along the diagonal at $T_c$. Lines: conformal field theory on the torus; grey: infinite lattice, which falls as
        $0.70338/r^{{1/4}}$. {replicas} replicas of {sweeps} sweeps each in a run. Right: at half the lattice.
    """,
    explained=(
        "The line leaves out terms of order 1/r^2: 1.3 % at the first step and 0.5 % at the second; farther, all "
        "distances of a run fluctuate together."
    ),
)
def ising_correlations(
    lengths: tuple[int, ...] = (8, 16, 32, 64), replicas: int = 4, sweeps: int = 2000, seeds: int = 4
) -> Iterator[Curve]:
    over = {"temperature": (CRITICAL_TEMPERATURE,)}
    largest = IsingLattice(CRITICAL_TEMPERATURE, (max(lengths), max(lengths)))
    yield Curve("infinite lattice", partial(critical_correlation, reach=max(lengths) // 2), largest, over, baseline=True)
    for length in lengths:
        system, facets = largest.with_(shape=(length, length)), {"length": length}
        measured = partial(correlations, replicas=replicas, sweeps=sweeps)
        yield Curve("torus", partial(torus_correlation, reach=length // 2), system, over, facets=facets)
        yield Curve("Swendsen-Wang", measured, system, over, seeds, True, facets=facets)


@study(
    "ising-quench",
    title="The Ising model quenched below its critical temperature: domains grow",
    source="Allen, Cahn 1979; Bray 1994",
    seconds=(30, 600),
    observables=("energy",),
    full={"length": 512, "times": (0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10_000), "seeds": 8},
    columns=4,
    panels=lambda p: [
        Freehand(draw_walls),
        *(Freehand(partial(draw_quenched, k), f"$t$ = {p['times'][k]}") for k in _shown(p["times"])),
    ],
    caption=r"$L\times L$ torus, $L$ = {length}, Metropolis updates from random spins. Pictures: $T$ = {temperatures[0]:g}.",
)
def ising_quench(
    length: int = 128,
    temperatures: tuple[float, ...] = (1.0, 1.5, 2.0),
    times: tuple[int, ...] = (0, 1, 3, 10, 30, 100, 300),
    seeds: int = 4,
) -> Iterator[Curve]:
    system, over = IsingLattice(1.0, (length, length)), {"temperature": temperatures}
    yield Curve("infinite lattice", onsager, system, over, baseline=True)
    yield Curve("Metropolis", partial(quench, sweeps=times), system, over, seeds, True)


def _shown(times: tuple[int, ...]) -> list[int]:
    """Three of the later times."""
    return [len(times) // 3, 2 * len(times) // 3, len(times) - 1]


@study(
    "ising-configurations",
    title="The Ising model seen below, at and above its critical temperature",
    source="Onsager 1944; Swendsen, Wang 1987",
    seconds=(10, 300),
    observables=("energy",),
    full={"length": 512, "sweeps": 500, "seeds": 8},
    columns=3,
    panels=lambda p: [
        Freehand(partial(draw_configuration, temperature), f"$T/T_c$ = {temperature / CRITICAL_TEMPERATURE:.3g}")
        for temperature in p["temperatures"]
    ],
    caption=r"$L\times L$ torus, $L$ = {length}, after {sweeps} sweeps of Swendsen and Wang from random spins. Black: up.",
)
def ising_configurations(
    length: int = 128,
    temperatures: tuple[float, ...] = (2.1, CRITICAL_TEMPERATURE, 2.6),
    sweeps: int = 150,
    seeds: int = 4,
) -> Iterator[Curve]:
    system, over = IsingLattice(2.0, (length, length)), {"temperature": temperatures}
    yield Curve("infinite lattice", onsager, system, over)
    yield Curve("Swendsen-Wang", partial(configuration, sweeps=sweeps), system, over, seeds)
