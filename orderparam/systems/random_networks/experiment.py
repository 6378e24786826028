"""Experiments on random networks: values of the random function, and measured observables of the
theories.

Networks are drawn in chunks, so that memory does not grow with their number. Estimates of cumulants
are unbiased, because the mean of z is known to vanish, and products of averages are taken over
pairs of different networks. The kurtosis is a ratio of two such estimates and has a bias of order 1
/ networks.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.networks import Architecture, fully_connected
from orderparam.systems.random_networks.model import (
    DeepNetwork,
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

_NUMBERS = 2**18  # number of random numbers in memory at a time


class Sample(Result):
    """Values of one random network.

    Fields:
        value: z(x) at every input.
    """

    value: Float[Array, "input"]


class MeasuredDepth(Result):
    """Moments measured on deep random networks at one input, after l = 1 .. depth hidden layers.

    Fields:
        layers: number l of hidden layers.
        mean_kernel: mean of the random variance Khat_l of `DeepNetwork`.
        vertex: n Var Khat_l, with n the width.
        kurtosis: excess kurtosis of a pre-activation, 3 Var Khat_l / (E Khat_l)^2.
        width_kurtosis: n times `kurtosis`.
    """

    layers: Float[Array, "layer"]
    mean_kernel: Float[Array, "layer"]
    vertex: Float[Array, "layer"]
    kurtosis: Float[Array, "layer"]
    width_kurtosis: Float[Array, "layer"]


@experiment
def sample(system: RandomNetwork, key: PRNGKeyArray) -> Sample:
    r"""Values of one random network at all inputs.

    $$ z(x) = \sum_c a_c\, \varphi(w_c \cdot x) $$

    with all weights drawn from the laws of `RandomNetwork`.

    Source: Neal (1996).

    >>> import jax
    >>> from orderparam.systems.random_networks import RandomNetwork
    >>> sample(RandomNetwork([[1.0, 0.5], [0.0, 1.0]], width=5), jax.random.key(0)).value.shape
    (2,)
    """
    return Sample(value=outputs(system, key, 1)[0])


@experiment
def sampled_covariance(
    system: RandomNetwork, key: PRNGKeyArray, *, networks: int = 20_000
) -> KernelMatrix:
    """Kernel K(x, x') as the mean of z(x) z(x') over random networks.

    Args:
        networks: number of networks that are drawn, at least 1. Default 20 000.

    Accuracy: unbiased; the relative standard error is of order 1/sqrt(networks).

    Source: Neal (1996).

    >>> import jax
    >>> from orderparam.systems.random_networks import RandomNetwork
    >>> network = RandomNetwork([[1.0, 0.5], [0.0, 1.0]], width=5)
    >>> sampled_covariance(network, jax.random.key(0), networks=100).kernel.shape
    (2, 2)
    """
    z = outputs(system, key, networks)
    return KernelMatrix(kernel=z.T @ z / networks)


@experiment
def sampled_cumulants(
    system: RandomNetwork, key: PRNGKeyArray, *, networks: int = 20_000
) -> Cumulants:
    r"""Unbiased estimates of the kernel and of the fourth cumulants, measured on random networks.

    $$ \kappa_4 = \overline{z_a z_b z_c z_d} - \sum_{\mathrm{pairings}}
       \frac{R\, K_{ab} K_{cd} - \overline{z_a z_b z_c z_d}}{R - 1} $$

    with R = `networks`, the bar the mean over networks, and K the measured kernel.

    Args:
        networks: number of networks that are drawn, at least 2. Default 20 000.

    Source: derived here: the products of means run over pairs of different networks.

    >>> import jax
    >>> from orderparam.systems.random_networks import RandomNetwork
    >>> network = RandomNetwork([[1.0, 0.5], [0.0, 1.0]], width=5)
    >>> sampled_cumulants(network, jax.random.key(0), networks=100).fourth_cumulant.shape
    (2, 2, 2, 2)
    """
    z = outputs(system, key, networks)
    points = z.shape[1]
    products = (z[:, :, None] * z[:, None, :]).reshape(networks, points**2)
    second = products.mean(axis=0).reshape(points, points)
    fourth = (products.T @ products / networks).reshape((points,) * 4)
    # A product of two means over the same networks contains a multiple of the fourth moment. This
    # multiple is subtracted, so that the estimate of every pairing is unbiased.
    return Cumulants(
        kernel=second,
        fourth_cumulant=fourth - (networks * pairings(second) - 3 * fourth) / (networks - 1),
    )


@experiment
def sampled_marginals(
    system: RandomNetwork, key: PRNGKeyArray, *, networks: int = 20_000
) -> Marginals:
    """Variance, fourth cumulant and excess kurtosis at each input, measured on random networks.

    Args:
        networks: number of networks that are drawn, at least 2. Default 20 000.

    Accuracy: the standard error of the kurtosis is about sqrt(24 / networks) at every width, while
    the kurtosis falls as 1/width: beyond a width of about 30 use `integrated_marginals`. The
    kurtosis has a bias of order 1/networks.

    Source: derived here: the estimator of `sampled_cumulants` at equal inputs.

    >>> import jax
    >>> from orderparam.systems.random_networks import RandomNetwork
    >>> network = RandomNetwork([[1.0, 0.5], [0.0, 1.0]], width=5)
    >>> sampled_marginals(network, jax.random.key(0), networks=100).kurtosis.shape
    (2,)
    """
    z = outputs(system, key, networks)
    second, fourth = (jnp.mean(z**power, axis=0) for power in (2, 4))
    kappa = fourth - 3 * (networks * second**2 - fourth) / (networks - 1)
    return marginals_of(system, second, kappa)


@experiment
def integrated_marginals(
    system: RandomNetwork, key: PRNGKeyArray, *, networks: int = 20_000
) -> Marginals:
    r"""Variance, fourth cumulant and excess kurtosis from random hidden layers, with the read-out
    averaged exactly.

    Given the hidden layer, z has the variance $S = v \sum_c \varphi_c^2$ with $v = \sigma_a^2 / N$,
    and the fourth moment $3 S^2 + (m_4 - 3) v^2 \sum_c \varphi_c^4$, so that

    $$ \kappa_4 = 3\, \mathrm{Var}\, S + (m_4 - 3)\, v^2\, E \sum_c \varphi_c^4 $$

    with N the `width` and $m_4$ the fourth moment of a read-out weight of unit variance.

    Args:
        networks: number of hidden layers that are drawn, at least 2. Default 20 000.

    Accuracy: the relative error of $\kappa_4$ does not grow with the width.

    Source: derived here.

    >>> import jax
    >>> from orderparam.systems.random_networks import RandomNetwork
    >>> network = RandomNetwork([[1.0, 0.5], [0.0, 1.0]], width=5)
    >>> integrated_marginals(network, jax.random.key(0), networks=100).kurtosis.shape
    (2,)
    """
    # Only Var S over hidden layers is estimated: the average over the read-out has a closed form.
    squares, fourths = jnp.moveaxis(_draws(_draw_sums, system, key, networks), -1, 0)
    unit = system.readout_variance / system.width
    m4, _ = READOUT_MOMENTS[system.readout_law]
    kappa = 3 * unit**2 * jnp.var(squares, axis=0, ddof=1) + (m4 - 3) * unit**2 * jnp.mean(
        fourths, axis=0
    )
    return marginals_of(system, unit * jnp.mean(squares, axis=0), kappa)


@experiment
def sampled_density(system: RandomNetwork, key: PRNGKeyArray, *, networks: int = 20_000) -> Density:
    """Histogram of z(x) at each input over random networks, normalised as a density.

    Args:
        networks: number of networks that are drawn, at least 1. Default 20 000.

    Returns:
        `Density`. Networks whose value lies outside the bins count in the normalisation.

    Source: Neal (1996).

    >>> import jax
    >>> from orderparam.systems.random_networks import RandomNetwork
    >>> network = RandomNetwork([[1.0, 0.5]], width=5, bins=4)
    >>> sampled_density(network, jax.random.key(0), networks=100).density.shape
    (1, 4)
    """
    z = outputs(system, key, networks)
    edges = system.edges
    counts = jax.vmap(lambda column: jnp.histogram(column, edges)[0])(z.T)
    return Density(value=(edges[1:] + edges[:-1]) / 2, density=counts / networks / jnp.diff(edges))


@experiment
def deep_networks(
    system: DeepNetwork, key: PRNGKeyArray, *, networks: int = 20_000
) -> MeasuredDepth:
    r"""Moments of deep random networks at one input, drawn without weight matrices.

    Given $\hat K_l$, the pre-activations of layer l are exactly independent $N(0, \hat K_l)$, so
    that a layer of a network costs `width` random numbers instead of `width`$^2$.

    Args:
        networks: number of networks that are drawn, at least 2. Default 20 000.

    Source: Hanin, Nica (2020); Yaida (2020).

    >>> import jax
    >>> from orderparam.systems.random_networks import DeepNetwork
    >>> deep_networks(DeepNetwork(width=16), jax.random.key(0), networks=100).kurtosis.shape
    (3,)
    """
    width = system.size("width")
    return _measured(
        system, _in_chunks(eqx.Partial(_draw_chain, system, width=width), key, networks, width)
    )


@experiment
def deep_networks_with_weights(
    system: DeepNetwork, key: PRNGKeyArray, *, networks: int = 2000
) -> MeasuredDepth:
    """Moments of deep random networks at one input, drawn with all weight matrices.

    New networks are drawn for every number of layers, so that the results for different numbers are
    independent. The experiment is a check of `deep_networks`, which is faster.

    Args:
        networks: number of networks that are drawn for each depth, at least 2. Default 2000.

    Raises:
        ValueError: for `first_variance` < `bias_variance`, which no input can have.

    Source: derived here.

    >>> import jax
    >>> from orderparam.systems.random_networks import DeepNetwork
    >>> network = DeepNetwork(width=4, depth=1)
    >>> deep_networks_with_weights(network, jax.random.key(0), networks=2).kurtosis.shape
    (1,)
    """
    squared = (system.first_variance - system.bias_variance) / system.weight_variance
    if squared < 0:
        raise ValueError(
            f"DeepNetwork.first_variance = {system.first_variance}: must be >= bias_variance = "
            f"{system.bias_variance} for an input to exist"
        )
    # One input component is enough, because the first layer depends on the input only through its
    # length.
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
    """Values z of `networks` independent networks at all inputs.

    Only the values and a few megabytes of weights are in memory at a time.

    Args:
        networks: number of networks that are drawn.

    Returns:
        Array of shape (network, input).
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
    """The sums over hidden units of phi_c(x)^2 and of phi_c(x)^4."""
    squares = _hidden(system, key, count, width) ** 2
    return jnp.stack([squares.sum(axis=1), (squares**2).sum(axis=1)], axis=-1)


