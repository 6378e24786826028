"""The phases of the Hopfield model, found by following what its solutions do."""

from typing import Any

from orderparam.analysis.phases.study import diagram_curve, phases_panel
from orderparam.core.study import Curve, study
from orderparam.systems.associative_memory.hopfield.model import Hopfield
from orderparam.systems.associative_memory.hopfield.theory import replica_symmetric

_BRANCHES = ("retrieval", "spin glass")


@study(
    "hopfield-plane",
    title="Where the Hopfield model remembers: phases in the plane of load and temperature",
    source="Amit, Gutfreund, Sompolinsky 1985, 1987",
    seconds=(40, 300),
    full={"resolution": 128},
    panels=[phases_panel("load", "temperature", order="overlap", branches=("stable", *_BRANCHES))],
    caption="Colour: overlap of the state of least free energy; {resolution} squares along each axis.",
)
def hopfield_plane(resolution: int = 32, most_load: float = 0.16) -> list[Curve]:
    over, order = {"load": (0.002, most_load), "temperature": (0.01, 1.45)}, ("overlap", "self_overlap")
    options: dict[str, Any] = {"branches": _BRANCHES, "resolution": resolution, "accuracy": 1e-4}
    return [diagram_curve(replica_symmetric, Hopfield(0.1), over, order=order, **options)]
