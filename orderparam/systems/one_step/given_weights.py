"""Errors of a read-out on a first layer that a user trained by one giant step."""

import numpy as np
from jaxtyping import Float

from orderparam.channels import RealLabels, SignLabels
from orderparam.core.registry import tool
from orderparam.systems.one_step.single_layer import TrainedLayer, given_layer
from orderparam.systems.one_step.theory import ReadoutCurve

_STEPS = 40
_SMALLEST, _LARGEST = 1e-8, 1e6


@tool
def predict_given_layer(
    weights: Float[np.ndarray, "neuron input"],
    spike: Float[np.ndarray, "input"],
    teacher: Float[np.ndarray, "input"],
    n_train: int,
    train_error: float,
    activation: str,
    noise: float | None = None,
    flip: float = 0.0,
) -> ReadoutCurve:
    """Predicted errors of the ridge read-out that has a given training error.

    Args:
        weights: First layer, acting on inputs of unit variance.
        spike: The direction that the step added to the rows.
        teacher: The direction on which the labels depend.
        n_train: Number of training examples of the read-out.
        train_error: Mean of (y - f)^2. Targets are signs, or numbers in units in which the
            teacher's field has variance 1.
        activation: Activation of the hidden units.
        noise: Variance of the label noise if targets are numbers; None if the labels are signs.
        flip: Share of signs that are reversed.

    Raises:
        ValueError: as `TrainedLayer.from_weights` does.

    Source: Cui et al. (2024), Dandi et al. (2024), by `given_layer`.
    """
    labels = SignLabels(flip) if noise is None else RealLabels(noise=noise)
    layer = TrainedLayer.from_weights(
        weights, spike, teacher, n_train, 1.0, activation=activation, labels=labels
    )
    low, high = np.log(_SMALLEST), np.log(_LARGEST)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        found = given_layer(layer.with_(ridge=float(np.exp(middle))))
        too_small = float(found.train_error) < train_error
        low, high = (middle, high) if too_small else (low, middle)
    return given_layer(layer.with_(ridge=float(np.exp(high))))
