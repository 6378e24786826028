"""The named figure of rotationally invariant measurements."""

from collections.abc import Iterator

import numpy as np

from orderparam.core.study import Curve, study
from orderparam.plotting import Panel
from orderparam.priors import SparsePrior
from orderparam.systems.generalised_linear.invariant.experiment import vector_message_passing
from orderparam.systems.generalised_linear.invariant.model import InvariantDesign
from orderparam.systems.generalised_linear.invariant.theory import vector_state_evolution


@study(
    "measurement-conditioning",
    title="Sparse weights measured by ill-conditioned matrices: VAMP and its state evolution",
    source="Rangan, Schniter, Fletcher 2019",
    seconds=(30, 600),
    observables=("error",),
    full={"input_dim": 4000, "seeds": 16, "conditions": tuple(np.geomspace(1, 300, 9).tolist())},
    panels=[Panel("condition", "error", by="sample_ratio", log="xy")],
    caption=r"""
        $y = Xw + $ noise of variance {noise}, weights of density {density}; singular values of $X$ evenly spaced in their
        logarithm, $d$ = {input_dim}.
    """,
)
def measurement_conditioning(
    conditions: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0),
    sample_ratios: tuple[float, ...] = (0.6, 1.5),
    noise: float = 0.01,
    density: float = 0.2,
    input_dim: int = 600,
    seeds: int = 8,
) -> Iterator[Curve]:
    fine = {"condition": tuple(np.geomspace(1.0, max(conditions), 40).tolist())}
    for ratio in sample_ratios:
        system, facets = InvariantDesign(ratio, 1.0, noise, SparsePrior(density), input_dim), {"sample_ratio": ratio}
        yield Curve("state evolution", vector_state_evolution, system, fine, facets=facets)
        yield Curve("VAMP", vector_message_passing, system, {"condition": conditions}, seeds, facets=facets)
