"""Networks really drawn, many at a time but never all: the random function's values, and the
observables of the theory.

Estimates of cumulants are free of bias: the mean of z is known to vanish, and products of averages
are taken over pairs of different networks. The kurtosis is a ratio of two such estimates, with a
bias of order 1 / networks.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
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
    DeepNetwork,
    NetworkKernels,
    RandomNetwork,
)
from orderparam.systems.random_networks.theory import (
    READOUT_MOMENTS,
    Cumulants,
    Density,
    KernelMatrix,
    Marginals,
    marginals_of,
    pairings,
)

_NUMBERS = 2**18  # random numbers held at a time


class Sample(Result):
    """value: z(x) of one network, at every input."""

    value: Float[Array, "input"]


class MeasuredDepth(Result):
    """After l = 1 .. depth hidden layers, over random networks: see `DeepCumulants`; vertex: n Var
    Khat_l.
    """

    layers: Float[Array, "layer"]
    mean_kernel: Float[Array, "layer"]
    vertex: Float[Array, "layer"]
    kurtosis: Float[Array, "layer"]
    width_kurtosis: Float[Array, "layer"]


@experiment
def sample(system: RandomNetwork, key: PRNGKeyArray) -> Sample:
    """One network."""
    return Sample(outputs(system, key, 1)[0])


@experiment
def sampled_covariance(
    system: RandomNetwork, key: PRNGKeyArray, *, networks: int = 20_000
) -> KernelMatrix:
    """K(x, x') over random networks."""
    z = outputs(system, key, networks)
    return KernelMatrix(z.T @ z / networks)


@experiment
def sampled_cumulants(
    system: RandomNetwork, key: PRNGKeyArray, *, networks: int = 20_000
) -> Cumulants:
    """K and kappa4 over random networks, both free of bias.

    kappa4 = mean(z z z z) - sum over the three pairings of (R K_ab K_cd - mean(z_a z_b z_c z_d)) /
    (R - 1), R networks.
    """
    z = outputs(system, key, networks)
    points = z.shape[1]
    products = (z[:, :, None] * z[:, None, :]).reshape(networks, points**2)
    second = products.mean(axis=0).reshape(points, points)
    fourth = (products.T @ products / networks).reshape((points,) * 4)
    return Cumulants(second, fourth - (networks * pairings(second) - 3 * fourth) / (networks - 1))


@experiment
def sampled_marginals(
    system: RandomNetwork, key: PRNGKeyArray, *, networks: int = 20_000
) -> Marginals:
    """Variance, kappa4 and kurtosis at each input over random networks. The kurtosis has a standard
    error sqrt(24 / networks), whatever the width: beyond widths of about 30 use
    `integrated_marginals`."""
    z = outputs(system, key, networks)
    second, fourth = (jnp.mean(z**power, axis=0) for power in (2, 4))
    kappa = fourth - 3 * (networks * second**2 - fourth) / (networks - 1)
    return marginals_of(system, second, kappa)


@experiment
def integrated_marginals(
    system: RandomNetwork, key: PRNGKeyArray, *, networks: int = 20_000
) -> Marginals:
    """The same from random hidden layers, each with its read-out averaged over its law instead of
    drawn.

    Given the hidden layer, z has variance S = v sum_c phi_c^2, v = readout_variance / N, and fourth
    moment 3 S^2 + (m4 - 3) v^2 sum_c phi_c^4, so that kappa4 = 3 Var S + (m4 - 3) v^2 <sum_c
    phi_c^4>: an estimate whose relative error does not grow with the width.
    """
    squares, fourths = jnp.moveaxis(_draws(_draw_sums, system, key, networks), -1, 0)
    unit = system.readout_variance / system.width
    m4, _ = READOUT_MOMENTS[system.readout_law]
    kappa = 3 * unit**2 * jnp.var(squares, axis=0, ddof=1) + (m4 - 3) * unit**2 * jnp.mean(
        fourths, axis=0
    )
    return marginals_of(system, unit * jnp.mean(squares, axis=0), kappa)


@experiment
def sampled_density(system: RandomNetwork, key: PRNGKeyArray, *, networks: int = 20_000) -> Density:
    """Histogram of z(x) over random networks."""
    z = outputs(system, key, networks)
    edges = system.edges
    counts = jax.vmap(lambda column: jnp.histogram(column, edges)[0])(z.T)
    return Density((edges[1:] + edges[:-1]) / 2, counts / networks / jnp.diff(edges))


@experiment
def deep_networks(
    system: DeepNetwork, key: PRNGKeyArray, *, networks: int = 20_000
) -> MeasuredDepth:
    """Random deep networks at one input, without their weight matrices: given Khat_l, the
    pre-activations of layer l are independent N(0, Khat_l), exactly, so that a layer costs `width`
    random numbers."""
    width = system.size("width")
    return _measured(
        system, _in_chunks(eqx.Partial(_draw_chain, system, width=width), key, networks, width)
    )


@experiment
def deep_networks_with_weights(
    system: DeepNetwork, key: PRNGKeyArray, *, networks: int = 2000
) -> MeasuredDepth:
    """The same observables from networks with weight matrices, other networks for each number of
    layers.

    Raises `ValueError` when first_variance < bias_variance, which no input can have.
    """
    squared = (system.first_variance - system.bias_variance) / system.weight_variance
    if squared < 0:
        raise ValueError(
            f"DeepNetwork.first_variance = {system.first_variance}: must be >= bias_variance = {system.bias_variance} "
            "for an input to exist"
        )
    x = jnp.full((1, 1), np.sqrt(squared))
    layers = []
    for depth in range(1, system.depth + 1):
        network = fully_connected(
            depth,
            system.size("width"),
            system.activation,
            system.weight_variance,
            system.bias_variance,
        )
        keys = jax.random.split(jax.random.fold_in(key, depth), networks)
        layers.append(_variances(network, x, keys))
    return _measured(system, jnp.stack(layers, axis=1))


def outputs(
    system: RandomNetwork, key: PRNGKeyArray, networks: int
) -> Float[Array, "network input"]:
    """z at all inputs of so many independent networks. Memory: those numbers, and a few megabytes
    of weights at a time.
    """
    return _draws(_draw_outputs, system, key, networks)


def _draws(
    draw: Callable[..., Array], system: RandomNetwork, key: PRNGKeyArray, networks: int
) -> Array:
    width = system.size("width")
    return _in_chunks(
        eqx.Partial(draw, system, width=width), key, networks, width * sum(system.inputs.shape)
    )


def _draw_outputs(
    system: RandomNetwork, key: PRNGKeyArray, count: int, width: int
) -> Float[Array, "network input"]:
    hidden_key, readout_key = jax.random.split(key)
    readout = _weights(readout_key, system.readout_law, (count, width))
    scale = jnp.sqrt(system.readout_variance / width)
    return scale * jnp.einsum("rc,rcp->rp", readout, _hidden(system, hidden_key, count, width))


def _draw_sums(
    system: RandomNetwork, key: PRNGKeyArray, count: int, width: int
) -> Float[Array, "network input 2"]:
    """sum_c phi_c(x)^2 and sum_c phi_c(x)^4."""
    squares = _hidden(system, key, count, width) ** 2
    return jnp.stack([squares.sum(axis=1), (squares**2).sum(axis=1)], axis=-1)


def _hidden(
    system: RandomNetwork, key: PRNGKeyArray, count: int, width: int
) -> Float[Array, "network unit input"]:
    x = system.inputs
    weights = _weights(key, system.prior, (count, width, x.shape[1]))
    return system.activation(jnp.sqrt(system.weight_variance / x.shape[1]) * weights @ x.T)


def _weights(key: PRNGKeyArray, law: str, shape: tuple[int, ...]) -> Array:
    """Independent numbers of mean 0 and variance 1."""
    if law == "gaussian":
        return jax.random.normal(key, shape)
    if law == "uniform":
        return jax.random.uniform(key, shape, minval=-np.sqrt(3), maxval=np.sqrt(3))
    return jax.random.rademacher(key, shape, dtype=float)


@eqx.filter_jit
def _in_chunks(draw, key: PRNGKeyArray, networks: int, numbers: int) -> Array:
    """`draw(key, count)` for `networks` networks of so many numbers each, stacked along the first
    axis.
    """
    chunk = min(networks, max(1, _NUMBERS // numbers))
    keys = jax.random.split(key, -(-networks // chunk))
    parts = jax.lax.map(lambda key: draw(key, chunk), keys)
    return parts.reshape(-1, *parts.shape[2:])[:networks]


def _draw_chain(
    system: DeepNetwork, key: PRNGKeyArray, count: int, width: int
) -> Float[Array, "network layer"]:
    """Khat_1, .., Khat_depth."""

    def layer(variance: Array, key: PRNGKeyArray) -> tuple[Array, Array]:
        z = jnp.sqrt(variance)[:, None] * jax.random.normal(key, (count, width))
        following = system.bias_variance + system.weight_variance * jnp.mean(
            system.activation(z) ** 2, axis=1
        )
        return following, following

    start = jnp.full(count, system.first_variance)
    return jax.lax.scan(layer, start, jax.random.split(key, system.depth))[1].T


@eqx.filter_jit
def _variances(
    network: Architecture, x: Float[Array, "1 1"], keys: PRNGKeyArray
) -> Float[Array, "network"]:
    """The variance of the output of each network given its hidden layers."""

    def one(key: PRNGKeyArray) -> Array:
        return jnp.sum(network.features(network.draw(key, 1), x) ** 2)

    return jax.lax.map(one, keys, batch_size=64)


def _measured(system: DeepNetwork, variances: Float[Array, "network layer"]) -> MeasuredDepth:
    mean, spread = variances.mean(axis=0), jnp.var(variances, axis=0, ddof=1)
    kurtosis = 3 * spread / mean**2
    n = system.width
    return MeasuredDepth(
        jnp.arange(1.0, system.depth + 1), mean, n * spread, kurtosis, n * kurtosis
    )


# ------------------------------------------------------------------------------------------------
# Kernels measured on random networks of finite width: the tangent kernel by differentiation, correlations layer by layer.


@experiment
def angle_networks(system: AngledPair, key: PRNGKeyArray, *, networks: int = 16) -> AngleKernel:
    """Both correlations from kernels averaged over random networks: the NNGP kernel Phi Phi^T of
    their last hidden features, and the tangent kernel of the whole network."""
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
    return AngleKernel(_correlation(nngp), _correlation(ntk))


@experiment
def correlation_networks(
    system: AngledPair, key: PRNGKeyArray, *, networks: int = 16
) -> CorrelationChain:
    """The correlation Khat_12 / sqrt(Khat_11 Khat_22) after every layer, averaged over random
    networks.

    Given the 2 x 2 matrix Khat of one layer, the pre-activations of the next are independent N(0,
    Khat) pairs: no weight matrices are needed.
    """
    start = system.bias_variance + system.weight_variance * system.inputs @ system.inputs.T / 2
    keys = jax.random.split(key, networks)
    chains = _correlation_chains(system, system.size("width"), start, keys)
    return CorrelationChain(jnp.arange(1.0, system.depth + 1), chains.mean(axis=0))


@experiment
def deep_correlation(
    system: AngledPair, key: PRNGKeyArray, *, networks: int = 16
) -> DeepCorrelation:
    """The correlation after the last hidden layer, see `correlation_networks`."""
    return DeepCorrelation(correlation_networks(system, key, networks=networks).correlation[-1])


@experiment
def kernel_spread(system: NetworkKernels, key: PRNGKeyArray, *, units: int = 2**14) -> KernelSpread:
    """Bias and fluctuations of the kernels of random networks. The bias is linear in the measured
    kernel, hence unbiased itself; the fluctuation is the root of an unbiased variance, low by a
    fraction of about 1 / (4 networks).

    units: as many networks are drawn as have so many units in one hidden layer together, but at
    least 32.
    """
    networks = max(32, units // system.size("width"))
    x = system.inputs
    limit = system.architecture(finite=False).kernel(x)
    nngp, ntk = _kernels(system.architecture(), key, x, networks)
    bias, fluctuation = _spread(nngp, limit.nngp)
    ntk_bias, ntk_fluctuation = _spread(ntk, limit.ntk)
    return KernelSpread(bias, fluctuation, ntk_bias, ntk_fluctuation)


@eqx.filter_jit
def _kernels(
    architecture: Architecture, key: PRNGKeyArray, x: Array, networks: int
) -> tuple[Array, Array]:
    """Phi Phi^T and the tangent kernel of each network, shape (network, point, point)."""

    def one(key: PRNGKeyArray) -> tuple[Array, Array]:
        whitened = architecture.draw(key, x.shape[1:])
        features = architecture.features(whitened, x)
        return features @ features.T, empirical_ntk(architecture.network_from_whitened(whitened), x)

    keys = jax.random.split(key, networks)
    if x.ndim > 2:
        # a batch of convolutions with different weights is slower than one after the other
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
