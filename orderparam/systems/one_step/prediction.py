"""Errors after the step for any batch and step size: from the closed theory where it holds,
otherwise from the theory of given first layers, which are drawn at random.
"""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from orderparam.channels import RealLabels, SignLabels
from orderparam.core.registry import tool
from orderparam.core.verb import theory
from orderparam.systems.one_step.experiment import layer_of, train_first_layer
from orderparam.systems.one_step.model import OneStep
from orderparam.systems.one_step.single_layer import TrainedLayer, given_layer
from orderparam.systems.one_step.theory import ReadoutCurve, first_layer, one_step_asymptotics


@theory(traced=False)
def predict_read_out(system: OneStep, *, layers: int = 4) -> ReadoutCurve:
    """Errors of the read-out after one step, from the theory that holds for this batch and step.

    Where `first_layer` finds the bulk isotropic, the result is that of `one_step_asymptotics`.
    Otherwise it is `given_layer` averaged over first layers of the system's input dimension, drawn
    with keys 0, 1, ..., with a `UserWarning`. Further warnings are issued if the step learns
    nothing about the teacher, and if the labels have a mean that an odd activation cannot fit. The
    fields of the system must be concrete numbers: the function cannot be used under `vmap`.

    Args:
        layers: number of first layers that are drawn where the bulk is not isotropic; 4 by default.

    Raises:
        ValueError: if the step is so large, or the batch so small, that the theory of a given layer
        does not hold.

    Accuracy: that of the theory that is used; drawn layers have corrections of order 1/d.

    Source: Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro (2024); the theory of a given layer
    is derived here.

    >>> curve = predict_read_out(OneStep(2.0, 1.0, 50.0, 1.0, ridge=0.1))
    >>> round(float(curve.test_error), 5)
    0.0158
    """
    expected = first_layer(system)
    if not bool(expected.learns):
        warnings.warn(
            "the step learns nothing of the teacher: E[y theta.x] or E[activation'] vanishes",
            stacklevel=2,
        )
    if float(expected.unfitted_mean) != 0:
        warnings.warn(
            f"the labels have mean {float(expected.unfitted_mean):.3g}, of which an odd activation "
            "makes noise",
            stacklevel=2,
        )
    if bool(expected.isotropic):
        return one_step_asymptotics(system)
    warnings.warn(
        f"the step leaves the first layer's bulk anisotropic ({float(expected.anisotropy):.2g}, "
        f"stretch {float(expected.stretch):.2g}): errors from {layers} drawn layers with input_dim "
        f"= {system.input_dim}",
        stacklevel=2,
    )
    examples = system.sample_ratio * system.input_dim
    drawn = [train_first_layer(system, jax.random.key(number)) for number in range(layers)]
    try:
        curves = [given_layer(layer_of(system, layer, examples)) for layer in drawn]
    except ValueError as error:
        raise ValueError(
            f"OneStep.step = {float(system.step):g}, batch_ratio = {float(system.batch_ratio):g}: "
            f"{error}"
        ) from None
    mean = jax.tree.map(
        lambda *parts: jnp.mean(jnp.stack([jnp.asarray(part, float) for part in parts]), axis=0),
        *curves,
    )
    fields = {name: getattr(mean, name) for name in type(mean).dims()}
    return ReadoutCurve(**(fields | {"converged": fields["converged"] == 1}))


# ------------------------------------------------------------------------------------------------
# Errors of a read-out on a first layer that a user trained by one giant step.

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
