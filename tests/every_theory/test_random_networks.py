"""Every theory of random networks."""

import numpy as np
from checks import checks

from orderparam.systems.random_networks import (
    AngledPair,
    CubeNetwork,
    DeepNetwork,
    NetworkKernels,
    RandomNetwork,
)

X = np.random.default_rng(0).normal(size=(3, 2))
SYSTEMS = [
    RandomNetwork(X, prior="gaussian", bins=10),
    DeepNetwork(activation="tanh"),
    DeepNetwork(activation="relu"),
    NetworkKernels(X[:1], activation="erf"),
    AngledPair(1.0, 1.7, 0.1, activation="erf"),
    CubeNetwork(5, 1.7, 0.1, activation="erf"),
]
globals().update(
    checks(
        "random_networks",
        SYSTEMS,
        sloping={"homogeneous_cumulants": [DeepNetwork(activation="relu")]},
    )
)
