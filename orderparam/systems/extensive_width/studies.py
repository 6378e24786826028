"""The figures of the theory of extensive-width learning: staircase, transitions, laws of read-outs."""

import numpy as np

from orderparam.core.study import Curve, study
from orderparam.plotting import Freehand, Panel
from orderparam.systems.extensive_width.figures import draw_features, draw_order
from orderparam.systems.extensive_width.grids import per_square, samples
from orderparam.systems.extensive_width.model import HierarchicalTeacher, WeightedTeacher
from orderparam.systems.extensive_width.theory import bayes_optimal, flat_hierarchy, informed_state

SOURCE = "Nguyen and Barbier 2026"


@study(
    "feature-staircase",
    title="Features are learned one after the other, each by a jump of its overlap",
    source=SOURCE,
    seconds=(20, 60),
    observables=("error",),
    full={"points": 3000},
    panels=[Freehand(draw_features), Panel("n_train", "effective_width", log="xy")],
    caption=r"""
        $d$ = {input_dim}, $k$ = {width}, $\beta$ = {decay}, $\Delta$ = {noise}, tanh$(2z)$. Left: solid, Bayes-optimal;
        dotted, the metastable branch that is reached from the teacher.
    """,
)
def feature_staircase(
    input_dim: int = 200, width: int = 100, decay: float = 1.0, noise: float = 0.01, points: int = 600
) -> list[Curve]:
    system = HierarchicalTeacher(input_dim, width, decay, noise)
    over = {"n_train": samples(0.01 * input_dim**2, 40 * input_dim**2, points)}
    return [
        Curve("Bayes-optimal", bayes_optimal, system, over),
        Curve("informed branch", informed_state, system, over),
    ]


@study(
    "collective-transition",
    title="Read-outs of similar size: many features learned at once",
    source="derived for this package from the free entropy of Nguyen and Barbier 2026",
    seconds=(40, 120),
    observables=("error",),
    full={"points": 400, "resolution": 80},
    panels=[
        Panel(per_square(400), "error", where={"part": "error"}),
        Freehand(draw_order, "order of the transition"),
    ],
    caption=r"""
        tanh$(2z)$, $k/d$ = {width_ratio}; left: $\beta$ = {decay}, $\Delta$ = {noise} (star). Right: above 1 a finite fraction
        of the features is learned at once. Finite sizes approach the limit as $k^{{2\beta - 1}}$, slowly.
    """,
)
def collective(
    width_ratio: float = 0.5, noise: float = 0.01, decay: float = 0.3, points: int = 120, resolution: int = 32
) -> list[Curve]:
    dim = 400
    limit = HierarchicalTeacher(dim, round(width_ratio * dim), decay, noise)
    grid = {"n_train": [float(a) * dim**2 for a in np.linspace(0.4, 1.2, points)]}
    diagram = {"decay": list(np.linspace(0.02, 0.48, resolution)), "noise": list(np.geomspace(0.002, 0.3, resolution))}
    return [
        Curve("infinite dimension", flat_hierarchy, limit, grid, facets={"part": "error"}),
        Curve("$d$ = 400, Bayes-optimal", bayes_optimal, limit, grid, facets={"part": "error"}),
        Curve("$d$ = 400, informed branch", informed_state, limit, grid, facets={"part": "error"}),
        Curve("order of the transition", flat_hierarchy, limit, diagram, facets={"part": "diagram"}),
    ]


@study(
    "readout-laws",
    title="Overlaps of all features for flat, power-law and exponential read-outs",
    source="Nguyen and Barbier 2026, appendix figures",
    seconds=(40, 60),
    observables=("error",),
    panels=lambda p: [
        Panel(
            "feature",
            "overlap",
            facet="law",
            by="n_train",
            text={ratio * p["input_dim"] ** 2: f"$n/d^2$ = {ratio:g}" for ratio in p["ratios"]},
        )
    ],
    caption=r"$d$ = {input_dim}, $k$ = {width}, $\Delta$ = {noise}, tanh$(2z)$, read-outs of unit norm.",
)
def readout_laws(
    input_dim: int = 200, width: int = 100, noise: float = 0.04, ratios: tuple = (0.5, 1.0, 1.5, 2.0)
) -> list[Curve]:
    rank = np.arange(width)
    laws = {
        "power law 0.4": (rank + 1.0) ** -0.4,
        "power law 0.7": (rank + 1.0) ** -0.7,
        "linear 2.5 to 1": np.linspace(2.5, 1.0, width),
        "$e^{-i/20}$": np.exp(-rank / 20),
        "$e^{-i/5}$": np.exp(-rank / 5),
    }
    over = {"n_train": [ratio * input_dim**2 for ratio in ratios]}
    return [
        Curve("Bayes-optimal", bayes_optimal, WeightedTeacher(input_dim, v / np.linalg.norm(v), noise), over, facets={"law": law})
        for law, v in laws.items()
    ]
