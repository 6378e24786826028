"""Named figures of how random patterns are stored: corrections of perceptron learning, volume of
all couplings that store them, biased patterns.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from orderparam.comparison import Curve, study
from orderparam.plotting import Panel, horizontal, vertical
from orderparam.systems.storage_capacity.experiment import separability
from orderparam.systems.storage_capacity.learning import corrections_bound, perceptron_learning
from orderparam.systems.storage_capacity.measured_volume import measured_volume
from orderparam.systems.storage_capacity.model import SphericalPatterns
from orderparam.systems.storage_capacity.studies import inverse_size
from orderparam.systems.storage_capacity.theory import capacity, largest_margin, volume


@study(
    "perceptron-margin",
    title="Perceptron learning needs less than half of the corrections that its proof allows, up "
    "to 0.8 of the largest margin",
    source="Rosenblatt 1962; Novikoff 1962; Gardner 1988",
    seconds=(60, 600),
    observables=("corrections",),
    columns=2,
    panels=[
        Panel(
            "margin",
            "corrections",
            by="input_dim",
            where={"load": load},
            log="y",
            title=rf"$\alpha$ = {load:g}",
            reference=[vertical(largest, r"$\kappa_{\max}$")],
        )
        for load, largest in ((0.5, 1.0343), (1.0, 0.4707))
    ],
    caption=r"""
        Corrections per input until all patterns are stored, in {samples} samples of a run. The line
        is an upper bound for many inputs, which diverges at the largest margin. Samples that were
        not stored within {max_sweeps} sweeps are left out.
    """,
)
def perceptron_margin(
    dims: tuple[int, ...] = (50, 100, 200),
    loads: tuple[float, ...] = (0.5, 1.0),
    shares: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9),
    samples: int = 4,
    max_sweeps: int = 3000,
    seeds: int = 16,
) -> Iterator[Curve]:
    for load in loads:
        system, facets = SphericalPatterns(load), {"load": load}
        largest = float(largest_margin(system).margin)
        fine = {"margin": tuple((largest * np.linspace(0, 0.97, 60)).tolist())}
        yield Curve("upper bound", corrections_bound, system, fine, facets=facets, baseline=True)
        over = {"margin": tuple(round(largest * share, 6) for share in shares)}
        learning = partial(perceptron_learning, samples=samples, max_sweeps=max_sweeps)
        for n in dims:
            own = system.with_(input_dim=n)
            yield Curve(
                "perceptron learning", learning, own, over, seeds, facets={**facets, "input_dim": n}
            )


@study(
    "capacity-volume",
    title="The volume of the couplings that store random patterns, and the overlap of two of them, "
    "approach Gardner's theory",
    source="Gardner 1988; splitting (Kahn, Harris 1951) and hit-and-run (Smith 1984)",
    seconds=(90, 900),
    observables=("entropy", "overlap"),
    gallery={"dims": (10, 20, 40), "samples": 6, "moves": 80},
    columns=3,
    panels=[
        Panel("load", "entropy", by="input_dim"),
        Panel("load", "overlap", by="input_dim"),
        Panel(
            ("$1/N$", inverse_size),
            "overlap",
            by="input_dim",
            where={"load": 1.0},
            title=r"$\alpha$ = 1",
        ),
    ],
    caption=r"""
        No margin. {walkers} walkers in each of {samples} samples of a run, with {moves} moves after
        each pattern. Right: theory (cross at zero) is for many inputs.
    """,
    explained=(
        "The theory is the limit of many inputs. The overlap of 10 inputs lies 4 to 6 % above it, "
        "that of 20 inputs 3 to 4 %, and that of 40 inputs agrees within two standard errors, of "
        "0.7 %."
    ),
)
def capacity_volume(
    dims: tuple[int, ...] = (10, 20),
    loads: tuple[float, ...] = (0.3, 0.6, 1.0),
    samples: int = 4,
    walkers: int = 100,
    moves: int = 40,
    seeds: int = 16,
) -> Iterator[Curve]:
    fine = np.unique(np.append(np.linspace(0.05, 1.2, 47), loads).round(12))
    yield Curve("theory", volume, SphericalPatterns(), {"load": tuple(fine.tolist())})
    measured = partial(measured_volume, samples=samples, walkers=walkers, moves=moves)
    for n in dims:
        yield Curve(
            "walkers",
            measured,
            SphericalPatterns(input_dim=n),
            {"load": loads},
            seeds,
            facets={"input_dim": n},
        )


@study(
    "capacity-biased",
    title="The success fractions of linear programs on biased patterns cross at Gardner's "
    "capacity, which grows with the bias",
    source="Gardner 1988",
    seconds=(90, 900),
    observables=("success_fraction",),
    gallery={"dims": (25, 50, 100, 200), "samples": 12},
    columns=2,
    panels=[
        Panel(
            "load",
            "success_fraction",
            by="input_dim",
            where={"bias": bias},
            title=f"b = {bias:g}",
            reference=[vertical(limit, r"$\alpha_c$"), horizontal(0.5)],
        )
        for bias, limit in ((0.5, 2.40587), (0.8, 3.9129))
    ],
    caption=r"""
        No margin. Inputs and outputs have mean b. {samples} samples in a run. Vertical lines: the
        capacity in theory.
    """,
)
def capacity_biased(
    dims: tuple[int, ...] = (25, 50),
    biases: tuple[float, ...] = (0.5, 0.8),
    shares: tuple[float, ...] = (0.7, 0.8, 0.9, 1.0, 1.1, 1.2),
    samples: int = 4,
    seeds: int = 16,
) -> Iterator[Curve]:
    for bias in biases:
        system, facets = SphericalPatterns(bias=bias), {"bias": bias}
        limit = float(capacity(system).capacity)
        over = {"load": tuple(round(limit * share, 6) for share in shares)}
        for n in dims:
            measured = partial(separability, samples=samples)
            yield Curve(
                "linear program",
                measured,
                system.with_(input_dim=n),
                over,
                seeds,
                facets={**facets, "input_dim": n},
            )
