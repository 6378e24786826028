"""Every theory of diffusion models."""

import numpy as np
from checks import checks

from orderparam.systems.diffusion import FeatureScore, StoredData, StoredGaussians, TwoClasses

X = np.random.default_rng(0).standard_normal((30, 4)) * [2.0, 1.0, 0.7, 0.3]
SYSTEMS = [
    TwoClasses([1.5, 0.5], [1.0, 0.4], 0.8, class_share=0.4),
    StoredGaussians(12.0, 40.0, 0.5),
    StoredData.from_pool(X, np.arange(30) % 2, 12.0, 0.5),
    FeatureScore(2.0, 6.0, 0.2, training_time=5.0, ridge=0.01),
]
globals().update(
    checks(
        "diffusion",
        SYSTEMS,
        fewer={"own_weight": 20},
        infinite=("collapse_time", "isotropic_time", "gap_start", "gap_end"),
    )
)
