"""Every theory of Boolean functions."""

import numpy as np
from checks import checks

from orderparam.networks.fully_connected import fully_connected
from orderparam.systems.boolean_functions import BooleanTraining

X = np.random.default_rng(0).standard_normal((4, 3))
NETWORK = fully_connected(1, None, "erf", weight_variance=2.0, bias_variance=0.5)
FEW = {"samples": 16, "runs": 2}
SYSTEMS = [
    BooleanTraining(X[:2], np.array([1.0, -1.0]), X[2:], NETWORK, 8, trained=trained)
    for trained in ("all", "readout")
]
THEORIES = (
    "tangent_kernel_law",
    "regression_posterior",
    "label_posterior",
    "frozen_kernel_law",
    "wide_distances",
)
globals().update(
    checks(
        "boolean_functions",
        SYSTEMS,
        options=dict.fromkeys(THEORIES, FEW),
        fewer=dict.fromkeys(THEORIES, 60),
    )
)
