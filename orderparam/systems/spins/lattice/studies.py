"""The named figures of the Ising model: the square lattice against its exact solutions, crossings of ratios, pictures."""

from functools import partial

import numpy as np

from orderparam.core.study import Curve, study
from orderparam.plotting import Freehand, Panel, horizontal, vertical
from orderparam.systems.spins.lattice.experiment import configuration, swendsen_wang
from orderparam.systems.spins.lattice.figures import draw_configuration, draw_crossings
from orderparam.systems.spins.lattice.finite import enumerated, kaufman
from orderparam.systems.spins.lattice.infinite import onsager
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
) -> list[Curve]:
    fine = {"temperature": tuple(np.linspace(1.4, 3.4, 101).tolist())}
    measured = partial(swendsen_wang, replicas=replicas, sweeps=sweeps)
    curves = [Curve("infinite lattice", onsager, IsingLattice(2.0), fine, baseline=True)]
    for length in lengths:
        system, facets = IsingLattice(2.0, (length, length)), {"length": length}
        curves += [
            Curve("exact", kaufman, system, fine, facets=facets),
            Curve("Swendsen-Wang", measured, system, {"temperature": temperatures}, seeds, True, facets=facets),
        ]
    return curves


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
) -> list[Curve]:
    over = {"temperature": temperatures}
    measured = partial(swendsen_wang, replicas=replicas, sweeps=sweeps)
    small = IsingLattice(2.0, (4, 4))
    fine = {"temperature": tuple(np.linspace(min(temperatures), max(temperatures), 57).tolist())}
    return [
        Curve("exact", enumerated, small, fine, facets={"length": 4}),
        *(Curve("Swendsen-Wang", measured, small.with_(shape=(n, n)), over, seeds, True, facets={"length": n}) for n in lengths),
    ]


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
) -> list[Curve]:
    system, over = IsingLattice(2.0, (length, length)), {"temperature": temperatures}
    return [
        Curve("infinite lattice", onsager, system, over),
        Curve("Swendsen-Wang", partial(configuration, sweeps=sweeps), system, over, seeds),
    ]
