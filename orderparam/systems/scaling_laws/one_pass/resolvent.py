"""The covariance of random features without the features: its resolvent for large width, from the spectrum of the inputs.

K = W^T D W with D = diag(lambda) and W of shape (v, d) with entries N(0, 1/d). With w in the place of z,

    z(w) = w m(w),    m(w) = 1 - (1/d) sum_j lambda_j / (lambda_j - w)

(Silverstein and Bai 1995), so that for any z off the spectrum

    tr (K - z)^-1 = -d m / z,
    b D^(1/2) (D^(1/2) W W^T D^(1/2) - z)^-1 D^(1/2) b = (1/m) sum_j lambda_j b_j^2 / (lambda_j - w).
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Complex, Float

from orderparam.kernels.spectrum import Spectrum
from orderparam.solve.root import decreasing_root

_FAR = 1e6  # |z| in units of the spectrum's size where w = z to all purposes
_STAGES = 24
_NEWTON = 3
_POLISH = 2  # Newton steps that derivatives go through: exact up to the third

Number = Complex[Array, ""] | Float[Array, ""]


def ratio(spectrum: Spectrum, width: Float[Array, ""] | float, w: Number) -> Number:
    """m(w) = z(w) / w."""
    learned = jnp.sum(spectrum.multiplicities * spectrum.eigenvalues / (spectrum.eigenvalues - w)) - spectrum.tail / w
    return 1 - learned / width


def target_resolvent(spectrum: Spectrum, w: Number, m: Number) -> Number:
    """sum_j lambda_j b_j^2 / (lambda_j m - z): the resolvent between the target's coefficients."""
    return (jnp.sum(spectrum.target_power / (spectrum.eigenvalues - w)) - spectrum.tail_power / w) / m


def companion(spectrum: Spectrum, width: Float[Array, ""] | float, z: Complex[Array, ""]) -> Complex[Array, ""]:
    """The w of a complex z, followed from infinity along the ray to z by Newton's method."""

    def slope(w: Number) -> Number:
        return 1 - jnp.sum(spectrum.multiplicities * (spectrum.eigenvalues / (spectrum.eigenvalues - w)) ** 2) / width

    def newton(w: Number, z: Number) -> Number:
        return w - (w * ratio(spectrum, width, w) - z) / slope(w)

    fixed = lax.stop_gradient((z, spectrum.total / width + jnp.max(spectrum.eigenvalues)))
    start = jnp.log(jnp.maximum(_FAR * fixed[1] / jnp.abs(fixed[0]), 1.0))

    def nearer(stage: Array, w: Number) -> Number:
        before, here = (fixed[0] * jnp.exp(start * (1 - (stage + moved) / _STAGES)) for moved in (0, 1))
        w = w * jnp.exp(-start / _STAGES * before / (w * slope(w)))  # along the tangent of log w over log z
        return lax.fori_loop(0, _NEWTON, lambda _, w: newton(w, here), w)

    w = lax.stop_gradient(lax.fori_loop(0, _STAGES, nearer, fixed[0] * jnp.exp(start)))
    for _ in range(_POLISH):
        w = newton(w, z)
    return w


def upper_edge(spectrum: Spectrum, width: Float[Array, ""] | float) -> tuple[Float[Array, ""], Float[Array, ""], Bool[Array, ""]]:
    """(w, z, solved) at the upper edge of the spectrum of K: the minimum of z(w) above the largest eigenvalue."""
    largest = jnp.max(spectrum.eigenvalues)

    def excess(log_gap: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        spectrum, width = args
        w = jnp.max(spectrum.eigenvalues) + jnp.exp(log_gap)
        return jnp.sum(spectrum.multiplicities * (spectrum.eigenvalues / (w - spectrum.eigenvalues)) ** 2) / width - 1

    square = jnp.sum(spectrum.multiplicities * spectrum.eigenvalues**2) / width
    at_top = jnp.sum(jnp.where(spectrum.eigenvalues == largest, spectrum.multiplicities, 0.0)) * largest**2 / width
    root = decreasing_root(excess, jnp.log(at_top) / 2 - 1e-6, jnp.log(square) / 2 + 1e-6, (spectrum, width))
    w = largest + jnp.exp(root.value)
    return w, w * ratio(spectrum, width, w), root.converged


def above_edge(
    spectrum: Spectrum, width: Float[Array, ""] | float, z: Float[Array, ""] | float, edge: Float[Array, ""]
) -> Float[Array, ""]:
    """The w > edge of a real z above the spectrum; at the edge where there is none."""

    def excess(log_gap: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        spectrum, width, z, edge = args
        w = edge + jnp.exp(log_gap)
        return z - w * ratio(spectrum, width, w)

    widest = jnp.log(jnp.maximum(z + 2 * spectrum.total / width, edge) + edge)
    root = decreasing_root(excess, jnp.log(edge) - 30.0, widest, (spectrum, width, z, edge))
    return edge + jnp.where(root.converged, jnp.exp(root.value), 0.0)
