"""The study of the risk of one-pass SGD over the exponents of width and learning rate."""

from typing import Any

import numpy as np
import xarray as xr

from orderparam.analysis.phases.study import diagram_curve, phases_panel
from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand
from orderparam.plotting.style import ink
from orderparam.systems.online_sgd.model import PhasePoint
from orderparam.systems.online_sgd.phases import residual_risk


def risk(data: xr.Dataset) -> xr.DataArray:
    """Decimal logarithm of the risk of the steady state, where there is one."""
    return xr.DataArray(np.log10(data["test_error"]))


_RISKS = phases_panel("width_exponent", "rate_exponent", order=r"$\log_{10}$ of the risk $R$")
_LARGEST = -2.5  # end of the colours; the risk diverges at the border


def draw_risks(axes: Any, comparison: Comparison) -> None:
    """Draw the risk of the steady state with its lines named in place."""
    _RISKS.function(axes, comparison)
    (mesh,) = axes.collections
    mesh.set(clim=(None, _LARGEST), alpha=1.0, cmap="viridis")
    for line in axes.lines:
        line.set(label="_", color="white" if line.get_linestyle() == ":" else ink())
        # single points on the border that the tracing of the line has left over
        if len(line.get_xdata()) == 1:
            line.set_visible(False)
    noise = comparison.parameters["noise"]
    along: dict[str, Any] = {"rotation": -10.5, "rotation_mode": "anchor"}
    axes.text(0.1, -0.04, f"$R$ = {0.1 * noise:g}", color="white", **along)
    axes.text(0.08, -0.32, "the steady state ends", **along)
    axes.text(0.05, -0.65, "no steady state")
    axes.set(xlabel=r"width exponent $\kappa$", ylabel=r"learning-rate exponent $\delta$")


@study(
    "sgd-plane",
    title=(
        "One-pass SGD in theory: the risk of the steady state falls with the sum of the exponents "
        "of width and learning rate"
    ),
    source="Veiga, Stephan, Loureiro, Krzakala, Zdeborova 2022",
    seconds=(60, 900),
    full={"resolution": 64, "input_dim": 1e5},
    gallery={"resolution": 32},
    panels=[Freehand(draw_risks)],
    caption=(
        r"Theory; nothing is measured. One teacher unit, $d$ = {input_dim:g}, {base_width:g} "
        r"$d^\kappa$ student units, learning rate {base_width:g} $d^{{-\delta}}$, label noise "
        r"{noise}. Dotted: risk of a tenth of the noise. This line and the end of the steady state "
        r"have slope $-1$. At the end of the steady state the risk diverges; risks above "
        r"$10^{{-2.5}}$ have the colour of $10^{{-2.5}}$."
    ),
)
def sgd_plane(
    input_dim: float = 1e4, base_width: float = 100, noise: float = 1e-3, resolution: int = 16
) -> list[Curve]:
    over = {"width_exponent": (0.0, 0.25), "rate_exponent": (-0.8, 0.8)}
    point = PhasePoint(input_dim=input_dim, base_width=base_width, noise=noise, teacher_width=1)
    options: dict[str, Any] = {
        "level": float(np.log10(0.1 * noise)),
        "resolution": resolution,
        "accuracy": 1e-3,
    }
    return [diagram_curve(residual_risk, point, over, order=risk, **options)]
