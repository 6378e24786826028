"""Feature learning as a kernel that adapts: Bayesian networks whose weights turn towards the target's direction.

One call each for the infinitely wide network, the kernel rescaled by one number, Gaussian weights, weights with their full
distribution (specialisation), averaged over data or on given data; deep networks on given data and convolutional ones on patches;
and the sampled networks themselves.
"""

from orderparam.systems.kernel_adaptation.experiment import (
    Classifier,
    Gaussianity,
    Pruned,
    SampledNetwork,
    TrainedNetwork,
    draw_data,
    draw_network,
    gaussianity,
    langevin_training,
    pruned_classifier,
    sampled_network,
)
from orderparam.systems.kernel_adaptation.experiment.deep import SampledDeepNetwork, sampled_deep_network
from orderparam.systems.kernel_adaptation.experiment.on_data import SampledOnData, adapted_weights_on_data, sampled_on_data
from orderparam.systems.kernel_adaptation.experiment.patches import SampledPatches, sampled_patches
from orderparam.systems.kernel_adaptation.model import NetworkOnData, TwoLayerNetwork, hermite_target
from orderparam.systems.kernel_adaptation.model_deep import DeepNetwork
from orderparam.systems.kernel_adaptation.model_patches import PatchNetwork
from orderparam.systems.kernel_adaptation.sample_complexity import (
    ExamplesNeeded,
    MeasuredExamplesNeeded,
    examples_needed,
    sampled_examples_needed,
)
from orderparam.systems.kernel_adaptation.scaled import (
    SampledOnDrawnData,
    ScaledNetwork,
    SolvedOnDrawnData,
    averaged_at_scale,
    sampled_at_scale,
    solved_on_drawn_data,
)
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
from orderparam.systems.kernel_adaptation.theory.deep import DeepPrediction, deep_gaussian_layers, deep_gaussian_process

__all__ = [
    "AdaptedWeights",
    "Classifier",
    "DataPrediction",
    "DeepNetwork",
    "DeepPrediction",
    "ExamplesNeeded",
    "GaussianWeights",
    "Gaussianity",
    "MeasuredExamplesNeeded",
    "NetworkOnData",
    "PatchNetwork",
    "Prediction",
    "Pruned",
    "SampledDeepNetwork",
    "SampledNetwork",
    "SampledOnData",
    "SampledOnDrawnData",
    "SampledPatches",
    "ScaledKernel",
    "ScaledNetwork",
    "SolvedOnDrawnData",
    "TrainedNetwork",
    "TwoLayerNetwork",
    "Wells",
    "adapted_weights",
    "adapted_weights_on_data",
    "averaged_at_scale",
    "deep_gaussian_layers",
    "deep_gaussian_process",
    "draw_data",
    "draw_network",
    "examples_needed",
    "gaussian_process",
    "gaussian_process_on_data",
    "gaussian_weights",
    "gaussian_weights_on_data",
    "gaussianity",
    "hermite_target",
    "kernel_scaling",
    "kernel_scaling_on_data",
    "langevin_training",
    "pruned_classifier",
    "sampled_at_scale",
    "sampled_deep_network",
    "sampled_examples_needed",
    "sampled_network",
    "sampled_on_data",
    "sampled_patches",
    "solved_on_drawn_data",
]
