"""Layers with activations and weights: the form into which the networks of every framework are
read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from orderparam.observables.observable import Observed

if TYPE_CHECKING:
    from orderparam.observables.learning_coefficient import LearningCoefficient

Loss = Literal["square", "cross-entropy"]
LOSSES: tuple[Loss, ...] = ("square", "cross-entropy")
_SAME = 1e-6  # relative difference of two passes above which a network counts as random


@dataclass(frozen=True)
class NetworkLayer:
    """A layer of a network that multiplies its inputs by weights. inputs: (examples, channels,
    positions ..), or None. outputs: the products, before the bias and the nonlinearity. weight:
    (out, in ..)."""

    name: str
    inputs: np.ndarray | None = None
    outputs: np.ndarray | None = None
    weight: np.ndarray | None = None


@dataclass(frozen=True)
class NetworkFunction:
    """A network that can be run on other inputs and differentiated with respect to its parameters.

    outputs: the outputs at given inputs, one row for each example. read: the layers at other
    inputs. kernel: the tangent kernel between inputs and others (None: the inputs again).
    features: derivatives of the outputs in a number of random directions, drawn from a seed. along:
    theta . df(x)/dtheta of each output. parameters: their number. curvature: the largest eigenvalue
    of the Hessian of the mean over examples of |f - y|^2 or of the cross-entropy. coefficient: the
    learning coefficient of half the first or of the second mean, from inputs, targets, the name of
    the loss, values of t, the width of the prior over the root mean square of the parameters, and a
    seed. Both are None where they cannot be computed.
    """

    outputs: Callable[[np.ndarray], np.ndarray]
    read: Callable[[np.ndarray], tuple[NetworkLayer, ...]]
    kernel: Callable[[np.ndarray, np.ndarray | None], np.ndarray]
    features: Callable[[np.ndarray, int, int], np.ndarray]
    along: Callable[[np.ndarray], np.ndarray]
    parameters: int
    curvature: Callable[[np.ndarray, np.ndarray, str], Observed] | None = None
    coefficient: "Callable[..., LearningCoefficient] | None" = None


@dataclass(frozen=True)
class InspectedNetwork:
    """A network that was read. layers: in the order of computation. outputs: those of the network,
    None for saved weights. function: the network, where it can be differentiated. activations:
    saved arrays with one row for each example, by name."""

    layers: tuple[NetworkLayer, ...]
    outputs: np.ndarray | None = None
    function: "NetworkFunction | None" = None
    activations: Mapping[str, np.ndarray] = field(default_factory=dict)
    probabilities: np.ndarray | None = None

    def representations(self) -> dict[str, np.ndarray]:
        """Activations by name: the inputs of each product but the first, and the outputs."""
        found = dict(self.activations)
        for place, layer in enumerate(self.layers[1:], 1):
            if layer.inputs is not None:
                found[f"hidden {place}"] = layer.inputs
        if self.outputs is not None:
            found["outputs"] = self.outputs
        return found


def outputs_of(run: Callable[[], Any], x: np.ndarray) -> np.ndarray:
    """The outputs of a network, computed twice. Raises `ValueError` for a network that these inputs
    do not fit, that is random, or whose outputs are not finite."""
    try:
        first = np.asarray(run())
    except Exception as error:  # whatever a framework raises for shapes that do not fit
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"the network cannot be evaluated on inputs of shape {x.shape}: {reason}"
        ) from error
    second = np.asarray(run())
    if not np.isfinite(first).all():
        raise ValueError("the network's outputs are not finite")
    if np.max(np.abs(first - second), initial=0) > _SAME * np.max(np.abs(first), initial=0):
        raise ValueError(
            "two passes of the same inputs differ: switch dropout and the like off (inference mode)"
        )
    return first
