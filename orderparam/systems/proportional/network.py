"""The real networks: hidden features of a fully connected, convolutional or locally connected network with given weights.

Weights are whitened, u ~ N(0, 1): a weight is its prior standard deviation times u. All networks read f(x) = Phi(x) u with u the
whitened read-out, so that Phi Phi^T is the kernel of the network with its read-out averaged over the prior.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.gaussian import Activation
from orderparam.systems.proportional.model import Convolutional, FullyConnected, LocallyConnected, Network

Kind = Literal["dense", "shared", "local", "pooled"]
Weights = tuple[Float[Array, "..."], ...]


class Features(eqx.Module):
    """x -> Phi(x). scales, readout: prior standard deviations of hidden and read-out weights, over sqrt(fan-in)."""

    scales: Float[Array, "layer"]
    readout: Float[Array, ""]
    kind: Kind = eqx.field(static=True)
    phi: Activation = eqx.field(static=True)

    def __call__(self, weights: Weights, x: Float[Array, "example *input"]) -> Float[Array, "example unit *patch"]:
        """Phi(x), one column for each read-out weight: (unit,), or (channel, patch)."""
        if self.kind == "dense":
            for scale, weight in zip(self.scales, weights):
                x = self.phi(scale * x @ weight.T)
            return self.readout * x
        pattern = "npd,cpd->ncp" if self.kind == "local" else "npd,cd->ncp"
        hidden = self.phi(self.scales[0] * jnp.einsum(pattern, x, weights[0]))
        return self.readout * (jnp.mean(hidden, axis=-1) if self.kind == "pooled" else hidden)


def build(
    system: Network,
) -> tuple[Features, Float[Array, "train *input"], Float[Array, "test *input"], tuple[tuple[int, ...], ...]]:
    """The features of a system's network, its training and test inputs (patches of images), the shapes of its hidden weights."""
    x, _ = system.train
    test = jnp.asarray(system.test_inputs, float)
    readout = jnp.asarray(system.readout_variance, float)
    if isinstance(system, FullyConnected):
        widths = [int(width) for width in system.widths]
        fans = [x.shape[1], *widths[:-1]]
        scales = jnp.sqrt(system.variances / jnp.asarray(fans, float))
        return Features(scales, jnp.sqrt(readout / widths[-1]), "dense", system.phi), x, test, tuple(zip(widths, fans))
    assert isinstance(system, Convolutional | LocallyConnected)
    patches, others = system.patches(x), system.patches(test)
    count, pixels = patches.shape[1:]
    channels = int(system.channels)
    scales = jnp.sqrt(jnp.asarray(system.weight_variance, float) / pixels)[None]
    if isinstance(system, LocallyConnected):
        kind: Kind = "local"
        shape: tuple[int, ...] = (channels, count, pixels)
    else:
        kind = "pooled" if system.readout == "average" else "shared"
        shape = (channels, pixels)
    units = channels if kind == "pooled" else channels * count
    return Features(scales, jnp.sqrt(readout / units), kind, system.phi), patches, others, (shape,)


def draw(shapes: tuple[tuple[int, ...], ...], key: PRNGKeyArray) -> Weights:
    """Hidden weights from the prior, whitened."""
    return tuple(jax.random.normal(k, shape) for k, shape in zip(jax.random.split(key, len(shapes)), shapes))
