"""The figure of dense associative memories: the capacities of polynomial and exponential
energies."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from orderparam.comparison import Curve, study
from orderparam.plotting import Panel, vertical
from orderparam.systems.associative_memory.dense.experiment import dense_recall
from orderparam.systems.associative_memory.dense.model import DenseMemory, ExponentialMemory
from orderparam.systems.associative_memory.dense.theory import dense_retrieval, signal_to_noise


def _aside(p: Mapping[str, Any], part: str, step: float) -> Callable[[xr.Dataset], xr.DataArray]:
    """The load of a curve, shifted for measurements so that no mark hides that of another number of
    spins."""
    sizes = list(p["spins" if part == "cubic" else "exponential_spins"])

    def shifted(data: xr.Dataset) -> xr.DataArray:
        measured = data.attrs["kind"] == "experiment"
        place = sizes.index(data.attrs["facets"]["spins"]) - (len(sizes) - 1) / 2 if measured else 0
        return data["load"] + step * place

    return shifted


@study(
    "dense-memory",
    title=(
        "In theory cubic memories hold 0.08 N^2 patterns; with an exponential energy, recall of "
        "exp(0.5 N) patterns improves as spins are added"
    ),
    source="Krotov, Hopfield 2016; Demircigil et al. 2017; Gardner 1987; Lucibello, Mézard 2024",
    seconds=(60, 3600),
    observables=("overlap", "flip_probability"),
    gallery={"seeds": 24},
    full={"spins": (100, 200, 400), "exponential_spins": (20, 25, 30), "trials": 50, "seeds": 16},
    columns=3,
    explained=(
        "The left theory assumes Gaussian noise, and the middle one many spins. At a load of 0.04 "
        "the measured fraction of flipped spins is 95(32) % larger than the theory with 50 spins "
        "and 38(16) % larger with 100; the overlap lies 0.54(16) % and 0.16(7) % below its limit "
        "of many spins, at a load of 0.06 2.0(6) % below it and 0.1(2) % above. Beyond the load of "
        "0.08 networks of 50 and 100 spins do not lose the pattern at once: their overlap falls to "
        "about 0.9 and 0.8, and is larger with 100 spins. "
        "That it falls with still more spins was not measured."
    ),
    panels=lambda p: [
        Panel(
            (r"load $\alpha$", _aside(p, "cubic", 0.002)),
            "flip_probability",
            by="spins",
            where={"part": "cubic"},
            log="y",
            ylim=(1e-5, 1),
            title="cubic: one step",
            text={"signal to noise": "", "at rest": ""},
        ),
        Panel(
            (r"load $\alpha$", _aside(p, "cubic", 0.002)),
            "overlap",
            by="spins",
            where={"part": "cubic"},
            title="cubic: at rest",
            text={"theory": "", "at rest": ""},
            colours={"theory": "text"},
        ),
        Panel(
            (r"$(\ln P)/N$", _aside(p, "exponential", 0.012)),
            "success",
            by="spins",
            where={"part": "exponential"},
            title="exponential: at rest",
            xlim=(0.15, 0.8),  # room for the texts at the dotted lines
            ylim=(0, 1.2),
            text={"at rest": ""},
            reference=[
                vertical(1 - float(np.log(np.cosh(1.0))), r"$1-\ln\cosh 1$"),
                vertical(float(np.log(2) / 2), r"$\frac{1}{2}\ln 2$"),
            ],
        ),
    ],
    caption=r"""
        Left, middle: $P = \alpha N^2$ patterns $\xi$ of $N$ spins $s$, energy $-\sum(\xi\cdot
        s)^3$, $\alpha$: load. Lines: left, Gaussian noise with its exact variance at $N$ spins;
        middle, the retrieval state for $N\to\infty$, which ends at the largest load. Right: $P$
        patterns, energy $-\sum e^{{\xi\cdot s}}$; recalled: share of trials that end with at most 1
        % of the spins wrong. Dotted: in theory, for $N\to\infty$, every pattern is stable below
        $\frac{{1}}{{2}}\ln 2$, and basins of attraction close at $1-\ln\cosh 1$. In a run {trials}
        patterns are tried, and the network starts at each of them. Marks of the left panel are
        taken after one step, others (at rest) at the end. Marks of different $N$ stand beside one
        another.
    """,
)
def dense_memory(
    loads: tuple[float, ...] = (0.02, 0.04, 0.06, 0.075, 0.09, 0.11),
    spins: tuple[int, ...] = (50, 100),
    exponential_loads: tuple[float, ...] = (0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65),
    exponential_spins: tuple[int, ...] = (10, 14, 18),
    trials: int = 12,
    seeds: int = 4,
) -> Iterator[Curve]:
    fine = {"load": tuple(np.linspace(0.01, 0.12, 111).tolist())}
    measured = partial(dense_recall, trials=trials)
    yield Curve("theory", dense_retrieval, DenseMemory(0.05), fine, facets={"part": "cubic"})
    for count in spins:
        system, facets = DenseMemory(0.05, spins=count), {"part": "cubic", "spins": count}
        yield Curve("signal to noise", signal_to_noise, system, fine, facets=facets)
        yield Curve("at rest", measured, system, {"load": loads}, seeds, facets=facets)
    for count in exponential_spins:
        exponential, facets = ExponentialMemory(0.5, count), {"part": "exponential", "spins": count}
        yield Curve(
            "at rest", measured, exponential, {"load": exponential_loads}, seeds, facets=facets
        )
