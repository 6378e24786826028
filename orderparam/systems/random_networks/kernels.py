"""Kernels of infinitely wide networks against the angle between inputs and the depth; order, chaos,
and what a finite width adds.

    K^l(x, x') = bias_variance + weight_variance F(K^(l-1)),    Theta^l = K^l + weight_variance F'(K^(l-1)) Theta^(l-1)

(Neal 1996; Lee et al. 2018; Jacot et al. 2018; Poole et al. 2016). All of it comes from the
architectures of `orderparam.networks`; here are the observables.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.quadrature import expectation_2d
from orderparam.networks import fully_connected
from orderparam.solve.fixed_point import fixed_point
from orderparam.solve.root import decreasing_root
from orderparam.systems.random_networks.model import AngledPair, DeepNetwork, NetworkKernels

# ------------------------------------------------------------------------------------------------
# Deep networks at one input: the variance of the next layer's pre-activations is itself random, with fluctuations of order 1/n.
#
# Khat_l (see `DeepNetwork`) has mean K_l + K1_l / n and variance V_l / n to first order in 1/n
# (Yaida 2020; Roberts, Yaida and Hanin 2021, chapter 4). With <.> over z ~ N(0, K), m(K) =
# bias_variance + weight_variance <phi^2>, and K_0 given, V_0 = K1_0 = 0:
#
#     V   <-  m'(K)^2 V + weight_variance^2 (<phi^4> - <phi^2>^2)
#     K1  <-  m'(K) K1 + m''(K) V / 2
#     K   <-  m(K)
#
# Given Khat the pre-activation is Gaussian, so its excess kurtosis is 3 Var Khat / (E Khat)^2 = 3 V
# / (n K^2) + O(1/n^2).


class DeepCumulants(Result):
    """After l = 1 .. depth hidden layers.

    layers: l. kernel: K_l at infinite width. vertex: V_l = n Var Khat_l. kernel_shift: n (E Khat_l
    - K_l). mean_kernel: E Khat_l. kurtosis: excess kurtosis of a pre-activation. width_kurtosis: n
    times that. valid: whether the theory holds for this network.
    """

    layers: Float[Array, "layer"]
    kernel: Float[Array, "layer"]
    vertex: Float[Array, "layer"]
    kernel_shift: Float[Array, "layer"]
    mean_kernel: Float[Array, "layer"]
    kurtosis: Float[Array, "layer"]
    width_kurtosis: Float[Array, "layer"]
    valid: Bool[Array, ""]


@theory
def deep_cumulants(system: DeepNetwork) -> DeepCumulants:
    """The recursion above to first order in 1 / width; exact for one hidden layer."""

    def mean(kernel: Array) -> Array:
        return system.bias_variance + system.weight_variance * system.activation.moment(2, kernel)

    slope = jax.grad(mean)
    curvature = jax.grad(slope)

    def layer(
        carry: tuple[Array, Array, Array], _: None
    ) -> tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]:
        kernel, vertex, shift = carry
        second, fourth = (system.activation.moment(power, kernel) for power in (2, 4))
        response = slope(kernel)
        following = (
            mean(kernel),
            response**2 * vertex + system.weight_variance**2 * (fourth - second**2),
            response * shift + curvature(kernel) * vertex / 2,
        )
        return following, following

    start = (jnp.asarray(system.first_variance, jnp.float64), jnp.zeros(()), jnp.zeros(()))
    _, (kernel, vertex, shift) = jax.lax.scan(layer, start, None, length=system.depth)
    kurtosis = 3 * vertex / kernel**2
    number = jnp.arange(1.0, system.depth + 1)
    mean_kernel = kernel + shift / system.width
    return DeepCumulants(
        number,
        kernel,
        vertex,
        shift,
        mean_kernel,
        kurtosis / system.width,
        kurtosis,
        jnp.asarray(True),
    )


@theory
def homogeneous_cumulants(system: DeepNetwork) -> DeepCumulants:
    """Exact at every width, for phi(cz) = c phi(z), c > 0, such as relu, and no biases (Hanin and
    Nica 2020 for relu).

    Every layer multiplies Khat by an independent factor weight_variance (1/n) sum_i phi(g_i)^2, g_i
    ~ N(0, 1), so that E Khat_l^2 / (E Khat_l)^2 = {1 + (<phi^4>/<phi^2>^2 - 1) / n}^l: for relu (1
    + 5/n)^l, and exp(5 l / n) when both are large. For other activations or with biases the answer
    is NaN, and not valid.
    """
    second, fourth = (system.activation.moment(power, 1.0) for power in (2, 4))
    number = jnp.arange(1.0, system.depth + 1)
    kernel = system.first_variance * (system.weight_variance * second) ** number
    relative = (1 + (fourth / second**2 - 1) / system.width) ** number - 1
    probe = jnp.array([-1.0, 1.0])
    homogeneous = jnp.allclose(
        system.activation(3.0 * probe), 3.0 * system.activation(probe), rtol=1e-12
    )
    valid = homogeneous & (jnp.asarray(system.bias_variance) == 0)
    relative = jnp.where(valid, relative, jnp.nan)
    vertex = system.width * relative * kernel**2
    kurtosis = 3 * relative
    return DeepCumulants(
        number,
        kernel,
        vertex,
        jnp.zeros_like(kernel),
        kernel,
        kurtosis,
        kurtosis * system.width,
        valid,
    )


class AngleKernel(Result):
    """Of two inputs of equal length: K(x, x') / K(x, x) and Theta(x, x') / Theta(x, x) of the
    output after all hidden layers.
    """

    nngp_correlation: Float[Array, ""]
    ntk_correlation: Float[Array, ""]


class CorrelationChain(Result):
    """correlation: K^l(x, x') / K^l(x, x) after l = 1 .. depth hidden layers. layers: l."""

    layers: Float[Array, "layer"]
    correlation: Float[Array, "layer"]


class DeepCorrelation(Result):
    """correlation: K(x, x') / sqrt(K(x, x) K(x', x')) after all hidden layers."""

    correlation: Float[Array, ""]


class OrderChaos(Result):
    """Fixed points of the map of variances and of correlations, and which phase that is.

    variance: q* = bias_variance + weight_variance E phi(z)^2, z ~ N(0, q*). slope: chi_1 =
    weight_variance E phi'(z)^2, by which the distance of nearby inputs grows in a layer:
        above 1 chaos, 1 its edge.
    correlation: c*, to which correlations of different inputs tend: 1 in the ordered phase, below 1
    in the chaotic one. correlation_slope: dc_(l+1)/dc_l at c*; correlations approach c* as its l-th
    power.
    """

    variance: Float[Array, ""]
    slope: Float[Array, ""]
    correlation: Float[Array, ""]
    correlation_slope: Float[Array, ""]
    converged: Bool[Array, ""]
    residual: Float[Array, ""]


class KernelSpread(Result):
    """Kernels of finite networks against those of infinite width, over all pairs of the given
    inputs.

    *_bias: sum_ij (E Khat_ij - K_ij) K_ij / sum_ij K_ij^2. *_fluctuation: sqrt(sum_ij Var Khat_ij /
    sum_ij K_ij^2). Khat is the NNGP kernel given the hidden layers, that is with the read-out
    averaged over its law; Theta likewise the tangent kernel of one network, read-out drawn.
    """

    nngp_bias: Float[Array, ""]
    nngp_fluctuation: Float[Array, ""]
    ntk_bias: Float[Array, ""]
    ntk_fluctuation: Float[Array, ""]


@theory
def angle_kernel(system: AngledPair) -> AngleKernel:
    """The two correlations at infinite width."""
    network = fully_connected(
        system.depth, None, system.activation, system.weight_variance, system.bias_variance
    )
    kernels = network.kernel(system.inputs)
    return AngleKernel(
        kernels.nngp[0, 1] / kernels.nngp[0, 0], kernels.ntk[0, 1] / kernels.ntk[0, 0]
    )


@theory
def correlation_chain(system: AngledPair) -> CorrelationChain:
    """The correlation after every layer, K^l(x, x') / K^l(x, x)."""

    def layer(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
        following = _layer(system, *carry)
        return following, following[1] / following[0]

    overlap = jnp.cos(system.angle)
    first, second = (
        system.bias_variance + system.weight_variance * cosine for cosine in (jnp.ones(()), overlap)
    )
    _, correlation = jax.lax.scan(layer, (first, second), None, length=system.depth)
    return CorrelationChain(jnp.arange(1.0, system.depth + 1), correlation)


@theory
def order_chaos(system: AngledPair) -> OrderChaos:
    """q*, chi_1 and c* of Poole et al. (2016), for an activation whose variance map has an
    attracting fixed point.

    `angle` and `depth` play no part. For relu at weight_variance 2 without biases every variance is
    a fixed point: the one found is that of the first layer. At the edge of chaos the variance may
    converge slowly: see `converged`.
    """
    phi = system.activation
    numbers = (system.weight_variance, system.bias_variance)

    def next_variance(q: Array, numbers: tuple[Array, Array]) -> Array:
        return numbers[1] + numbers[0] * phi.two_point(q, q, q)

    start = system.bias_variance + system.weight_variance
    found = fixed_point(next_variance, start, numbers, max_steps=20_000)
    q = found.value
    slope = system.weight_variance * phi.two_point_derivative(q, q, q)

    def excess(c: Array, q: Array) -> Array:
        return (system.bias_variance + system.weight_variance * phi.two_point(q, c * q, q)) / q - c

    root = decreasing_root(excess, jnp.asarray(0.0), jnp.asarray(1 - 1e-6), q)
    chaotic = (slope > 1) & (excess(jnp.asarray(1 - 1e-6), q) < 0)
    at_zero = jnp.abs(excess(jnp.asarray(0.0), q)) < 1e-14  # an odd activation without biases
    correlation = jnp.where(chaotic, jnp.where(at_zero, 0.0, root.value), 1.0)
    correlation_slope = system.weight_variance * phi.two_point_derivative(q, correlation * q, q)
    converged = found.converged & (root.converged | at_zero | ~chaotic)
    return OrderChaos(q, slope, correlation, correlation_slope, converged, found.residual)


def _one_hidden_layer(system: NetworkKernels) -> None:
    if system.family != "fully connected" or system.depth != 1:
        raise ValueError(
            f"NetworkKernels.depth = {system.depth}, family {system.family!r}: must be 1 and 'fully connected'"
        )


@theory(check=_one_hidden_layer)
def one_hidden_layer_spread(system: NetworkKernels) -> KernelSpread:
    """Exact at every width for fully connected networks with one hidden layer, whose units are
    independent: no bias, and

        Khat_ij  = bias_variance + weight_variance mean_c phi_i phi_j
        Theta_ij = Khat_ij + weight_variance mean_c alpha^2 phi'_i phi'_j q_ij,

    alpha ~ N(0, 1), q_ij = bias_variance + weight_variance x_i.x_j/d. Raises `ValueError` for other
    architectures.
    """
    x = system.inputs
    q = system.bias_variance + system.weight_variance * x @ x.T / x.shape[1]
    diagonal = jnp.diagonal(q)
    phi = system.activation

    def products(u: Array, v: Array) -> Array:
        value, slope = phi(u) * phi(v), phi.derivative(u) * phi.derivative(v)
        return jnp.stack([value, slope, value**2, value * slope, slope**2])

    a, b = jnp.broadcast_arrays(diagonal[:, None], diagonal)
    one, slope, square, mixed, slopes = expectation_2d(products, a, q, b, (phi.kinks, phi.kinks))
    variance = square - one**2
    tangent = variance + 2 * q * (mixed - one * slope) + q**2 * (3 * slopes - slope**2)
    nngp = system.bias_variance + system.weight_variance * one
    ntk = nngp + system.weight_variance * slope * q

    def relative(spread: Array, kernel: Array) -> Array:
        return system.weight_variance * jnp.sqrt(
            jnp.sum(spread) / system.width / jnp.sum(kernel**2)
        )

    zero = jnp.zeros(())
    return KernelSpread(zero, relative(variance, nngp), zero, relative(tangent, ntk))


def _one_input(system: NetworkKernels) -> None:
    if system.family != "fully connected" or system.inputs.shape[0] != 1:
        raise ValueError(
            f"NetworkKernels.inputs has shape {system.inputs.shape}: one input of a fully connected network"
        )


@theory(check=_one_input)
def one_input_spread(system: NetworkKernels) -> KernelSpread:
    """To first order in 1 / width for fully connected networks of any depth and a single input:
    bias K1 / (n K) and fluctuation sqrt(V / n) / K of the NNGP kernel, see `depth`. NaN for the
    tangent kernel. Raises `ValueError` for anything else.
    """
    first = system.bias_variance + system.weight_variance * jnp.mean(system.inputs**2)
    one = DeepNetwork(
        system.width,
        system.weight_variance,
        system.bias_variance,
        1.0,
        system.depth,
        system.activation,
    )
    deep = deep_cumulants(one.with_(first_variance=first))
    kernel, unknown = deep.kernel[-1], jnp.full((), jnp.nan)
    bias, fluctuation = (
        deep.kernel_shift[-1] / system.width / kernel,
        jnp.sqrt(deep.vertex[-1] / system.width) / kernel,
    )
    return KernelSpread(bias, fluctuation, unknown, unknown)


def _layer(system: AngledPair, variance: Array, covariance: Array) -> tuple[Array, Array]:
    """K(x, x) and K(x, x') one layer further, for inputs of equal length."""
    rule = system.activation.two_point
    return (
        system.bias_variance + system.weight_variance * rule(variance, variance, variance),
        system.bias_variance + system.weight_variance * rule(variance, covariance, variance),
    )
