"""Every theory of training on re-used data."""

import numpy as np
from checks import checks

from orderparam.systems.reused_data import ReusedCommittee, ReusedData

SYSTEMS = [
    ReusedData(1.5, 0.2, 0.1, 0.1, 0.5, 0.2, 0.1, 0.2, steps=4),
    ReusedCommittee(
        2.0, np.array([[0.2, -0.1], [0.0, 0.15]]), 0.5 * np.eye(2), 0.1, 0.3, 0.1, 0.1, 0.5, steps=2
    ),
]
FEW = {"samples": 40, "runs": 2}
globals().update(
    checks(
        "reused_data",
        SYSTEMS,
        options={"sampled_dynamics": FEW, "committee_dynamics": FEW},
        still=("batch_fraction",),
    )
)
