"""One hidden layer at every width, exactly: hidden units are independent, so their cumulants add (Neal 1996; Yaida 2020).

With a_c = sqrt(readout_variance / N) alpha, E alpha^2 = 1, m4 = E alpha^4, m6 = E alpha^6, and <.> the average over one w:

    K(x, x')           = readout_variance <phi phi'>                                                      at every N
    kappa4(x1, .., x4) = (readout_variance^2 / N) { m4 <phi1 phi2 phi3 phi4> - <12><34> - <13><24> - <14><23> }
    kappa6(x)          = (readout_variance^3 / N^2) { m6 <phi^6> - 15 m4 <phi^4> <phi^2> + 30 <phi^2>^3 }

Odd cumulants vanish because the law of the read-out is even. The excess kurtosis kappa4 / K^2 is never negative for a Gaussian
read-out (it is 3 <phi^4> / <phi^2>^2 - 3 over N), and may be for a uniform one, m4 = 9/5, or signs, m4 = 1.
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
from orderparam.systems.random_networks.averages import one_point_average, unit_average
from orderparam.systems.random_networks.model import RandomNetwork

READOUT_MOMENTS = {"gaussian": (3.0, 15.0), "uniform": (9 / 5, 27 / 7), "rademacher": (1.0, 1.0)}  # E alpha^4, E alpha^6
_PERIOD = 24.0  # standard deviations after which a density by Fourier sums repeats
_HIGHEST = 2000.0  # the largest wave number times the standard deviation


class KernelMatrix(Result):
    """kernel: K(x, x') = E z(x) z(x')."""

    kernel: Float[Array, "first second"]


class Cumulants(Result):
    """kernel: K(x, x'). fourth_cumulant: kappa4(x1, x2, x3, x4), symmetric in its four inputs."""

    kernel: Float[Array, "first second"]
    fourth_cumulant: Float[Array, "first second third fourth"]


class Marginals(Result):
    """At every input by itself: K(x, x), kappa4(x, x, x, x) and the excess kurtosis kappa4 / K^2, also times the width."""

    variance: Float[Array, "input"]
    fourth_cumulant: Float[Array, "input"]
    kurtosis: Float[Array, "input"]
    width_kurtosis: Float[Array, "input"]


class Density(Result):
    """density: P(z(x) in bin) / (bin width), an average over each bin of `RandomNetwork.edges`; value: the middle of the bin."""

    value: Float[Array, "bin"]
    density: Float[Array, "input bin"]


@theory
def covariance(system: RandomNetwork) -> KernelMatrix:
    """K alone: in closed form, for any input dimension, if the hidden weights are Gaussian."""
    if system.prior == "gaussian":
        x = system.inputs
        gram = system.weight_variance * x @ x.T / x.shape[1]
        diagonal = jnp.diagonal(gram)
        return KernelMatrix(system.readout_variance * system.activation.two_point(diagonal[:, None], gram, diagonal))
    return KernelMatrix(system.readout_variance * _features(system)[0])


@theory
def cumulants(system: RandomNetwork) -> Cumulants:
    """K and the whole fourth cumulant, exact at every width; accuracy and errors as for `averages.unit_average`."""
    second, fourth = _features(system)
    m4, _ = READOUT_MOMENTS[system.readout_law]
    variance = system.readout_variance
    return Cumulants(covariance(system).kernel, variance**2 / system.width * (m4 * fourth - pairings(second)))


def pairings(second: Float[Array, "first second"]) -> Float[Array, "first second third fourth"]:
    """<12><34> + <13><24> + <14><23>."""
    one = jnp.einsum("ab,cd->abcd", second, second)
    return one + jnp.swapaxes(one, 1, 2) + jnp.swapaxes(one, 1, 3)


@theory
def marginals(system: RandomNetwork) -> Marginals:
    """Variance, fourth cumulant and kurtosis at each input, exact at every width; Gaussian weights: for any input dimension."""
    u, weights = one_point_average(system)
    phi = system.activation(u)
    second, fourth = (jnp.sum(weights * phi**power, axis=1) for power in (2, 4))
    m4, _ = READOUT_MOMENTS[system.readout_law]
    kappa = m4 * fourth - 3 * second**2
    return marginals_of(system, system.readout_variance * second, system.readout_variance**2 / system.width * kappa)


def marginals_of(system: RandomNetwork, second: Float[Array, "input"], fourth_cumulant: Float[Array, "input"]) -> Marginals:
    """The record of K(x, x) and kappa4(x, x, x, x)."""
    kurtosis = fourth_cumulant / second**2
    return Marginals(second, fourth_cumulant, kurtosis, system.width * kurtosis)


def sixth_cumulant(system: RandomNetwork) -> Float[Array, "input"]:
    """kappa6(x, .., x), of order width^-2."""
    second, m4, m6 = _standardised(system)
    return second**3 / system.width**2 * (m6 - 15 * m4 + 30)


@theory
def density(system: RandomNetwork, *, order: Literal[0, 1, 2] = 1) -> Density:
    """The density of z(x), with corrections to the Gaussian up to width^-order: Edgeworth's series, for order 0, 1 or 2.

    p(z) = N(z; 0, K) [1 + l4/24 He_4 + l6/720 He_6 + l4^2/1152 He_8],  l4 = kappa4/K^2, l6 = kappa6/K^3, He of z/sqrt(K),

    the first correction being order 1 and the others order 2 (Blinnikov and Moessner 1998). Integrated over each bin, hence as
    exact as the cumulants. Order 0 is the Gaussian process of infinite width. It may be negative where it is not valid.
    """
    second, m4, m6 = _standardised(system)
    deviation = jnp.sqrt(second)[:, None]
    fourth = (m4 - 3)[:, None] / system.width
    sixth = (m6 - 15 * m4 + 30)[:, None] / system.width**2
    z = system.edges / deviation

    def he(degree: int) -> Array:
        return math.sqrt(math.factorial(degree)) * hermite(degree, z)

    polynomial = jnp.zeros_like(z)
    if order > 0:
        polynomial += fourth / 24 * he(3)
    if order > 1:
        polynomial += sixth / 720 * he(5) + fourth**2 / 1152 * he(7)
    return _binned(system, norm.cdf(z) - norm.pdf(z) * polynomial)


def _smooth(system: RandomNetwork) -> None:
    if system.readout_law == "rademacher":
        raise ValueError("RandomNetwork.readout_prior = 'rademacher': the law of z has no smooth density at small width")


@theory(check=_smooth)
def exact_density(system: RandomNetwork) -> Density:
    """The density of z(x) at any width, from the characteristic function of one hidden unit to the power `width`.

    P(z < t) = 1/2 + (1/pi) int_0^inf dk sin(kt)/k <E_alpha cos(k a phi)>^N  (Gil-Pelaez 1951), for k up to 2000 / sqrt(K) and
    a period of 24 sqrt(K). Bins of width 0.05 sqrt(K) are good to 1e-8 of the peak for N >= 3, and 3e-3 for N = 1, where the
    density diverges at 0 like a logarithm.
    Raises `ValueError` for a Rademacher read-out, whose characteristic function does not decay at small width.
    """
    u, weights = one_point_average(system)
    second = system.readout_variance * jnp.sum(weights * system.activation(u) ** 2, axis=1)
    amplitude = jnp.sqrt(system.readout_variance / system.width) * system.activation(u)
    edges = system.edges

    def one_point(columns: tuple[Array, Array, Array]) -> Array:
        amplitude, weights, second = columns
        step = 2 * np.pi / _PERIOD / jnp.sqrt(second)
        k = step * (jnp.arange(int(_HIGHEST * _PERIOD / (2 * np.pi))) + 0.5)

        def characteristic(k: Array) -> Array:
            t = k * amplitude
            if system.readout_law == "gaussian":
                return jnp.sum(weights * jnp.exp(-(t**2) / 2))
            return jnp.sum(weights * jnp.sinc(np.sqrt(3) / np.pi * t))

        log_power = jax.lax.map(characteristic, k, batch_size=64)
        power = jnp.sign(log_power) ** system.width * jnp.abs(log_power) ** system.width
        return 0.5 + step / np.pi * jax.lax.map(lambda t: jnp.sum(jnp.sin(k * t) / k * power), edges)

    return _binned(system, jax.lax.map(one_point, (amplitude, weights, second)))


def _features(system: RandomNetwork) -> tuple[Array, Array]:
    """<phi_a phi_b> and <phi_a phi_b phi_c phi_d>."""
    u, weights = unit_average(system)
    phi = system.activation(u)
    points = phi.shape[1]
    products = (phi[:, :, None] * phi[:, None, :]).reshape(-1, points**2)
    second = (weights @ products).reshape(points, points)
    fourth = (products.T @ (weights[:, None] * products)).reshape((points,) * 4)
    return second, fourth


def _standardised(system: RandomNetwork) -> tuple[Array, Array, Array]:
    """K(x, x), and the fourth and sixth moments of one unit's a phi over the powers of its second."""
    u, weights = one_point_average(system)
    phi = system.activation(u)
    second, fourth, sixth = (jnp.sum(weights * phi**power, axis=1) for power in (2, 4, 6))
    m4, m6 = READOUT_MOMENTS[system.readout_law]
    return system.readout_variance * second, m4 * fourth / second**2, m6 * sixth / second**3


def _binned(system: RandomNetwork, distribution: Float[Array, "point edge"]) -> Density:
    edges = system.edges
    return Density((edges[1:] + edges[:-1]) / 2, jnp.diff(distribution, axis=1) / jnp.diff(edges))
