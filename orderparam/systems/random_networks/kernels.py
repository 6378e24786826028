"""Kernels of infinitely wide networks as functions of depth and of the angle between inputs, their
ordered and chaotic phases, and the corrections at finite width.

    K^l(x, x') = bias_variance + weight_variance F(K^(l-1)),
    Theta^l    = K^l + weight_variance F'(K^(l-1)) Theta^(l-1),

with F the two-point function E phi(u) phi(v) of the activation and F' the two-point function of its
derivative (Neal 1996; Lee et al. 2018; Jacot et al. 2018; Poole et al. 2016). The recursions are
implemented by the architectures of `orderparam.networks`; this file computes observables from them.
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
# Deep networks at one input: given a layer, the variance of the pre-activations of the next layer
# is random, with fluctuations of order 1/n.
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
    """Moments of a deep random network at one input, after l = 1 .. depth hidden layers.

    Fields:
        layers: number l of hidden layers.
        kernel: variance K_l of a pre-activation at infinite width.
        vertex: V_l = n Var Khat_l, with Khat_l the random variance of `DeepNetwork` and n the
            width.
        kernel_shift: n (E Khat_l - K_l).
        mean_kernel: E Khat_l at the given width.
        kurtosis: excess kurtosis of a pre-activation, 3 Var Khat_l / (E Khat_l)^2.
        width_kurtosis: n times `kurtosis`.
        valid: whether the assumptions of the theory hold for this network.
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
    r"""Kernel, vertex and kurtosis of a deep random network to first order in 1/width.

    The random variance $\hat K_l$ of `DeepNetwork` has mean $K_l + K^{(1)}_l / n$ and variance $V_l
    / n$ (n is `width`). With $\langle \cdot \rangle$ the average over $z \sim N(0, K)$ and $m(K) =
    \sigma_b^2 + \sigma_w^2 \langle \varphi^2 \rangle$, each layer maps

    $$ V \leftarrow m'(K)^2\, V
       + \sigma_w^4 (\langle \varphi^4 \rangle - \langle \varphi^2 \rangle^2), \qquad
       K^{(1)} \leftarrow m'(K)\, K^{(1)} + \tfrac12 m''(K)\, V, \qquad K \leftarrow m(K) $$

    from $K_0$ = `first_variance`, $V_0 = K^{(1)}_0 = 0$. `kernel` is K, `vertex` is V,
    `kernel_shift` is $K^{(1)}$, and `kurtosis` is $3V/(nK^2)$.

    Accuracy: exact for one hidden layer; for more layers the neglected terms are of order
    (depth/width)^2.

    Source: Yaida (2020); Roberts, Yaida, Hanin (2021), chapter 4.

    >>> from orderparam.systems.random_networks import DeepNetwork
    >>> np.asarray(deep_cumulants(DeepNetwork(width=100, depth=2)).width_kurtosis).round(6).tolist()
    [15.0, 30.0]
    """

    def mean(kernel: Array) -> Array:
        return system.bias_variance + system.weight_variance * system.activation.moment(2, kernel)

    slope = jax.grad(mean)
    curvature = jax.grad(slope)

    def layer(
        carry: tuple[Array, Array, Array], _: None
    ) -> tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]:
        kernel, vertex, shift = carry
        second, fourth = (system.activation.moment(power, kernel) for power in (2, 4))
        # A layer multiplies the fluctuation of the variance by m', and adds a fluctuation of its
        # own.
        response = slope(kernel)
        following = (
            mean(kernel),
            response**2 * vertex + system.weight_variance**2 * (fourth - second**2),
            response * shift + curvature(kernel) * vertex / 2,
        )
        return following, following

    start = (jnp.asarray(system.first_variance, jnp.float64), jnp.zeros(()), jnp.zeros(()))
    _, (kernel, vertex, shift) = jax.lax.scan(layer, start, None, length=system.depth)
    # Given Khat the pre-activation is Gaussian, so that its excess kurtosis is 3 Var Khat / K^2.
    kurtosis = 3 * vertex / kernel**2
    number = jnp.arange(1.0, system.depth + 1)
    mean_kernel = kernel + shift / system.width
    return DeepCumulants(
        layers=number,
        kernel=kernel,
        vertex=vertex,
        kernel_shift=shift,
        mean_kernel=mean_kernel,
        kurtosis=kurtosis / system.width,
        width_kurtosis=kurtosis,
        valid=jnp.asarray(True),
    )


