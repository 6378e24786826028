"""The named figures of storage by real couplings: separability, the largest margin, the fewest errors."""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from orderparam.core.study import Curve, study
from orderparam.plotting import Freehand, Panel, horizontal, vertical
from orderparam.systems.storage_capacity.figures import draw_success_collapse
from orderparam.systems.storage_capacity.spherical.experiment import (
    fewest_errors,
    maximal_margin,
    perceptron_learning,
    separability,
)
from orderparam.systems.storage_capacity.spherical.model import SphericalPatterns
from orderparam.systems.storage_capacity.spherical.theory import (
    at_line_gardner_derrida,
    capacity,
    cover,
    largest_margin,
    minimal_error,
    volume,
)


@study(
    "capacity-separability",
    title="How many random patterns a perceptron stores: linear programming and learning against Cover's exact law",
    source="Cover 1965; Gardner 1988; Rosenblatt 1962",
    seconds=(50, 1800),
    observables=("success_fraction",),
    full={"dims": (20, 50, 100, 200), "samples": 200, "seeds": 8},
    columns=2,
    panels=[
        Panel("load", "success_fraction", by="input_dim", reference=[vertical(2.0, r"$\alpha_c$"), horizontal(0.5)]),
        Freehand(partial(draw_success_collapse, "linear program", 2.0)),
    ],
    caption=r"""
        No margin. {samples} samples in a run; perceptron learning is given {max_sweeps} sweeps. Right: the fractions of linear
        programming on one curve $\Phi(F)$, $F$ a polynomial of $(\alpha-\alpha_c) N^{{1/\nu}}$.
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
        yield Curve("linear program", partial(separability, samples=samples), system, {"load": loads}, seeds, facets=facets)
    learning = partial(perceptron_learning, samples=samples, max_sweeps=max_sweeps)
    yield Curve("perceptron learning", learning, system, {"load": learned}, seeds, facets=facets)


@study(
    "capacity-margin",
    title="The largest margin with which random patterns can be stored, and the volume of couplings that store them",
    source="Gardner 1988; Krauth, Mezard 1987",
    seconds=(40, 900),
    observables=("margin",),
    full={"dims": (50, 100, 200, 400), "samples": 50, "seeds": 8},
    columns=3,
    panels=[
        Panel("load", "margin", by="input_dim", where={"part": "margin"}, reference=[horizontal(0.0)]),
        Panel("margin", "capacity", by="bias", log="y", where={"part": "capacity"}),
        Panel("load", "overlap", where={"part": "volume"}),
    ],
    caption=r"Left: hard margins of {samples} samples in a run. Centre: biased patterns (a bound for $\kappa<0$).",
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
        yield Curve("hard margin", measured, own, {"load": loads}, seeds, facets={**facets, "input_dim": n})
    for bias in biases:
        yield Curve("theory", capacity, system.with_(bias=bias), over, facets={"part": "capacity", "bias": bias})
    yield Curve("theory", volume, system, fine, facets={"part": "volume"})


@study(
    "capacity-errors",
    title="Beyond the capacity: the smallest fraction of errors, and where replica symmetry is unstable",
    source="Gardner, Derrida 1988; Bouten 1994",
    seconds=(30, 600),
    observables=("error_fraction",),
    full={"samples": 200, "hyperplanes": 400_000, "seeds": 8},
    columns=3,
    panels=[
        Panel("load", "error_fraction", where={"part": "errors", "kind": "theory"}, by="margin"),
        Panel("load", "error_fraction", where={"part": "errors", "margin": 0.0}, by="input_dim", title="no margin"),
        Panel("margin", ("load", lambda data: data["capacity"] if "capacity" in data else data["load"]), where={"part": "lines"}),
    ],
    caption=r"""
        Left: replica symmetric, a lower bound (Bouten 1994: unstable above $\alpha_c$). Middle: marks, the best of all couplings.
        Right: capacity, and Gardner and Derrida's line of instability.
    """,
    explained=(
        "Replica symmetry is a lower bound beyond the capacity, for many inputs; with 3 to 7 the least errors are "
        "more, and fewer with every input."
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
        yield Curve("replica symmetric", minimal_error, SphericalPatterns(margin=margin), fine, facets=facets)
    for n in dims:
        chosen = tuple(load for load in loads if math.comb(round(load * n), n - 1) <= hyperplanes)
        facets = {"part": "errors", "margin": 0.0, "input_dim": n}
        measured = partial(fewest_errors, samples=samples)
        yield Curve("all couplings", measured, SphericalPatterns(input_dim=n), {"load": chosen}, seeds, facets=facets)
    yield Curve("capacity", capacity, SphericalPatterns(), over, facets={"part": "lines"})
    yield Curve("instability", at_line_gardner_derrida, SphericalPatterns(), over, facets={"part": "lines"})
