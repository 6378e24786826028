"""Studies of storage by binary couplings."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel, horizontal, vertical
from orderparam.plotting.measured import dots
from orderparam.plotting.style import COLOURS, GREY, MARKERS
from orderparam.systems.storage_capacity.beyond_capacity import (
    binary_minimal_error,
)
from orderparam.systems.storage_capacity.binary_experiment import (
    annealed_search,
    enumerated_solutions,
    storage_limit,
)
from orderparam.systems.storage_capacity.binary_theory import binary_capacity, solutions
from orderparam.systems.storage_capacity.fewest_errors import fewest_binary_errors
from orderparam.systems.storage_capacity.model import (
    BinaryPatterns,
)
from orderparam.systems.storage_capacity.studies import joined

# Storage by binary couplings: entropy and capacity by enumeration, and simulated annealing of more
# couplings than can be enumerated.

CAPACITY = 0.8330785997  # of binary couplings without margin: `binary_capacity`


def _real_load(load: float, n: int) -> float:
    """The load of the nearest whole number of patterns."""
    return round(load * n) / n


def draw_entropy_limits(axes: Any, comparison: Comparison) -> None:
    """Draw the entropy per coupling minus that of the theory of many couplings, against 1/N, at
    loads below the capacity."""
    (theory,) = comparison.theories(part="entropy").values()
    measured = comparison.experiments(part="entropy").values()
    runs = {data.attrs["facets"]["input_dim"]: data for data in measured}
    for number, load in enumerate(comparison.parameters["limits"]):
        for n, data in runs.items():
            real = _real_load(load, n)
            exact = float(theory["entropy"].interp(load=real))
            over = data["entropy"].sel(load=real, method="nearest") - exact
            label = rf"$\alpha\approx$ {load:g}" if n == min(runs) else None
            dots(axes, [(1 + 0.02 * number) / n], over, number + 4, label)
    axes.axhline(0.0, color=GREY, linewidth=0.8, linestyle=":")
    axes.set(xlabel="$1/N$", ylabel="entropy minus theory")
    axes.set_xlim(0, None)


@study(
    "binary-capacity",
    title="Up to a load of 0.55 the entropy of 11 to 19 binary couplings is that of the replica "
    "theory within 0.013",
    source="Krauth, Mezard 1989; Gardner, Derrida 1989",
    seconds=(50, 3600),
    observables=("entropy", "capacity"),
    gallery={"samples": 60, "seeds": 16},
    full={"dims": (11, 15, 19, 23, 25), "samples": 100, "seeds": 16},
    columns=2,
    panels=[
        Panel(
            "load",
            "entropy",
            by="input_dim",
            where={"part": "entropy"},
            reference=[horizontal(0.0), vertical(CAPACITY, r"$\alpha_c$")],
            ylim=(-0.1, 0.7),
        ),
        Freehand(draw_entropy_limits),
        Panel(
            "load",
            "success_fraction",
            by="input_dim",
            where={"part": "entropy"},
            reference=[vertical(CAPACITY, r"$\alpha_c$")],
        ),
        Panel("margin", "capacity", by="input_dim", where={"part": "capacity"}),
    ],
    caption=r"""
        All $2^N$ configurations of the couplings of $N$ = $d$ inputs are enumerated; each run has
        {samples} samples. Entropies are averages over the samples that have solutions; near and
        beyond $\alpha_c$ = 0.833 these averages exceed the typical value. Above right: measured
        entropy minus that of the theory at the same load. Below right: load at which patterns that
        are added one by one leave no solution with the margin $\kappa$.
    """,
    explained=(
        "The lines are limits of many couplings. Entropies of 11 to 19 couplings are averages "
        "over the samples that have solutions, which are not typical near and beyond the "
        "capacity; up to a load of 0.55, where nearly all samples have solutions, they agree "
        "within 0.013. The capacity of few couplings is an average of whole numbers over N and "
        "can lie on either side of its limit; at a margin of 0.5 it still rises with N through "
        "the line."
    ),
)
def binary_perceptron(
    dims: tuple[int, ...] = (11, 15, 19),
    loads: tuple[float, ...] = (0.2, 0.4, 0.55, 0.7, 0.8, 0.9, 1.0, 1.2),
    margins: tuple[float, ...] = (0.0, 0.5, 1.0),
    limits: tuple[float, ...] = (0.2, 0.4, 0.55),
    samples: int = 30,
    seeds: int = 4,
) -> Iterator[Curve]:
    system = BinaryPatterns()
    over = {
        "load": joined(np.linspace(0.05, CAPACITY, 80), tuple(x for x in loads if x < CAPACITY))
    }
    fine = {"margin": tuple(np.linspace(0.0, 1.2, 61).tolist())}
    yield Curve("replica symmetric", solutions, system, over, facets={"part": "entropy"})
    yield Curve("replica symmetric", binary_capacity, system, fine, facets={"part": "capacity"})
    counted, limit = (
        partial(run, samples=samples) for run in (enumerated_solutions, storage_limit)
    )
    for n in dims:
        own = system.with_(input_dim=n)
        yield Curve(
            "all couplings",
            counted,
            own,
            {"load": tuple(_real_load(load, n) for load in loads)},
            seeds,
            facets={"part": "entropy", "input_dim": n},
        )
        yield Curve(
            "adding patterns",
            limit,
            own,
            {"margin": margins},
            seeds,
            facets={"part": "capacity", "input_dim": n},
        )


def draw_binary_limits(axes: Any, comparison: Comparison) -> None:
    """Draw the fewest errors of binary couplings against 1/N at every load, with the fit of f and c
    in f + ln(c N)/(2 beta_c alpha N). The theory of the limit f is drawn at 1/N = 0."""
    theory = next(iter(comparison.theories().values()))
    runs = {d.attrs["facets"]["input_dim"]: d for d in comparison.experiments().values()}
    size = np.array(sorted(runs), float)
    for number, load in enumerate(next(iter(runs.values()))["load"].values):
        at = [runs[int(n)].sel(load=load) for n in size]
        mean = np.array([float(d["error_fraction"].mean()) for d in at])
        error = np.array(
            [np.sqrt(float((d["error_fraction_error"] ** 2).sum())) / d.sizes["seed"] for d in at]
        )
        look = {"color": COLOURS[number], "markerfacecolor": "white"}
        if len(size) < 2 or not np.all(error > 0):  # too few sizes or runs for a fit
            axes.plot(1 / size, mean, MARKERS[number], label=rf"$\alpha$ = {load:g}", **look)
            continue
        exact = theory.interp(load=load)
        step = float(exact["temperature"]) / (2 * load)
        design = np.stack([np.ones_like(size), 1 / size], axis=1) / error[:, None]
        covariance = np.linalg.inv(design.T @ design)
        limit, slope = covariance @ design.T @ ((mean - step * np.log(size) / size) / error)
        fine = np.linspace(1e-6, 1 / size.min(), 200)
        label = rf"$\alpha$ = {load:g}: {limit:.3f} ± {np.sqrt(covariance[0, 0]):.3f}"
        axes.errorbar(1 / size, mean, error, fmt=MARKERS[number], label=label, **look)
        axes.plot(fine, limit + slope * fine - step * fine * np.log(fine), color=COLOURS[number])
        axes.errorbar([0.0], [limit], np.sqrt(covariance[0, 0]), fmt=MARKERS[number], **look)
        axes.plot([0.0], [float(exact["error_fraction"])], "D", color=COLOURS[number])
    axes.set(xlabel="$1/N$", ylabel="fraction of errors $f$")
    axes.set_ylim(0, None)


@study(
    "binary-capacity-errors",
    title="Extrapolated by a term ln N/N, fewest errors of binary couplings come within 0.01 of "
    "the frozen theory",
    source="Krauth, Mézard 1989; with errors derived here",
    seconds=(60, 1800),
    observables=("error_fraction",),
    gallery={"dims": (11, 15, 19), "samples": 64, "seeds": 16},
    full={"dims": (11, 15, 19, 23), "samples": 64, "seeds": 8},
    columns=2,
    panels=[Panel("load", "error_fraction", by="input_dim"), Freehand(draw_binary_limits)],
    caption=r"""
        The margin is zero. Left: theory for many couplings, and the best of all $2^N$
        configurations of $N$ = $d$ couplings, for {samples} samples in each of {seeds} runs. Right:
        fit of $f + \ln(cN)/(2\beta_c \alpha N)$, where the logarithm is the correction of a
        random-energy model and $f$ and $c$ are fitted. The legend and the open marks at 0 show the
        fitted $f$, full diamonds the theory. These sizes do not test the form of the correction.
    """,
    explained=(
        "The theory is the limit of many couplings. With fewer than 20 couplings the smallest "
        "error is larger. Errors that are extrapolated from 11, 15 and 19 couplings by a term ln "
        "N/N are 0.009(4) above, 0.002(3) below and 0.004(2) above the theory at the loads 1.2, "
        "2 and 4; at 1.2 this is 16 % of the theory, two standard errors."
    ),
)
def binary_perceptron_errors(
    dims: tuple[int, ...] = (9, 11, 15),
    loads: tuple[float, ...] = (1.2, 2.0, 4.0),
    samples: int = 32,
    seeds: int = 8,
) -> Iterator[Curve]:
    system = BinaryPatterns()
    fine = {"load": tuple(np.linspace(0.7, 5.0, 44).tolist())}
    yield Curve("frozen", binary_minimal_error, system, fine)
    for n in dims:
        measured = partial(fewest_binary_errors, samples=samples)
        yield Curve(
            "all couplings",
            measured,
            system.with_(input_dim=n),
            {"load": loads},
            seeds,
            facets={"input_dim": n},
        )


@study(
    "binary-capacity-annealing",
    title="In a fixed number of sweeps annealing stores fewer patterns per input, the more inputs "
    "there are",
    source="Horner 1992; Krauth, Mezard 1989",
    seconds=(60, 3600),
    observables=("success_fraction",),
    gallery={"dims": (51, 101, 201), "seeds": 16},
    full={"dims": (51, 101, 201, 401), "sweeps": (1000, 10_000), "samples": 32, "seeds": 8},
    panels=[
        Panel(
            "load",
            "success_fraction",
            facet="annealing_sweeps",
            by="input_dim",
            reference=[vertical(CAPACITY, r"$\alpha_c$")],
        ),
    ],
    caption=(
        r"Simulated annealing of a perceptron with binary couplings, cooled in the same way in "
        r"each number of sweeps; {samples} samples in a run. For many inputs solutions exist up to "
        r"$\alpha_c$."
    ),
)
def binary_perceptron_annealing(
    dims: tuple[int, ...] = (51, 101),
    loads: tuple[float, ...] = (0.3, 0.45, 0.55, 0.65, 0.75, 0.85),
    sweeps: tuple[int, ...] = (50, 400),
    samples: int = 8,
    seeds: int = 4,
) -> Iterator[Curve]:
    system = BinaryPatterns()
    for count in sweeps:
        measured = partial(annealed_search, samples=samples, sweeps=count)
        for n in dims:
            facets = {"annealing_sweeps": count, "input_dim": n}
            yield Curve(
                "annealing",
                measured,
                system.with_(input_dim=n),
                {"load": loads},
                seeds,
                facets=facets,
            )