@theory
def homogeneous_cumulants(system: DeepNetwork) -> DeepCumulants:
    r"""Kernel, vertex and kurtosis at every width, for a homogeneous activation without biases.

    For $\varphi(cz) = c\, \varphi(z)$, c > 0, such as relu, each layer multiplies $\hat K$ by an
    independent factor $\sigma_w^2 \frac1n \sum_i \varphi(g_i)^2$, $g_i \sim N(0, 1)$, so that

    $$ \frac{E \hat K_l^2}{(E \hat K_l)^2} = \Big[ 1 + \frac1n
       \Big( \frac{\langle \varphi^4 \rangle}{\langle \varphi^2 \rangle^2} - 1 \Big) \Big]^l $$

    with n the `width`: for relu $(1 + 5/n)^l$, which is $e^{5l/n}$ when n and l are both large.
    `kurtosis` is 3 times (this ratio minus one). `kernel_shift` is 0.

    Returns:
        `DeepCumulants`. For another activation or with biases `valid` is False and `vertex`,
        `kurtosis` and `width_kurtosis` are NaN.

    Source: Hanin, Nica (2020) for relu; derived here for other homogeneous activations.

    >>> from orderparam.systems.random_networks import DeepNetwork
    >>> kurtosis = homogeneous_cumulants(DeepNetwork(width=100, depth=2)).width_kurtosis
    >>> np.asarray(kurtosis).round(6).tolist()
    [15.0, 30.75]
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
        layers=number,
        kernel=kernel,
        vertex=vertex,
        kernel_shift=jnp.zeros_like(kernel),
        mean_kernel=kernel,
        kurtosis=kurtosis,
        width_kurtosis=kurtosis * system.width,
        valid=valid,
    )


class AngleKernel(Result):
    """Correlations of the output for two inputs of equal length, after all hidden layers.

    Fields:
        nngp_correlation: K(x, x') / K(x, x) of the NNGP kernel.
        ntk_correlation: Theta(x, x') / Theta(x, x) of the neural tangent kernel.
    """

    nngp_correlation: Float[Array, ""]
    ntk_correlation: Float[Array, ""]


class CorrelationChain(Result):
    """Correlation of the pre-activations at two inputs, layer by layer.

    Fields:
        layers: number l = 1 .. depth of hidden layers.
        correlation: K^l(x, x') / sqrt(K^l(x, x) K^l(x', x')).
    """

    layers: Float[Array, "layer"]
    correlation: Float[Array, "layer"]


class DeepCorrelation(Result):
    """Correlation of the pre-activations at two inputs after all hidden layers.

    Fields:
        correlation: K(x, x') / sqrt(K(x, x) K(x', x')).
    """

    correlation: Float[Array, ""]


class OrderChaos(Result):
    """Fixed points of the variance map and of the correlation map, and the phase of the network.

    Fields:
        variance: fixed point q* = bias_variance + weight_variance E phi(z)^2, z ~ N(0, q*).
        slope: chi_1 = weight_variance E phi'(z)^2, the factor by which the squared distance of
            nearby inputs grows in a layer: below 1 the network is ordered, above 1 chaotic, at 1 on
            the edge.
        correlation: c*, the limit of the correlation of two different inputs with depth: 1 in the
            ordered phase, below 1 in the chaotic phase.
        correlation_slope: derivative of the correlation map at c*; correlations approach c* as its
            l-th power.
        converged: whether both fixed points were found.
        residual: residual of the equation for the variance.
    """

    variance: Float[Array, ""]
    slope: Float[Array, ""]
    correlation: Float[Array, ""]
    correlation_slope: Float[Array, ""]
    converged: Bool[Array, ""]
    residual: Float[Array, ""]


class KernelSpread(Result):
    """Kernels of networks of finite width compared with their limit, over all pairs of the given
    inputs.

    The NNGP kernel Khat of one network is the average over its read-out weights, given its hidden
    layers. The tangent kernel of one network is computed with all its weights drawn.

    Fields:
        nngp_bias: sum_ij (E Khat_ij - K_ij) K_ij / sum_ij K_ij^2.
        nngp_fluctuation: sqrt(sum_ij Var Khat_ij / sum_ij K_ij^2).
        ntk_bias: `nngp_bias` with the tangent kernel in place of the NNGP kernel.
        ntk_fluctuation: `nngp_fluctuation` with the tangent kernel in place of the NNGP kernel.
    """

    nngp_bias: Float[Array, ""]
    nngp_fluctuation: Float[Array, ""]
    ntk_bias: Float[Array, ""]
    ntk_fluctuation: Float[Array, ""]


@theory
def angle_kernel(system: AngledPair) -> AngleKernel:
    r"""Correlations of the NNGP kernel and of the tangent kernel at infinite width for two inputs
    at an angle.

    $$ K^l = \sigma_b^2 + \sigma_w^2 F(K^{l-1}), \qquad
       \Theta^l = K^l + \sigma_w^2 F'(K^{l-1})\, \Theta^{l-1} $$

    with $F = E\, \varphi(u) \varphi(v)$ over Gaussian (u, v) of covariance K and F' the same
    average of $\varphi'$; `nngp_correlation` is K(x, x')/K(x, x) and `ntk_correlation` is
    $\Theta(x, x')/\Theta(x, x)$ after `depth` hidden layers.

    Source: Neal (1996); Lee et al. (2018) for K; Jacot, Gabriel, Hongler (2018) for Theta.

    >>> from orderparam.systems.random_networks import AngledPair
    >>> round(float(angle_kernel(AngledPair(angle=np.pi / 2, depth=1)).nngp_correlation), 6)  # 1/pi
    0.31831
    """
    network = fully_connected(
        system.depth, None, system.activation, system.weight_variance, system.bias_variance
    )
    # Both inputs have the same length, so that the correlations follow by division by one diagonal
    # entry.
    kernels = network.kernel(system.inputs)
    return AngleKernel(
        nngp_correlation=kernels.nngp[0, 1] / kernels.nngp[0, 0],
        ntk_correlation=kernels.ntk[0, 1] / kernels.ntk[0, 0],
    )


@theory
def correlation_chain(system: AngledPair) -> CorrelationChain:
    r"""Correlation of the pre-activations at two inputs after every hidden layer, at infinite
    width.

    $$ c_l = K^l(x, x') / K^l(x, x), \qquad
       K^l = \sigma_b^2 + \sigma_w^2 F(K^{l-1}), \qquad l = 1 \dots \mathrm{depth} $$

    with F the two-point function of the activation; `correlation` is c and `layers` is l.

    Source: Poole et al. (2016).

    >>> from orderparam.systems.random_networks import AngledPair
    >>> chain = correlation_chain(AngledPair(angle=np.pi / 2, depth=2))
    >>> np.asarray(chain.correlation).round(6).tolist()
    [0.31831, 0.493731]
    """

    def layer(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
        following = _layer(system, *carry)
        return following, following[1] / following[0]

    overlap = jnp.cos(system.angle)
    # Inputs of length sqrt(d) have x.x/d = 1, and x.x'/d is the cosine of their angle.
    first, second = (
        system.bias_variance + system.weight_variance * cosine for cosine in (jnp.ones(()), overlap)
    )
    _, correlation = jax.lax.scan(layer, (first, second), None, length=system.depth)
    return CorrelationChain(layers=jnp.arange(1.0, system.depth + 1), correlation=correlation)


@theory
def order_chaos(system: AngledPair) -> OrderChaos:
    r"""Fixed points q* and c* of the variance and of the correlation, and the slope chi_1, which
    separates order from chaos.

    $$ q^* = \sigma_b^2 + \sigma_w^2 E\, \varphi(z)^2, \qquad
       \chi_1 = \sigma_w^2 E\, \varphi'(z)^2, \qquad z \sim N(0, q^*) $$

    $$ c^* = \big[ \sigma_b^2 + \sigma_w^2 F(q^*, c^* q^*, q^*) \big] / q^* $$

    with F the two-point function of the activation, `variance` q*, `slope` $\chi_1$ and
    `correlation` c*. For $\chi_1 \le 1$ the stable solution is c* = 1. `angle`, `depth` and `width`
    are not used.

    Accuracy: at the edge of chaos the variance may converge slowly; `converged` is then False. For
    relu with `weight_variance` 2 and no biases every variance is a fixed point, and the variance of
    the first layer is returned.

    Source: Poole et al. (2016).

    >>> from orderparam.systems.random_networks import AngledPair
    >>> phase = order_chaos(AngledPair(activation="erf", weight_variance=4.0, bias_variance=0.05))
    >>> round(float(phase.slope), 4), round(float(phase.correlation), 4)
    (1.5142, 0.1131)
    """
    phi = system.activation
    numbers = (system.weight_variance, system.bias_variance)

    def next_variance(q: Array, numbers: tuple[Array, Array]) -> Array:
        return numbers[1] + numbers[0] * phi.two_point(q, q, q)

    # The iteration starts at the variance of the first layer, as the variance of a network does.
    start = system.bias_variance + system.weight_variance
    found = fixed_point(next_variance, start, numbers, max_steps=20_000)
    q = found.value
    # chi_1 is the derivative of the correlation map at c = 1, where equal inputs stay equal.
    slope = system.weight_variance * phi.two_point_derivative(q, q, q)

    def excess(c: Array, q: Array) -> Array:
        return (system.bias_variance + system.weight_variance * phi.two_point(q, c * q, q)) / q - c

    # For chi_1 > 1 the fixed point c = 1 is unstable, and another fixed point lies below it.
    root = decreasing_root(excess, jnp.asarray(0.0), jnp.asarray(1 - 1e-6), q)
    chaotic = (slope > 1) & (excess(jnp.asarray(1 - 1e-6), q) < 0)
    at_zero = jnp.abs(excess(jnp.asarray(0.0), q)) < 1e-14  # an odd activation without biases
    correlation = jnp.where(chaotic, jnp.where(at_zero, 0.0, root.value), 1.0)
    correlation_slope = system.weight_variance * phi.two_point_derivative(q, correlation * q, q)
    converged = found.converged & (root.converged | at_zero | ~chaotic)
    return OrderChaos(
        variance=q,
        slope=slope,
        correlation=correlation,
        correlation_slope=correlation_slope,
        converged=converged,
        residual=found.residual,
    )


def _one_hidden_layer(system: NetworkKernels) -> None:
    if system.family != "fully connected" or system.depth != 1:
        raise ValueError(
            f"NetworkKernels.depth = {system.depth}, family {system.family!r}: must be 1 and "
            "'fully connected'"
        )


@theory(check=_one_hidden_layer)
def one_hidden_layer_spread(system: NetworkKernels) -> KernelSpread:
    r"""Fluctuations of the kernels of a fully connected network with one hidden layer, exact at
    every width.

    The hidden units are independent, so that neither kernel has a bias and the variances of

    $$ \hat K_{ij} = \sigma_b^2 + \sigma_w^2 \frac1N \sum_c \varphi_i \varphi_j, \qquad
       \hat \Theta_{ij} = \hat K_{ij} + \sigma_w^2 \frac1N \sum_c \alpha_c^2 \varphi'_i \varphi'_j
       q_{ij} $$

    are the variances for one unit divided by N (`width`), with $\alpha_c \sim N(0, 1)$ the read-out
    weights and $q_{ij} = \sigma_b^2 + \sigma_w^2\, x_i \cdot x_j / d$.

    Raises:
        ValueError: for convolutions, and for more than one hidden layer.

    Source: derived here.

    >>> from orderparam.systems.random_networks import NetworkKernels
    >>> spread = one_hidden_layer_spread(NetworkKernels([[1.0, 0.5], [0.0, 1.0]], width=50))
    >>> round(float(spread.nngp_fluctuation), 6), round(float(spread.ntk_fluctuation), 6)
    (0.329894, 0.256441)
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
    # The units are independent, so that the variance of the mean over units is the variance of one
    # unit divided by N. In the tangent kernel the read-out weight contributes E alpha^4 = 3.
    variance = square - one**2
    tangent = variance + 2 * q * (mixed - one * slope) + q**2 * (3 * slopes - slope**2)
    nngp = system.bias_variance + system.weight_variance * one
    ntk = nngp + system.weight_variance * slope * q

    def relative(spread: Array, kernel: Array) -> Array:
        return system.weight_variance * jnp.sqrt(
            jnp.sum(spread) / system.width / jnp.sum(kernel**2)
        )

    zero = jnp.zeros(())
    return KernelSpread(
        nngp_bias=zero,
        nngp_fluctuation=relative(variance, nngp),
        ntk_bias=zero,
        ntk_fluctuation=relative(tangent, ntk),
    )


def _one_input(system: NetworkKernels) -> None:
    if system.family != "fully connected" or system.inputs.shape[0] != 1:
        raise ValueError(
            f"NetworkKernels.inputs has shape {system.inputs.shape}: one input of a fully "
            "connected network"
        )


@theory(check=_one_input)
def one_input_spread(system: NetworkKernels) -> KernelSpread:
    r"""Bias and fluctuation of the NNGP kernel at one input for any depth, to first order in
    1/width.

    `nngp_bias` is $K^{(1)}/(nK)$ and `nngp_fluctuation` is $\sqrt{V/n}/K$ of the last layer, with n
    the `width` and $K$, $V$, $K^{(1)}$ as in `deep_cumulants`.

    Returns:
        `KernelSpread`, with NaN for the tangent kernel.

    Raises:
        ValueError: for convolutions, and for more than one input.

    Accuracy: relative error of order depth/width.

    Source: Yaida (2020); Roberts, Yaida, Hanin (2021), chapter 4.

    >>> from orderparam.systems.random_networks import NetworkKernels
    >>> round(float(one_input_spread(NetworkKernels([[1.0, 1.0]], width=50)).nngp_fluctuation), 6)
    0.316228
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
    return KernelSpread(
        nngp_bias=bias, nngp_fluctuation=fluctuation, ntk_bias=unknown, ntk_fluctuation=unknown
    )


def _layer(system: AngledPair, variance: Array, covariance: Array) -> tuple[Array, Array]:
    """The kernel after one more layer, as K(x, x) and K(x, x'), for inputs of equal length."""
    rule = system.activation.two_point
    return (
        system.bias_variance + system.weight_variance * rule(variance, variance, variance),
        system.bias_variance + system.weight_variance * rule(variance, covariance, variance),
    )
