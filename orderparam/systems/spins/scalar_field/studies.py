"""The figure of the scalar field: the ring with its exact solution, and the plane with the best
Gaussian approximation."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from orderparam.comparison import Curve, study
from orderparam.plotting import Panel
from orderparam.systems.spins.scalar_field.experiment import field_clusters
from orderparam.systems.spins.scalar_field.model import ScalarField
from orderparam.systems.spins.scalar_field.theory import best_gaussian_field, transfer_matrix


@study(
    "scalar-field",
    title="A scalar field on a ring follows its transfer matrix; in the plane it orders between r = -1.3 and -1.2",
    source="Brower, Tamayo 1989; Di Castro, Jona-Lasinio 1969",
    seconds=(45, 1800),
    observables=("squared_field",),
    gallery={
        "lengths": (6, 12, 24),
        "plane": (-1.6, -1.4, -1.35, -1.3, -1.25, -1.2, -1.1, -0.9, 0.0),
        "sweeps": 1200,
        "seeds": 16,
    },
    full={"lengths": (16, 32, 64), "sweeps": 10_000, "seeds": 16},
    columns=3,
    panels=[
        Panel("mass", "squared_field", where={"part": "ring"}, title="ring"),
        Panel("mass", "squared_field", by="length", where={"part": "plane"}, title="plane"),
        Panel("mass", "binder", by="length", where={"part": "plane"}, title="plane"),
    ],
    caption="$\\phi^4$ potential of mass $r$ and coupling {coupling}; a ring of {ring} sites, and "
    "planes of $L$ x $L$ sites. The plane is ordered where the mass is sufficiently negative: "
    "there the Binder ratio grows with $L$, elsewhere it falls.",
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
