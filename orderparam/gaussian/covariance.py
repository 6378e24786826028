"""Two Gaussian variables (u, v) ~ N(0, [[a, c], [c, b]]): the determinant, and the angle between
them.

With rho = c / sqrt(ab) = cos(theta), every kernel of a kinked activation is a function of theta and
of S = sqrt(ab - c^2) = sqrt(ab) sin(theta). Rounding puts c above sqrt(ab) and the derivatives of
theta and S are infinite at rho = ±1, where the diagonal of every kernel matrix lies; the functions
here stay finite there, in value and in all derivatives.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from orderparam.gaussian.arctangent import arctan2

# fraction of ab below which ab - c^2 is rounding: c is then not accurate enough to distinguish rho
# from ±1
_ROUNDING = 8 * float(np.finfo(np.float64).eps)


def as_covariance(
    a: Float[ArrayLike, "*#batch"], c: Float[ArrayLike, "*#batch"], b: Float[ArrayLike, "*#batch"]
) -> tuple[Array, Array, Array]:
    """The three entries as float64 arrays; c is given the common shape, a and b keep theirs."""
    a, c, b = (jnp.asarray(x, jnp.float64) for x in (a, c, b))
    return a, jnp.broadcast_to(c, jnp.broadcast_shapes(a.shape, c.shape, b.shape)), b


@jax.custom_jvp
def determinant(a: Array, c: Array, b: Array) -> Array:
    """max(ab - c^2, 0). Its derivatives are those of ab - c^2, also where rounding has made that
    negative."""
    return jnp.maximum(a * b - c * c, 0.0)


@determinant.defjvp
def _(primals, tangents):
    (a, c, b), (da, dc, db) = primals, tangents
    return determinant(a, c, b), b * da + a * db - 2 * c * dc


def _inverse_sine(a: Array, c: Array, b: Array) -> Array:
    """1 / S, and 0 where S = 0."""
    s = sine(a, c, b)
    return jnp.where(s > 0, 1 / jnp.where(s > 0, s, 1.0), 0.0)


@jax.custom_jvp
def sine(a: Array, c: Array, b: Array) -> Array:
    """S = sqrt(ab - c^2) = sqrt(ab) sin(theta). On S = 0 its derivatives, each of which is
    infinite, are set to 0.

    Along the diagonal a = b = c, where S = 0 everywhere, this is the true directional derivative.
    """
    squared = a * b - c * c
    real = squared > _ROUNDING * a * b
    return jnp.where(real, jnp.sqrt(jnp.where(real, squared, 1.0)), 0.0)


@sine.defjvp
def _(primals, tangents):
    (a, c, b), (da, dc, db) = primals, tangents
    return sine(a, c, b), (b * da + a * db - 2 * c * dc) / 2 * _inverse_sine(a, c, b)


@jax.custom_jvp
def angle(a: Array, c: Array, b: Array) -> Array:
    """theta = arccos(c / sqrt(ab)) in [0, pi]; pi/2 (uncorrelated) if a or b is zero. On S = 0 its
    derivatives are set to 0."""
    s = sine(a, c, b)
    return jnp.where(a * b > 0, arctan2(s, c), np.pi / 2)


@angle.defjvp
def _(primals, tangents):
    (a, c, b), (da, dc, db) = primals, tangents
    # cos(theta) = c / sqrt(ab): d theta = [c da/(2a) + c db/(2b) - dc] / S
    safe_a, safe_b = jnp.where(a > 0, a, 1.0), jnp.where(b > 0, b, 1.0)
    return angle(a, c, b), (c / (2 * safe_a) * da + c / (2 * safe_b) * db - dc) * _inverse_sine(
        a, c, b
    )
