"""The normal distribution far from its centre: log Phi and its derivatives without cancellation.

phi is the density and Phi the distribution function of a standard normal variable.
"""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfc
from jaxtyping import Array, Float

_FAR = -6.0  # below it the continued fraction converges in _TERMS steps to rounding
_TERMS = 16
_LOG_ROOT = 0.5 * np.log(2 * np.pi)

Values = Float[Array, "*shape"]


def log_cdf(u: Values) -> Values:
    """log Phi(u), to full relative accuracy on both sides."""
    near = jnp.maximum(u, _FAR)
    x = jnp.maximum(-u, -_FAR)
    return jnp.where(u < _FAR, -(x**2) / 2 - _LOG_ROOT - jnp.log(x + _excess(x)), _log_near(near))


def hazard(u: Values) -> Values:
    """phi(u)/Phi(u) = (log Phi)'(u), about -u for u << 0."""
    near = jnp.maximum(u, _FAR)
    x = jnp.maximum(-u, -_FAR)
    return jnp.where(u < _FAR, x + _excess(x), jnp.exp(-(near**2) / 2 - _LOG_ROOT - _log_near(near)))


def hazard_excess(u: Values) -> Values:
    """u + phi(u)/Phi(u): the mean of a standard normal variable beyond -u, measured from there; 1/|u| for u << 0."""
    near = jnp.maximum(u, _FAR)
    return jnp.where(u < _FAR, _excess(jnp.maximum(-u, -_FAR)), near + hazard(near))


def _log_near(u: Values) -> Values:
    """log Phi(u) for u >= -6."""
    tail = erfc(jnp.abs(u) / np.sqrt(2)) / 2
    return jnp.where(u < 0, jnp.log(jnp.where(u < 0, tail, 1.0)), jnp.log1p(-tail))


def _excess(x: Values) -> Values:
    """1/(x + 2/(x + 3/(x + ...))), by which phi(x)/Phi(-x) exceeds x (Laplace's continued fraction)."""
    tail = x
    for k in range(_TERMS, 1, -1):
        tail = x + k / tail
    return 1 / tail