def _hidden(
    system: RandomNetwork, key: PRNGKeyArray, count: int, width: int
) -> Float[Array, "network unit input"]:
    x = system.inputs
    weights = _weights(key, system.prior, (count, width, x.shape[1]))
    return system.activation(jnp.sqrt(system.weight_variance / x.shape[1]) * weights @ x.T)


def _weights(key: PRNGKeyArray, law: str, shape: tuple[int, ...]) -> Array:
    """Independent random numbers of mean 0 and variance 1 with the given law."""
    if law == "gaussian":
        return jax.random.normal(key, shape)
    if law == "uniform":
        return jax.random.uniform(key, shape, minval=-np.sqrt(3), maxval=np.sqrt(3))
    return jax.random.rademacher(key, shape, dtype=float)


@eqx.filter_jit
def _in_chunks(draw, key: PRNGKeyArray, networks: int, numbers: int) -> Array:
    """Results of `draw(key, count)` for `networks` networks, stacked along the first axis.

    Args:
        numbers: number of random numbers for one network, which determines how many networks are
            drawn at a time.
    """
    chunk = min(networks, max(1, _NUMBERS // numbers))
    keys = jax.random.split(key, -(-networks // chunk))
    parts = jax.lax.map(lambda key: draw(key, chunk), keys)
    return parts.reshape(-1, *parts.shape[2:])[:networks]


def _draw_chain(
    system: DeepNetwork, key: PRNGKeyArray, count: int, width: int
) -> Float[Array, "network layer"]:
    """The random variances Khat_1, .., Khat_depth of each network."""

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
        layers=jnp.arange(1.0, system.depth + 1),
        mean_kernel=mean,
        vertex=n * spread,
        kurtosis=kurtosis,
        width_kurtosis=n * kurtosis,
    )
