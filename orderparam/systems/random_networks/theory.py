"""Exact theory of networks with one hidden layer at every width. Hidden units are independent, so
that their cumulants add (Neal 1996; Yaida 2020).

With a_c = sqrt(readout_variance / N) alpha, E alpha^2 = 1, m4 = E alpha^4, m6 = E alpha^6, and <.>
the average over one w:

    K(x, x')           = readout_variance <phi phi'>                           at every width N
    kappa4(x1, .., x4) = (readout_variance^2 / N)
                         { m4 <phi1 phi2 phi3 phi4> - <12><34> - <13><24> - <14><23> }
    kappa6(x)          = (readout_variance^3 / N^2)
                         { m6 <phi^6> - 15 m4 <phi^4> <phi^2> + 30 <phi^2>^3 }

Odd cumulants vanish because the law of the read-out is even. The excess kurtosis kappa4 / K^2 is
never negative for a Gaussian read-out, where it is (3 <phi^4> / <phi^2>^2 - 3) / N; it may be
negative for a uniform read-out (m4 = 9/5) or random signs (m4 = 1).
"""

import math
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian import hermite
from orderparam.systems.random_networks.model import RandomNetwork
from orderparam.systems.random_networks.unit_averages import one_point_average, unit_average

# E alpha^4, E alpha^6
READOUT_MOMENTS = {"gaussian": (3.0, 15.0), "uniform": (9 / 5, 27 / 7), "rademacher": (1.0, 1.0)}
_PERIOD = 24.0  # period, in standard deviations, of a density computed by Fourier sums
_HIGHEST = 2000.0  # the largest wave number times the standard deviation


class KernelMatrix(Result):
    """Kernel of the random function at all pairs of inputs.

    Fields:
        kernel: K(x, x') = E z(x) z(x').
    """

    kernel: Float[Array, "first second"]


class Cumulants(Result):
    """Second and fourth joint cumulants of the random function's values at the inputs.

    Fields:
        kernel: K(x, x') = E z(x) z(x').
        fourth_cumulant: kappa4(x1, x2, x3, x4), symmetric in its four inputs.
    """

    kernel: Float[Array, "first second"]
    fourth_cumulant: Float[Array, "first second third fourth"]


class Marginals(Result):
    """Cumulants of the random function's value at every input separately.

    Fields:
        variance: K(x, x).
        fourth_cumulant: kappa4(x, x, x, x).
        kurtosis: excess kurtosis kappa4 / K^2.
        width_kurtosis: width times `kurtosis`.
    """

    variance: Float[Array, "input"]
    fourth_cumulant: Float[Array, "input"]
    kurtosis: Float[Array, "input"]
    width_kurtosis: Float[Array, "input"]


class Density(Result):
    """Probability density of the random function's value at every input.

    Fields:
        value: middle of each bin of `RandomNetwork.edges`.
        density: P(z(x) in bin) / (bin width), the average of the density over the bin.
    """

    value: Float[Array, "bin"]
    density: Float[Array, "input bin"]


@theory
def covariance(system: RandomNetwork) -> KernelMatrix:
    r"""Kernel K(x, x') = E z(x) z(x') of a network with one hidden layer, exact at every width.

    $$ K(x, x') = \sigma_a^2\, E\, \varphi(w \cdot x)\, \varphi(w \cdot x') $$

    with $\sigma_a^2$ the `readout_variance`. The kernel does not depend on `width` or on the law of
    the read-out.

    Raises:
        ValueError: for a uniform law of the hidden weights, in the cases in which `unit_average`
            raises it. With Gaussian weights the kernel has a closed form in any input dimension.

    Source: Neal (1996).

    >>> from orderparam.systems.random_networks import RandomNetwork
    >>> network = RandomNetwork([[1.0, 0.5], [-0.3, 2.0]], prior="gaussian")
    >>> np.asarray(covariance(network).kernel[0]).round(6).tolist()
    [0.063351, 0.027135]
    """
    if system.prior == "gaussian":
        x = system.inputs
        gram = system.weight_variance * x @ x.T / x.shape[1]
        diagonal = jnp.diagonal(gram)
        return KernelMatrix(
            kernel=system.readout_variance
            * system.activation.two_point(diagonal[:, None], gram, diagonal)
        )
    return KernelMatrix(kernel=system.readout_variance * _features(system)[0])


