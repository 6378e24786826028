"""What dense associative memories hold: signal against the noise of all other patterns."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf, xlogy
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.root import decreasing_root
from orderparam.systems.associative_memory.dense.model import DenseMemory, ExponentialMemory

Number = Float[Array, ""]


class SignalToNoise(Result):
    """flip_probability: that a spin of a stored pattern turns in one step.

    next_overlap: after one parallel step from the overlap `start`. lossless_patterns: P up to which
    no spin of a pattern turns, typically.
    """

    flip_probability: Float[Array, ""]
    next_overlap: Float[Array, ""]
    lossless_patterns: Float[Array, ""]


class Retrieval(Result):
    """overlap at T = 0; critical_load, beyond which there is no retrieval state, and
    critical_overlap there.

    valid: the state exists; its overlap is NaN where it does not. residual, converged: of the
    equation.
    """

    overlap: Float[Array, ""]
    critical_load: Float[Array, ""]
    critical_overlap: Float[Array, ""]
    valid: Bool[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class ExponentialBasin(Result):
    """basin_edge: the overlap from which on a pattern is retrieved in one step, as N grows; 1 where
    none is.

    critical_load: where the basin closes, 1 - ln cosh 1. guaranteed_load: (ln 2)/2, below which
    every pattern is known to be stable with high probability (Demircigil et al. 2017).
    """

    basin_edge: Float[Array, ""]
    critical_load: Float[Array, ""]
    guaranteed_load: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def signal_to_noise(system: DenseMemory) -> SignalToNoise:
    """The field of the other patterns on a spin as a Gaussian variable of its exact variance at N
    spins.

    A spin is compared up and down: the signal is (N m + 1)^n - (N m - 1)^n, nearly, and each other
    pattern adds +-[(x + 1)^n - (x - 1)^n], x the sum of N - 1 random signs. For large N the ratio
    is m^(n-1) sqrt(N^(n-1)/((2n-3)!! P)), and P = N^(n-1)/(2 (2n-3)!! ln N) patterns are stored
    without an error (Krotov, Hopfield 2016).
    """
    n, spins = system.degree, system.spins
    patterns = system.load * spins ** (n - 1)
    unit = _noise(n, spins)

    def ratio(m: Number | float) -> Number:
        others = m * (spins - 1)
        return _difference(others, n) / jnp.sqrt(jnp.maximum(patterns - 1, 1e-300) * unit)

    double_factorial = math.prod(range(1, 2 * n - 2, 2))
    return SignalToNoise(
        norm.cdf(-ratio(jnp.ones(()))),
        erf(ratio(system.start) / np.sqrt(2)),
        spins ** (n - 1) / (2 * double_factorial * jnp.log(spins)),
    )


@theory
def dense_retrieval(system: DenseMemory) -> Retrieval:
    """m = erf(m^(n-1)/sqrt(2 (2n-3)!! alpha)), replica-symmetric at T = 0 as N grows, for n > 2.

    The other patterns act as a glass of Gaussian couplings, on which a condensed pattern does not
    react (Gardner 1987; Abbott, Arian 1987, whose energies leave out terms of equal sites and have
    (n-1)! in place of (2n-3)!!).
    """
    n = system.degree
    noise = 2.0 * math.prod(range(1, 2 * n - 2, 2))

    def log_load(x: Number) -> Number:  # m = erf x
        return (2 * n - 2) * jnp.log(erf(x)) - 2 * jnp.log(x) - np.log(noise)

    peak = decreasing_root(
        lambda x, _: jax.grad(log_load)(x), jnp.asarray(0.1), jnp.asarray(6.0)
    ).value
    highest = log_load(peak)
    valid = jnp.log(system.load) <= highest
    inner = jnp.where(valid, system.load, jnp.exp(highest) / 2)
    root = decreasing_root(
        lambda x, load: log_load(x) - jnp.log(load), peak, 1 / jnp.sqrt(noise * inner) + 1e-9, inner
    )
    overlap = jnp.where(valid, erf(root.value), jnp.nan)
    return Retrieval(overlap, jnp.exp(highest), erf(peak), valid, root.residual, root.converged)


@theory
def exponential_basin(system: ExponentialMemory) -> ExponentialBasin:
    """Where exp(N m) of the pattern outweighs the sum over all others, whose terms are those of a
    random energy model.

    exp(N (load - I(x))) patterns have the overlap x, I(x) = ((1 + x) ln(1 + x) + (1 - x) ln(1 -
    x))/2. Their sum grows with the exponent max_x (load - I(x) + x) over I(x) <= load: load + ln
    cosh 1 from load = tanh 1 - ln cosh 1 on, below it the largest overlap there is (the argument of
    Lucibello and Mézard 2024, for +-1 patterns).
    """
    freezing = np.tanh(1.0) - np.log(np.cosh(1.0))
    frozen = system.load < freezing
    load = jnp.where(frozen, system.load, freezing / 2)

    def entropy_left(x: Number, load: Number) -> Number:
        return load - (xlogy(1 + x, 1 + x) + xlogy(1 - x, 1 - x)) / 2

    root = decreasing_root(entropy_left, jnp.zeros(()), jnp.asarray(np.tanh(1.0)), load)
    edge = jnp.where(frozen, root.value, jnp.minimum(system.load + np.log(np.cosh(1.0)), 1.0))
    critical, guaranteed = jnp.asarray(1 - np.log(np.cosh(1.0))), jnp.asarray(np.log(2.0) / 2)
    return ExponentialBasin(
        edge, critical, guaranteed, jnp.where(frozen, root.residual, 0.0), ~frozen | root.converged
    )


def _difference(x: Number | float, degree: int) -> Number | float:
    return (x + 1) ** degree - (x - 1) ** degree


def _noise(degree: int, spins: Number | float) -> Number:
    """E [(x + 1)^n - (x - 1)^n]^2, x the sum of N - 1 random signs, from its even moments by their
    recursion.
    """
    coefficients = [2 * math.comb(degree, k) if (degree - k) % 2 else 0 for k in range(degree + 1)]
    square = np.polynomial.polynomial.polymul(coefficients, coefficients)
    moments = _sign_sum_moments(len(square) // 2 + 1, spins - 1)
    return sum(
        (c * moments[k // 2] for k, c in enumerate(square) if c and k % 2 == 0), jnp.zeros(())
    )


def _sign_sum_moments(count: int, terms: Number | float) -> list[Number]:
    """E x^0, E x^2, ... of a sum x of random signs: from its cumulants terms d^2k ln cosh, by the
    recursion of moments.
    """
    tangent = _tangent_cumulants(2 * count)
    moments = [jnp.ones(())]
    for k in range(1, 2 * count):
        earlier = (
            math.comb(k - 1, j - 1) * tangent[j] * terms * moments[k - j] for j in range(1, k + 1)
        )
        moments.append(sum(earlier, jnp.zeros(())))
    return moments[::2]


def _tangent_cumulants(count: int) -> list[float]:
    """Cumulants of one random sign: derivatives of ln cosh at 0, from its even moments, which are
    all 1.
    """
    cumulants = [0.0] * count
    for k in range(1, count):
        moment = 1.0 if k % 2 == 0 else 0.0
        known = sum(
            math.comb(k - 1, j - 1) * cumulants[j] * (1.0 if (k - j) % 2 == 0 else 0.0)
            for j in range(1, k)
        )
        cumulants[k] = moment - known
    return cumulants
