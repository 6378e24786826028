"""Diffusion models: the choice of a class and the collapse onto the training set."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.quadrature import standard_normal_rule
from orderparam.solve.root import decreasing_root
from orderparam.systems.diffusion.model import StoredData, StoredGaussians, TwoClasses, decay

Scalar = Float[Array, ""]


class Speciation(Result):
    """Choice of a class by two backward trajectories from one point.

    Fields:
        same_class: probability that two backward trajectories from one point end in the same class.
        class_signal: a^2 mu^T (a^2 C + D)^{-1} mu, the remaining squared distance of the classes.
        speciation_time: half the logarithm of the largest eigenvalue of the data's covariance.
    """

    same_class: Scalar
    class_signal: Scalar
    speciation_time: Scalar


class ExampleWeight(Result):
    """The collapse onto stored examples.

    Fields:
        own_weight: mean weight of the original example in the score at a noisy example, which is
            the probability that a backward trajectory from there ends at it.
        collapse_time: time at which the information about the original example equals ln n.
        excess_entropy: (information minus ln n)/d, which is positive where the score has collapsed.
    """

    own_weight: Scalar
    collapse_time: Scalar
    excess_entropy: Scalar


class DataTimes(Result):
    """The times of a pool of data.

    Fields:
        collapse_time: time at which the information of a Gaussian with the pool's covariance
            equals ln n.
        isotropic_time: collapse time for the mean variance in every direction.
        speciation_time: half the logarithm of the largest eigenvalue of the covariance.
        residual: residual of the equation for `collapse_time`.
        converged: whether it was solved.
    """

    collapse_time: Scalar
    isotropic_time: Scalar
    speciation_time: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


@theory
def speciation(system: TwoClasses) -> Speciation:
    r"""Probability that two backward trajectories from one point end in the same class.

    The posterior of the first class at $x_t$ is $\sigma(2u + \ln \frac{\pi}{1-\pi})$ with $u = a
    \mu^T (a^2 C + D)^{-1} x_t$. In the two classes $u \sim N(\pm s, s)$, so that

    $$ s = a^2 \sum_i \frac{\mu_i^2}{a^2 l_i + D}, \qquad \mathrm{same\ class} = \sum_{c} \pi_c\,
       E_{u \sim N(\pm s, s)} \left[ \sigma(2u + \ell)^2 + \sigma(-2u - \ell)^2 \right] , \qquad
       \ell = \ln \frac{\pi}{1 - \pi} . $$

    This probability falls from 1 to $\pi^2 + (1 - \pi)^2$ around the speciation time $\frac12 \ln
    \Lambda$, with $\Lambda$ the largest eigenvalue of $C + 4 \pi (1 - \pi) \mu \mu^T$.

    Returns:
        Values that are exact in every dimension.

    Accuracy: 1e-12.

    Source: Biroli, Bonnaire, de Bortoli, Mezard (2024), for any covariance and share of classes.

    >>> found = speciation(TwoClasses.isotropic(64, 2.0, variance=0.25))
    >>> round(float(found.same_class), 6), round(float(found.speciation_time), 4)
    (0.802804, 2.0814)
    """
    a, noise = decay(system.time)
    share = system.class_share
    signal = a**2 * jnp.sum(system.mean**2 / (a**2 * system.variances + noise))
    prior = jnp.log(share) - jnp.log1p(-share)
    # the second class follows from the first by a change of sign; the rule is divided where the
    # posterior is 1/2
    same = jnp.asarray(0.0)
    for sign, mass in ((1.0, share), (-1.0, 1 - share)):
        middle = -(sign * signal + prior / 2) / jnp.sqrt(signal)
        z, weight = standard_normal_rule((0.0, middle))
        odds = 2 * (sign * signal + jnp.sqrt(signal) * z) + prior
        # sigma(x)^2 + sigma(-x)^2 = (1 + tanh(x/2)^2)/2
        same += mass * jnp.sum(weight * (1 + jnp.tanh(odds / 2) ** 2)) / 2
    return Speciation(same_class=same, class_signal=signal, speciation_time=system.speciation_time)


@theory
def own_weight(system: StoredGaussians) -> ExampleWeight:
    r"""Mean weight of the original example in the empirical score, exact at finite n and d.

    At $x = a x_1 + \sqrt D z$ the score of the stored examples is $-\sum_\mu w_\mu (x - a x_\mu)/D$
    with weights $w_\mu \propto e^{-|x - a x_\mu|^2/(2D)}$. Let $r = a^2 \sigma^2/D$, and let $R$ be
    the squared distance between $x$ and $a x_2$ for an independent example $x_2$, divided by $D$.
    With $f(v) = E_R \exp(-v e^{-R/2})$ at given $X = |x|^2/D \sim (1 + r) \chi^2_d$, and $Z =
    -f'(0)$,

    $$ E w_1 = 1 - (n - 1)\, E_X \frac1Z \int_0^\infty f(v)^{n-2} f'(v)^2\, dv . $$

    The weight falls from 1 to $1/n$ around the `collapse_time` of the random energy model, where
    $\frac d2 \ln (1 + r) = \ln n$:

    $$ t_C = \frac12 \ln \left( 1 + \frac{\sigma^2}{n^{2/d} - 1} \right) , \qquad \mathrm{excess\
       entropy} = \frac12 \ln (1 + r) - \frac{\ln n}{d} . $$

    Returns:
        An exact `own_weight`; with one example `collapse_time` is infinite.

    Accuracy: 1e-8 absolute for n below 1e6, and 1e-5 for larger n in few dimensions.

    Source: Biroli, Bonnaire, de Bortoli, Mezard (2024) for the collapse time; the weight at finite
    n and d is derived here.

    >>> found = own_weight(StoredGaussians(20, 500, 0.385186))
    >>> round(float(found.collapse_time), 6)
    0.385186
    """
    a, noise = decay(system.time)
    dimension, stored = system.input_dim, system.n_train
    signal = a**2 * system.variance / noise
    time = _isotropic(dimension, stored, system.variance)
    excess = jnp.log1p(signal) / 2 - jnp.log(stored) / dimension
    return ExampleWeight(
        own_weight=own_weight_mean(dimension, stored, signal),
        collapse_time=time,
        excess_entropy=excess,
    )


@theory
def data_times(system: StoredData) -> DataTimes:
    r"""Collapse and speciation times of data, from their covariance alone.

    With the eigenvalues $l_i$ of the pool's covariance the collapse time solves

    $$ \ln n = \frac12 \sum_i \ln \left( 1 + \frac{a^2 l_i}{D} \right) , $$

    which is the condensation of a random energy model for Gaussian data. The speciation time is
    $\frac12 \ln l_1$.

    Returns:
        The times; with one example collapse times are infinite.

    Accuracy: 1e-10 relative for Gaussian data of many dimensions. Real data are not Gaussian.

    Source: Biroli, Bonnaire, de Bortoli, Mezard (2024).

    >>> import numpy as np
    >>> pool = np.random.default_rng(0).standard_normal((50, 4)) * [2.0, 1.0, 0.5, 0.2]
    >>> found = data_times(StoredData.from_pool(pool, np.zeros(50), 20, 0.3))
    >>> bool(found.converged), bool(found.collapse_time < found.isotropic_time)
    (True, True)
    """
    x = system.examples
    levels = jnp.maximum(jnp.linalg.eigvalsh(x.T @ x / x.shape[0]), 0.0)
    information = jnp.log(system.n_train)
    several = jnp.maximum(information, jnp.log(2.0) * 1e-3)  # a solvable problem also for n = 1

    def excess(log_noise: Scalar, args: Any) -> Scalar:
        levels, information = args
        return jnp.sum(jnp.log1p(levels * jnp.exp(-log_noise))) / 2 - information

    # ln(1 + y) <= y, and the largest level alone is less than the sum
    upper = jnp.log(jnp.sum(levels) / (2 * several))
    lower = jnp.log(levels[-1] / jnp.expm1(2 * several))
    root = decreasing_root(excess, lower - 1e-6, upper + 1e-6, (levels, several))
    one = system.n_train <= 1
    found = jnp.where(one, jnp.inf, jnp.logaddexp(0.0, root.value) / 2)
    return DataTimes(
        collapse_time=found,
        isotropic_time=_isotropic(levels.size, system.n_train, jnp.mean(levels)),
        speciation_time=jnp.log(levels[-1]) / 2,
        residual=jnp.where(one, 0.0, root.residual),
        converged=one | root.converged,
    )


def _isotropic(dimension: Any, stored: Any, variance: Any) -> Scalar:
    """The collapse time of isotropic data."""
    several = stored > 1
    safe = jnp.where(several, stored, 2.0)
    time = jnp.log1p(variance / jnp.expm1(2 * jnp.log(safe) / dimension)) / 2
    return jnp.where(several, time, jnp.inf)


# ------------------------------------------------------------------------------------------------
# The weight of the original example in the empirical score, averaged exactly over data and noise.
#
# All quantities depend on r = a^2 sigma^2/D, d and n. In units of D let X = |x|^2, which is (1 + r)
# chi^2_d, and R = |x - a x_2|^2 for an example that is independent of x, which is r times a
# non-central chi^2_d of centre X/r. With q = e^{-R/2} and Z = E q, the distance to the original
# example follows the same law weighted by q/Z. The weight w = q_1/(q_1 + q_2 + ... + q_n) has the
# mean
#
#     E w = 1 - (n - 1) E_X (1/Z) int_0^inf f^{n-2} f'^2 dv,   f(v) = E_R e^{-v q} .
#
# All integrals are trapezoidal sums of analytic functions that vanish at both ends: their errors
# fall exponentially with the number of nodes.

_LOST = 28.0  # -ln of the probability omitted at each end of a chi^2


def own_weight_mean(
    dimension: Any, stored: Any, signal: Any, fine: float = 1.0
) -> Float[Array, ""]:
    """The mean weight E w for r = `signal`. `fine` multiplies the numbers of nodes."""
    # for smaller r, R is constant up to rounding, and all weights are equal to 1e-9
    signal = jnp.maximum(signal, 1e-12)
    low, high = _chi_square_ends(dimension)
    log_size, step = _trapezoid(jnp.log(low), jnp.log(high), 64 * fine)
    size = jnp.exp(log_size)
    mass = step * size * jnp.exp(_log_chi_square(size, dimension))

    def at(x: Any) -> Any:
        return _others_weight(dimension, stored, signal, x, (low, high), fine)

    return 1 - mass @ jax.lax.map(at, (1 + signal) * size)


def _others_weight(
    dimension: Any, stored: Any, signal: Any, x: Any, ends: tuple[Any, Any], fine: float
) -> Any:
    """The integral (n - 1)/Z int f^{n-2} f'^2 dv at X = x; `ends` are those of the original
    example's R for all x."""
    # sqrt(R) lies around sqrt(x) with the spread sqrt(r). That of the original example lies around
    # sqrt(x)/(1+r) with the spread sqrt(r/(1+r)).
    reach, own = jnp.sqrt(2 * _LOST * signal), 1 / (1 + signal)
    least = jnp.maximum(jnp.sqrt(x) * own - reach * jnp.sqrt(own), 0.0) ** 2
    low = jnp.maximum(ends[0], least)
    high = jnp.minimum(ends[1], (jnp.sqrt(x) + reach) ** 2 + signal * ends[1])

    # R = softplus(s): equal steps in R where it is large, in ln R where it is small
    scale = 4.0
    start, end = (edge + scale * jnp.log(-jnp.expm1(-edge / scale)) for edge in (low, high))
    s, step = _trapezoid(start, end, 512 * fine)
    distance = scale * jax.nn.softplus(s / scale)
    log_density = _log_distance(distance, dimension, signal, x)
    log_density += jnp.log(step) + jax.nn.log_sigmoid(s / scale)
    log_z = -dimension / 2 * jnp.log1p(signal) - x * own / 2
    log_own = log_density - distance / 2 - log_z  # law of the original example's R

    log_v, step = _trapezoid(low / 2 - 25.0 - jnp.log(stored), high / 2 + 4.0, 512 * fine)
    vq = jnp.exp(log_v[:, None] - distance / 2)
    missing = -jnp.expm1(-vq) @ jnp.exp(log_density)  # 1 - f
    # -f'/Z; where it underflows, the integrand is negligible
    slope = jnp.maximum(jnp.exp(-vq) @ jnp.exp(log_own), 1e-300)
    # f can come out below zero by rounding where it vanishes
    log_f = jnp.log1p(-jnp.minimum(missing, 1 - 1e-15))
    log_weight = 2 * jnp.log(slope) + log_z + log_v + (stored - 2) * log_f
    return (stored - 1) * step * jnp.sum(jnp.exp(log_weight))


