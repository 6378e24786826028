"""Experiments of random attention with a finite number of heads."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.needs import at_least
from orderparam.core.verb import experiment
from orderparam.networks import Architecture, Dense, empirical_ntk
from orderparam.networks.attention import Attention, HeadWeights
from orderparam.systems.attention.heads.model import RandomHeads, RandomTransformer
from orderparam.systems.attention.heads.theory import AttentionKernels, HeadKurtosis

_SEVERAL = {"networks": at_least(2)}


@experiment(needs=_SEVERAL)
def drawn_head_kernels(
    system: RandomHeads, key: PRNGKeyArray, *, networks: int = 200
) -> AttentionKernels:
    """Kernels of layers with a finite number of random heads, averaged over drawn layers.

    In `nngp` the average over the value weights is exact; the tangent kernel of each layer is found
    by differentiation.

    Args:
        networks: number of layers that are drawn, at least 2.

    Raises:
        ValueError: for fewer than two layers.

    Source: Hron, Bahri, Sohl-Dickstein, Novak (2020).

    >>> import jax
    >>> system = RandomHeads([[[1.0, 0.0], [0.0, 1.0]]], heads=2, key_width=4)
    >>> drawn_head_kernels(system, jax.random.key(0), networks=4).nngp.shape
    (1, 1)
    """
    architecture, x = system.architecture(), system.sequences
    return _mean_kernels(architecture, x, jax.random.split(key, networks))


@experiment(needs=_SEVERAL)
def drawn_head_kurtosis(
    system: RandomHeads, key: PRNGKeyArray, *, networks: int = 2000
) -> HeadKurtosis:
    r"""Excess kurtosis of layers with random heads, with an exact average over the value weights.

    Given its queries and keys the output of layer r has the variance $S_r = \frac1H \sum_h k_h$,
    and the kurtosis is $3 \mathrm{Var} S/(E S)^2$ over drawn layers.

    Args:
        networks: number of layers that are drawn, at least 2.

    Raises:
        ValueError: for fewer than two layers.

    Accuracy: the relative error does not grow with the number of heads; a bias of order
    1/`networks` comes from the square of the mean.

    Source: derived here.

    >>> import jax
    >>> system = RandomHeads([[[1.0, 0.0], [0.0, 1.0]]], heads=2, key_width=4)
    >>> drawn_head_kurtosis(system, jax.random.key(0), networks=4).kurtosis.shape
    (1,)
    """
    architecture, x = system.architecture(), system.sequences
    squares = _variances(architecture, x, jax.random.split(key, networks))
    mean = squares.mean(axis=0)
    kurtosis = 3 * jnp.var(squares, axis=0, ddof=1) / mean**2
    return HeadKurtosis(variance=mean, kurtosis=kurtosis, head_kurtosis=kurtosis * system.heads)


@experiment(needs=_SEVERAL)
def drawn_transformer_kernels(
    system: RandomTransformer, key: PRNGKeyArray, *, networks: int = 100
) -> AttentionKernels:
    """Kernels of finite random transformers, averaged over drawn networks.

    The read-out is averaged exactly in `nngp`; tangent kernels are found by differentiation.

    Args:
        networks: number of networks that are drawn, at least 2.

    Raises:
        ValueError: for fewer than two networks.

    Source: Hron, Bahri, Sohl-Dickstein, Novak (2020).

    >>> import jax
    >>> system = RandomTransformer([[[1.0, 0.0], [0.0, 1.0]]], heads=1, width_per_head=2)
    >>> drawn_transformer_kernels(system, jax.random.key(0), networks=2).nngp.shape
    (1, 1)
    """
    architecture, x = system.architecture(), system.sequences
    return _mean_kernels(architecture, x, jax.random.split(key, networks))


@eqx.filter_jit
def _mean_kernels(architecture: Architecture, x: Array, keys: PRNGKeyArray) -> AttentionKernels:
    """Averages over networks of the kernel and the tangent kernel; the kernel of each network is
    averaged exactly over its last weights."""

    def one(key: PRNGKeyArray) -> tuple[Array, Array]:
        whitened = architecture.draw(key, x.shape[1:])
        if isinstance(architecture.layers.layers[-1], Dense):
            features = architecture.features(whitened, x)
        else:
            mixed = _read_tokens(architecture, whitened, x)
            features = mixed.reshape(len(x), -1) / jnp.sqrt(x.shape[-1] * mixed.shape[1])
        network = architecture.network_from_whitened(whitened)
        return features @ features.T, empirical_ntk(network, x)

    nngp, ntk = jax.lax.map(one, keys)
    return AttentionKernels(nngp=nngp.mean(axis=0), ntk=ntk.mean(axis=0))


@eqx.filter_jit
def _variances(
    architecture: Architecture, x: Array, keys: PRNGKeyArray
) -> Float[Array, "network sequence"]:
    """Variance of the output of each layer given its queries and keys."""

    def one(key: PRNGKeyArray) -> Array:
        mixed = _read_tokens(architecture, architecture.draw(key, x.shape[1:]), x)
        return jnp.sum(mixed**2, axis=(1, 2)) / (x.shape[-1] * mixed.shape[1])

    return jax.lax.map(one, keys, batch_size=16)


def _read_tokens(architecture: Architecture, whitened: tuple, x: Array) -> Array:
    """The output of each head before its value weights, averaged over tokens: (sequence, head,
    channel)."""
    layer = architecture.layers.layers[0]
    assert isinstance(layer, Attention)
    own: HeadWeights = whitened[0]
    scale = 1 / jnp.sqrt(x.shape[-1])
    weights = HeadWeights(
        scale * own.query, None if own.key is None else scale * own.key, own.value
    )
    return jnp.mean(layer.mixing(weights, x), axis=2) @ x
