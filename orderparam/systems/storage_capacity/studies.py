"""Named figures of storage: separability, margin and errors of real couplings, entropy and
capacity of binary couplings.
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import norm

from orderparam.analysis import collapse
from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel, horizontal, vertical
from orderparam.plotting.style import COLOURS, GREY, MARKERS, ink
from orderparam.systems.storage_capacity.experiment import (
    annealed_search,
    enumerated_solutions,
    fewest_errors,
    maximal_margin,
    perceptron_learning,
    separability,
    storage_limit,
)
from orderparam.systems.storage_capacity.model import BinaryPatterns, SphericalPatterns
from orderparam.systems.storage_capacity.theory import (
    at_line_gardner_derrida,
    binary_capacity,
    capacity,
    cover,
    largest_margin,
    minimal_error,
    solutions,
    volume,
)

# ------------------------------------------------------------------------------------------------
# Finite-size scaling of measured success fractions, and the load at which half of the samples are
# stored.

# Fractions closer to 0 or 1 have no useful error on the scale of the normal distribution.
_INSIDE = 0.04


def draw_success_collapse(label: str, exact: float, axes: Any, comparison: Comparison) -> None:
    """Draw the success fractions of an experiment against (load - critical load) N^(1/nu), with
    the fitted critical load.

    The collapse is made in the argument of the normal distribution, in which Cover's law is a
    straight line for large N.
    """
    chosen = [data for data in comparison.experiments().values() if data.attrs["label"] == label]
    runs = {data.attrs["facets"]["input_dim"]: data for data in chosen}
    joined = xr.concat(
        [runs[n].expand_dims(input_dim=[n]) for n in sorted(runs)], "input_dim", join="outer"
    )
    share = joined["success_fraction"].mean("seed")
    error = np.sqrt((joined["success_fraction_error"] ** 2).sum("seed")) / joined.sizes["seed"]
    known = (share > _INSIDE) & (share < 1 - _INSIDE)
    argument = xr.apply_ufunc(norm.ppf, share.where(known))
    normal = xr.Dataset({"argument": argument, "argument_error": error / norm.pdf(argument)})
    try:
        found = collapse(normal, "load", "argument", "input_dim", power=0, order=2, window=3.0)
    except ValueError as failure:  # too few points
        axes.set_title(str(failure))
        return
    for number, n in enumerate(found.sizes):
        own = found.scaled_size == n
        look = {
            "color": COLOURS[number % len(COLOURS)],
            "fmt": MARKERS[number % len(MARKERS)],
            "markerfacecolor": "white",
        }
        height = norm.cdf(found.scaled_y[own])
        axes.errorbar(
            found.scaled_x[own],
            height,
            found.scaled_error[own] * norm.pdf(found.scaled_y[own]),
            **look,
        )
    u = np.linspace(found.scaled_x.min(), found.scaled_x.max(), 200)
    axes.plot(u, norm.cdf(found.curve(u)), color=ink(), linewidth=0.8, zorder=1)
    axes.axhline(0.5, color=GREY, linewidth=0.8, linestyle=":")
    place = rf"$\alpha_c$ = {found.critical:.3f} ± {found.critical_error:.3f} (theory {exact:.4g})"
    slope = rf"$1/\nu$ = {found.inverse_nu:.2f} ± {found.inverse_nu_error:.2f}"
    axes.set(
        xlabel=r"$(\alpha-\alpha_c)\,N^{1/\nu}$",
        ylabel="success fraction",
        title=f"{place}\n{slope}",
    )


# ------------------------------------------------------------------------------------------------
# Storage by real couplings: separability, the largest margin, the fewest errors.


@study(
    "capacity-separability",
    title="Number of random patterns that a perceptron stores, against Cover's exact law",
    source="Cover 1965; Gardner 1988; Rosenblatt 1962",
    seconds=(50, 1800),
    observables=("success_fraction",),
    full={"dims": (20, 50, 100, 200), "samples": 200, "seeds": 8},
    columns=2,
    panels=[
        Panel(
            "load",
            "success_fraction",
            by="input_dim",
            reference=[vertical(2.0, r"$\alpha_c$"), horizontal(0.5)],
        ),
        Freehand(partial(draw_success_collapse, "linear program", 2.0)),
    ],
    caption=r"""
        No margin. {samples} samples in a run; perceptron learning has at most {max_sweeps} sweeps.
        Right: the success fractions of linear programming collapsed on $\Phi(F)$, with $F$ a
        polynomial in $(\alpha-\alpha_c) N^{{1/\nu}}$.
    """,
)
def capacity_separability(
    dims: tuple[int, ...] = (10, 20, 50),
    loads: tuple[float, ...] = (1.2, 1.5, 1.7, 1.9, 2.0, 2.1, 2.3, 2.5, 2.8),
    learned: tuple[float, ...] = (1.2, 1.5, 1.7),
    samples: int = 40,
    max_sweeps: int = 1000,
    seeds: int = 4,
) -> Iterator[Curve]:
    fine = {"load": tuple(np.linspace(1.0, 3.0, 101).tolist())}
    for n in dims:
        system, facets = SphericalPatterns(input_dim=n), {"input_dim": n}
        yield Curve("Cover", cover, system, fine, facets=facets)
        yield Curve(
            "linear program",
            partial(separability, samples=samples),
            system,
            {"load": loads},
            seeds,
            facets=facets,
        )
    learning = partial(perceptron_learning, samples=samples, max_sweeps=max_sweeps)
    yield Curve("perceptron learning", learning, system, {"load": learned}, seeds, facets=facets)


@study(
    "capacity-margin",
    title="Largest margin of stored random patterns, and volume of the couplings that store them",
    source="Gardner 1988; Krauth, Mezard 1987",
    seconds=(40, 900),
    observables=("margin",),
    full={"dims": (50, 100, 200, 400), "samples": 50, "seeds": 8},
    columns=3,
    panels=[
        Panel(
            "load", "margin", by="input_dim", where={"part": "margin"}, reference=[horizontal(0.0)]
        ),
        Panel("margin", "capacity", by="bias", log="y", where={"part": "capacity"}),
        Panel("load", "overlap", where={"part": "volume"}),
    ],
    caption=r"""
        Left: largest margins of {samples} samples in a run. Centre: capacity for biased patterns, an
        upper bound for $\kappa<0$. Right: overlap of two solutions.
    """,
)
def capacity_margin(
    dims: tuple[int, ...] = (20, 50, 100),
    loads: tuple[float, ...] = (0.2, 0.4, 0.7, 1.0, 1.3, 1.6),
    biases: tuple[float, ...] = (0.0, 0.5, 0.8),
    samples: int = 10,
    seeds: int = 4,
) -> Iterator[Curve]:
    fine = {"load": tuple(np.linspace(0.1, 1.99, 96).tolist())}
    over = {"margin": tuple(np.linspace(-1.0, 2.0, 61).tolist())}
    system, facets = SphericalPatterns(), {"part": "margin"}
    yield Curve("theory", largest_margin, system, fine, facets=facets)
    for n in dims:
        measured = partial(maximal_margin, samples=samples)
        own = system.with_(input_dim=n)
        yield Curve(
            "hard margin", measured, own, {"load": loads}, seeds, facets={**facets, "input_dim": n}
        )
    for bias in biases:
        yield Curve(
            "theory",
            capacity,
            system.with_(bias=bias),
            over,
            facets={"part": "capacity", "bias": bias},
        )
    yield Curve("theory", volume, system, fine, facets={"part": "volume"})


@study(
    "capacity-errors",
    title="Beyond the capacity: smallest fraction of errors, and instability of replica symmetry",
    source="Gardner, Derrida 1988; Bouten 1994",
    seconds=(30, 600),
    observables=("error_fraction",),
    full={"samples": 200, "hyperplanes": 400_000, "seeds": 8},
    columns=3,
    panels=[
        Panel("load", "error_fraction", where={"part": "errors", "kind": "theory"}, by="margin"),
        Panel(
            "load",
            "error_fraction",
            where={"part": "errors", "margin": 0.0},
            by="input_dim",
            title="no margin",
        ),
        Panel(
            "margin",
            ("load", lambda data: data["capacity"] if "capacity" in data else data["load"]),
            where={"part": "lines"},
        ),
    ],
    caption=r"""
        Left: replica-symmetric theory, a lower bound because replica symmetry is unstable above
        $\alpha_c$ (Bouten 1994). Middle: the marks are the best of all couplings. Right: capacity,
        and Gardner and Derrida's line of instability.
    """,
    explained=(
        "The replica-symmetric theory is a lower bound beyond the capacity, for many inputs. With 3 to "
        "7 inputs the smallest error fractions are larger, and fall with the number of inputs."
    ),
)
def capacity_errors(
    margins: tuple[float, ...] = (0.0, 0.5, 1.0),
    dims: tuple[int, ...] = (3, 5, 7),
    loads: tuple[float, ...] = (2.6, 3.0, 4.0, 6.0),
    hyperplanes: int = 60_000,
    samples: int = 12,
    seeds: int = 4,
) -> Iterator[Curve]:
    fine = {"load": tuple(np.linspace(0.4, 7.0, 100).tolist())}
    over = {"margin": tuple(np.linspace(0.0, 2.0, 81).tolist())}
    for margin in margins:
        facets = {"part": "errors", "margin": margin}
        yield Curve(
            "replica symmetric",
            minimal_error,
            SphericalPatterns(margin=margin),
            fine,
            facets=facets,
        )
    for n in dims:
        chosen = tuple(load for load in loads if math.comb(round(load * n), n - 1) <= hyperplanes)
        facets = {"part": "errors", "margin": 0.0, "input_dim": n}
        measured = partial(fewest_errors, samples=samples)
        yield Curve(
            "all couplings",
            measured,
            SphericalPatterns(input_dim=n),
            {"load": chosen},
            seeds,
            facets=facets,
        )
    yield Curve("capacity", capacity, SphericalPatterns(), over, facets={"part": "lines"})
    yield Curve(
        "instability", at_line_gardner_derrida, SphericalPatterns(), over, facets={"part": "lines"}
    )


# ------------------------------------------------------------------------------------------------
# Storage by binary couplings: entropy and capacity by enumeration, simulated annealing beyond.

CAPACITY = 0.8330785997  # of binary couplings without margin: `binary_capacity`


@study(
    "binary-capacity",
    title="The binary perceptron: entropy of solutions and capacity, against enumeration",
    source="Krauth, Mezard 1989; Gardner, Derrida 1989",
    seconds=(50, 3600),
    observables=("entropy", "capacity"),
    full={"dims": (11, 15, 19, 23, 25), "samples": 100, "seeds": 16},
    columns=2,
    panels=[
        Panel(
            "load",
            "entropy",
            by="input_dim",
            where={"part": "entropy"},
            reference=[horizontal(0.0)],
        ),
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
        All $2^N$ couplings are enumerated for {samples} samples in a run. Entropies are averages over
        the samples with solutions, which near $\alpha_c$ are above the typical value. Below: patterns
        are added until no couplings are left.
    """,
    explained=(
        "The lines are limits of many couplings. Entropies of 11 to 19 couplings are averages over the "
        "samples that have solutions, which are not typical near and beyond the capacity."
    ),
)
def binary_perceptron(
    dims: tuple[int, ...] = (11, 15, 19),
    loads: tuple[float, ...] = (0.2, 0.4, 0.55, 0.7, 0.8, 0.9, 1.0, 1.2),
    margins: tuple[float, ...] = (0.0, 0.5, 1.0),
    samples: int = 30,
    seeds: int = 4,
) -> Iterator[Curve]:
    system = BinaryPatterns()
    over = {"load": tuple(np.linspace(0.05, 1.0, 96).tolist())}
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
            {"load": loads},
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


@study(
    "binary-capacity-annealing",
    title="Simulated annealing of a binary perceptron: patterns stored, and time needed",
    source="Horner 1992; Krauth, Mezard 1989",
    seconds=(60, 3600),
    observables=("success_fraction",),
    full={"dims": (51, 101, 201, 401), "sweeps": (1000, 10_000), "samples": 32, "seeds": 8},
    panels=[
        Panel(
            "load",
            "success_fraction",
            facet="annealing_sweeps",
            by="input_dim",
            reference=[vertical(CAPACITY, r"$\alpha_c$")],
        ),
        Panel("load", "sweeps", facet="annealing_sweeps", by="input_dim", log="y"),
    ],
    caption=r"{samples} samples in a run. For many inputs solutions exist up to $\alpha_c$.",
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
