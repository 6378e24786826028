"""Named figures of the Ising model: the square lattice against its exact solutions, crossings of
Binder's ratios, and pictures.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from orderparam.analysis import Collapse, exponent
from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel, canvas, finish, horizontal, vertical
from orderparam.plotting.style import COLOURS, GREY, MARKERS, ink
from orderparam.systems.spins.lattice.crossings import draw_crossings
from orderparam.systems.spins.lattice.experiment import (
    Quench,
    configuration,
    correlations,
    quench,
    swendsen_wang,
)
from orderparam.systems.spins.lattice.model import CRITICAL_TEMPERATURE, IsingLattice
from orderparam.systems.spins.lattice.theory import (
    critical_correlation,
    enumerated,
    finite_size_scaling,
    kaufman,
    onsager,
    torus_correlation,
)

# ------------------------------------------------------------------------------------------------
# Functions that draw those panels of the studies which are not plain curves.


def draw_configuration(temperature: float, axes: Any, comparison: Comparison) -> None:
    """Draw the configuration of the first seed; black is up."""
    (runs,) = comparison.experiments().values()
    axes.imshow(
        runs["spin"].sel(temperature=temperature).isel(seed=0),
        cmap="binary",
        vmin=-1,
        vmax=1,
        interpolation="nearest",
    )
    axes.set(xticks=[], yticks=[])


def by_length(comparison: Comparison, kind: str) -> xr.Dataset:
    """The curves of one kind (theory or experiment) that have a length, concatenated along the
    length."""
    runs = {data.attrs["facets"]["length"]: data for data in comparison.curves(kind).values()}
    return xr.concat(
        [runs[length].expand_dims(length=[length]) for length in sorted(runs)],
        "length",
        join="outer",
    )


def draw_scaling(comparison: Comparison) -> Any:
    """Draw Binder's ratio, the magnetisation and the susceptibility of all sizes, each collapsed on
    one curve, and write the fitted exponents.
    """
    figure, axes = canvas(1, 3)
    try:
        found = finite_size_scaling(by_length(comparison, "experiment"))
    except ValueError as error:  # too few points
        finish(figure, comparison.study.title, {}, str(error))
        return figure
    fits = {
        "Binder ratio": found.binder,
        r"$\langle|m|\rangle\,L^{\beta/\nu}$": found.magnetisation,
        r"$\langle m^2\rangle L^2/L^{\gamma/\nu}$": found.susceptibility,
    }
    handles: dict[str, Any] = {}
    for ax, (text, fit) in zip(axes[0], fits.items()):
        handles |= _draw_collapse(ax, fit)
        ax.set(xlabel=r"$(T-T_c)\,L^{1/\nu}$", ylabel=text)
    names = {
        "T_c": "$T_c$",
        "1/nu": r"$1/\nu$",
        "beta/nu": r"$\beta/\nu$",
        "gamma/nu": r"$\gamma/\nu$",
    }
    exponents = ", ".join(
        f"{names[name]} = {value:.4f} ± {error:.4f}"
        for name, (value, error) in found.exponents.items()
    )
    quality = ", ".join(
        f"{fit.chi_squared:.0f}/{fit.freedom} ({place}) from $L$ = {fit.sizes[0]:g} on"
        + ("" if fit.accepted else " (not accepted)")
        for place, fit in zip(("left", "middle", "right"), fits.values())
    )
    exact = f"(exact: {CRITICAL_TEMPERATURE:.4f}, 1, 1/8, 7/4)"
    finish(
        figure,
        comparison.study.title,
        handles,
        f"Ising model on $L$ x $L$ sites of a torus, {comparison.parameters['seeds']} runs; $m$: "
        "magnetisation per spin; Binder ratio: $1-\\langle m^4\\rangle/3\\langle m^2\\rangle^2$. "
        f"Fits that bring all sizes onto one curve give {exponents} {exact}. $\\chi^2$ per degree "
        f"of freedom: {quality}. Marks: means of the runs, bars: standard errors.",
    )
    return figure


def _draw_collapse(axes: Any, fit: Collapse) -> dict[str, Any]:
    handles = {}
    for number, size in enumerate(fit.sizes):
        own = fit.scaled_size == size
        look = {
            "color": COLOURS[number % len(COLOURS)],
            "fmt": MARKERS[number % len(MARKERS)],
            "markerfacecolor": "white",
        }
        handles[f"$L$ = {size:g}"] = axes.errorbar(
            fit.scaled_x[own], fit.scaled_y[own], fit.scaled_error[own], **look
        )
    u = np.linspace(fit.scaled_x.min(), fit.scaled_x.max(), 200)
    (handles["fitted polynomial"],) = axes.plot(
        u, fit.curve(u), color=ink(), linewidth=0.8, zorder=1
    )
    return handles


def draw_opposite(axes: Any, comparison: Comparison) -> None:
    """Draw the correlation of opposite sites against the size, with its fitted exponent."""
    runs = {data.attrs["facets"]["length"]: data for data in comparison.experiments().values()}
    names = ["correlation", "correlation_error"]
    last = [
        runs[length][names].isel(step=-1, temperature=0).expand_dims(length=[length])
        for length in sorted(runs)
    ]
    far = xr.concat(last, "length")
    axes.errorbar(
        far["length"],
        far["correlation"].mean("seed"),
        far["correlation_error"].mean("seed") / np.sqrt(far.sizes["seed"]),
        fmt="o",
        color=ink(),
    )
    axes.set(
        xscale="log", yscale="log", xlabel="length $L$", ylabel="correlation of opposite sites"
    )
    try:
        found = exponent(far, "length", "correlation")
    except ValueError as error:  # too few sizes
        axes.set_title(str(error))
        return
    axes.plot(found.x, found.fitted, color=ink(), linewidth=0.8)
    low, high = found.interval
    axes.set_title(rf"$\eta$ between {-high:.4f} and {-low:.4f}, 95 % (exact 1/4)")


def draw_walls(axes: Any, comparison: Comparison) -> None:
    """Draw the energy above equilibrium after a quench against time, which falls as the inverse
    square root.
    """
    (runs,) = comparison.experiments().values()
    for number, temperature in enumerate(runs["temperature"].values):
        own = runs.sel(temperature=temperature)
        excess = own["energy"].mean("seed") - float(
            onsager(IsingLattice(float(temperature))).energy
        )
        look = {
            "color": COLOURS[number],
            "marker": MARKERS[number],
            "linestyle": "none",
            "label": f"$T$ = {temperature:g}",
        }
        time = own["sweep"].isel(seed=0)
        later = time > 0
        axes.plot(time[later], excess[later], **look)
    guide = np.array([3.0, 1000.0])
    axes.plot(guide, 1.2 * guide**-0.5, color=GREY, linewidth=0.8)
    axes.annotate(
        "$t^{-1/2}$",
        (guide[0], 1.2 * guide[0] ** -0.5),
        (6, 0),
        textcoords="offset points",
        color=GREY,
    )
    axes.set(xscale="log", yscale="log", xlabel="sweeps $t$", ylabel="energy above equilibrium")


def draw_quenched(time: int, axes: Any, comparison: Comparison) -> None:
    """Draw the lattice of the first seed at the lowest temperature; `time` is an index into the
    list of times.
    """
    (runs,) = comparison.experiments().values()
    axes.imshow(
        runs["spin"].isel(temperature=0, seed=0, time=time),
        cmap="binary",
        vmin=-1,
        vmax=1,
        interpolation="nearest",
    )
    axes.set(xticks=[], yticks=[])


def animate(quench: Quench, path: str | Path, frames_per_second: int = 10) -> None:
    """Write the configurations of a quench as an animated GIF.

    Args:
        quench: result of the experiment `quench`; each of its times becomes one frame.
        path: file to write; it is overwritten.
        frames_per_second: speed of the animation.
    """
    from PIL import Image

    frames = [
        Image.fromarray(np.where(np.asarray(spin) > 0, 0, 255).astype(np.uint8))
        for spin in quench.spin
    ]
    frames = [
        frame.resize((3 * frame.width, 3 * frame.height), Image.Resampling.NEAREST).convert("1")
        for frame in frames
    ]
    frames[0].save(
        path, save_all=True, append_images=frames[1:], duration=1000 // frames_per_second, loop=0
    )


UNIVERSAL_RATIO = 0.61069  # Binder's ratio of large square tori at T_c (Kamieniarz, Blöte 1993)


@study(
    "ising-square",
    title=(
        "Energies and heat capacities of the Ising model on finite tori agree with Kaufman's "
        "exact solution"
    ),
    source="Onsager 1944; Kaufman 1949; Yang 1952; Swendsen, Wang 1987",
    seconds=(45, 3600),
    observables=("energy", "heat_capacity", "absolute_magnetisation"),
    gallery={"seeds": 16},
    full={"lengths": (8, 16, 32, 64, 128), "sweeps": 4000, "replicas": 8, "seeds": 8},
    columns=3,
    panels=[
        Panel("temperature", name, by="length", reference=[vertical(CRITICAL_TEMPERATURE, "$T_c$")])
        for name in ("energy", "heat_capacity", "absolute_magnetisation")
    ],
    caption=r"""
        The Ising model on an $L\times L$ torus without a field. The lines are Kaufman's exact
        solution of the finite torus; grey lines are the infinite lattice, on the right its
        spontaneous magnetisation. Each run has {replicas} replicas of {sweeps} sweeps.
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
        yield Curve(
            "Swendsen-Wang",
            measured,
            system,
            {"temperature": temperatures},
            seeds,
            True,
            facets=facets,
        )