@theory
def cumulants(system: RandomNetwork) -> Cumulants:
    r"""Kernel and the whole tensor of fourth cumulants of a network with one hidden layer, exact at
    every width.

    $$ \kappa_4(x_1 \dots x_4) = \frac{\sigma_a^4}{N} \big\{
       m_4 \langle \varphi_1 \varphi_2 \varphi_3 \varphi_4 \rangle
       - \langle 12 \rangle \langle 34 \rangle - \langle 13 \rangle \langle 24 \rangle
       - \langle 14 \rangle \langle 23 \rangle \big\} $$

    with $\langle \cdot \rangle$ the average over the weights of one unit, $\sigma_a^2$ the
    `readout_variance`, N the `width` and $m_4$ the fourth moment of a read-out weight of unit
    variance (3 for "gaussian", 9/5 for "uniform", 1 for "rademacher").

    Raises:
        ValueError: in the cases in which `unit_average` raises it: more than three dimensions, or
            kinks of the activation at which it cannot divide the integral.

    Accuracy: that of `unit_average`.

    Source: Yaida (2020), for Gaussian read-outs; derived here for the others.

    >>> from orderparam.systems.random_networks import RandomNetwork
    >>> fourth = cumulants(RandomNetwork([[1.0, 0.5], [-0.3, 2.0]], width=5)).fourth_cumulant
    >>> fourth.shape, round(float(fourth[0, 0, 0, 0]), 8)
    ((2, 2, 2, 2), 0.00032695)
    """
    second, fourth = _features(system)
    m4, _ = READOUT_MOMENTS[system.readout_law]
    variance = system.readout_variance
    return Cumulants(
        kernel=covariance(system).kernel,
        fourth_cumulant=variance**2 / system.width * (m4 * fourth - pairings(second)),
    )


def pairings(second: Float[Array, "first second"]) -> Float[Array, "first second third fourth"]:
    """Sum over the three pairings, <12><34> + <13><24> + <14><23>."""
    one = jnp.einsum("ab,cd->abcd", second, second)
    return one + jnp.swapaxes(one, 1, 2) + jnp.swapaxes(one, 1, 3)


@theory
def marginals(system: RandomNetwork) -> Marginals:
    r"""Variance, fourth cumulant and excess kurtosis at each input, exact at every width.

    $$ K = \sigma_a^2 \langle \varphi^2 \rangle, \qquad
       \kappa_4 = \frac{\sigma_a^4}{N} \big( m_4 \langle \varphi^4 \rangle -
       3 \langle \varphi^2 \rangle^2 \big) $$

    in the notation of `cumulants`; `kurtosis` is $\kappa_4/K^2$.

    Raises:
        ValueError: for a uniform law of the hidden weights, in the cases in which `unit_average`
            raises it. Gaussian weights have no such limit.

    Accuracy: that of `unit_average`.

    Source: Yaida (2020), for Gaussian read-outs; derived here for the others.

    >>> from orderparam.systems.random_networks import RandomNetwork
    >>> found = marginals(RandomNetwork([[1.0, 0.5], [-0.3, 2.0]], width=5))
    >>> np.asarray(found.width_kurtosis).round(6).tolist()  # the sign depends on the input
    [0.357903, -0.353652]
    """
    u, weights = one_point_average(system)
    phi = system.activation(u)
    second, fourth = (jnp.sum(weights * phi**power, axis=1) for power in (2, 4))
    m4, _ = READOUT_MOMENTS[system.readout_law]
    # Cumulants of independent units add, and each of the N units contributes a term of order 1/N^2.
    kappa = m4 * fourth - 3 * second**2
    return marginals_of(
        system, system.readout_variance * second, system.readout_variance**2 / system.width * kappa
    )


