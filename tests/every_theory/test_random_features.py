"""Every theory of random features."""

import numpy as np
from checks import checks

from orderparam.kernels import Spectrum
from orderparam.losses import SignLabels
from orderparam.systems.random_features import (
    ClassPool,
    ExplicitSpectrum,
    GaussianFeatures,
    RandomFeatures,
    ScalingPath,
    SpectralFeatures,
    SphereFeatures,
)

K = np.arange(1.0, 31.0)
SAMPLE = np.random.default_rng(0).standard_normal((45, 6))
CLASSES = np.arange(45) % 3
SYSTEMS = [
    RandomFeatures(100, 150, n_train=200, ridge=0.1),
    RandomFeatures(
        100, 150, n_train=200, ridge=0.1, activation="relu", labels=SignLabels(0.1), loss="logistic"
    ),
    GaussianFeatures(ExplicitSpectrum(1 / K, K**-2.5), 2.5, n_train=60, ridge=0.01),
    SpectralFeatures(Spectrum(K**-1.5, K**-2.2), 100, 80, 0.05, 0.1),
    ScalingPath(Spectrum(K**-1.5, K**-2.2), 0.5, 0.7, 3.0),
    SphereFeatures(20, 100, 200, 0.1, (0.0, 1.0, 0.5)),
    ClassPool.from_data(SAMPLE + 2 * np.eye(3, 6)[CLASSES], CLASSES, 15, 0.1),
]
globals().update(checks("random_features", SYSTEMS, fewer={"optimal_ridge": 20}))
