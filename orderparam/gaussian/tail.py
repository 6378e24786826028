"""The normal distribution far from its centre: log Phi and its derivatives without cancellation.

phi is the density and Phi the distribution function of a standard normal variable.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfc
from jaxtyping import Array, Float

_FAR = -6.0  # argument below which the continued fraction converges to rounding in _TERMS steps
_TERMS = 16
_LOG_ROOT = 0.5 * np.log(2 * np.pi)

Values = Float[Array, "*shape"]


def _laplace() -> tuple[np.ndarray, np.ndarray]:
    """The continued fraction 1/(1 + 2y/(1 + 3y/(1 + ...))) as a quotient of polynomials in y; no
    coefficient is negative."""
    above, below = np.polynomial.Polynomial([1.0]), np.polynomial.Polynomial([1.0])
    for k in range(_TERMS, 1, -1):
        above, below = below, below + np.polynomial.Polynomial([0.0, k]) * above
    return above.coef[::-1], below.coef[::-1]


_ABOVE, _BELOW = _laplace()


@jax.custom_jvp
def log_cdf(u: Values) -> Values:
    """log Phi(u), to full relative accuracy on both sides."""
    near = jnp.maximum(u, _FAR)
    x = jnp.maximum(-u, -_FAR)
    return jnp.where(u < _FAR, -(x**2) / 2 - _LOG_ROOT - jnp.log(x + _excess(x)), _log_near(near))


@jax.custom_jvp
def hazard(u: Values) -> Values:
    """phi(u)/Phi(u) = (log Phi)'(u), about -u for u << 0."""
    near = jnp.maximum(u, _FAR)
    x = jnp.maximum(-u, -_FAR)
    tail = erfc(jnp.abs(near) / np.sqrt(2)) / 2
    return jnp.where(
        u < _FAR,
        x + _excess(x),
        jnp.exp(-(near**2) / 2 - _LOG_ROOT) / jnp.where(near < 0, tail, 1 - tail),
    )


def hazard_excess(u: Values) -> Values:
    """u + phi(u)/Phi(u): the mean of a standard normal variable beyond -u, measured from there;
    1/|u| for u << 0."""
    near = jnp.maximum(u, _FAR)
    return jnp.where(u < _FAR, _excess(jnp.maximum(-u, -_FAR)), near + hazard(near))


def _log_near(u: Values) -> Values:
    """log Phi(u) for u >= -6."""
    tail = erfc(jnp.abs(u) / np.sqrt(2)) / 2
    return jnp.where(u < 0, jnp.log(jnp.where(u < 0, tail, 1.0)), jnp.log1p(-tail))


def _excess(x: Values) -> Values:
    """1/(x + 2/(x + 3/(x + ...))), by which phi(x)/Phi(-x) exceeds x (Laplace's continued
    fraction)."""
    y = 1 / x**2
    above, below = (jnp.polyval(jnp.asarray(c, y.dtype), y) for c in (_ABOVE, _BELOW))
    return above / (x * below)


@log_cdf.defjvp
def _log_cdf_slope(primals: tuple[Values], tangents: tuple[Values]) -> tuple[Values, Values]:
    return log_cdf(*primals), hazard(*primals) * tangents[0]


@hazard.defjvp
def _hazard_slope(primals: tuple[Values], tangents: tuple[Values]) -> tuple[Values, Values]:
    ratio = hazard(*primals)
    return ratio, -ratio * hazard_excess(*primals) * tangents[0]
