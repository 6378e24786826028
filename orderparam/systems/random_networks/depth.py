"""Deep networks at one input: the variance of the next layer's pre-activations is itself random, with fluctuations of order 1/n.

Khat_l (see `DeepNetwork`) has mean K_l + K1_l / n and variance V_l / n to first order in 1/n (Yaida 2020; Roberts, Yaida and
Hanin 2021, chapter 4). With <.> over z ~ N(0, K), m(K) = bias_variance + weight_variance <phi^2>, and K_0 given, V_0 = K1_0 = 0:

    V   <-  m'(K)^2 V + weight_variance^2 (<phi^4> - <phi^2>^2)
    K1  <-  m'(K) K1 + m''(K) V / 2
    K   <-  m(K)

Given Khat the pre-activation is Gaussian, so its excess kurtosis is 3 Var Khat / (E Khat)^2 = 3 V / (n K^2) + O(1/n^2).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.random_networks.model import DeepNetwork


class DeepCumulants(Result):
    """After l = 1 .. depth hidden layers.

    layers: l. kernel: K_l at infinite width. vertex: V_l = n Var Khat_l. kernel_shift: n (E Khat_l - K_l). mean_kernel: E Khat_l.
    kurtosis: excess kurtosis of a pre-activation. width_kurtosis: n times that. valid: whether the theory holds for this network.
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

    def layer(carry: tuple[Array, Array, Array], _: None) -> tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]:
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
    return DeepCumulants(number, kernel, vertex, shift, mean_kernel, kurtosis / system.width, kurtosis, jnp.asarray(True))


@theory
def homogeneous_cumulants(system: DeepNetwork) -> DeepCumulants:
    """Exact at every width, for phi(cz) = c phi(z), c > 0, such as relu, and no biases (Hanin and Nica 2020 for relu).

    Every layer multiplies Khat by an independent factor weight_variance (1/n) sum_i phi(g_i)^2, g_i ~ N(0, 1), so that
    E Khat_l^2 / (E Khat_l)^2 = {1 + (<phi^4>/<phi^2>^2 - 1) / n}^l: for relu (1 + 5/n)^l, and exp(5 l / n) when both are large.
    For other activations or with biases the answer is NaN, and not valid.
    """
    second, fourth = (system.activation.moment(power, 1.0) for power in (2, 4))
    number = jnp.arange(1.0, system.depth + 1)
    kernel = system.first_variance * (system.weight_variance * second) ** number
    relative = (1 + (fourth / second**2 - 1) / system.width) ** number - 1
    probe = jnp.array([-1.0, 1.0])
    homogeneous = jnp.allclose(system.activation(3.0 * probe), 3.0 * system.activation(probe), rtol=1e-12)
    valid = homogeneous & (jnp.asarray(system.bias_variance) == 0)
    relative = jnp.where(valid, relative, jnp.nan)
    vertex = system.width * relative * kernel**2
    kurtosis = 3 * relative
    return DeepCumulants(number, kernel, vertex, jnp.zeros_like(kernel), kernel, kurtosis, kurtosis * system.width, valid)
