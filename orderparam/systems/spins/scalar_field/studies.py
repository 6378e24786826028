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
    title="A scalar field with a quartic potential: on a ring, exactly, and in the plane",
    source="Brower, Tamayo 1989; Di Castro, Jona-Lasinio 1969",
    seconds=(45, 1800),
    observables=("squared_field",),
    full={"length": 64, "sweeps": 10_000, "seeds": 8},
    columns=3,
    panels=[
        Panel("mass", "squared_field", where={"part": "ring"}, title="ring"),
        Panel("mass", "squared_field", where={"part": "plane"}, title="plane"),
        Panel("mass", "binder", where={"part": "plane"}, title="plane"),
    ],
    caption="$u$ = {coupling}; a ring of {ring} sites, and a plane of {length} x {length} sites. "
    "The plane is ordered where the mass is sufficiently negative.",
)
def scalar_field(
    coupling: float = 0.25,
    masses: tuple[float, ...] = (-2.0, -1.6, -1.3, -1.0, -0.5, 0.0, 1.0),
    ring: int = 16,
    length: int = 16,
    replicas: int = 4,
    sweeps: int = 600,
    seeds: int = 4,
) -> Iterator[Curve]:
    measured = partial(field_clusters, replicas=replicas, sweeps=sweeps)
    fine = {"mass": tuple(np.linspace(min(masses), max(masses), 61).tolist())}
    over = {"mass": masses}
    for part, shape in (("ring", (ring,)), ("plane", (length, length))):
        system, facets = ScalarField(0.0, coupling, shape), {"part": part}
        yield Curve(
            "Gaussian field", best_gaussian_field, system, fine, facets=facets, baseline=True
        )
        if part == "ring":
            yield Curve("transfer matrix", transfer_matrix, system, fine, facets=facets)
        yield Curve("clusters", measured, system, over, seeds, True, facets=facets)
