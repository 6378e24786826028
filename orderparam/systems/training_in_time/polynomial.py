"""Polynomials of the covariance S of n examples, averaged over the examples.

A polynomial p of S is a contour integral of the resolvent of S around the spectrum,

    p(S) = sum_j c_j (p(z_j)/z_j) Q(-z_j),        Q(ell) = ell (S + ell)^{-1},

where Q has the deterministic equivalent of `resolvent.py`. The contour is an ellipse with foci at 0
and at the upper edge of the spectrum of S, on which the trapezoidal rule converges exponentially.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.training_in_time.resolvent import threshold

Scalar = Float[Array, ""]

# logarithm of the largest value of the polynomial on the contour divided by the error of the rule
_DIGITS = 40.0
_HALVINGS = 80
# Number of ellipses along which the solutions for kappa are followed, from a large radius on.
_ELLIPSES, _LARGE = 48, 1e4


class Contour(NamedTuple):
    """One half of the contour; the other half is its complex conjugate.

    Fields:
        nodes: points z_j in the upper half plane.
        weights: c_j / z_j, doubled for the other half.
        left: q_k(-z_j) = kappa/(sigma_k + kappa), the equivalent of Q(-z_j) at every level.
        residual: largest relative error of the equations for kappa.
    """

    nodes: Complex[Array, "node"]
    weights: Complex[Array, "node"]
    left: Complex[Array, "node level"]
    residual: Scalar


def upper_edge(spectrum: Spectrum, n_train: Any) -> Scalar:
    """The largest eigenvalue of S for many features and examples.

    It is the minimum over x > max sigma of x (1 + (1/n) sum_k m_k sigma_k/(x - sigma_k)).
    """
    sigma, many = spectrum.eigenvalues, spectrum.multiplicities
    largest = jnp.max(sigma)

    def halve(bracket: tuple[Scalar, Scalar], _: None) -> tuple[tuple[Scalar, Scalar], None]:
        low, high = bracket
        middle = (low + high) / 2
        steep = many @ (sigma / (middle - sigma)) ** 2 / n_train > 1
        return (jnp.where(steep, middle, low), jnp.where(steep, high, middle)), None

    start = largest, largest + jnp.sqrt(many @ sigma**2 / n_train)
    (_, x), _ = jax.lax.scan(halve, start, length=_HALVINGS)
    # the value at a minimum changes only by the explicit dependence on the numbers
    x = jax.lax.stop_gradient(x)
    return x * (1 + many @ (sigma / (x - sigma)) / n_train)


def contour(spectrum: Spectrum, n_train: Any, steps: int) -> Contour:
    """The contour for the polynomials of up to `steps` stable steps of gradient descent.

    With more steps the ellipse is thinner, because a polynomial of degree k grows as
    exp(k times the squared thickness) outside the spectrum.
    """
    half = 32 + 20 * int(steps**0.5 + 1)
    edge = jax.lax.stop_gradient(upper_edge(spectrum, n_train))
    radius = np.exp(_DIGITS / (2 * half))
    angle = jnp.exp(1j * jnp.pi * (jnp.arange(half) + 0.5) / half)

    def ellipse(turn: Complex[Array, "*node"]) -> Complex[Array, "*node"]:
        return edge / 2 * (1 + (turn + 1 / turn) / 2)

    # kappa has square roots at the edges of the spectrum, which are smooth in the radius
    radii = jnp.asarray(1 + np.geomspace(_LARGE, radius - 1, _ELLIPSES))
    turn = radius * angle
    z = ellipse(turn)
    kappa, residual = threshold(spectrum, n_train, -z, -ellipse(radii[:, None] * angle))
    weights = edge / 4 * (turn - 1 / turn) / half
    left = kappa[:, None] / (spectrum.eigenvalues + kappa[:, None])
    return Contour(z, weights / z, left, residual)


def trace(around: Contour, values: Complex[Array, "node"], power: Float[Array, "level"]) -> Scalar:
    """The average of sum_k power_k [p(S)]_kk, for the values of p at the nodes."""
    return jnp.real((around.weights * values) @ (around.left @ power))
