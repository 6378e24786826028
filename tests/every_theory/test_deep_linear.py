"""Every theory of deep linear networks."""

import numpy as np
from checks import checks

from orderparam.systems.deep_linear import DeepModes, LinearModes, LinearNetwork

SYSTEMS = [
    LinearModes([2.0, 1.0], 0.3, 1.5, 0.1, records=3),
    DeepModes([2.0, 1.0], 0.1, 1.5, depth=3, records=3),
    LinearNetwork(np.array([[1.0, 0.3], [-0.2, 0.5]]), np.eye(2), 1.2 * np.eye(2), 1.5, records=3),
]
globals().update(checks("deep_linear", SYSTEMS))
