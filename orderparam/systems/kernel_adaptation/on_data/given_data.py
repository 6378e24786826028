"""Prediction of the first layer of a Bayesian two-layer network on a user's own data."""

import numpy as np
from jaxtyping import Float

from orderparam.core.registry import tool
from orderparam.systems.kernel_adaptation.on_data.model import NetworkOnData
from orderparam.systems.kernel_adaptation.on_data.theory import (
    DataPrediction,
    gaussian_weights_on_data,
)


@tool
def predict_adaptation(
    train: tuple[Float[np.ndarray, "train input"], Float[np.ndarray, "train"]],
    test: tuple[Float[np.ndarray, "test input"], Float[np.ndarray, "test"]],
    width: int,
    temperature: float,
    weight_variance: float,
    readout_variance: float,
    activation: str,
) -> DataPrediction:
    """Mean output and covariance of the first-layer weights that the theory predicts for a Bayesian
    two-layer network.

    Args:
        train, test: Inputs and targets.
        width: Hidden units N.
        temperature: T, the variance of the observation noise.
        weight_variance: Prior mean of |w|^2 of a hidden unit.
        readout_variance: Prior variance of sqrt(N) a.
        activation: "erf" or "relu", or another one that has its Gaussian averages in closed form.

    Source: Seroussi, Naveh and Ringel (2023), by `gaussian_weights_on_data`.
    """
    system = NetworkOnData(
        *train,
        *test,
        width,
        temperature,
        readout_variance,
        weight_variance,
        activation=activation,
    )
    return gaussian_weights_on_data(system)
