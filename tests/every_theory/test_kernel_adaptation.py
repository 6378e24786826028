"""Every theory of kernels that adapt."""

import numpy as np
from checks import checks

from orderparam.systems.kernel_adaptation import (
    ConvolutionalOnData,
    DeepNetworkOnData,
    NetworkOnData,
    PatchNetwork,
    ScaledNetwork,
    TwoLayerNetwork,
    hermite_target,
    teacher_data,
)

RNG = np.random.default_rng(0)
X, TEST = RNG.normal(size=(6, 4)), RNG.normal(size=(3, 4))
DATA = (X, X[:, 0], TEST, TEST[:, 0])
NETWORK = TwoLayerNetwork(20.0, 30.0, 100.0, 0.1, hermite_target({1: 1.0, 3: -0.3}))
SYSTEMS = [
    NETWORK,
    ScaledNetwork(NETWORK, 2.0),
    PatchNetwork(20.0, 4.0, 10.0, 100.0, 0.1, hermite_target({1: 1.0})),
    NetworkOnData(*DATA, 20.0, 0.1),
    DeepNetworkOnData(*DATA, 20.0, 0.1),
    DeepNetworkOnData(X[:3], X[:3, 0], TEST, TEST[:, 0], 20.0, 0.1, activation="linear"),
    ConvolutionalOnData(*teacher_data(5, 3, groups=2, group=2, patch_dim=3), 20.0, 0.1),
]
# few draws, long enough to say that they converged
LENGTHS = {"particles": 40, "warmup": 50, "samples": 250}
PARTICLES = ("adapted_weights_on_data", "deep_adapted_layers")
FEWER = {
    "adapted_weights": 50,
    "share_free_energy": 5,
    "unspecialised_network": 5,
    "escape_time": 5,
    "examples_needed": 5,
    "patch_examples_needed": 5,
} | dict.fromkeys(PARTICLES, 4)
WARM = NETWORK.with_(temperature=4.0)  # where the ridge is hardly renormalised
CUBIC = TwoLayerNetwork(  # with a barrier
    50.0, 80.0, 400.0, 0.055, hermite_target({3: 1.0}, normalised=True), readout_variance=0.04
)
SLOPING = {
    "escape_time": [CUBIC, ScaledNetwork(CUBIC, 2.0)],
    "adapted_weights": [
        WARM,
        ScaledNetwork(WARM, 2.0),
        PatchNetwork(20.0, 4.0, 10.0, 300.0, 10.0, hermite_target({1: 1.0})),
    ],
    "examples_needed": [NETWORK.with_(width=300.0)],
}
globals().update(
    checks(
        "kernel_adaptation",
        SYSTEMS,
        fewer=FEWER,
        options=dict.fromkeys(PARTICLES, LENGTHS),
        sloping=SLOPING,
        infinite=("border", "escape", "log_odds", "barrier", "crossed", "time", "kramers_time"),
    )
)