def marginals_of(
    system: RandomNetwork, second: Float[Array, "input"], fourth_cumulant: Float[Array, "input"]
) -> Marginals:
    """The `Marginals` that follow from K(x, x) (`second`) and kappa4(x, x, x, x)."""
    kurtosis = fourth_cumulant / second**2
    return Marginals(
        variance=second,
        fourth_cumulant=fourth_cumulant,
        kurtosis=kurtosis,
        width_kurtosis=system.width * kurtosis,
    )


def sixth_cumulant(system: RandomNetwork) -> Float[Array, "input"]:
    r"""Sixth cumulant kappa6(x, .., x) at each input, of order width^-2.

    $$ \kappa_6 = \frac{\sigma_a^6}{N^2} \big( m_6 \langle \varphi^6 \rangle - 15\, m_4 \langle
       \varphi^4 \rangle \langle \varphi^2 \rangle + 30 \langle \varphi^2 \rangle^3 \big) $$

    in the notation of `cumulants`, with $m_6$ the sixth moment of a read-out weight of unit
    variance.

    Source: derived here.
    """
    second, m4, m6 = _standardised(system)
    return second**3 / system.width**2 * (m6 - 15 * m4 + 30)


@theory
def density(system: RandomNetwork, *, order: Literal[0, 1, 2] = 1) -> Density:
    r"""Density of z(x) at each input with corrections to the Gaussian up to width^-order, by
    Edgeworth's series.

    $$ p(z) = N(z; 0, K) \Big[ 1 + \frac{l_4}{24} He_4 + \frac{l_6}{720} He_6 +
       \frac{l_4^2}{1152} He_8 \Big], \qquad l_4 = \kappa_4 / K^2, \quad l_6 = \kappa_6 / K^3 $$

    with the Hermite polynomials $He_k$ of $z/\sqrt K$. The series is integrated over each bin.

    Args:
        order: 0 for the Gaussian process of infinite width, 1 for the correction with $He_4$, 2 for
            all corrections up to $He_8$. Default 1.

    Raises:
        ValueError: for a uniform law of the hidden weights, where `unit_average` does.

    Accuracy: the neglected terms are of order width^-(order + 1). The series is asymptotic and may
    be negative where it is not valid.

    Source: Blinnikov, Moessner (1998) for the series; cumulants as in `marginals`.

    >>> from orderparam.systems.random_networks import RandomNetwork
    >>> network = RandomNetwork([[1.0, 0.5]], width=5, bins=4)
    >>> np.asarray(density(network, order=1).density[0]).round(5).tolist()
    [0.05476, 0.94505, 0.94505, 0.05476]
    """
    second, m4, m6 = _standardised(system)
    deviation = jnp.sqrt(second)[:, None]
    fourth = (m4 - 3)[:, None] / system.width
    sixth = (m6 - 15 * m4 + 30)[:, None] / system.width**2
    z = system.edges / deviation

    def he(degree: int) -> Array:
        return math.sqrt(math.factorial(degree)) * hermite(degree, z)

    # The integral of N(z) He_k(z) up to an edge is -N(z) He_(k-1)(z), which gives the series for a
    # whole bin.
    polynomial = jnp.zeros_like(z)
    if order > 0:
        polynomial += fourth / 24 * he(3)
    if order > 1:
        polynomial += sixth / 720 * he(5) + fourth**2 / 1152 * he(7)
    return _binned(system, norm.cdf(z) - norm.pdf(z) * polynomial)


def _smooth(system: RandomNetwork) -> None:
    if system.readout_law == "rademacher":
        raise ValueError(
            "RandomNetwork.readout_prior = 'rademacher': the law of z has no smooth density at "
            "small width"
        )


