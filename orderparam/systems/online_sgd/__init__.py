"""One-pass SGD of two-layer students on two-layer teachers: flows of the overlaps, the real network, and the phase
diagram."""

from orderparam.systems.online_sgd.committee.asymptotic import AsymptoticError, asymptotic_error
from orderparam.systems.online_sgd.committee.experiment import overlap_chain, trained_network
from orderparam.systems.online_sgd.committee.model import CommitteeSGD, OverlapDynamics
from orderparam.systems.online_sgd.committee.start import InSpanStart, ReproducibleStart, SphereStart, Start, TeacherStart
from orderparam.systems.online_sgd.committee.theory import Plateau, SteadyState, overlap_flow, plateau, steady_state
from orderparam.systems.online_sgd.phases.experiment import measured_moving_time, measured_residual_risk, phase_chain
from orderparam.systems.online_sgd.phases.model import MovingTime, PhasePoint, ResidualRisk, RiskCurve, region, time_exponent
from orderparam.systems.online_sgd.phases.theory import moving_time, phase_flow, residual_risk
