"""Kernels measured on random networks of finite width: the tangent kernel by differentiation, correlations layer by layer."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.networks import Architecture, empirical_ntk, fully_connected
from orderparam.systems.random_networks.infinite import AngleKernel, CorrelationChain, DeepCorrelation, KernelSpread
from orderparam.systems.random_networks.model import AngledPair, NetworkKernels


@experiment
def angle_networks(system: AngledPair, key: PRNGKeyArray, *, networks: int = 16) -> AngleKernel:
    """Both correlations from kernels averaged over random networks: the NNGP kernel Phi Phi^T of their last hidden features, and
    the tangent kernel of the whole network."""
    network = fully_connected(system.depth, system.size("width"), system.activation, system.weight_variance, system.bias_variance)
    nngp, ntk = (kernels.mean(axis=0) for kernels in _kernels(network, key, system.inputs, networks))
    return AngleKernel(_correlation(nngp), _correlation(ntk))


@experiment
def correlation_networks(system: AngledPair, key: PRNGKeyArray, *, networks: int = 16) -> CorrelationChain:
    """The correlation Khat_12 / sqrt(Khat_11 Khat_22) after every layer, averaged over random networks.

    Given the 2 x 2 matrix Khat of one layer, the pre-activations of the next are independent N(0, Khat) pairs: no weight
    matrices are needed.
    """
    start = system.bias_variance + system.weight_variance * system.inputs @ system.inputs.T / 2
    keys = jax.random.split(key, networks)
    chains = _correlation_chains(system, system.size("width"), start, keys)
    return CorrelationChain(jnp.arange(1.0, system.depth + 1), chains.mean(axis=0))


@experiment
def deep_correlation(system: AngledPair, key: PRNGKeyArray, *, networks: int = 16) -> DeepCorrelation:
    """The correlation after the last hidden layer, see `correlation_networks`."""
    return DeepCorrelation(correlation_networks(system, key, networks=networks).correlation[-1])


@experiment
def kernel_spread(system: NetworkKernels, key: PRNGKeyArray, *, units: int = 2**14) -> KernelSpread:
    """Bias and fluctuations of the kernels of random networks. The bias is linear in the measured kernel, hence unbiased itself;
    the fluctuation is the root of an unbiased variance, low by a fraction of about 1 / (4 networks).

    units: as many networks are drawn as have so many units in one hidden layer together, but at least 32.
    """
    networks = max(32, units // system.size("width"))
    x = system.inputs
    limit = system.architecture(finite=False).kernel(x)
    nngp, ntk = _kernels(system.architecture(), key, x, networks)
    bias, fluctuation = _spread(nngp, limit.nngp)
    ntk_bias, ntk_fluctuation = _spread(ntk, limit.ntk)
    return KernelSpread(bias, fluctuation, ntk_bias, ntk_fluctuation)


@eqx.filter_jit
def _kernels(architecture: Architecture, key: PRNGKeyArray, x: Array, networks: int) -> tuple[Array, Array]:
    """Phi Phi^T and the tangent kernel of each network, shape (network, point, point)."""

    def one(key: PRNGKeyArray) -> tuple[Array, Array]:
        whitened = architecture.draw(key, x.shape[1:])
        features = architecture.features(whitened, x)
        return features @ features.T, empirical_ntk(architecture.network_from_whitened(whitened), x)

    keys = jax.random.split(key, networks)
    if x.ndim > 2:
        return jax.lax.map(one, keys)  # a batch of convolutions with different weights is slower than one after the other
    weights = sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(lambda: architecture.draw(key, x.shape[1:]))))
    return jax.lax.map(one, keys, batch_size=max(1, min(64, 2**21 // weights)))


@eqx.filter_jit
def _correlation_chains(system: AngledPair, width: int, start: Array, keys: PRNGKeyArray) -> Float[Array, "network layer"]:
    def layer(kernel: Array, key: PRNGKeyArray) -> tuple[Array, Array]:
        a, c, b = kernel[0, 0], kernel[0, 1], kernel[1, 1]
        g = jax.random.normal(key, (2, width))
        slope = c / a
        u = jnp.sqrt(a) * g[0]
        v = slope * u + jnp.sqrt(jnp.maximum(b - slope * c, 0.0)) * g[1]
        phi = system.activation(jnp.stack([u, v]))
        following = system.bias_variance + system.weight_variance * phi @ phi.T / width
        return following, _correlation(following)

    def one(key: PRNGKeyArray) -> Array:
        return jax.lax.scan(layer, start, jax.random.split(key, system.depth))[1]

    return jax.vmap(one)(keys)


def _correlation(kernel: Float[Array, "2 2"]) -> Float[Array, ""]:
    return kernel[0, 1] / jnp.sqrt(kernel[0, 0] * kernel[1, 1])


def _spread(kernels: Float[Array, "network point point"], limit: Array) -> tuple[Array, Array]:
    size = jnp.sum(limit**2)
    bias = jnp.sum((kernels.mean(axis=0) - limit) * limit) / size
    return bias, jnp.sqrt(jnp.sum(jnp.var(kernels, axis=0, ddof=1)) / size)
