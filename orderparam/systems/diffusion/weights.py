r"""The weight of the original example in the empirical score, averaged exactly over data and noise.

All quantities depend on r = a^2 sigma^2/D, d and n. In units of D let X = |x|^2, which is (1 + r)
chi^2_d, and R = |x - a x_2|^2 for an example that is independent of x, which is r times a
non-central chi^2_d of centre X/r. With q = e^{-R/2} and Z = E q, the distance to the original
example follows the same law weighted by q/Z. The weight w = q_1/(q_1 + q_2 + ... + q_n) has the
mean

    E w = 1 - (n - 1) E_X (1/Z) int_0^inf f^{n-2} f'^2 dv,   f(v) = E_R e^{-v q} .

All integrals are trapezoidal sums of analytic functions that vanish at both ends: their errors fall
exponentially with the number of nodes.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Float

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
    # R has the spread sqrt(r) around sqrt(x), the own one sqrt(r/(1+r)) around sqrt(x)/(1+r)
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
    log_own = log_density - distance / 2 - log_z  # the law of the own R, normalised

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
