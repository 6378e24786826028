"""Every theory of kernel regression."""

import numpy as np
from checks import checks

from orderparam.kernels import Spectrum
from orderparam.networks import fully_connected
from orderparam.systems.kernel_regression import (
    HeteroscedasticRegression,
    KernelRegression,
    NetworkTraining,
    PoolRegression,
    SphereRegression,
    TorusRegression,
)

K = np.arange(1.0, 21.0)
SPECTRUM = Spectrum(K**-1.5, K**-2.2, tail=0.01)
NETWORK = fully_connected(1, None, "relu")
X = np.random.default_rng(0).normal(size=(12, 3))
SYSTEMS = [
    KernelRegression(SPECTRUM, 30.0, 0.1, 0.05),
    PoolRegression.from_kernel(X @ X.T / 3 + np.eye(12), X[:, 0], 6.0, 50.0, 0.05),
    HeteroscedasticRegression(
        SPECTRUM,
        30.0,
        0.1,
        0.05,
        weights=[0.4, 0.6],
        extra_temperature=[0.0, 0.3],
        extra_noise=[0.2, 0.0],
    ),
    SphereRegression.from_architecture(NETWORK, 10, [0.0, 1.0, 0.5], 30.0, 0.1, 0.05, max_degree=6),
    TorusRegression.from_smoothness(2, 1.0, 1.0, 30.0, 0.1, 0.1, cut=5.0, target_dim=1),
    NetworkTraining(X[:8], X[:8, 0], X[8:], NETWORK, 0.1, width=20),
]
globals().update(checks("kernel_regression", SYSTEMS, infinite=("squared_discrepancy",)))
