"""Every theory of one giant step."""

import numpy as np
from checks import checks

from orderparam.losses import SignLabels
from orderparam.systems.one_step import FeatureMatrix, OneStep, SpikedFeatures, TrainedLayer

STEP = OneStep(2.0, 1.0, 4.0, 1.0, ridge=0.1, labels=SignLabels(0.1), input_dim=20)
ROWS = np.random.default_rng(0).normal(size=(12, 8)) / np.sqrt(8)
SYSTEMS = [
    STEP,
    SpikedFeatures(2.0, 1.0, 0.7, 1.2, 1.1, ridge=0.1, labels=SignLabels(0.1)),
    FeatureMatrix(STEP, bins=6),
    TrainedLayer.from_weights(ROWS, np.ones(8), np.eye(8)[0], 30, 0.1),
]
OPTIONS = {"spectral_density": {"eigenvalue": 0.5}}
globals().update(
    checks(
        "one_step", SYSTEMS, fewer={"feature_spectrum": 20, "predict_read_out": 4}, options=OPTIONS
    )
)
