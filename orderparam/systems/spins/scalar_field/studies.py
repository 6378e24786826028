"""The figure of the scalar field: simulations of a ring beside its exact solution, and of a plane
beside the best Gaussian approximation."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel
from orderparam.plotting.measured import dots
from orderparam.plotting.style import COLOURS, GREY
from orderparam.running.status import DONE
from orderparam.systems.spins.scalar_field.experiment import field_clusters
from orderparam.systems.spins.scalar_field.model import ScalarField
from orderparam.systems.spins.scalar_field.theory import best_gaussian_field, transfer_matrix

_NEAR = (-1.42, -1.0)  # masses on both sides of the transition in the plane


def draw_growth(axes: Any, comparison: Comparison) -> None:
    """Draw by how much Binder's ratio grows when the length of the plane is doubled, from the runs
    that converged."""
    ratios = {
        data.attrs["facets"]["length"]: data["binder"].where(data["status"] == DONE)
        for data in comparison.experiments(part="plane").values()
    }
    for number, length in enumerate(sorted(ratios)):
        if 2 * length in ratios:
            grown = ratios[2 * length] - ratios[length]
            near = grown.where(abs(grown["mass"] - np.mean(_NEAR)) < np.ptp(_NEAR) / 2, drop=True)
            dots(axes, near["mass"], near, number + 3)
            last = near.isel(mass=-1)
            at = float(last["mass"]) + 0.015, float(last.mean())
            axes.text(*at, f"$L$ = {length}", color=COLOURS[number + 3], va="center", ha="left")
    axes.axhline(0, color=GREY, linewidth=0.8, zorder=0)
    axes.set(xlabel="mass $r$", ylabel="growth $U(2L) - U(L)$", xlim=_NEAR)


@study(
    "scalar-field",
    title="A scalar field on a ring follows its transfer matrix; in the plane it orders between r "
    "= -1.3 and -1.25",
    source="Brower, Tamayo 1989; Di Castro, Jona-Lasinio 1969",
    seconds=(45, 1800),
    observables=("squared_field",),
    gallery={
        "lengths": (8, 16, 32),
        "plane": (-1.6, -1.4, -1.3, -1.275, -1.25, -1.225, -1.2, -1.1, 0.0),
        "sweeps": 2000,
        "seeds": 16,
    },
    full={"lengths": (16, 32, 64), "sweeps": 10_000, "seeds": 16},
    columns=2,
    panels=[
        Panel("mass", "squared_field", where={"part": "ring"}, title="ring"),
        Panel("mass", "squared_field", by="length", where={"part": "plane"}, title="plane"),
        Panel("mass", "binder", by="length", where={"part": "plane"}, title="plane"),
        Freehand(draw_growth, "plane, near the transition"),
    ],
    caption="$\\phi^4$ potential of mass $r$ and coupling {coupling}; a ring of {ring} sites, and "
    "planes of $L$ x $L$ sites. The plane is ordered where the mass is sufficiently negative: "
    "there the Binder ratio $U$ grows with $L$, elsewhere it falls. Last panel: runs that "
    "converged.",
)
def scalar_field(
    coupling: float = 0.25,
    masses: tuple[float, ...] = (-2.0, -1.6, -1.3, -1.0, -0.5, 0.0, 1.0),
    plane: tuple[float, ...] = (-1.6, -1.4, -1.3, -1.2, -1.0, 0.0),
    ring: int = 16,
    lengths: tuple[int, ...] = (8, 16),
    replicas: int = 4,
    sweeps: int = 600,
    seeds: int = 4,
) -> Iterator[Curve]:
    measured = partial(field_clusters, replicas=replicas, sweeps=sweeps)
    for part, shapes, over in (
        ("ring", [(ring,)], masses),
        ("plane", [(n, n) for n in lengths], plane),
    ):
        fine = {"mass": tuple(np.linspace(min(over), max(over), 61).tolist())}
        facets = {"part": part}
        first = ScalarField(0.0, coupling, shapes[-1])
        yield Curve(
            "Gaussian field", best_gaussian_field, first, fine, facets=facets, baseline=True
        )
        if part == "ring":
            yield Curve("transfer matrix", transfer_matrix, first, fine, facets=facets)
        for shape in shapes:
            own = facets | ({"length": shape[0]} if part == "plane" else {})
            system = first.with_(shape=shape)
            yield Curve("clusters", measured, system, {"mass": over}, seeds, True, facets=own)
