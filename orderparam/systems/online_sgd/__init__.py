"""One-pass SGD of a two-layer student on examples of a two-layer teacher: flows of the overlaps,
training runs, and the phase diagram in width and learning rate.
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.online_sgd.experiment import (
        measured_moving_time,
        measured_residual_risk,
        overlap_chain,
        phase_chain,
        trained_network,
    )
    from orderparam.systems.online_sgd.model import (
        CommitteeSGD,
        InSpanStart,
        MovingTime,
        OverlapDynamics,
        PhasePoint,
        ReproducibleStart,
        ResidualRisk,
        RiskCurve,
        SphereStart,
        Start,
        TeacherStart,
        region,
        time_exponent,
    )
    from orderparam.systems.online_sgd.phases import moving_time, phase_flow, residual_risk
    from orderparam.systems.online_sgd.theory import (
        Plateau,
        SteadyState,
        overlap_flow,
        plateau,
        steady_state,
    )
    from orderparam.systems.online_sgd.weak_noise import AsymptoticError, asymptotic_error

# axis labels of this topic's quantities: words and symbol
LABELS = {
    "test_error": ("population risk", r"R = \frac{1}{2}\,\mathrm{E}(f_*-f)^2"),
}

__all__ = exported(globals())
