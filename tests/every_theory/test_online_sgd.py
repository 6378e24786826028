"""Every theory of one-pass SGD."""

from checks import checks

from orderparam.systems.online_sgd import CommitteeSGD, PhasePoint

SYSTEMS = [
    CommitteeSGD(100, 1.0, 0.01, readout_rate=0.1, horizon=20.0, width=2, teacher_width=1, records=4),
    PhasePoint(100, base_width=2, horizon=5.0, teacher_width=1, records=4),
]
SLOW = ("overlap_flow", "plateau", "steady_state", "moving_time", "phase_flow", "residual_risk")
globals().update(checks("online_sgd", SYSTEMS, slow=SLOW, decades=1.0))
