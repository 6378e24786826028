"""The phases of ridgeless regression on random features: whether the examples can be interpolated."""

from orderparam.analysis.phases.study import diagram_curve, phases_panel
from orderparam.core.study import Curve, study
from orderparam.systems.random_features.model import RandomFeatures
from orderparam.systems.random_features.theory.state_evolution import asymptotics


@study(
    "double-descent-plane",
    title="Double descent in the plane of examples and features: the error peaks where interpolation begins",
    source="Mei, Montanari 2022; d'Ascoli, Sagun, Biroli 2020",
    seconds=(40, 400),
    full={"resolution": 64},
    panels=[phases_panel("n_train", "width", log="xy", order="train_error")],
    caption="d = {input_dim}, ridge {ridge:g}; colour: train error, which vanishes above the line.",
)
def double_descent_plane(resolution: int = 16, input_dim: int = 100, ridge: float = 1e-14) -> list[Curve]:
    over = {"n_train": (0.2 * input_dim, 10.0 * input_dim, "log"), "width": (0.25 * input_dim, 8.0 * input_dim, "log")}
    system = RandomFeatures(input_dim, 2 * input_dim, n_train=3 * input_dim, ridge=ridge)
    return [diagram_curve(asymptotics, system, over, order="train_error", resolution=resolution, accuracy=1e-5)]
