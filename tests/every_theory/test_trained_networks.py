"""Every theory of trained networks."""

import numpy as np
from checks import checks

from orderparam.networks.convolutional import convolutional
from orderparam.networks.fully_connected import fully_connected
from orderparam.systems.trained_networks import ImageArchitecture, InspectedTraining

X = np.random.default_rng(0).standard_normal((14, 4))
IMAGES = X.reshape(14, 2, 2, 1)
DENSE = fully_connected(2, None, "erf", weight_variance=2.0)
SMALL = convolutional(1, 4, 2, "relu")
SYSTEMS = [
    InspectedTraining(x[:10], X[:10, 0], x[10:], X[10:, 0], network, 8)
    for x, network in ((X, DENSE), (IMAGES, SMALL))
]
LABELS = np.eye(3)[np.arange(14) % 3] - 1 / 3
SYSTEMS.append(ImageArchitecture(IMAGES[:10], LABELS[:10], IMAGES[10:], LABELS[10:], 4))
globals().update(
    checks(
        "trained_networks",
        SYSTEMS,
        options={"permuted_targets": {"draws": 50}},
        fewer={"infinite_width": 40, "permuted_targets": 40, "wide_classifier": 40},
    )
)
