"""Learning with a fixed feature map: random features of Gaussian inputs, Gaussian features of any
covariance, real data.

The predictor f(x) = a.phi(x)/sqrt(p) has p features, and its weights minimise

    sum_mu l(y_mu, f(x_mu)) + (ridge/2) |a|^2          penalty = "sum"
    (1/n) sum_mu l(y_mu, f(x_mu)) + (ridge/2) |a|^2    penalty = "mean"

over n training examples, with l = (y - f)^2/2 (square), log(1 + exp(-y f)) (logistic), max(0, 1 - y
f) (hinge), and no intercept. The following list gives the same penalty in other conventions, where
lambda is the ridge of penalty = "sum" and F = phi/sqrt(p) the design matrix:

    scikit-learn            Ridge(alpha=lambda), LogisticRegression(C=1/lambda),
                            LinearSVC(loss="hinge", C=1/lambda), each with fit_intercept=False, on F
    features without 1/sqrt(p) and (Phi^T Phi + lambda')^-1 Phi^T y:  lambda' = p lambda
    (1/2n) sum (y - f)^2 + lambda' |a|^2:                             lambda = 2 n lambda'
"""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Num

from orderparam.core.system import Record, parameter, part, structure
from orderparam.gaussian import Activation, activation, activation_names
from orderparam.gaussian.marchenko_pastur import inverse_moments
from orderparam.losses import ClassLabels, PenalisedRisk

# ------------------------------------------------------------------------------------------------
# Covariance spectra of features, and averages over omega / (penalty + stiffness omega).
#
# The features v (p of them, centred) have covariance Omega with eigenvalues omega_i, and the
# teacher's field nu has the covariance s_i with the i-th eigendirection. The errors of the
# predictor f = a.v/sqrt(p) depend on nothing else.

Scalar = Float[Array, ""]


class SpectralAverages(eqx.Module):
    """Sums over the eigendirections, with D_i = penalty + stiffness omega_i.

    Fields:
        response: (1/p) sum omega/D.
        power: (1/p) sum omega^2/D^2.
        weight_power: (1/p) sum omega/D^2.
        overlap: sum s^2/D.
        signal: sum s^2 omega/D^2.
        weight_signal: sum s^2/D^2.
    """

    response: Scalar
    power: Scalar
    weight_power: Scalar
    overlap: Scalar
    signal: Scalar
    weight_signal: Scalar


class FeatureSpectrum(Record):
    """Spectrum of the features' covariance, and the teacher's projections on its eigenvectors."""

    @abc.abstractmethod
    def averages(self, penalty: Scalar | float, stiffness: Scalar | float) -> SpectralAverages:
        """The sums of `SpectralAverages`, for penalty > 0 and stiffness >= 0."""

    @property
    @abc.abstractmethod
    def mean_eigenvalue(self) -> Scalar:
        """(1/p) tr Omega."""


class MarchenkoPastur(FeatureSpectrum):
    """Spectrum of features mu_1 W x + mu_* xi: Omega = mu_1^2 W W^T + mu_*^2 I and s = mu_1 W
    theta.

    linear_power is mu_1^2, nonlinear_power is mu_*^2. W has p rows on the unit sphere in d
    dimensions, aspect is beta = p/d, and theta is a unit vector. Then D = penalty + mu_*^2
    stiffness + mu_1^2 stiffness x, with x an eigenvalue of W W^T.
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
    """Eigenvalues omega_i >= 0 and squared projections s_i^2 of the teacher, both of shape
    (feature,).
    """

    eigenvalues: Float[Array, "feature"] = parameter("eigenvalues of the covariance", minimum=0)
    projections: Float[Array, "feature"] = parameter(
        "squared projections of the teacher's field", minimum=0
    )

    @classmethod
    def from_covariance(
        cls, covariance: Num[ArrayLike, "feature feature"], alignment: Num[ArrayLike, "feature"]
    ) -> "ExplicitSpectrum":
        """Spectrum of features with covariance E v v^T and E nu v = alignment. Eigenvalues below
        rounding are set to 0.

        Raises:
            ValueError: for shapes that do not fit, for a matrix that is not symmetric, and for a
                negative eigenvalue.
        """
        matrix, vector = np.asarray(covariance, np.float64), np.asarray(alignment, np.float64)
        if matrix.ndim != 2 or matrix.shape != (vector.size, vector.size):
            raise ValueError(
                f"covariance has shape {matrix.shape} and alignment {vector.shape}: must be (p, p) "
                "and (p,)"
            )
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


class FeatureRegression(PenalisedRisk):
    """Regression on a fixed feature map: the fields and properties that all feature maps share."""

    n_train: float = parameter(
        "number of training examples n; need not be an integer for a theory", above=0, kw_only=True
    )

    @property
    def examples(self) -> Any:
        return self.n_train

    @property
    @abc.abstractmethod
    def feature_count(self) -> Any:
        """Number p of features."""

    @property
    @abc.abstractmethod
    def teacher_power(self) -> Any:
        """Variance rho of the teacher's field."""

    @property
    @abc.abstractmethod
    def spectrum(self) -> FeatureSpectrum:
        """Spectrum of the covariance of the centred features, with the teacher's projections."""

    @property
    def fits_mean(self) -> Any:
        """True if the features have a common mean, which acts as an intercept that is not
        penalised."""
        return False


