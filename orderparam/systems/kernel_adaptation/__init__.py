"""Feature learning as a kernel that adapts: Bayesian two-layer networks whose weights turn towards the target's direction.

One call each for the infinitely wide network, the kernel rescaled by one number, Gaussian weights, weights with their full
distribution (specialisation), averaged over data or on given data; and the sampled network itself.
"""

from orderparam.systems.kernel_adaptation.experiment import (
    Gaussianity,
    SampledNetwork,
    draw_data,
    draw_network,
    gaussianity,
    sampled_network,
)
from orderparam.systems.kernel_adaptation.model import NetworkOnData, TwoLayerNetwork, hermite_target
from orderparam.systems.kernel_adaptation.theory import (
    AdaptedWeights,
    DataPrediction,
    GaussianWeights,
    Prediction,
    ScaledKernel,
    Wells,
    adapted_weights,
    gaussian_process,
    gaussian_process_on_data,
    gaussian_weights,
    gaussian_weights_on_data,
    kernel_scaling,
    kernel_scaling_on_data,
)

__all__ = [
    "AdaptedWeights",
    "DataPrediction",
    "GaussianWeights",
    "Gaussianity",
    "NetworkOnData",
    "Prediction",
    "SampledNetwork",
    "ScaledKernel",
    "TwoLayerNetwork",
    "Wells",
    "adapted_weights",
    "draw_data",
    "draw_network",
    "gaussian_process",
    "gaussian_process_on_data",
    "gaussian_weights",
    "gaussian_weights_on_data",
    "gaussianity",
    "hermite_target",
    "kernel_scaling",
    "kernel_scaling_on_data",
    "sampled_network",
]
