"""Theory of dense associative memories: the signal of one pattern is compared with the noise of all
other patterns.
"""

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
    """Signal-to-noise estimates at finite N.

    Fields:
        flip_probability: probability that a spin of a stored pattern flips in one parallel step.
        next_overlap: overlap after one parallel step from the overlap `start`.
        lossless_patterns: largest number P of patterns at which typically no spin of a stored
            pattern flips.
    """

    flip_probability: Float[Array, ""]
    next_overlap: Float[Array, ""]
    lossless_patterns: Float[Array, ""]


class Retrieval(Result):
    """The retrieval state at T = 0.

    Fields:
        overlap: overlap m with the pattern; NaN where the state does not exist.
        critical_load: load beyond which there is no retrieval state.
        critical_overlap: overlap at that load.
        valid: whether the state exists.
        residual: residual of the equation for m.
        converged: whether the equation was solved.
    """

    overlap: Float[Array, ""]
    critical_load: Float[Array, ""]
    critical_overlap: Float[Array, ""]
    valid: Bool[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class ExponentialBasin(Result):
    """Basin of attraction of a pattern in an exponential memory of many spins.

    Fields:
        basin_edge: smallest overlap from which a pattern is retrieved in one step; 1 where no
            pattern is retrieved.
        critical_load: load at which the basin closes, 1 - ln cosh 1.
        guaranteed_load: load (ln 2)/2, below which every pattern is stable with high probability by
            a theorem of Demircigil et al. (2017).
        residual: below the freezing load the residual of the equation for the largest overlap of
            another pattern with the state; 0 above it.
        converged: whether that equation was solved.
    """

    basin_edge: Float[Array, ""]
    critical_load: Float[Array, ""]
    guaranteed_load: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def signal_to_noise(system: DenseMemory) -> SignalToNoise:
    r"""Probability that a spin of a stored pattern flips, and the overlap after one parallel step.

    A spin takes the value +1 or -1 of lower energy. In the difference of both energies, a pattern
    of overlap m contributes the signal $D(m (N - 1))$ with $D(x) = (x + 1)^n - (x - 1)^n$, and each
    other pattern adds the noise $\pm D(x)$ with x a sum of N - 1 random signs. The sum of these
    noises is taken to be Gaussian with its exact variance at N spins. The ratio of the signal to
    the standard deviation of the noise is

    $$ \rho(m) = \frac{D(m (N - 1))}{\sqrt{(P - 1)\, E D(x)^2}} \to m^{n-1}
          \sqrt{\frac{N^{n-1}}{(2n-3)!!\, P}}, \qquad
       P = \alpha N^{n-1} $$

    with n = `degree`, N = `spins` and $\alpha$ = `load`. `flip_probability` is $\Phi(-\rho(1))$,
    `next_overlap` is $\mathrm{erf}(\rho(m_0)/\sqrt 2)$ with $m_0$ = `start`, and
    `lossless_patterns` is $N^{n-1}/(2 (2n-3)!! \ln N)$.

    Accuracy: the variance is exact; the Gaussian law of the noise is an approximation that holds
    for many spins and patterns.

    Source: Krotov, Hopfield (2016); the variance at finite N is derived here.

    >>> found = signal_to_noise(DenseMemory(0.05, spins=100))
    >>> round(float(found.flip_probability), 8)
    0.00516512
    """
    n, spins = system.degree, system.spins
    patterns = system.load * spins ** (n - 1)
    unit = _noise(n, spins)

    def ratio(m: Number | float) -> Number:
        others = m * (spins - 1)
        return _difference(others, n) / jnp.sqrt(jnp.maximum(patterns - 1, 1e-300) * unit)

    double_factorial = math.prod(range(1, 2 * n - 2, 2))
    return SignalToNoise(
        flip_probability=norm.cdf(-ratio(jnp.ones(()))),
        next_overlap=erf(ratio(system.start) / np.sqrt(2)),
        lossless_patterns=spins ** (n - 1) / (2 * double_factorial * jnp.log(spins)),
    )


@theory
def dense_retrieval(system: DenseMemory) -> Retrieval:
    r"""Overlap of the retrieval state of a dense memory of many spins at T = 0, and the load at
    which it ends.

    $$ m = \mathrm{erf} \frac{m^{n-1}}{\sqrt{2 (2n-3)!!\, \alpha}} $$

    with m = `overlap`, n = `degree` and $\alpha$ = `load`. The result is the largest solution. The
    other patterns act like a spin glass with Gaussian couplings, on which the recalled pattern has
    no influence for n > 2.

    Accuracy: 1e-9; replica symmetric.

    Source: Gardner (1987); Abbott, Arian (1987). Their energies exclude terms with repeated sites,
    which gives (n-1)! in place of (2n-3)!!.

    >>> found = dense_retrieval(DenseMemory(0.05))
    >>> round(float(found.overlap), 8), round(float(found.critical_load), 8)
    (0.98833431, 0.08406348)
    """
    n = system.degree
    noise = 2.0 * math.prod(range(1, 2 * n - 2, 2))

    # With m = erf x the load is an explicit function of x; retrieval ends at the maximum of the
    # load.
    def log_load(x: Number) -> Number:
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
    return Retrieval(
        overlap=overlap,
        critical_load=jnp.exp(highest),
        critical_overlap=erf(peak),
        valid=valid,
        residual=root.residual,
        converged=root.converged,
    )


@theory
def exponential_basin(system: ExponentialMemory) -> ExponentialBasin:
    r"""Smallest overlap from which an exponential memory of many spins retrieves a pattern in one
    step.

    About $e^{N (\alpha - I(x))}$ of the other patterns have the overlap x with the state, where
    $\alpha$ = `load` and $I(x) = \frac12 [(1 + x) \ln(1 + x) + (1 - x) \ln(1 - x)]$. A pattern of
    overlap m is retrieved if its term $e^{N m}$ exceeds the sum of the terms $e^{N x}$ of the other
    patterns, which is the partition function of a random energy model:

    $$ m > \max_{x:\, I(x) \le \alpha} \big( \alpha - I(x) + x \big) $$

    `basin_edge` is the right-hand side. At loads above the freezing load $\tanh 1 - \ln \cosh 1$ it
    is $\alpha + \ln \cosh 1$, at most 1. At smaller loads it is the solution x of $I(x) = \alpha$.

    Accuracy: 1e-9.

    Source: derived here for patterns of +-1, with the argument of Lucibello, Mézard (2024).

    >>> round(float(exponential_basin(ExponentialMemory(0.2)).basin_edge), 8)
    0.61034567
    """
    freezing = np.tanh(1.0) - np.log(np.cosh(1.0))
    # Below the freezing load the pattern of largest overlap dominates the sum over the others.
    frozen = system.load < freezing
    load = jnp.where(frozen, system.load, freezing / 2)

    def entropy_left(x: Number, load: Number) -> Number:
        return load - (xlogy(1 + x, 1 + x) + xlogy(1 - x, 1 - x)) / 2

    root = decreasing_root(entropy_left, jnp.zeros(()), jnp.asarray(np.tanh(1.0)), load)
    edge = jnp.where(frozen, root.value, jnp.minimum(system.load + np.log(np.cosh(1.0)), 1.0))
    critical, guaranteed = jnp.asarray(1 - np.log(np.cosh(1.0))), jnp.asarray(np.log(2.0) / 2)
    return ExponentialBasin(
        basin_edge=edge,
        critical_load=critical,
        guaranteed_load=guaranteed,
        residual=jnp.where(frozen, root.residual, 0.0),
        converged=~frozen | root.converged,
    )


def _difference(x: Number | float, degree: int) -> Number | float:
    """D(x) = (x + 1)^n - (x - 1)^n for n = `degree`."""
    return (x + 1) ** degree - (x - 1) ** degree


def _noise(degree: int, spins: Number | float) -> Number:
    """Mean square of (x + 1)^n - (x - 1)^n for a sum x of N - 1 random signs, from the even
    moments of x.
    """
    coefficients = [2 * math.comb(degree, k) if (degree - k) % 2 else 0 for k in range(degree + 1)]
    square = np.polynomial.polynomial.polymul(coefficients, coefficients)
    moments = _sign_sum_moments(len(square) // 2 + 1, spins - 1)
    return sum(
        (c * moments[k // 2] for k, c in enumerate(square) if c and k % 2 == 0), jnp.zeros(())
    )


def _sign_sum_moments(count: int, terms: Number | float) -> list[Number]:
    """Even moments E x^0, E x^2, ... of a sum x of random signs.

    The cumulants of the sum are those of one sign, the derivatives of ln cosh at 0, times the
    number of terms; moments follow from cumulants by their recursion.
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
    """Cumulants of one random sign, the derivatives of ln cosh at 0, from its even moments, which
    are all 1.
    """
    cumulants = [0.0] * count
    for k in range(1, count):
        moment = 1.0 if k % 2 == 0 else 0.0
        lower_orders = sum(
            math.comb(k - 1, j - 1) * cumulants[j] * (1.0 if (k - j) % 2 == 0 else 0.0)
            for j in range(1, k)
        )
        cumulants[k] = moment - lower_orders
    return cumulants
