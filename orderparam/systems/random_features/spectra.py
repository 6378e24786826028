"""Covariance spectra of features and what a penalty makes of them: averages over omega / (penalty + stiffness omega).

The features v (p of them, centred) have covariance Omega with eigenvalues omega_i, and the teacher's field nu the covariance s_i
with the i-th eigendirection. The predictor f = a.v/sqrt(p) sees nothing else of either.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Num

Scalar = Float[Array, ""]


class SpectralAverages(eqx.Module):
    """Sums over the eigendirections with D_i = penalty + stiffness omega_i.

    response = (1/p) sum omega/D, power = (1/p) sum omega^2/D^2, weight_power = (1/p) sum omega/D^2;
    overlap = sum s^2/D, signal = sum s^2 omega/D^2, weight_signal = sum s^2/D^2.
    """

    response: Scalar
    power: Scalar
    weight_power: Scalar
    overlap: Scalar
    signal: Scalar
    weight_signal: Scalar


class FeatureSpectrum(eqx.Module):
    """Spectrum of the features and the teacher's projections on it."""

    @abc.abstractmethod
    def averages(self, penalty: Scalar | float, stiffness: Scalar | float) -> SpectralAverages:
        """The sums, for penalty > 0 and stiffness >= 0."""

    @property
    @abc.abstractmethod
    def mean_eigenvalue(self) -> Scalar:
        """(1/p) tr Omega."""


class MarchenkoPastur(FeatureSpectrum):
    """Features mu_1 W x + mu_* xi: Omega = mu_1^2 W W^T + mu_*^2 I and s = mu_1 W theta.

    linear_power = mu_1^2, nonlinear_power = mu_*^2. W has p rows on the unit sphere in d dimensions, beta = aspect = p/d, and
    theta is a unit vector. W W^T has the law of Marchenko and Pastur (1967) as p and d grow in proportion, with an atom at 0 when
    p > d. Gamma = <1/D>, D = L + M x, solves beta L M Gamma^2 + (L + M - beta M) Gamma = 1, where L = penalty + mu_*^2 stiffness
    and M = mu_1^2 stiffness; the other averages are algebraic in its positive root, here without differences of large numbers.
    """

    aspect: Scalar | float
    linear_power: Scalar | float
    nonlinear_power: Scalar | float

    @property
    def mean_eigenvalue(self) -> Scalar:
        return jnp.asarray(self.linear_power + self.nonlinear_power)

    def averages(self, penalty: Scalar | float, stiffness: Scalar | float) -> SpectralAverages:
        beta, first, rest = self.aspect, self.linear_power, self.nonlinear_power
        flat, slope = penalty + rest * stiffness, first * stiffness
        b = flat + slope * (1 - beta)
        root = jnp.sqrt(b**2 + 4 * beta * flat * slope)
        negative = b < 0
        small = jnp.where(negative, 2 * beta * flat * slope, 1.0)
        inverse = jnp.where(negative, (root - b) / small, 2 / jnp.where(negative, 1.0, b + root))  # <1/D>
        enhanced = 1 + beta * slope * inverse
        linear = inverse / enhanced  # <x/D>
        inverse_2 = inverse * enhanced / root  # <1/D^2>
        linear_2 = linear / root  # <x/D^2>
        square_2 = linear_2 * (1 + beta - 2 * beta * slope * linear)  # <x^2/D^2>
        return SpectralAverages(
            response=first * linear + rest * inverse,
            power=first**2 * square_2 + 2 * first * rest * linear_2 + rest**2 * inverse_2,
            weight_power=first * linear_2 + rest * inverse_2,
            overlap=beta * first * linear,
            signal=beta * first * (first * square_2 + rest * linear_2),
            weight_signal=beta * first * linear_2,
        )


class ExplicitSpectrum(FeatureSpectrum):
    """Given eigenvalues omega_i >= 0 and squared projections s_i^2 of the teacher, both of shape (feature,)."""

    eigenvalues: Float[Array, "feature"]
    projections: Float[Array, "feature"]

    def __init__(self, eigenvalues: Num[ArrayLike, "feature"], projections: Num[ArrayLike, "feature"]) -> None:
        self.eigenvalues = jnp.asarray(eigenvalues, jnp.float64)
        self.projections = jnp.asarray(projections, jnp.float64)

    @classmethod
    def from_covariance(
        cls, covariance: Num[ArrayLike, "feature feature"], alignment: Num[ArrayLike, "feature"]
    ) -> "ExplicitSpectrum":
        """Of features with covariance E v v^T and E nu v = alignment. Eigenvalues below rounding are set to 0.

        Raises `ValueError` for shapes that do not fit, for a matrix that is not symmetric, and for a negative eigenvalue.
        """
        matrix, vector = np.asarray(covariance, np.float64), np.asarray(alignment, np.float64)
        if matrix.ndim != 2 or matrix.shape != (vector.size, vector.size):
            raise ValueError(f"covariance has shape {matrix.shape} and alignment {vector.shape}: must be (p, p) and (p,)")
        if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-12 * np.abs(matrix).max()):
            raise ValueError("covariance is not symmetric")
        values, vectors = np.linalg.eigh(matrix)
        floor = len(values) * np.finfo(float).eps * values[-1]
        if values[0] < -floor:
            raise ValueError(f"covariance has the eigenvalue {values[0]:g}: must be >= 0")
        kept = values > floor
        return cls(np.where(kept, values, 0.0), np.where(kept, (vectors.T @ vector) ** 2, 0.0))

    @property
    def mean_eigenvalue(self) -> Scalar:
        return jnp.mean(self.eigenvalues)

    def averages(self, penalty: Scalar | float, stiffness: Scalar | float) -> SpectralAverages:
        omega, signal = self.eigenvalues, self.projections
        inverse = 1 / (penalty + stiffness * omega)
        return SpectralAverages(
            response=jnp.mean(omega * inverse),
            power=jnp.mean((omega * inverse) ** 2),
            weight_power=jnp.mean(omega * inverse**2),
            overlap=jnp.sum(signal * inverse),
            signal=jnp.sum(signal * omega * inverse**2),
            weight_signal=jnp.sum(signal * inverse**2),
        )