@theory(check=_smooth)
def exact_density(system: RandomNetwork) -> Density:
    r"""Density of z(x) at each input and any width, from the characteristic function of one hidden
    unit.

    $$ P(z < t) = \frac12 + \frac1\pi \int_0^\infty dk\, \frac{\sin kt}{k}\,
       \left\langle E_a \cos(k a \varphi) \right\rangle^N $$

    with N the `width`, a one read-out weight and $\langle \cdot \rangle$ the average over the
    weights of one hidden unit.

    Raises:
        ValueError: for a "rademacher" read-out, whose characteristic function does not decay at
            small width; for a uniform law of the hidden weights, in the cases in which
            `unit_average` raises it.

    Accuracy: 1e-8 of the peak for bins of width 0.05 sqrt(K) and `width` >= 3; 3e-3 for `width` 1,
    where the density diverges at 0 like a logarithm. Wave numbers reach 2000 / sqrt(K), and the
    density repeats with the period 24 sqrt(K).

    Source: Gil-Pelaez (1951) for the inversion; derived here for networks.

    >>> from orderparam.systems.random_networks import RandomNetwork
    >>> network = RandomNetwork([[1.0, 0.5]], width=5, prior="gaussian", bins=4)
    >>> np.asarray(exact_density(network).density[0]).round(5).tolist()
    [0.05247, 0.94684, 0.94684, 0.05247]
    """
    u, weights = one_point_average(system)
    second = system.readout_variance * jnp.sum(weights * system.activation(u) ** 2, axis=1)
    amplitude = jnp.sqrt(system.readout_variance / system.width) * system.activation(u)
    edges = system.edges

    def one_point(columns: tuple[Array, Array, Array]) -> Array:
        amplitude, weights, second = columns
        step = 2 * np.pi / _PERIOD / jnp.sqrt(second)
        k = step * (jnp.arange(int(_HIGHEST * _PERIOD / (2 * np.pi))) + 0.5)

        # The average over a read-out weight has a closed form: it is a Gaussian for Gaussian
        # weights and a sinc for uniform weights.
        def characteristic(k: Array) -> Array:
            t = k * amplitude
            if system.readout_law == "gaussian":
                return jnp.sum(weights * jnp.exp(-(t**2) / 2))
            return jnp.sum(weights * jnp.sinc(np.sqrt(3) / np.pi * t))

        log_power = jax.lax.map(characteristic, k, batch_size=64)
        power = jnp.sign(log_power) ** system.width * jnp.abs(log_power) ** system.width
        return 0.5 + step / np.pi * jax.lax.map(
            lambda t: jnp.sum(jnp.sin(k * t) / k * power), edges
        )

    return _binned(system, jax.lax.map(one_point, (amplitude, weights, second)))


def _features(system: RandomNetwork) -> tuple[Array, Array]:
    """Averages <phi_a phi_b> and <phi_a phi_b phi_c phi_d> over one hidden unit."""
    u, weights = unit_average(system)
    phi = system.activation(u)
    points = phi.shape[1]
    products = (phi[:, :, None] * phi[:, None, :]).reshape(-1, points**2)
    second = (weights @ products).reshape(points, points)
    fourth = (products.T @ (weights[:, None] * products)).reshape((points,) * 4)
    return second, fourth


def _standardised(system: RandomNetwork) -> tuple[Array, Array, Array]:
    """K(x, x), and the fourth and sixth moments of one unit's contribution a phi, divided by powers
    of its second moment.
    """
    u, weights = one_point_average(system)
    phi = system.activation(u)
    second, fourth, sixth = (jnp.sum(weights * phi**power, axis=1) for power in (2, 4, 6))
    m4, m6 = READOUT_MOMENTS[system.readout_law]
    return system.readout_variance * second, m4 * fourth / second**2, m6 * sixth / second**3


def _binned(system: RandomNetwork, distribution: Float[Array, "point edge"]) -> Density:
    edges = system.edges
    return Density(
        value=(edges[1:] + edges[:-1]) / 2, density=jnp.diff(distribution, axis=1) / jnp.diff(edges)
    )
