"""Every theory of several giant steps."""

import numpy as np
from checks import checks

from orderparam.systems.several_steps import GiantLayer, SeveralSteps

SYSTEMS = [
    SeveralSteps(4.0, 1.5, 0.3, 0.1, target="z + He3(z)/2", activation="erf", steps=3),
    GiantLayer(
        np.array([1.0, -0.5]), np.array([0.3, -0.8]), 4.0, 0.1, target="z + He3(z)/2", steps=2
    ),
]
FEW = {"layer_error": {"samples": 200, "runs": 2}}
globals().update(checks("several_steps", SYSTEMS, options=FEW))
