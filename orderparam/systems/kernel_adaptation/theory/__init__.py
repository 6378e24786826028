"""Theories of the room: System -> Result, from the kernel that never moves to weights with their full distribution."""

from orderparam.systems.kernel_adaptation.theory.deep import DeepPrediction, deep_gaussian_layers, deep_gaussian_process
from orderparam.systems.kernel_adaptation.theory.fixed_kernel import ScaledKernel, gaussian_process, kernel_scaling
from orderparam.systems.kernel_adaptation.theory.gaussian_weights import GaussianWeights, gaussian_weights
from orderparam.systems.kernel_adaptation.theory.on_data import (
    DataPrediction,
    gaussian_process_on_data,
    gaussian_weights_on_data,
    kernel_scaling_on_data,
)
from orderparam.systems.kernel_adaptation.theory.phases import Wells
from orderparam.systems.kernel_adaptation.theory.predictions import Prediction
from orderparam.systems.kernel_adaptation.theory.single_weight import AdaptedWeights, adapted_weights

__all__ = [
    "AdaptedWeights",
    "DataPrediction",
    "DeepPrediction",
    "GaussianWeights",
    "Prediction",
    "ScaledKernel",
    "Wells",
    "adapted_weights",
    "deep_gaussian_layers",
    "deep_gaussian_process",
    "gaussian_process",
    "gaussian_process_on_data",
    "gaussian_weights",
    "gaussian_weights_on_data",
    "kernel_scaling",
    "kernel_scaling_on_data",
]
