"""Every theory of scaling laws."""

import numpy as np
from checks import checks

from orderparam.systems.scaling_laws import (
    ComputeBudget,
    ComputeFrontier,
    ParameterBudget,
    PowerLawFeatures,
    ScaleFreeData,
    ScaleFreeFeatures,
)

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(120, 60)) / np.arange(1.0, 61)
SYSTEMS = [
    PowerLawFeatures(1.0, 0.3, 200, width=50, learning_rate=0.3, horizon=100, records=3),
    ComputeBudget(1e5),
    ComputeFrontier(1e5, 0.4, 0.8),
    ScaleFreeFeatures(60.0, 40.0, spectral_decay=1.6, target_decay=2.2, ridge=0.01, noise=0.1),
    ParameterBudget(100.0, spectral_decay=1.6, target_decay=2.2, ridge=0.01, noise=0.1),
    ScaleFreeData(FEATURES @ FEATURES.T, FEATURES @ RNG.normal(size=60), 30, 1e-3),
]
globals().update(
    checks(
        "scaling_laws",
        SYSTEMS,
        fewer={
            "compute_optimal": 20,
            "frontier_exponents": 20,
            "best_split": 20,
            "scale_free_fit": 3,
        },
    )
)
