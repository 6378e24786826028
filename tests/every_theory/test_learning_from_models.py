"""Every theory of learning from models."""

import numpy as np
from checks import checks

from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.learning_from_models import ModelChain, PoolChain, ShiftedPool

X = np.random.default_rng(0).standard_normal((10, 4))
SYSTEMS = [
    ModelChain(
        Spectrum([1.0, 0.3, 0.1], [0.5, 0.3, 0.2], [1, 2, 5]),
        [0.5, 0.5, 0.4],
        n_train=6.0,
        ridge=0.2,
        noise=0.1,
        teacher_n_train=4.0,
        teacher_ridge=0.3,
        teacher_noise=0.2,
        truth_share=0.2,
        generations=3,
    ),
    PoolChain.from_kernel(np.exp(X @ X.T / 8), X[:, 0], n_train=5.0, ridge=0.1, noise=0.1),
    ShiftedPool.from_kernels(
        np.exp(X @ X.T / 8),
        np.exp(X[:4] @ X.T / 6),
        X[:, 0],
        X[:4, 1],
        np.full((2, 4), 0.25),
        n_train=5.0,
        ridge=0.1,
        noise=0.1,
    ),
]
globals().update(checks("learning_from_models", SYSTEMS))
