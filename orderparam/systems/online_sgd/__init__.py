"""One-pass SGD of two-layer students on two-layer teachers: flows of the overlaps, the real network, and the phase
diagram."""

from orderparam.systems.online_sgd.chain import overlap_chain
from orderparam.systems.online_sgd.flow import Plateau, overlap_flow, plateau
from orderparam.systems.online_sgd.model import CommitteeSGD, OverlapDynamics
from orderparam.systems.online_sgd.network import network_sgd
from orderparam.systems.online_sgd.phases import (
    MovingTime,
    PhasePoint,
    ResidualRisk,
    measured_moving_time,
    moving_time,
    phase_chain,
    phase_flow,
    region,
    residual_chain,
    residual_theory,
    time_exponent,
)
from orderparam.systems.online_sgd.start import InSpanStart, ReproducibleStart, SphereStart, Start, TeacherStart
from orderparam.systems.online_sgd.steady import AsymptoticError, SteadyState, asymptotic_error, steady_state

__all__ = [
    "AsymptoticError",
    "CommitteeSGD",
    "InSpanStart",
    "MovingTime",
    "OverlapDynamics",
    "PhasePoint",
    "Plateau",
    "ReproducibleStart",
    "ResidualRisk",
    "SphereStart",
    "Start",
    "SteadyState",
    "TeacherStart",
    "asymptotic_error",
    "measured_moving_time",
    "moving_time",
    "network_sgd",
    "overlap_chain",
    "overlap_flow",
    "phase_chain",
    "phase_flow",
    "plateau",
    "region",
    "residual_chain",
    "residual_theory",
    "steady_state",
    "time_exponent",
]
