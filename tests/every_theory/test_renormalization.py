"""Every theory of renormalization."""

import numpy as np
from checks import checks

from orderparam.kernels import Spectrum
from orderparam.systems.renormalization import (
    Bonds,
    DecimatedPool,
    DecimatedRegression,
    InteractingPool,
    InteractingRegression,
    ScaleFreeRegression,
    SpinBlocks,
    VectorMagnet,
)

K = np.arange(1.0, 13.0)
SPECTRUM = Spectrum(K**-1.5, K**-1.8, tail=0.01)
X = np.random.default_rng(0).normal(size=(12, 3))
SYSTEMS = [
    DecimatedRegression(SPECTRUM, 30.0, 0.1, 0.05, cut=6.0),
    DecimatedPool.from_kernel(X @ X.T / 3 + np.eye(12), X[:, 0], 6.0, 0.5, cut=5.0),
    InteractingRegression(SPECTRUM, 30.0, 1.0, 0.3, cut=6.0),
    InteractingPool.from_kernel(X @ X.T / 3 + np.eye(12), X[:, 0], 6.0, 1.0, quartic=0.3, cut=5.0),
    ScaleFreeRegression(1.0, 0.8, 100.0, 1.0, 0.1, modes=1000.0),
    VectorMagnet(3.0, 2.0),
    Bonds(0.4),
    SpinBlocks(2.3, 16),
]
FEWER = {"local_potential": 5, "recursive_flow": 40}
globals().update(checks("renormalization", SYSTEMS, fewer=FEWER, infinite=("non_gaussianity",)))
