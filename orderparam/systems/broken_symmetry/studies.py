"""The named figures of broken replica symmetry in the spin glass."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel, horizontal
from orderparam.plotting.extrapolation import line_at_infinity
from orderparam.plotting.style import COLOURS, DASHES, MARKERS, ink, paper
from orderparam.running.estimate import estimate
from orderparam.systems.broken_symmetry.experiment import tempering
from orderparam.systems.broken_symmetry.model import SpinGlass
from orderparam.systems.broken_symmetry.theory import equilibrium, ground_state, symmetric
from orderparam.systems.broken_symmetry.ultrametricity import overlap_triples, tempered_triples

_EXPONENT = 2 / 3
BROKEN = "3 steps"
_DEFECT = (
    r"$\mathrm{E}(q_{\mathrm{mid}} - q_{\mathrm{min}}) / \mathrm{E}(q_{\mathrm{max}} - "
    r"q_{\mathrm{min}})$"
)
_RATIO = "ratio of moments of three overlaps"


def draw_extrapolation(axes: Any, comparison: Comparison) -> None:
    """Draw the lowest energies against N^(-2/3), a straight line fitted to them, and the theories
    of many spins at N^(-2/3) = 0."""
    rows = []
    for data in comparison.experiments().values():
        runs = data["ground_energy"].values.ravel()
        own = data["ground_energy_error"].values.ravel()
        # All runs have the same number of samples, so that the error is that of the mean over runs.
        error = np.sqrt(np.sum(own**2)) / len(runs)
        rows.append((data.attrs["facets"]["spins"], runs.mean(), error))
    size, energy, error = map(np.asarray, zip(*sorted(rows)))
    far = size**-_EXPONENT
    limit, limit_error, slope = line_at_infinity(far, energy, error)
    axes.errorbar(
        far, energy, error, fmt="o", color=ink(), markerfacecolor="white", label="tempering"
    )
    x = np.array([0.0, far.max()])
    axes.plot(x, limit + slope * x, color=ink(), linewidth=0.8)
    axes.errorbar([0.0], [limit], [limit_error], fmt=".", color=ink(), capsize=3)
    for number, (label, data) in enumerate(comparison.theories().items()):
        height = float(data["ground_energy"].values.ravel()[0])
        axes.plot([0.0], [height], "D", color=COLOURS[number], markersize=5, label=label)
    axes.set(
        xlabel="$N^{-2/3}$",
        ylabel="lowest energy per spin $E_0$",
        title=f"line at 0: {limit:.4f} ± {limit_error:.4f}",
    )


def draw_energy_difference(axes: Any, comparison: Comparison) -> None:
    """Draw energies minus the energy with broken symmetry against the temperature.

    Shown are the replica-symmetric theory, the measurements at every size, and their extrapolation
    to many spins by a straight line in N^(-2/3), at T > 1 in 1/N.
    """
    theories = {data.attrs["label"]: data for data in comparison.theories().values()}
    broken = theories.pop(BROKEN)
    runs = {d.attrs["facets"]["spins"]: d for d in comparison.experiments().values()}
    size = np.array(sorted(runs), float)
    measured = [estimate(runs[int(n)], "energy") for n in size]
    at = measured[0][0]["temperature"].values
    reference = broken["energy"].sel(temperature=at).values
    mean, error = (np.stack([pair[i].values for pair in measured]) for i in (0, 1))
    for number in range(len(size)):
        axes.errorbar(
            at, mean[number] - reference, error[number], fmt=MARKERS[0], color=COLOURS[number]
        )
    exponent = np.where(at > 1, 1.0, _EXPONENT)
    lines = [
        line_at_infinity(size ** -exponent[i], mean[:, i], error[:, i]) for i in range(len(at))
    ]
    limit, limit_error = np.array(lines)[:, :2].T
    axes.errorbar(
        at,
        limit - reference,
        limit_error,
        fmt="D",
        color=ink(),
        markerfacecolor=paper(),
        label=r"line at $N\to\infty$",
    )
    (symmetric_state,) = theories.values()
    t = broken["temperature"].values
    difference = symmetric_state["energy"].sel(temperature=t).values - broken["energy"].values
    axes.plot(t, difference, color=COLOURS[len(size)])
    axes.plot(t, 0 * t, color=COLOURS[len(size) + 1], linestyle=DASHES[1])
    axes.set(xlabel="temperature $T$", ylabel="energy minus that of 3 steps")


@study(
    "glass-ground-state",
    title="Ground-state energies of spin glasses extrapolate to broken replica symmetry, not to "
    "the symmetric value",
    source="Parisi 1980; Auffinger, Chen 2017; Sherrington, Kirkpatrick 1975",
    panels=[Freehand(draw_extrapolation)],
    caption=r"""
        Sherrington-Kirkpatrick model of $N$ spins without a field. Points: lowest energies per spin
        that parallel tempering from $T$ = 1.4 to {coldest} finds, averaged over {samples} samples
        of the couplings in each of {seeds} runs at every size. The line is a fit of $a + b
        N^{{-2/3}}$. Diamonds: theory for many spins, replica symmetric and with symmetry broken in
        1 and in 16 steps. The latter two differ by 0.002, which these measurements cannot resolve.
    """,
    observables=("ground_energy",),
    explained=(
        "Lowest energies of finitely many spins lie above the limit of many spins. The figure "
        "extrapolates with a correction proportional to N^(-2/3)."
    ),
    seconds=(60, 3600),
    gallery={"sizes": (16, 32, 64), "seeds": 24},
    full={"sizes": (16, 32, 64, 128), "samples": 32, "sweeps": 5000, "seeds": 32},
)
def glass_ground_state(
    sizes: tuple[int, ...] = (16, 24, 40),
    coldest: float = 0.2,
    samples: int = 16,
    sweeps: int = 600,
    seeds: int = 16,
) -> Iterator[Curve]:
    system = SpinGlass(coldest)
    for label, steps in (("replica symmetric", 0), ("1 step", 1), ("16 steps", 16)):
        yield Curve(label, partial(ground_state, steps=steps), system, {})
    measured = partial(tempering, samples=samples, sweeps=sweeps)
    for n in sizes:
        yield Curve("tempering", measured, system.with_(spins=n), {}, seeds, facets={"spins": n})


@study(
    "glass-equilibrium",
    title=(
        "In theory the entropy of a spin glass near T = 0.2 is negative unless replica symmetry "
        "is broken; of energies extrapolated to many spins the coldest weakly favours broken "
        "symmetry"
    ),
    source="Sherrington, Kirkpatrick 1975; Parisi 1980; Ghirlanda, Guerra 1998",
    panels=[
        Panel("temperature", "energy", by="spins"),
        Freehand(draw_energy_difference),
        Panel("temperature", "entropy", reference=[horizontal(0.0)]),
        Panel(
            "temperature",
            ("ratio of overlaps' variances", lambda data: data["overlap_ratio"]),
            by="spins",
            where={"kind": "experiment"},
            reference=[horizontal(1 / 3, "1/3")],
        ),
    ],
    columns=2,
    caption=r"""
        Sherrington-Kirkpatrick model of $N$ spins without a field. Lines: theory for many spins,
        replica symmetric and with symmetry broken in 3 steps. Marks: parallel tempering, {samples}
        samples of the couplings in each of {seeds} runs; diamonds: measured energies extrapolated
        to many spins by a line in $N^{{-2/3}}$, above $T$ = 1 in $1/N$. The entropy is not
        measured. Last panel: variance of $\langle q^2 \rangle$ between samples divided by the total
        variance of $q^2$, with $q$ the overlap of two replicas; for many spins it is 1/3 in the
        glass (Ghirlanda, Guerra) and 0 above $T$ = 1.
    """,
    observables=("energy",),
    explained=(
        "Energies of finitely many spins lie above the limit of many spins, by a term "
        "proportional to about N^(-2/3) in the glass. The extrapolated energies are within 2.4 "
        "standard errors of the theory with broken symmetry at all temperatures; at T = 0.25 the "
        "extrapolated energy is 3.1 standard errors above the replica-symmetric theory and about "
        "2 below that with broken symmetry, which it favours weakly. Ratios of variances at T = "
        "0.5 and 0.75 lie below the 1/3 of many spins and rise with the number of spins."
    ),
    seconds=(60, 3600),
    gallery={"sizes": (16, 32, 64), "seeds": 16},
    full={"sizes": (32, 64, 128), "samples": 32, "sweeps": 5000, "seeds": 16},
)
def glass_equilibrium(
    sizes: tuple[int, ...] = (16, 32),
    temperatures: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0, 1.3),
    samples: int = 16,
    sweeps: int = 600,
    seeds: int = 8,
) -> Iterator[Curve]:
    system = SpinGlass(temperatures[0])
    line = np.append(np.linspace(0.15, 1.05, 13), (1.2, 1.4, *temperatures))
    fine = np.unique(line.round(12))
    all_over = np.unique(np.append(np.linspace(0.1, 1.4, 53), fine).round(12))
    yield Curve("replica symmetric", symmetric, system, {"temperature": tuple(all_over.tolist())})
    broken = partial(equilibrium, steps=3)
    yield Curve(BROKEN, broken, system, {"temperature": tuple(fine.tolist())})
    measured = partial(tempering, samples=samples, sweeps=sweeps)
    for n in sizes:
        yield Curve(
            "tempering",
            measured,
            system.with_(spins=n),
            {"temperature": temperatures},
            seeds,
            facets={"spins": n},
        )


def draw_defects(axes: Any, comparison: Comparison) -> None:
    """Draw the defect of three overlaps against the number of spins, at the lowest temperature.

    Circles are overlaps of one sample of the couplings, squares moduli of overlaps of three
    samples.
    """
    shown = ("defect", "o", "of one sample"), ("independent_defect", "s", "of different samples")
    for name, marker, words in shown:
        rows = []
        for data in comparison.experiments().values():
            mean, error = (one.isel(temperature=0) for one in estimate(data, name))
            rows.append((data.attrs["facets"]["spins"], float(mean), float(error)))
        sizes, values, errors = map(np.asarray, zip(*sorted(rows)))
        axes.errorbar(sizes, values, errors, fmt=marker, color=ink(), markerfacecolor="white")
        axes.annotate(words, (sizes[0], values[0]), (0, 9), textcoords="offset points")
    axes.annotate("a tree", (sizes[0], 0.0), (0, 4), textcoords="offset points")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_ylim(0.0, None)
    axes.margins(y=0.15)
    axes.set_xlabel("number of spins $N$")
    axes.set_ylabel(_DEFECT)


@study(
    "glass-ultrametricity",
    title="The overlaps of three replicas of a spin glass are nearer to a tree than independent "
    "overlaps, but with 128 spins still far from one",
    source="Mézard, Parisi, Sourlas, Toulouse, Virasoro 1984; Ghirlanda, Guerra 1998",
    panels=[
        Panel("temperature", "defect", by="spins", ylabel=_DEFECT),
        Freehand(draw_defects),
        Panel("temperature", "triple_ratio", by="spins", ylabel=_RATIO),
    ],
    columns=3,
    caption=r"""
        Sherrington-Kirkpatrick model of $N$ spins without a field; three overlaps
        $q_{{\mathrm{{min}}}} \leq q_{{\mathrm{{mid}}}} \leq q_{{\mathrm{{max}}}}$ of three
        replicas of a sample of the couplings, with all spins of a replica flipped where
        this leaves at most $q_{{\mathrm{{min}}}}$ negative; {samples} samples in each of
        {seeds} runs of parallel tempering. If states lie on a tree, the two smaller
        overlaps are equal. Lines: theory for many spins; above $T$ = 1 overlaps are
        independent Gaussian numbers. Middle: $T$ = {temperatures[0]}; circles: as on the
        left; squares: moduli of three overlaps of different samples, which have the same
        distribution and are independent. Right: (E$q_{{12}}^2 q_{{13}}^2$ -
        (E$q^2$)$^2$)/(E$q^4$ - (E$q^2$)$^2$), which is 1/2 in the glass by the identities
        of Ghirlanda and Guerra.
    """,
    observables=("defect", "triple_ratio"),
    explained=(
        "The theory holds for many spins. At T = 1.5 the defect lies 0.065, 0.045, 0.036 and "
        "0.025(1) below the theory with 16, 32, 64 and 128 spins, a difference that falls nearly "
        "as the inverse square root of the number of spins. In the glass at T = 0.4 the defect "
        "falls from 0.301(4) with 32 spins to 0.271(6) with 128, where independent moduli have "
        "0.615(8); at T = 0.7 it does not fall yet, and independent moduli have 0.502(4)."
    ),
    seconds=(60, 3600),
    gallery={"sizes": (16, 32, 64, 128), "sweeps": 800, "seeds": 16},
    full={"sizes": (32, 64, 128, 256), "samples": 32, "sweeps": 10_000, "seeds": 16},
)
def glass_ultrametricity(
    sizes: tuple[int, ...] = (16, 32),
    temperatures: tuple[float, ...] = (0.4, 0.7, 1.5),
    samples: int = 16,
    sweeps: int = 600,
    seeds: int = 8,
) -> Iterator[Curve]:
    system = SpinGlass(temperatures[0])
    line = (0.2, *temperatures, 0.999, 1.001, 1.6)
    yield Curve("many spins", overlap_triples, system, {"temperature": tuple(sorted(line))})
    measured = partial(tempered_triples, samples=samples, sweeps=sweeps)
    for n in sizes:
        yield Curve(
            "tempering",
            measured,
            system.with_(spins=n),
            {"temperature": temperatures},
            seeds,
            facets={"spins": n},
        )
