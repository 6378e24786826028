"""The resolvent of random features at complex ridges, and the contour that turns it into
exponentials.

    kappa (1 - (1/n) sum_k sigma_k/(sigma_k + kappa)) = ell,        q_k = kappa/(sigma_k + kappa)

gives the deterministic equivalent q_k of ell (S + ell)^{-1} for the covariance S of n examples.
Exponentials of S t are sums over resolvents at ell = z/t (`orderparam.solve.contour`).
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from orderparam.kernels.spectrum import Spectrum

Scalar = Float[Array, ""]


# Steps of the path from an infinite ridge, where kappa is known, to the requested ridge.
_PATH = 32
_CORRECTIONS = 2
_POLISH = 6


def threshold(
    spectrum: Spectrum,
    n_train: Any,
    ridge: Complex[Array, "node"],
    way: Complex[Array, "point node"] | None = None,
) -> tuple[Complex[Array, "node"], Scalar]:
    """The solution kappa of kappa (1 - (1/n) sum m sigma/(sigma + kappa)) = ridge for complex
    ridges, and the largest relative residual.

    At a large ridge kappa = ridge + (1/n) sum m sigma. From there the modulus of the ridge is
    decreased by constant factors at fixed phase, or the ridge follows the points of `way`, the
    first of which is large. Newton steps solve the equation at each point.
    """
    sigma, many = spectrum.eigenvalues, spectrum.multiplicities

    def excess(kappa: Array, ridge: Array, numbers: tuple) -> tuple[Array, Array]:
        sigma, many, n_train = numbers
        shares = sigma / (sigma + kappa[:, None])
        value = kappa * (1 - shares @ many / n_train) - ridge
        return value, 1 - shares**2 @ many / n_train

    numbers = sigma, many, n_train
    frozen = jax.lax.stop_gradient((ridge, numbers))
    size = jnp.abs(frozen[0])
    if way is None:
        far = jnp.log(jnp.maximum(1e3 * (jnp.max(sigma) + sigma @ many / n_train) / size, 1.0))
        shares = jnp.asarray(np.linspace(1.0, 0.0, _PATH))
        way = frozen[0] * jnp.exp(far * shares[:, None])
    way = jax.lax.stop_gradient(way)

    def down(kappa: Array, ridge: Array) -> tuple[Array, None]:
        value, slope = excess(kappa, ridge, frozen[1])
        return kappa - value / slope, None

    start = way[0] + jax.lax.stop_gradient(sigma @ many / n_train)
    path = jnp.repeat(way, _CORRECTIONS, axis=0)
    kappa, _ = jax.lax.scan(down, start, path)
    for _ in range(_POLISH):
        kappa, _ = down(kappa, frozen[0])
    residual = jnp.max(jnp.abs(excess(kappa, *frozen)[0]) / (size + jnp.abs(kappa)))
    # Only the last two Newton steps are differentiated: the first of them makes first derivatives
    # exact, the second makes second derivatives exact.
    for _ in range(2):
        value, slope = excess(kappa, ridge, numbers)
        kappa = kappa - value / slope
    return kappa, jax.lax.stop_gradient(residual)


def quadratic(
    coefficients: Complex[Array, "node"],
    left: Complex[Array, "node level"],
    power: Float[Array, "level"],
    spectrum: Spectrum,
    n_train: Any,
) -> Scalar:
    """The sum over pairs of nodes of c_i c_j (sum_k power_k q_ki q_kj)/(1 - G_ij), with G_ij =
    (1/n) sum_k m_k (1 - q_ki)(1 - q_kj). Only one half of the contour is given, and the weights in
    the coefficients c are doubled to account for the other half."""

    def pairs(other: Complex[Array, "node level"]) -> Complex[Array, "node node"]:
        shared = ((1 - left) * spectrum.multiplicities) @ (1 - other).T / n_train
        return ((left * power) @ other.T) / (1 - shared)

    # the second node of a pair runs over both halves of the contour
    inner = pairs(left) @ coefficients + pairs(left.conj()) @ coefficients.conj()
    return jnp.real(coefficients @ inner) / 2
