"""Every theory of one-pass SGD."""

from checks import checks

from orderparam.systems.online_sgd import CommitteeSGD, PhasePoint

SYSTEMS = [
    CommitteeSGD(
        100, 1.0, 0.01, readout_rate=0.1, horizon=20.0, width=2, teacher_width=1, records=4
    ),
    PhasePoint(100, base_width=2, horizon=5.0, teacher_width=1, records=4),
]
FEWER = {
    "overlap_flow": 20,
    "plateau": 20,
    "steady_state": 20,
    "moving_time": 3,
    "phase_flow": 3,
    "residual_risk": 3,
}
SLOPING = {"plateau": [CommitteeSGD(100, 1.0, 0.01, horizon=300.0, width=2, records=4)]}
ROUNDED = ("input_dim", "first_record", "horizon")  # records are whole numbers of samples
globals().update(
    checks("online_sgd", SYSTEMS, fewer=FEWER, decades=1.0, sloping=SLOPING, still=ROUNDED)
)
