"""Every theory of networks in the proportional regime."""

import numpy as np
from checks import checks

from orderparam.systems.proportional import Convolutional, FullyConnected, LocallyConnected

RNG = np.random.default_rng(0)
X, TEST = RNG.normal(size=(6, 4)), RNG.normal(size=(3, 4))
DATA = (X, X[:, 0], TEST, TEST[:, 0])
IMAGES = (X[..., None], X[:, 0], TEST[..., None], TEST[:, 0])
SYSTEMS = [
    FullyConnected(*DATA, temperature=0.1, width=10.0),
    FullyConnected(*DATA, temperature=0.1, width=[10.0, 20.0], depth=2, activation="relu"),
    FullyConnected(
        X[:4], X[:4, 0], TEST, TEST[:, 0], temperature=0.1, width=10.0, depth=2, activation="linear"
    ),
    Convolutional(*IMAGES, temperature=0.1, channels=10.0, mask=2),
    LocallyConnected(*IMAGES, temperature=0.1, channels=10.0, mask=2),
]
globals().update(checks("proportional", SYSTEMS, fewer={"similarity": 20}))
