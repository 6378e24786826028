"""Every theory of features in time."""

import numpy as np
from checks import checks

from orderparam.systems.features_in_time import (
    FeatureDescent,
    LinearLayersDescent,
    QuadraticDescent,
)

X = np.random.default_rng(0).standard_normal((6, 3))
FEW = {"samples": 16, "runs": 2}
SYSTEMS = [
    FeatureDescent(X[:4], X[:4, 0], X[4:], X[4:, 0], 0.7, 0.05, 8, activation=name, steps=3)
    for name in ("erf", "linear")
]
SYSTEMS += [
    LinearLayersDescent(X[:4], X[:4, 0], X[4:], X[4:, 0], 0.7, 0.05, 8, steps=3),
    QuadraticDescent(X[:4], X[:4, 0], X[4:], X[4:, 0], 2.0, width=8, steps=9, records=4),
]
globals().update(
    checks("features_in_time", SYSTEMS, options={"particle_dynamics": FEW, "best_rate": FEW})
)
