"""Covariance spectra of features and what a penalty makes of them: averages over omega / (penalty + stiffness omega).

The features v (p of them, centred) have covariance Omega with eigenvalues omega_i, and the teacher's field nu the covariance s_i
with the i-th eigendirection. The predictor f = a.v/sqrt(p) sees nothing else of either.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Num

from orderparam.core.system import Record, parameter
from orderparam.gaussian.marchenko_pastur import inverse_moments

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


class FeatureSpectrum(Record):
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
    theta is a unit vector: D = penalty + mu_*^2 stiffness + mu_1^2 stiffness x with x an eigenvalue of W W^T.
    """

    aspect: float = parameter("features per input dimension", above=0)
    linear_power: float = parameter("mu_1^2", minimum=0)
    nonlinear_power: float = parameter("mu_*^2", minimum=0)

    @property
    def mean_eigenvalue(self) -> Scalar:
        return jnp.asarray(self.linear_power + self.nonlinear_power)

    def averages(self, penalty: Scalar | float, stiffness: Scalar | float) -> SpectralAverages:
        first, rest = self.linear_power, self.nonlinear_power
        x = inverse_moments(self.aspect, penalty + rest * stiffness, first * stiffness)
        return SpectralAverages(
            response=first * x.linear + rest * x.inverse,
            power=first**2 * x.square_2 + 2 * first * rest * x.linear_2 + rest**2 * x.inverse_2,
            weight_power=first * x.linear_2 + rest * x.inverse_2,
            overlap=self.aspect * first * x.linear,
            signal=self.aspect * first * (first * x.square_2 + rest * x.linear_2),
            weight_signal=self.aspect * first * x.linear_2,
        )


class ExplicitSpectrum(FeatureSpectrum):
    """Given eigenvalues omega_i >= 0 and squared projections s_i^2 of the teacher, both of shape (feature,)."""

    eigenvalues: Float[Array, "feature"] = parameter("eigenvalues of the covariance", minimum=0)
    projections: Float[Array, "feature"] = parameter("squared projections of the teacher's field", minimum=0)

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
