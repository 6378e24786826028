"""Where the weights of a two-layer network adapt to its target, and where two states coexist."""

from functools import partial
from typing import Any

from orderparam.analysis.phases.study import diagram_curve, phases_panel
from orderparam.core.study import Curve, study
from orderparam.systems.kernel_adaptation.modes.network import hermite_target
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork
from orderparam.systems.kernel_adaptation.two_layers.theory.gaussian_weights import gaussian_weights


@study(
    "adaptation-plane",
    title="Weights that adapt to a cubic target: where the state of lowest action changes by a jump",
    source="Rubin, Seroussi, Ringel 2024, arXiv 2310.03789",
    seconds=(100, 900),
    full={"resolution": 32},
    panels=[phases_panel("n_train", "temperature", log="xy", order="spread")],
    caption="Erf units, $d$ = {input_dim}, $N$ = {width}, $y = h_3$; colour: variance of the weights along $w_*$, lowest action.",
)
def adaptation_plane(resolution: int = 8, input_dim: int = 50, width: int = 80, readout_variance: float = 0.04) -> list[Curve]:
    target, over = hermite_target({3: 1.0}, normalised=True), {"n_train": (250, 1000, "log"), "temperature": (0.02, 0.2, "log")}
    system = TwoLayerNetwork(input_dim, width, 400, 0.1, target, readout_variance, modes=(1, 3))
    options: dict[str, Any] = {"resolution": resolution, "accuracy": 1e-3, "branches": (), "batch": 16}
    return [diagram_curve(partial(gaussian_weights, ridge_kind="effective"), system, over, order="spread", **options)]