def gaussian_equivalent(
    which: str | Activation,
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """Coefficients (mu_0, mu_1, mu_*) of an activation s: features s(W x) have the same errors as
    mu_0 + mu_1 W x + mu_* xi, where xi is noise drawn anew for every input.

    mu_0 = E s(z), mu_1 = E z s(z) and mu_*^2 = E s(z)^2 - mu_0^2 - mu_1^2 for z ~ N(0, 1).

    Args:
        which: the activation or its name.

    Accuracy: exact in the limit of sizes that grow in proportion, for rows of W that are not close
    to one another and targets that depend on few directions.

    Source: Mei, Montanari (2019); Goldt et al. (2020); Hu, Lu (2020).

    >>> [round(float(number), 4) for number in gaussian_equivalent("relu")]
    [0.3989, 0.5, 0.3014]
    """
    phi = activation(which)
    mean, linear = phi.hermite_coefficients(2)
    return mean, linear, jnp.sqrt(jnp.maximum(phi.moment(2, 1.0) - mean**2 - linear**2, 0.0))


class RandomFeatures(FeatureRegression):
    r"""Features $\phi(x) = \sigma(W x)$ of Gaussian inputs $x \sim N(0, 1_d)$, with a fixed random
    $W$.

    $W$ has p = `width` rows uniform on the unit sphere, and the teacher's field is $\nu = \theta
    \cdot x$ with $|\theta| = 1$, so that pre-activations and the teacher's field are standard
    normal. A target that depends on several directions acts only through its linear part c.x: it is
    equivalent to the link |c| times the field along theta = c/|c|, with the power of all other
    parts added to `noise`.
    """

    teacher_power: ClassVar[float] = 1.0

    input_dim: float = parameter("input dimension d", above=0)
    width: float = parameter("number of features p", above=0)
    activation: Activation = structure(
        "nonlinearity of the features",
        convert=activation,
        choices=activation_names,
        default="erf",
        kw_only=True,
    )

    @property
    def feature_count(self) -> Any:
        return self.width

    @property
    def spectrum(self) -> MarchenkoPastur:
        _, linear, nonlinear = gaussian_equivalent(self.activation)
        return MarchenkoPastur(self.width / self.input_dim, linear**2, nonlinear**2)

    @property
    def fits_mean(self) -> Any:
        return gaussian_equivalent(self.activation)[0] ** 2 > 1e-20


class GaussianFeatures(FeatureRegression):
    """Gaussian features of any covariance, correlated with a teacher's Gaussian field (the Gaussian
    covariate model).

    Raises:
        ValueError: for a covariance that is zero, and for a teacher's variance below the part that
            the features explain.
    """

    explicit_spectrum: ExplicitSpectrum = part(
        "covariance of the features and its alignment with the teacher"
    )
    teacher_variance: float = parameter("variance rho of the teacher's field", above=0)

    def __check_init__(self) -> None:
        leaves = (*jax.tree.leaves(self.explicit_spectrum), self.teacher_variance)
        if any(isinstance(leaf, jax.core.Tracer) or np.ndim(leaf) > 1 for leaf in leaves):
            return
        omega, signal = (np.asarray(leaf) for leaf in jax.tree.leaves(self.explicit_spectrum))
        if not omega.any():
            raise ValueError(
                f"{type(self).__name__}.explicit_spectrum: its eigenvalues must not all be zero"
            )
        kept = omega > 0
        explained = np.sum(signal[kept] / omega[kept])
        # for classes the squared projections follow from the distance of the class means, which has
        # no bound
        bounded = not isinstance(self.labels, ClassLabels)
        if np.any(signal[~kept] > 0) or (
            bounded and explained > self.teacher_variance * (1 + 1e-9)
        ):
            raise ValueError(
                f"{type(self).__name__}.teacher_variance = {self.teacher_variance}: must be >= "
                f"{explained:g}, the part sum_i s_i^2 / omega_i of it that the features explain"
            )

    @property
    def feature_count(self) -> int:
        return self.explicit_spectrum.eigenvalues.shape[-1]

    @property
    def teacher_power(self) -> Any:
        return self.teacher_variance

    @property
    def spectrum(self) -> ExplicitSpectrum:
        return self.explicit_spectrum


def without_chance(spectrum: ExplicitSpectrum, power: float, examples: int) -> ExplicitSpectrum:
    """The spectrum with an unbiased estimate of the population's squared projections. From the
    projections measured on a number of examples lambda_k sigma^2/examples is subtracted, where
    sigma^2 is an unbiased estimate of the variance that no mode explains.
    """
    values, squares = np.asarray(spectrum.eigenvalues), np.asarray(spectrum.projections)
    kept = values > 0
    freedom = max(1 - kept.sum() / examples, 1 / examples)
    unexplained = max(power - np.sum(squares[kept] / values[kept]), 0.0) / freedom
    return ExplicitSpectrum(values, np.maximum(squares - values * unexplained / examples, 0.0))
