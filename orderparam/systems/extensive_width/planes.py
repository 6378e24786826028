"""The phases of a teacher of extensive width: which of its features are learned."""

from orderparam.analysis.phases.study import diagram_curve, phases_panel
from orderparam.core.study import Curve, study
from orderparam.systems.extensive_width.model import HierarchicalTeacher
from orderparam.systems.extensive_width.theory.bayes import bayes_optimal


@study(
    "feature-plane",
    title="Features are learned together where read-outs are alike, one by one where they decay",
    source="derived for this package from the free entropy of Nguyen and Barbier 2026",
    seconds=(60, 1200),
    full={"resolution": 128, "width": 20},
    panels=[phases_panel("n_train", "decay", log="x", order="overlap 1")],
    caption="d = {input_dim}, k = {width}, noise {noise}; colour: overlap of the first feature; lines: jumps of one or more.",
)
def feature_plane(resolution: int = 32, input_dim: int = 150, width: int = 6, noise: float = 0.1) -> list[Curve]:
    over = {"n_train": (input_dim**2 / 100, 2.0 * input_dim**2, "log"), "decay": (0.2, 1.8)}
    system = HierarchicalTeacher(input_dim, width, 0.8, noise)
    return [diagram_curve(bayes_optimal, system, over, order="overlap", resolution=resolution, accuracy=1e-4)]
