"""The phases of the binary perceptron that learns a rule."""

from typing import Any

import xarray as xr

from orderparam.analysis.phases.study import diagram_curve, phases_panel
from orderparam.core.study import Curve, study
from orderparam.systems.perceptron.equilibrium.model import ThermalPerceptron
from orderparam.systems.perceptron.equilibrium.theory import quenched


def teacher_overlap(data: xr.Dataset) -> xr.DataArray:
    """In equilibrium: 1 where the teacher, of free entropy 0, has the largest."""
    return data["teacher_overlap"].where(data["free_entropy"] > 0, 1.0)


@study(
    "binary-perceptron-plane",
    title="A binary perceptron generalises perfectly beyond a line of first order",
    source="Györgyi 1990; Sompolinsky, Tishby, Seung 1990; Seung, Sompolinsky, Tishby 1992",
    seconds=(60, 600),
    full={"resolution": 64},
    panels=[phases_panel("sample_ratio", "temperature", order="teacher_overlap")],
    caption="Colour: overlap with the teacher in equilibrium; {resolution} squares along each axis.",
)
def binary_perceptron_plane(resolution: int = 16, most_samples: float = 2.4) -> list[Curve]:
    over = {"sample_ratio": (0.8, most_samples), "temperature": (0.0, 1.0)}
    options: dict[str, Any] = {"resolution": resolution, "accuracy": 1e-4}
    return [diagram_curve(quenched, ThermalPerceptron(1.0), over, order=teacher_overlap, **options)]
