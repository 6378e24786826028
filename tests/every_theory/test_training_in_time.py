"""Every theory of learning in time."""

import numpy as np
from checks import checks

from orderparam.kernels.spectrum import Spectrum
from orderparam.networks.fully_connected import fully_connected
from orderparam.systems.training_in_time import (
    FeatureTraining,
    IsotropicTraining,
    NetworkDescent,
    PoolDescent,
    SpectralDescent,
)

X = np.random.default_rng(0).standard_normal((10, 4))
SYSTEMS = [
    FeatureTraining(Spectrum([1.0, 0.3, 0.1], [0.5, 0.3, 0.2], [1, 2, 5]), 6.0, 3.0, 0.2),
    IsotropicTraining(1.5, 0.2, 0.3, 0.1, 0.05, steps=5),
    NetworkDescent(
        X[:6], X[:6, 0], X[6:], X[6:, 0], fully_connected(1, None, "erf"), 8, 0.1, 0.2, 5
    ),
    SpectralDescent(Spectrum([1.0, 0.3, 0.1], [0.5, 0.3, 0.2], [1, 2, 5]), 6.0, 0.2, steps=5),
    PoolDescent(X, np.sign(X[:, 0]), fully_connected(1, None, "erf"), 6, 0.2, 8, 0.05, 5, 3),
]
globals().update(checks("training_in_time", SYSTEMS))
