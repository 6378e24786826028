"""The phases of compressed sensing without noise."""

from typing import Any

from orderparam.analysis.phases.study import diagram_curve, phases_panel
from orderparam.channels import RealLabels
from orderparam.core.study import Curve, study
from orderparam.priors import SparsePrior
from orderparam.systems.generalised_linear.bayes.limit import amp_fixed_point
from orderparam.systems.generalised_linear.bayes.model import GeneralisedLinear


@study(
    "compressed-sensing-plane",
    title="Compressed sensing: message passing finds sparse weights with fewer samples than dimensions",
    source="Krzakala, Mézard, Sausset, Sun, Zdeborová 2012",
    seconds=(90, 900),
    full={"resolution": 64},
    panels=[phases_panel("prior.density", "sample_ratio", order="error")],
    caption="Bernoulli-Gauss weights, no noise; colour: error of message passing after any number of steps.",
)
def compressed_sensing_plane(resolution: int = 16) -> list[Curve]:
    over = {"prior.density": (0.02, 0.6), "sample_ratio": (0.05, 0.9)}
    system = GeneralisedLinear(0.5, RealLabels("linear"), SparsePrior(0.2))
    options: dict[str, Any] = {"resolution": resolution, "accuracy": 1e-3}
    return [diagram_curve(amp_fixed_point, system, over, order="error", **options)]
