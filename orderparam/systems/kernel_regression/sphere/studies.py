"""Figure of a kernel on the sphere, which learns one polynomial degree after the other."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from orderparam.core.study import Curve, study
from orderparam.networks.fully_connected import fully_connected
from orderparam.plotting import Panel, horizontal, vertical
from orderparam.systems.kernel_regression.sphere.experiment import sphere_regression
from orderparam.systems.kernel_regression.sphere.model import SphereRegression
from orderparam.systems.kernel_regression.sphere.theory import self_consistent_by_degree

DEGREES = {1: "linear harmonics", 3: "cubic harmonics"}


def _panels(p: Mapping[str, Any]) -> list[Panel]:
    sizes = [vertical(lambda dim: dim, "$d$"), vertical(lambda dim: dim * (dim - 1) * (dim + 4) / 6, "$N_3$")]
    return [
        Panel("n_train", "test_error", facet="input_dim", log="xy", reference=[*sizes, horizontal(p["cubic_power"])]),
        Panel(
            "n_train",
            "learnability",
            facet="input_dim",
            by="degree",
            where={"degree": tuple(DEGREES)},
            log="x",
            reference=sizes,
            text=dict(enumerate(DEGREES.values())),
        ),
    ]


@study(
    "staircase-gp",
    title="Regression on the sphere learns one polynomial degree after the other: linear at n ~ d, cubic at n ~ d^3",
    source="Bordelon, Canatar, Pehlevan 2020; Canatar, Bordelon, Pehlevan 2021; Ringel et al. 2025",
    panels=_panels,
    caption="{activation} network kernel, one hidden layer, inputs uniform on the sphere in $d$ dimensions; target: a linear "
    "harmonic and a cubic one of power {cubic_power} (horizontal line); $T$ = {temperature}. Learnability: mean over all "
    "harmonics of a degree. Vertical: the numbers of linear and of cubic harmonics, $d$ and $N_3 = d(d-1)(d+4)/6$.",
    seconds=(60, 1800),
    explained="The error is that of one target, drawn anew for few training sets, and scatters most where little of it is left.",
    full={
        "input_dims": (10, 20),
        "n_train": (5, 10, 20, 40, 100, 200, 500, 1000, 2000, 5000, 10_000),
        "max_degree": 15,
        "seeds": 10,
    },
)
def staircase_gp(
    input_dims: tuple[int, ...] = (7, 14),
    activation: str = "erf",
    cubic_power: float = 0.2,
    temperature: float = 1e-4,
    n_train: tuple[int, ...] = (4, 8, 16, 32, 64, 128, 256, 512, 1024),
    max_degree: int = 9,
    seeds: int = 8,
) -> Iterator[Curve]:
    architecture = fully_connected(1, None, activation)
    power = np.array([0, 1 - cubic_power, 0, cubic_power])
    grid = {"n_train": np.geomspace(min(n_train), 2 * max(n_train), 80)}
    for dim in input_dims:
        system = SphereRegression.from_architecture(architecture, dim, power, 10, temperature, max_degree=max_degree)
        facets = {"input_dim": dim}
        yield Curve("self-consistent", self_consistent_by_degree, system, grid, facets=facets)
        yield Curve("measured", sphere_regression, system, {"n_train": n_train}, seeds, facets=facets)
