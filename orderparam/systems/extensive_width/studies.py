"""The figures of the theory of extensive-width learning: staircase, transitions, laws of read-outs."""

import numpy as np

from orderparam.core.study import Curve, study
from orderparam.systems.extensive_width import figures
from orderparam.systems.extensive_width.common import SOURCE, samples
from orderparam.systems.extensive_width.model import HierarchicalTeacher, WeightedTeacher
from orderparam.systems.extensive_width.studies_posterior import (
    effective_model,
    posterior_finite_size,
    posterior_sampling,
    quadratic_specialisation,
)
from orderparam.systems.extensive_width.studies_students import (
    bayes_error_collapse,
    student_scaling,
    student_training,
    student_width,
)
from orderparam.systems.extensive_width.theory import bayes_optimal, flat_hierarchy, informed_state

__all__ = [
    "bayes_error_collapse",
    "collective",
    "effective_model",
    "feature_staircase",
    "posterior_finite_size",
    "posterior_sampling",
    "quadratic_specialisation",
    "readout_laws",
    "student_scaling",
    "student_training",
    "student_width",
]


@study(
    "feature-staircase",
    title="Features are learned one after the other, each by a jump of its overlap",
    source=SOURCE,
    seconds=(20, 60),
    observables=("error",),
    full={"points": 3000},
    draw=figures.draw_staircase,
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
    draw=figures.draw_collective,
)
def collective(
    width_ratio: float = 0.5, noise: float = 0.01, decay: float = 0.3, points: int = 120, resolution: int = 32
) -> list[Curve]:
    dim = 400
    limit = HierarchicalTeacher(dim, round(width_ratio * dim), decay, noise)
    grid = {"n_train": [float(a) * dim**2 for a in np.linspace(0.4, 1.2, points)]}
    diagram = {"decay": list(np.linspace(0.02, 0.48, resolution)), "noise": list(np.geomspace(0.002, 0.3, resolution))}
    return [
        Curve("infinite dimension", flat_hierarchy, limit, grid),
        Curve("dimension 400, Bayes-optimal", bayes_optimal, limit, grid),
        Curve("dimension 400, informed branch", informed_state, limit, grid),
        Curve("order of the transition", flat_hierarchy, limit, diagram, panel="diagram"),
    ]


@study(
    "readout-laws",
    title="Overlaps of all features for flat, power-law and exponential read-outs",
    source=f"{SOURCE}, appendix figures",
    seconds=(40, 60),
    observables=("error",),
    draw=figures.draw_readout_laws,
)
def readout_laws(
    input_dim: int = 200, width: int = 100, noise: float = 0.04, ratios: tuple = (0.5, 1.0, 1.5, 2.0)
) -> list[Curve]:
    rank = np.arange(width)
    laws = {
        "power law 0.4": (rank + 1.0) ** -0.4,
        "power law 0.7": (rank + 1.0) ** -0.7,
        "linear 2.5 to 1": np.linspace(2.5, 1.0, width),
        "exp(-i/20)": np.exp(-rank / 20),
        "exp(-i/5)": np.exp(-rank / 5),
    }
    over = {"n_train": [ratio * input_dim**2 for ratio in ratios]}
    return [
        Curve(name, bayes_optimal, WeightedTeacher(input_dim, v / np.linalg.norm(v), noise), over, panel=name)
        for name, v in laws.items()
    ]
