"""The real networks of the room's systems, as architectures of `orderparam.networks`."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.system import whole
from orderparam.networks import Architecture, convolutional, fully_connected
from orderparam.networks.affine import Weights
from orderparam.systems.proportional.model import Convolutional, FullyConnected, LocallyConnected, Network


def architecture(system: Network) -> Architecture:
    """The network of a system at its finite width, without biases; variances are arrays, so that another compiles nothing.

    Raises `ValueError` for a width that is no whole number.
    """
    outputs = 1 if system.targets.ndim == 1 else system.targets.shape[1]
    readout = float(system.readout_variance)
    if isinstance(system, FullyConnected):
        widths = [whole("width", width) for width in system.widths]
        variances = [float(variance) for variance in system.variances]
        found = fully_connected(
            int(system.depth), widths, system.phi, variances, readout_variance=readout, outputs=outputs
        )
    else:
        assert isinstance(system, Convolutional | LocallyConnected)
        pooled = isinstance(system, Convolutional) and system.readout == "average"
        found = convolutional(
            1,
            whole("channels", system.channels),
            system.mask,
            system.phi,
            strides=system.steps,
            padding="valid",
            readout="global_average" if pooled else "flatten",
            shared=isinstance(system, Convolutional),
            weight_variance=float(system.weight_variance),
            readout_variance=readout,
            outputs=outputs,
        )
    return jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf, found)


def inputs(system: Network) -> tuple[Float[Array, "train *input"], Float[Array, "test *input"]]:
    """Training and test inputs of the network: images with the zeros of the padding around them."""
    train, test = system.train[0], jnp.asarray(system.test_inputs, float)
    if isinstance(system, FullyConnected):
        return train, test
    return system.padded(train), system.padded(test)


def deviations(whitened: Any, network: Architecture) -> Any:
    """Standard deviations of the weights in the papers' units, where the 1 / sqrt(fan-in) stands in the network's equations."""

    def one(layer: Any, own: Any) -> Any:
        return Weights(jnp.sqrt(layer.weight_variance), None) if isinstance(own, Weights) else ()

    return tuple(one(layer, own) for layer, own in zip(network.layers.layers, whitened))