_NEAR_CRITICAL = (2.2, 2.22, 2.24, 2.25, 2.26, 2.265, 2.27, 2.275, 2.28, 2.29, 2.3, 2.32, 2.34)


@study(
    "ising-binder",
    title=(
        "Binder's ratios of two sizes cross nearer to the critical temperature, the larger they "
        "are, until, from sizes 16 and 32 on, they agree with it"
    ),
    source="Binder 1981; Kamieniarz, Blöte 1993; Swendsen, Wang 1987",
    seconds=(45, 5400),
    observables=("binder",),
    gallery={"lengths": (4, 8, 16, 32, 64), "temperatures": _NEAR_CRITICAL, "seeds": 16},
    full={
        "lengths": (4, 8, 16, 32, 64, 128),
        "temperatures": _NEAR_CRITICAL,
        "sweeps": 4000,
        "seeds": 16,
    },
    columns=2,
    panels=[
        Panel(
            "temperature",
            "binder",
            by="length",
            reference=[
                vertical(CRITICAL_TEMPERATURE, "$T_c$"),
                horizontal(UNIVERSAL_RATIO, "large $L$, $T_c$"),
            ],
        ),
        Freehand(draw_crossings),
    ],
    caption=r"""
        $L\times L$ torus, simulated by Swendsen-Wang updates with improved estimators; each run has
        {replicas} replicas of {sweeps} sweeps. The line is the sum over all configurations of the 4
        x 4 torus. Right: the temperature at which the ratios of two successive sizes are equal. It
        is the zero of a parabola through their difference within $2/L$ of the crossing, where $L$
        is the larger size.
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
        Curve(
            "Swendsen-Wang",
            measured,
            small.with_(shape=(n, n)),
            over,
            seeds,
            True,
            facets={"length": n},
        )
        for n in lengths
    )


@study(
    "ising-scaling",
    title=(
        "Measurements of the Ising model in three sizes collapse on one curve, which gives its "
        "critical temperature and exponents"
    ),
    source="Fisher, Barber 1972; Binder 1981; Onsager 1944",
    seconds=(60, 3600),
    observables=("energy",),
    gallery={"seeds": 16},
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
    title=(
        "Critical correlations of the Ising model on a torus "
        "follow the theory of the torus, not that of the plane"
    ),
    source="McCoy, Wu 1973; Di Francesco, Saleur, Zuber 1987; Wolff 1988",
    seconds=(45, 3600),
    observables=("correlation",),
    gallery={"seeds": 16},
    full={"lengths": (8, 16, 32, 64, 128, 256), "sweeps": 10_000, "seeds": 8},
    columns=2,
    panels=[Panel("steps", "correlation", by="length", log="xy"), Freehand(draw_opposite)],
    caption=r"""
        Correlations along the diagonal at $T_c$. Left: the lines are conformal field theory on the
        torus; the grey line is the infinite lattice, where the correlation falls as
        $0.70338/r^{{1/4}}$ with the distance $r$. Right: the correlation of two sites half a
        lattice apart, and a power of the length that is fitted to it. Each run has {replicas}
        replicas of {sweeps} sweeps.
    """,
    explained=(
        "The theory leaves out terms of order 1/r^2: 1.3 % at the first step and 0.5 % at the "
        "second. At larger distances the deviations of one run are correlated."
    ),
)
def ising_correlations(
    lengths: tuple[int, ...] = (8, 16, 32, 64),
    replicas: int = 4,
    sweeps: int = 2000,
    seeds: int = 4,
) -> Iterator[Curve]:
    over = {"temperature": (CRITICAL_TEMPERATURE,)}
    largest = IsingLattice(CRITICAL_TEMPERATURE, (max(lengths), max(lengths)))
    yield Curve(
        "infinite lattice",
        partial(critical_correlation, reach=max(lengths) // 2),
        largest,
        over,
        baseline=True,
    )
    for length in lengths:
        system, facets = largest.with_(shape=(length, length)), {"length": length}
        measured = partial(correlations, replicas=replicas, sweeps=sweeps)
        yield Curve(
            "torus", partial(torus_correlation, reach=length // 2), system, over, facets=facets
        )
        yield Curve("Swendsen-Wang", measured, system, over, seeds, True, facets=facets)


@study(
    "ising-quench",
    title=(
        "After a quench of the Ising model the length of domain walls falls with time t as t to "
        "the power -0.47 at T = 1 and, nearer to the critical temperature, -0.40 at T = 2"
    ),
    source="Allen, Cahn 1979; Bray 1994",
    seconds=(30, 600),
    observables=("energy",),
    full={"length": 512, "times": (0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10_000), "seeds": 8},
    columns=4,
    panels=lambda p: [
        Freehand(draw_walls),
        *(
            Freehand(partial(draw_quenched, k), f"$t$ = {p['times'][k]}")
            for k in _shown(p["times"])
        ),
    ],
    explained=(
        "Between 3 and 300 sweeps the energy above equilibrium falls as t^-0.468(1), t^-0.445(1) "
        "and t^-0.397(2) at T = 1, 1.5 and 2. Why the power is smaller near the "
        "critical temperature was not measured; larger tori were not run."
    ),
    caption=r"""
        $L\times L$ torus, $L$ = {length}, Metropolis updates from random spins at temperature $T$
        (critical: 2.27). The energy per spin above equilibrium is proportional to the length of
        domain walls, and thus to one over the size of domains. Line: $t^{{-1/2}}$ for orientation.
        Pictures: the spins of one run at $T$ = {temperatures[0]:g}; when domains are as large as
        the torus, stripes can remain.
    """,
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
    title=(
        "Configurations of the Ising model have one large domain below the critical temperature, "
        "domains of very different sizes at it, and order over short distances alone above it"
    ),
    source="Onsager 1944; Swendsen, Wang 1987",
    seconds=(10, 300),
    observables=("energy",),
    gallery={"seeds": 16},
    full={"length": 512, "sweeps": 500, "seeds": 8},
    columns=3,
    panels=lambda p: [
        Freehand(
            partial(draw_configuration, temperature),
            f"$T/T_c$ = {temperature / CRITICAL_TEMPERATURE:.3g}",
        )
        for temperature in p["temperatures"]
    ],
    explained=(
        "Each picture is one run. The mean energies of 16 runs agree with Onsager's within 1 %."
    ),
    caption=r"$L\times L$ torus, $L$ = {length}, after {sweeps} sweeps of Swendsen and Wang from "
    r"random spins. Black: up.",
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
