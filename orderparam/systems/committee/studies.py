"""The named figure of committees: the units of a student come apart."""

import numpy as np

from orderparam.core.study import Curve, study
from orderparam.plotting import Panel, vertical
from orderparam.systems.committee.experiment import message_passing
from orderparam.systems.committee.model import Committee
from orderparam.systems.committee.theory import state_evolution

APART = (2.0523828, 1.5893227)  # where the two units of Gaussian and of binary weights specialise
BINARY_END = 1.95  # beyond, binary weights are known


@study(
    "committee-specialisation",
    title="A committee of two: above a number of examples each unit finds its own weights",
    source="Aubin, Maillard, Barbier, Krzakala, Macris, Zdeborová 2018",
    seconds=(60, 1800),
    observables=("overlap", "cross_overlap", "classification_error"),
    full={
        "input_dim": 4000,
        "seeds": 16,
        "sample_ratios": tuple(np.linspace(0.5, 4.0, 29).tolist()),
        "runs": (1.0, 1.5, 2.5, 3.0, 3.5),
    },
    columns=3,
    panels=[
        Panel("sample_ratio", y, by="weights", reference=[vertical(x, "") for x in APART])
        for y in ("overlap", "cross_overlap", "classification_error")
    ],
    caption=r"""
        $y = \mathrm{{sign}}(\mathrm{{sign}}\,z_1 + \mathrm{{sign}}\,z_2)$ with values $-1, 0, 1$; $d$ = {input_dim}. Dotted:
        specialisation at 2.0524 (Gaussian weights) and 1.5893 (binary weights).
    """,
)
def committee_specialisation(
    sample_ratios: tuple[float, ...] = (0.5, 1.0, 1.5, 1.8, 2.3, 3.0),
    runs: tuple[float, ...] = (1.0, 1.7, 3.0),
    input_dim: int = 300,
    seeds: int = 4,
) -> list[Curve]:
    curves = []
    for weights, last in (("gaussian", np.inf), ("binary", BINARY_END)):
        system, facets = Committee(1.0, 2, "majority", weights, input_dim), {"weights": weights}
        fine, few = ({"sample_ratio": tuple(x for x in ratios if x < last)} for ratios in (sample_ratios, runs))
        curves += [
            Curve("state evolution", state_evolution, system, fine, facets=facets),
            Curve("message passing", message_passing, system, few, seeds, facets=facets),
        ]
    return curves
