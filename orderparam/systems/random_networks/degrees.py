"""The degrees of random networks as functions of bits: how much of the mean square of such a
function lies in polynomials of each degree.

Every function of inputs x that are d signs is a sum of parities, f(x) = sum_S a_S prod_{i in S}
x_i, and sum_S a_S^2 is its mean square. The kernel of a network depends only on the overlap of two
inputs, so that E a_S^2 depends only on the number of bits in S: it is the eigenvalue of the kernel
for this degree.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.needs import at_most
from orderparam.core.result import Result
from orderparam.core.system import System, parameter, structure
from orderparam.core.verb import experiment, theory
from orderparam.gaussian import Activation, activation, activation_names
from orderparam.kernels.spectra import hypercube
from orderparam.networks import Architecture, fully_connected
from orderparam.systems.random_networks.kernels import correlation_chain
from orderparam.systems.random_networks.model import AngledPair

LEAST = 1e-5  # smallest share of non-constant parities at which their mean degree is `valid`
_MOST_BITS = 16  # largest d of the experiment, which evaluates networks at all 2^d inputs


class CubeNetwork(System):
    r"""A deep random network on all inputs of d signs, $x \in \{-1, 1\}^d$.

    Weights have variance `weight_variance` / fan-in ($\sigma_w^2$) and biases have variance
    `bias_variance` ($\sigma_b^2$), in `depth` hidden layers and in the read-out. `width` matters to
    experiments only.

    Source: Yang, Salman (2019).

    >>> CubeNetwork(input_dim=8, depth=2).activation.name
    'relu'
    """

    input_dim: int = parameter("number d of signs", minimum=2, integer=True, default=10)
    weight_variance: float = parameter(
        "variance of a weight times its fan-in", above=0, default=2.0
    )
    bias_variance: float = parameter("variance of a bias", minimum=0, default=0.0)
    width: int = parameter("units in every hidden layer", minimum=1, integer=True, default=200)
    depth: int = structure("number of hidden layers", minimum=1, default=3)
    activation: Activation = structure(
        "activation phi", convert=activation, choices=activation_names, default="relu"
    )


class DegreeShares(Result):
    """Shares of the mean square of random functions by polynomial degree.

    Fields:
        degrees: number k = 0 .. d of bits in a parity.
        share: E sum of a_S^2 over the parities of k bits, divided by the sum over all parities.
        mean_degree: mean of k over the non-constant parities, weighted by `share`; d/2 (nearly) for
            functions of independent random values.
        valid: whether more than 1e-5 of the mean square is in non-constant parities. If it is less,
            `mean_degree` is a ratio of two rounding errors.
    """

    degrees: Float[Array, "degree"]
    share: Float[Array, "degree"]
    mean_degree: Float[Array, ""]
    valid: Bool[Array, ""]


def _of_powers(powers: Float[Array, "degree"]) -> DegreeShares:
    degree = jnp.arange(float(len(powers)))
    rest = powers.at[0].set(0.0)
    share, changing = powers / jnp.sum(powers), jnp.sum(rest)
    mean = jnp.sum(degree * rest) / changing
    return DegreeShares(
        degrees=degree, share=share, mean_degree=mean, valid=changing > LEAST * jnp.sum(powers)
    )


@theory(
    traced=False,
    needs={"input_dim": at_most(1000, why="binomial coefficients must be finite in float64")},
)
def degree_shares(system: CubeNetwork) -> DegreeShares:
    r"""Shares of the degrees in the random function of a network of infinite width; with one hidden
    layer they are exact at every width.

    $$ \mathrm{share}_k = \binom dk 2^{-d} \sum_{j=0}^{d} K_j(k; d)\,
       \frac{K^L(1 - 2j/d)}{K^L(1)} $$

    with $K^L(x \cdot x'/d)$ the kernel after `depth` hidden layers, and $K_j(k; d)$ Krawtchouk's
    polynomials. `degrees` are k and `share` is $\mathrm{share}_k$.

    Raises:
        ValueError: for more than 1000 signs.

    Accuracy: shares are accurate to 1e-13, and smaller shares are returned as 0. The mean degree is
    accurate to 1e-8 where `valid`.

    Source: Yang, Salman (2019).

    >>> shares = degree_shares(CubeNetwork(input_dim=4, depth=1)).share
    >>> np.asarray(shares).round(4).tolist()  # relu has no odd degree but 1
    [0.3614, 0.5, 0.1363, 0.0, 0.0024]
    """
    pair = AngledPair(
        weight_variance=system.weight_variance,
        bias_variance=system.bias_variance,
        depth=system.depth,
        activation=system.activation,
    )

    spectrum = hypercube(system.size("input_dim"), partial(_last_kernel, pair), [0.0])
    return _of_powers(jnp.asarray(spectrum.eigenvalues * spectrum.multiplicities))


@eqx.filter_jit
def _last_kernel(pair: AngledPair, overlap: Float[Array, "pair"]) -> Float[Array, "pair"]:
    """The kernel of the last layer, divided by its value for equal inputs."""
    return jax.vmap(lambda angle: correlation_chain(pair.with_(angle=angle)).correlation[-1])(
        jnp.arccos(overlap)
    )


@experiment
def measured_degrees(system: CubeNetwork, key: PRNGKeyArray, *, networks: int = 32) -> DegreeShares:
    """Shares of the degrees in random networks, by evaluation at all 2^d inputs and the
    Walsh-Hadamard transform.

    The sums of a_S^2 are averaged over the networks before they are divided by their total.

    Args:
        networks: number of networks that are drawn, at least 1. Default 32.

    Raises:
        ValueError: for more than 16 signs.

    Cost: 2^d evaluations of every network.

    Source: Yang, Salman (2019).

    >>> import jax
    >>> small = CubeNetwork(input_dim=4, width=8)
    >>> measured_degrees(small, jax.random.key(0), networks=2).share.shape
    (5,)
    """
    d = system.size("input_dim")
    if d > _MOST_BITS:
        raise ValueError(f"input_dim = {d}: must be at most {_MOST_BITS} to see every input")
    network = fully_connected(
        system.depth,
        system.size("width"),
        system.activation,
        system.weight_variance,
        system.bias_variance,
    )
    return _of_powers(_mean_powers(network, jax.random.split(key, networks), d))


@eqx.filter_jit
def _mean_powers(
    network: Architecture, keys: PRNGKeyArray, input_dim: int
) -> Float[Array, "degree"]:
    """Sums of a_S^2 over the parities of each degree, averaged over one network for each key."""
    d = input_dim
    bits = (np.arange(2**d)[:, None] >> np.arange(d)) & 1
    inputs, degree = jnp.asarray(1.0 - 2.0 * bits), jnp.asarray(bits.sum(axis=1))

    def powers(key: PRNGKeyArray) -> Float[Array, "degree"]:
        values = network.apply(network.draw(key, d), inputs)[:, 0]
        for bit in range(d):  # the fast transform, along one bit at a time
            halves = values.reshape(2 ** (d - 1 - bit), 2, 2**bit)
            values = jnp.stack([halves[:, 0] + halves[:, 1], halves[:, 0] - halves[:, 1]], axis=1)
        return jax.ops.segment_sum((values.reshape(-1) / 2**d) ** 2, degree, d + 1)

    return jax.lax.map(powers, keys).mean(axis=0)
