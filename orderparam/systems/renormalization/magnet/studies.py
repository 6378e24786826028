"""Studies of the magnet: the exponents that each approximation gives, and measured couplings of
block spins.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel, horizontal
from orderparam.plotting.style import COLOURS, DASHES, GREY, ink
from orderparam.systems.renormalization.magnet.experiment import block_spins
from orderparam.systems.renormalization.magnet.model import (
    EXACT_COUPLING,
    Bonds,
    SpinBlocks,
    VectorMagnet,
)
from orderparam.systems.renormalization.magnet.theory import (
    bond_flow,
    epsilon_expansion,
    local_potential,
    one_loop_point,
)

# number of components -> (nu, omega) in three dimensions: Kos, Poland, Simmons-Duffin, Vichi 2016
# and Simmons-Duffin 2017; Hasenbusch 2019; Hasenbusch 2020
KNOWN = {1: (0.629971, 0.82968), 2: (0.67169, 0.789), 3: (0.71164, 0.759)}
THEORIES = {
    r"$\epsilon$ expansion": epsilon_expansion,
    "one-loop flow": one_loop_point,
    "flow of the potential": local_potential,
}


def _draw_exponents(name: str, axes: Any, comparison: Comparison) -> None:
    """Draw an exponent of every approximation against the number of components, with the known
    values."""
    for data in comparison.theories(part="components").values():
        number = list(THEORIES).index(data.attrs["label"])
        look = {"color": COLOURS[number], "linestyle": DASHES[number]}
        axes.plot(data["components"], data[name], label=data.attrs["label"], **look)
    literature = [value[["nu", "omega"].index(name)] for value in KNOWN.values()]
    axes.plot(list(KNOWN), literature, "o", color=ink(), label="known", zorder=3)
    if name == "nu":
        n = np.geomspace(4, 100, 50)
        large = 1 - 32 / (3 * np.pi**2 * n)
        axes.plot(n, large, color=GREY, linewidth=0.8, linestyle=":", label="order $1/n$")
    symbol = {"nu": r"$\nu$", "omega": r"$\omega$"}[name]
    axes.set(xscale="log", xlabel="components $n$", ylabel=symbol, title="$d$ = 3")
    axes.set_ylim((0.48, 1.05) if name == "nu" else (0, 1.4))


@study(
    "magnet-exponents",
    title=(
        "For one to three components the epsilon expansion is closest for nu; the flow of the "
        "potential is closest for omega at two and three"
    ),
    source="Wilson, Fisher 1972; Litim 2001, 2002",
    seconds=(30, 60),
    observables=(),
    columns=2,
    panels=[
        Freehand(partial(_draw_exponents, "nu")),
        Panel(
            "dim",
            "nu",
            where={"part": "dim"},
            ylim=(0.48, 0.75),
            ylabel=r"$\nu$",
            title="$n$ = 1",
            reference=[horizontal(KNOWN[1][0], "known, $d$ = 3")],
        ),
        Freehand(partial(_draw_exponents, "omega")),
        Panel(
            "dim",
            "omega",
            where={"part": "dim"},
            ylim=(0, 1.4),
            ylabel=r"$\omega$",
            title="$n$ = 1",
        ),
    ],
    caption=r"""
        Magnets of $n$ components in $d$ dimensions. $\epsilon = 4 - d$ expansion: $\nu$ to second
        and $\omega$ to first order. One-loop flow with its denominators: upper right alone; it is
        worse than the series that it contains. Flow of the potential: $\eta$ = 0, optimised
        regulator; $\nu=\omega=1$ for $d$ = 3, $n\to\infty$. Known: bootstrap ($n$ = 1) and Monte
        Carlo ($n$ = 2, 3), with errors smaller than the marks; dotted: $\nu$ to order $1/n$.
        $\omega$: exponent of the leading correction to scaling.
    """,
)
def magnet_exponents(
    components: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 40.0, 100.0),
    dims: tuple[float, ...] = (2.9, 3.0, 3.1, 3.2, 3.3, 3.4, 3.5, 3.6, 3.7, 3.8, 3.9),
) -> Iterator[Curve]:
    for name, values in {"components": components, "dim": dims}.items():
        for label, theory in THEORIES.items():
            if not (theory is one_loop_point and name == "components"):
                yield Curve(label, theory, VectorMagnet(), {name: values}, facets={"part": name})


def _levels(data: xr.Dataset) -> xr.DataArray:
    """Number of times that every block of two by two spins was replaced by one spin."""
    (dim,) = (name for name in ("step", "block_level") if name in data["neighbour_coupling"].dims)
    return xr.DataArray(np.arange(data.sizes[dim]), dims=dim)


def _draw_plane(axes: Any, comparison: Any) -> None:
    """Draw the coupling of neighbours against the coupling across the diagonal, with a line from
    level to level."""
    for number, data in enumerate(comparison.experiments(part="flow").values()):
        start = data.attrs["facets"]["starting_coupling"]
        one = data.squeeze()
        means = [one[name].mean("seed") for name in ("neighbour_coupling", "diagonal_coupling")]
        errors = [
            one[name].std("seed") / np.sqrt(one.sizes["seed"])
            for name in ("neighbour_coupling", "diagonal_coupling")
        ]
        colour = COLOURS[number % len(COLOURS)]
        axes.errorbar(*means, yerr=errors[1], xerr=errors[0], fmt="o", color=colour)
        for before, after in zip(range(means[0].size - 1), range(1, means[0].size)):
            places = [(float(means[0][k]), float(means[1][k])) for k in (before, after)]
            axes.annotate(
                "",
                places[1],
                places[0],
                arrowprops={"arrowstyle": "->", "color": colour, "linewidth": 0.8},
            )
        axes.plot([], [], "o", color=colour, label=f"$K$ = {start:.4g}")
    axes.set(xlabel="coupling of neighbours $K_1$", ylabel="coupling across the diagonal $K_2$")


def _draw_thermal(axes: Any, comparison: Any) -> None:
    """Draw y_t at the critical coupling for every length."""
    runs = {
        data.attrs["facets"]["length"]: data
        for data in comparison.experiments().values()
        if "length" in data.attrs["facets"]
    }
    for length, data in runs.items():
        values = data["thermal_exponent"].squeeze()
        axes.errorbar(
            length,
            float(values.mean()),
            float(values.std("seed") / np.sqrt(values.sizes["seed"])),
            fmt="o",
            color=ink(),
        )
    axes.axhline(1.0, color=GREY, linewidth=0.8, linestyle=":")
    axes.axhline(0.747, color=GREY, linewidth=0.8, linestyle="--")
    axes.set(xlabel="length $L$", ylabel=r"$y_t$ at $K_c$", xscale="log", ylim=(0.5, 1.2))


@study(
    "block-spins",
    title=(
        "From the second step on the couplings of neighbouring block spins grow if the magnet's "
        "coupling K is above its critical value, and fall if it is below"
    ),
    source="Kadanoff 1966; Migdal 1975; Swendsen 1979; Besag 1975",
    seconds=(60, 1200),
    observables=("thermal_exponent",),
    gallery={
        "length": 64,
        "levels": 3,
        "lengths": (16, 32, 64),
        "replicas": 4,
        "sweeps": 400,
        "seeds": 16,
    },
    full={"length": 128, "levels": 4, "sweeps": 2000, "lengths": (16, 32, 64, 128), "seeds": 16},
    columns=3,
    panels=[
        Freehand(_draw_plane),
        Panel(
            ("times put in blocks", _levels),
            "neighbour_coupling",
            by="starting_coupling",
            where={"part": "flow"},
            ylim=(0, 0.8),
        ),
        Freehand(_draw_thermal),
    ],
    caption=r"""
        {length} x {length} torus, coupling $K$, Swendsen-Wang sweeps, majorities of 2 x 2 spins;
        couplings between blocks by pseudo-likelihood. $y_t$: a small difference between $K$ and its
        critical value $K_c$ grows as the length of a block to the power $y_t$. Dashed: bond moving
        (Migdal-Kadanoff), an approximation whose critical coupling is 0.3047, so that it flows to
        order from every $K$ here, and whose $y_t$ is 0.747. Exact: $K_c$ = 0.4407, $y_t$ = 1.
        Right: $y_t$ from the response of three sums (products of spins of neighbours, across the
        diagonal and of four) after one level of blocks on $L$ x $L$ sites, which leaves it 3 % too
        small at every $L$.
    """,
)
def block_spins_figure(
    length: int = 32,
    levels: int = 2,
    couplings: tuple[float, ...] = (0.38, 0.42, 0.4406868, 0.46),
    lengths: tuple[int, ...] = (16, 32),
    sweeps: int = 250,
    replicas: int = 8,
    seeds: int = 4,
) -> Iterator[Curve]:
    measured = partial(block_spins, sweeps=sweeps, replicas=replicas)
    for coupling in couplings:
        facets = {"starting_coupling": coupling, "part": "flow"}
        yield Curve(
            "bonds moved",
            partial(bond_flow, steps=levels),
            Bonds(coupling),
            {"coupling": (coupling,)},
            facets=facets,
            baseline=True,
        )
        yield Curve(
            "measured",
            measured,
            SpinBlocks(1.0, length, levels),
            {"temperature": (1 / coupling,)},
            seeds,
            facets=facets,
        )
    critical = {"temperature": (1 / EXACT_COUPLING,)}
    yield from (
        Curve(
            "measured",
            measured,
            SpinBlocks(1.0, n, 1),
            critical,
            seeds,
            facets={"length": n, "part": "exponent"},
        )
        for n in lengths
    )
