"""The plane (kappa, delta) of one-pass SGD, by what is left of the risk."""

from typing import Any

import numpy as np
import xarray as xr

from orderparam.analysis.phases.study import diagram_curve, phases_panel
from orderparam.core.study import Curve, study
from orderparam.systems.online_sgd.phases.model import PhasePoint
from orderparam.systems.online_sgd.phases.theory import residual_risk


def risk(data: xr.Dataset) -> xr.DataArray:
    """Decimal logarithm of the risk of the steady state, where there is one."""
    return xr.DataArray(np.log10(data["test_error"].where(data["converged"])))


@study(
    "sgd-plane",
    title="One-pass SGD: where the steady state ends, and where its risk is a tenth of the label noise",
    source="Veiga, Stephan, Loureiro, Krzakala, Zdeborova 2022",
    seconds=(60, 900),
    full={"resolution": 32, "input_dim": 1e5},
    panels=[phases_panel("width_exponent", "rate_exponent", order="log10 of the risk")],
    caption=r"""
        One teacher unit, $d$ = {input_dim:g}, {base_width:g} units at $\kappa$ = 0, noise {noise}: both lines have slope $-1$.
        Colour: risk.
    """,
)
def sgd_plane(input_dim: float = 1e4, base_width: float = 100, noise: float = 1e-3, resolution: int = 16) -> list[Curve]:
    over = {"width_exponent": (0.0, 0.25), "rate_exponent": (-0.8, 0.8)}
    point = PhasePoint(input_dim=input_dim, base_width=base_width, noise=noise, teacher_width=1)
    options: dict[str, Any] = {"level": float(np.log10(0.1 * noise)), "resolution": resolution, "accuracy": 1e-3}
    return [diagram_curve(residual_risk, point, over, order=risk, **options)]
