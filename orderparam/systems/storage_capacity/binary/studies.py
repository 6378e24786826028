"""The named figures of storage by binary couplings: entropy and capacity by enumeration, simulated annealing beyond."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from orderparam.core.study import Curve, study
from orderparam.plotting import Panel, horizontal, vertical
from orderparam.systems.storage_capacity.binary.experiment import annealed_search, enumerated_solutions, storage_limit
from orderparam.systems.storage_capacity.binary.model import BinaryPatterns
from orderparam.systems.storage_capacity.binary.theory import binary_capacity, solutions

CAPACITY = 0.8330785997  # of binary couplings without margin: `binary_capacity`


@study(
    "binary-capacity",
    title="The binary perceptron: entropy of its solutions and capacity, against all couplings of small ones",
    source="Krauth, Mezard 1989; Gardner, Derrida 1989",
    seconds=(50, 3600),
    observables=("entropy", "capacity"),
    full={"dims": (11, 15, 19, 23, 25), "samples": 100, "seeds": 16},
    columns=2,
    panels=[
        Panel("load", "entropy", by="input_dim", where={"part": "entropy"}, reference=[horizontal(0.0)]),
        Panel(
            "load", "success_fraction", by="input_dim", where={"part": "entropy"}, reference=[vertical(CAPACITY, r"$\alpha_c$")]
        ),
        Panel("margin", "capacity", by="input_dim", where={"part": "capacity"}),
    ],
    caption=r"""
        All $2^N$ couplings of {samples} samples in a run. Entropies are those of samples with solutions, above the average near
        $\alpha_c$. Below: patterns are added until no couplings are left.
    """,
    explained=(
        "Lines are limits of many couplings. Entropies of 11 to 19 couplings are averages over samples that have "
        "solutions, which near and beyond the capacity are not the typical ones."
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
    counted, limit = (partial(run, samples=samples) for run in (enumerated_solutions, storage_limit))
    for n in dims:
        own = system.with_(input_dim=n)
        yield Curve("all couplings", counted, own, {"load": loads}, seeds, facets={"part": "entropy", "input_dim": n})
        yield Curve("adding patterns", limit, own, {"margin": margins}, seeds, facets={"part": "capacity", "input_dim": n})


@study(
    "binary-capacity-annealing",
    title="Simulated annealing of a binary perceptron: how many patterns it finds couplings for, and how long it takes",
    source="Horner 1992; Krauth, Mezard 1989",
    seconds=(60, 3600),
    observables=("success_fraction",),
    full={"dims": (51, 101, 201, 401), "sweeps": (1000, 10_000), "samples": 32, "seeds": 8},
    panels=[
        Panel(
            "load", "success_fraction", facet="annealing_sweeps", by="input_dim", reference=[vertical(CAPACITY, r"$\alpha_c$")]
        ),
        Panel("load", "sweeps", facet="annealing_sweeps", by="input_dim", log="y"),
    ],
    caption=r"{samples} samples in a run. Solutions exist up to $\alpha_c$ for large $d$.",
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
            yield Curve("annealing", measured, system.with_(input_dim=n), {"load": loads}, seeds, facets=facets)