def _chi_square_ends(dimension: Any) -> tuple[Any, Any]:
    """Ends beyond which the density of chi^2_d is below e^{-28} of its largest value: bounds on the
    roots of y - 1 - ln y = 56/d, times d."""
    lost = 2 * _LOST / dimension
    below = jnp.maximum(jnp.exp(-1 - lost), 1 - jnp.sqrt(2 * lost))
    return dimension * below, dimension * (1 + lost + jnp.sqrt(2 * lost))


def _trapezoid(low: Any, high: Any, count: float) -> tuple[Array, Any]:
    nodes = low + (high - low) * np.linspace(0.0, 1.0, round(count))
    return nodes, (high - low) / (round(count) - 1)


def _log_chi_square(y: Array, dimension: Any) -> Array:
    half = dimension / 2
    return (half - 1) * jnp.log(y / 2) - y / 2 - jnp.log(2.0) - gammaln(half)


def _log_distance(distance: Array, dimension: Any, signal: Any, x: Any) -> Array:
    r"""ln of the density of R, given X = x.

    That of the non-central chi^2, with its Bessel function as an integral over the angle $\theta$
    between x and x_2: $I_\nu(z) \propto z^\nu \int e^{z \tanh u} \cosh^{1-d} u\, du$,
    $\cos \theta = \tanh u$.
    """
    y, centre = distance / signal, x / signal
    z = jnp.sqrt(y * centre)[:, None]
    half = dimension - 1
    # nodes around the maximum of the integrand, where tanh u = top, denser at its centre
    top = 2 * z / (half + jnp.sqrt(half**2 + 4 * z**2))
    narrow = half * top / z  # 1 - top^2
    width = 1 / jnp.sqrt(narrow * (half + 2 * z * top))
    t = np.linspace(-4.5, 4.5, 64)
    u = jnp.arcsinh(top / jnp.sqrt(narrow)) + width * np.sinh(t)
    flat = -2 * z * jax.nn.sigmoid(-2 * u) - half * (jnp.logaddexp(u, -u) - jnp.log(2.0))
    area = (t[1] - t[0]) * width[:, 0]
    log_integral = jax.nn.logsumexp(flat + np.log(np.cosh(t)), axis=1) + jnp.log(area)
    order = dimension / 2 - 1
    spread = -((jnp.sqrt(y) - jnp.sqrt(centre)) ** 2) / 2
    return (
        spread
        + order * jnp.log(y / 2)
        - jnp.log(2 * signal)
        - 0.5 * jnp.log(np.pi)
        - gammaln(order + 0.5)
        + log_integral
    )
