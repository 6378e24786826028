"""Where finite width makes the kernel of a Bayesian network larger, and where smaller."""

from typing import Any

import xarray as xr

from orderparam.analysis.phases.study import diagram_curve, phases_panel
from orderparam.core.study import Curve, study
from orderparam.systems.proportional.tasks import dense
from orderparam.systems.proportional.theory.finite_width import finite_width


def order_parameter(data: xr.Dataset) -> xr.DataArray:
    """Q, by which the kernel of one hidden layer is multiplied."""
    return data["order_parameters"].stack(entry=[dim for dim in data["order_parameters"].dims if dim != "point"]).isel(entry=0)


@study(
    "finite-width-plane",
    title="A cold network of finite width enlarges its kernel, a warm one shrinks it: the same line at every width",
    source="Pacelli, Ariosto, Pastore, Ginelli, Gherardi, Rotondo 2023",
    seconds=(40, 600),
    full={"data": "mnist", "n_train": 200, "resolution": 32},
    panels=[phases_panel("width", "temperature", log="xy", order="order_parameters")],
    caption="{data}, $P$ = {n_train}, one hidden layer of erf units; colour: the order parameter $Q$, which is 1 on the line.",
)
def finite_width_plane(data: str = "digits", n_train: int = 40, resolution: int = 16) -> list[Curve]:
    over = {"width": (n_train / 10, 20.0 * n_train, "log"), "temperature": (1e-3, 10, "log")}
    system = dense(data, n_train, n_train, width=100, temperature=0.1)
    options: dict[str, Any] = {"level": 1.0, "resolution": resolution, "accuracy": 1e-4}
    return [diagram_curve(finite_width, system, over, order=order_parameter, **options)]
