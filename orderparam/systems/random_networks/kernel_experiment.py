"""Kernels measured on random networks of finite width."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.networks import Architecture, empirical_ntk, fully_connected
from orderparam.systems.random_networks.kernels import (
    AngleKernel,
    CorrelationChain,
    DeepCorrelation,
    KernelSpread,
)
from orderparam.systems.random_networks.model import (
    AngledPair,
    NetworkKernels,
)

# The tangent kernel is computed by differentiation, and correlations are computed layer by layer.


@experiment
def angle_networks(system: AngledPair, key: PRNGKeyArray, *, networks: int = 16) -> AngleKernel:
    """Correlations of the NNGP kernel and of the tangent kernel, averaged over random networks of
    finite width.

    The NNGP kernel of a network is the Gram matrix of the features of its last hidden layer. The
    tangent kernel is computed by differentiation with respect to all weights. Both kernels are
    averaged over networks before their correlations are computed.

    Args:
        networks: number of networks that are drawn, at least 1. Default 16.

    Cost: one gradient of the network at each of the two inputs for each network.

    Source: Jacot, Gabriel, Hongler (2018); Lee et al. (2018).

    >>> import jax
    >>> from orderparam.systems.random_networks import AngledPair
    >>> found = angle_networks(AngledPair(width=16, depth=1), jax.random.key(0), networks=2)
    >>> bool(abs(found.nngp_correlation) <= 1)
    True
    """
    network = fully_connected(
        system.depth,
        system.size("width"),
        system.activation,
        system.weight_variance,
        system.bias_variance,
    )
    nngp, ntk = (
        kernels.mean(axis=0) for kernels in _kernels(network, key, system.inputs, networks)
    )
    return AngleKernel(nngp_correlation=_correlation(nngp), ntk_correlation=_correlation(ntk))


@experiment
def correlation_networks(
    system: AngledPair, key: PRNGKeyArray, *, networks: int = 16
) -> CorrelationChain:
    r"""Correlation of the pre-activations at two inputs after every layer, averaged over random
    networks.

    $$ c_l = \hat K_{12} / \sqrt{\hat K_{11} \hat K_{22}} $$

    Given the 2 x 2 matrix $\hat K$ of one layer, the pre-activations of the next are independent
    pairs $N(0, \hat K)$, so that no weight matrices are needed.

    Args:
        networks: number of networks that are drawn, at least 1. Default 16.

    Source: Poole et al. (2016).

    >>> import jax
    >>> from orderparam.systems.random_networks import AngledPair
    >>> correlation_networks(AngledPair(width=16), jax.random.key(0), networks=2).correlation.shape
    (3,)
    """
    start = system.bias_variance + system.weight_variance * system.inputs @ system.inputs.T / 2
    keys = jax.random.split(key, networks)
    chains = _correlation_chains(system, system.size("width"), start, keys)
    return CorrelationChain(
        layers=jnp.arange(1.0, system.depth + 1), correlation=chains.mean(axis=0)
    )


@experiment
def deep_correlation(
    system: AngledPair, key: PRNGKeyArray, *, networks: int = 16
) -> DeepCorrelation:
    """Correlation of the pre-activations at two inputs after the last hidden layer, averaged over
    random networks.

    It is the last entry of `correlation_networks`.

    Args:
        networks: number of networks that are drawn, at least 1. Default 16.

    Source: Poole et al. (2016).

    >>> import jax
    >>> from orderparam.systems.random_networks import AngledPair
    >>> bool(deep_correlation(AngledPair(width=16), jax.random.key(0), networks=2).correlation <= 1)
    True
    """
    return DeepCorrelation(
        correlation=correlation_networks(system, key, networks=networks).correlation[-1]
    )


@experiment
def kernel_spread(system: NetworkKernels, key: PRNGKeyArray, *, units: int = 2**14) -> KernelSpread:
    """Bias and fluctuations of the kernels of random networks around their infinite-width limit.

    Args:
        units: number of units in one hidden layer of all networks together, which sets the number
            of networks to units / `width`, at least 32. Default 16 384.

    Accuracy: the estimate of the bias is linear in the measured kernel and hence unbiased. The
    fluctuation is the square root of an unbiased variance and is too small by a fraction of about
    1/(4 networks).

    Cost: the tangent kernel of each network is found by differentiation.

    Source: Jacot, Gabriel, Hongler (2018); Lee et al. (2019); Novak et al. (2019).

    >>> import jax
    >>> from orderparam.systems.random_networks import NetworkKernels
    >>> spread = kernel_spread(NetworkKernels([[1.0, 0.5]], width=8), jax.random.key(0), units=256)
    >>> bool(spread.nngp_fluctuation > 0)
    True
    """
    networks = max(32, units // system.size("width"))
    x = system.inputs
    limit = system.architecture(finite=False).kernel(x)
    nngp, ntk = _kernels(system.architecture(), key, x, networks)
    bias, fluctuation = _spread(nngp, limit.nngp)
    ntk_bias, ntk_fluctuation = _spread(ntk, limit.ntk)
    return KernelSpread(
        nngp_bias=bias,
        nngp_fluctuation=fluctuation,
        ntk_bias=ntk_bias,
        ntk_fluctuation=ntk_fluctuation,
    )


@eqx.filter_jit
def _kernels(
    architecture: Architecture, key: PRNGKeyArray, x: Array, networks: int
) -> tuple[Array, Array]:
    """Gram matrix of the last features and tangent kernel of each network, both of shape (network,
    point, point).
    """

    def one(key: PRNGKeyArray) -> tuple[Array, Array]:
        whitened = architecture.draw(key, x.shape[1:])
        features = architecture.features(whitened, x)
        return features @ features.T, empirical_ntk(architecture.network_from_whitened(whitened), x)

    keys = jax.random.split(key, networks)
    if x.ndim > 2:
        # a batch of convolutions with different weights is slower than a loop over them
        return jax.lax.map(one, keys)
    weights = sum(
        leaf.size
        for leaf in jax.tree.leaves(jax.eval_shape(lambda: architecture.draw(key, x.shape[1:])))
    )
    return jax.lax.map(one, keys, batch_size=max(1, min(64, 2**21 // weights)))


@eqx.filter_jit
def _correlation_chains(
    system: AngledPair, width: int, start: Array, keys: PRNGKeyArray
) -> Float[Array, "network layer"]:
    def layer(kernel: Array, key: PRNGKeyArray) -> tuple[Array, Array]:
        a, c, b = kernel[0, 0], kernel[0, 1], kernel[1, 1]
        g = jax.random.normal(key, (2, width))
        # The pair (u, v) has the covariance Khat and is made of two independent normal numbers.
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
