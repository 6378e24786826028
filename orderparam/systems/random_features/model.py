"""Learning with a fixed feature map: random features of Gaussian inputs, Gaussian features of any covariance, real data.

The predictor f(x) = a.phi(x)/sqrt(p) has p features, and its weights minimise

    sum_mu l(y_mu, f(x_mu)) + (ridge/2) |a|^2          penalty = "sum"
    (1/n) sum_mu l(y_mu, f(x_mu)) + (ridge/2) |a|^2    penalty = "mean"

over n training examples, with l = (y - f)^2/2 (square), log(1 + exp(-y f)) (logistic), max(0, 1 - y f) (hinge), and no intercept.
In other conventions, with lambda the ridge of penalty = "sum" and F = phi/sqrt(p) the matrix that is fitted:

    scikit-learn            Ridge(alpha=lambda), LogisticRegression(C=1/lambda), LinearSVC(loss="hinge", C=1/lambda), each with
                            fit_intercept=False, on F
    features without 1/sqrt(p) and (Phi^T Phi + lambda')^-1 Phi^T y:  lambda' = p lambda
    (1/2n) sum (y - f)^2 + lambda' |a|^2:                             lambda = 2 n lambda'
"""

import abc
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Num

from orderparam.core.system import parameter, part, structure
from orderparam.gaussian import Activation, activation, activation_names
from orderparam.losses import ClassLabels, PenalisedRisk, Penalty, RealLabels, Square
from orderparam.losses import loss as find_loss
from orderparam.systems.random_features.spectra import ExplicitSpectrum, FeatureSpectrum, MarchenkoPastur


class FeatureRegression(PenalisedRisk):
    """What all feature maps have in common: the number of examples beside the penalty, the labels and the loss."""

    n_train: float = parameter("number of training examples n; need not be an integer for a theory", above=0, kw_only=True)

    @property
    def examples(self) -> Any:
        return self.n_train

    @property
    @abc.abstractmethod
    def feature_count(self) -> Any:
        """p."""

    @property
    @abc.abstractmethod
    def teacher_power(self) -> Any:
        """Variance rho of the teacher's field."""

    @property
    @abc.abstractmethod
    def spectrum(self) -> FeatureSpectrum:
        """Covariance of the (centred) features, and the teacher's projections."""

    @property
    def fits_mean(self) -> Any:
        """Whether the features have a common mean, which acts as an intercept without penalty."""
        return False


def gaussian_equivalent(which: str | Activation) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """(mu_0, mu_1, mu_*) of an activation s: features s(W x) have the same errors as mu_0 + mu_1 W x + mu_* xi, xi fresh noise.

    mu_0 = E s(z), mu_1 = E z s(z), mu_*^2 = E s(z)^2 - mu_0^2 - mu_1^2, z ~ N(0, 1). Mei, Montanari 2019; Goldt et al. 2020; Hu,
    Lu 2020: for sizes that grow in proportion, rows of W that are not close to one another, and targets of few directions.
    """
    phi = activation(which)
    mean, linear = phi.hermite_coefficients(2)
    return mean, linear, jnp.sqrt(jnp.maximum(phi.moment(2, 1.0) - mean**2 - linear**2, 0.0))


class RandomFeatures(FeatureRegression):
    """phi(x) = activation(W x) with W fixed: width rows uniform on the unit sphere; x ~ N(0, I), teacher's field nu = theta.x.

    |theta| = 1, so that pre-activations and the teacher's field are standard normal. A target of several directions behaves as
    one with its linear part c: link = c |..| along theta = c/|c|, everything else being noise (its power added to `noise`).
    """

    teacher_power: ClassVar[float] = 1.0

    input_dim: float = parameter("input dimension d", above=0)
    width: float = parameter("number of features p", above=0)
    activation: Activation = structure(
        "nonlinearity of the features", convert=activation, choices=activation_names, default="erf", kw_only=True
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
    """Gaussian features of any covariance, correlated with a teacher's Gaussian field (the Gaussian covariate model)."""

    explicit_spectrum: ExplicitSpectrum = part("covariance of the features and its alignment with the teacher")
    teacher_variance: float = parameter("variance rho of the teacher's field", above=0)

    def __check_init__(self) -> None:
        leaves = (*jax.tree.leaves(self.explicit_spectrum), self.teacher_variance)
        if any(isinstance(leaf, jax.core.Tracer) or np.ndim(leaf) > 1 for leaf in leaves):
            return
        omega, signal = (np.asarray(leaf) for leaf in jax.tree.leaves(self.explicit_spectrum))
        if not omega.any():
            raise ValueError(f"{type(self).__name__}.explicit_spectrum: its eigenvalues must not all be zero")
        kept = omega > 0
        explained = np.sum(signal[kept] / omega[kept])
        bounded = not isinstance(self.labels, ClassLabels)  # classes may lie as far apart as they like
        if np.any(signal[~kept] > 0) or (bounded and explained > self.teacher_variance * (1 + 1e-9)):
            raise ValueError(
                f"{type(self).__name__}.teacher_variance = {self.teacher_variance}: must be >= {explained:g}, "
                "the part sum_i s_i^2 / omega_i of it that the features explain"
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


class FeaturePool(GaussianFeatures):
    """Features of real data with their targets: training sets are drawn from the pool, a sample of N from the population.

    features: (pool, feature), centred; targets: (pool,). Build it with `FeaturePool.from_data`.

    The square loss knows of the data only the covariance Omega = V^T V / N, the correlation s = V^T y / N and the power of y: the
    teacher's field is y itself. The squared projections of s on the modes of Omega are taken without what chance adds to them,
    lambda_k/N times the variance of y that no mode explains. Logistic and hinge loss take labels ±1 and know more; here the
    features of each class are taken to be Gaussian about the mean of their class, with one covariance (`ClassLabels`):
    approximate, as real classes are not.
    """

    takes_classes: ClassVar[bool] = True

    features: Float[Array, "pool feature"] = parameter("centred features of the pool", kw_only=True)
    targets: Float[Array, "pool"] = parameter("targets of the pool", kw_only=True)

    def __check_init__(self) -> None:
        wanted = RealLabels if isinstance(self.loss, Square) else ClassLabels
        if not isinstance(self.labels, wanted):
            raise ValueError(f"FeaturePool.labels: the {self.loss.name} loss needs {wanted.__name__} here (see the class)")

    @property
    def field(self) -> Float[Array, "pool"]:
        """The teacher's field of every example: y, for classes y centred and scaled to variance 1."""
        if isinstance(self.labels, ClassLabels):
            return (self.targets - self.labels.mean) / self.labels.scale
        return self.targets

    @classmethod
    def from_data(
        cls,
        features: Num[ArrayLike, "pool feature"],
        targets: Num[ArrayLike, "pool"],
        n_train: Any,
        ridge: Any,
        noise: Any = 0.0,
        loss: Any = "square",
        penalty: Penalty = "sum",
    ) -> Self:
        """Centres the features, diagonalises their covariance and frees the correlation of its bias.

        noise: variance of noise added to training and test labels (square loss).

        Raises `ValueError` for arrays that are not finite or do not fit each other, and for a binary loss whose targets are not
        -1 and +1.
        """
        matrix, y = np.asarray(features, np.float64), np.asarray(targets, np.float64)
        if matrix.ndim != 2 or y.shape != matrix.shape[:1] or matrix.size == 0:
            raise ValueError(f"features has shape {matrix.shape} and targets {y.shape}: must be (pool, feature) and (pool,)")
        if not (np.isfinite(matrix).all() and np.isfinite(y).all()):
            raise ValueError("features and targets must be finite numbers")
        chosen = find_loss(loss)
        matrix = matrix - matrix.mean(axis=0)
        covariance, field = matrix.T @ matrix / len(y), y
        labels: RealLabels | ClassLabels = RealLabels("linear", noise)
        if chosen.binary:
            if set(np.unique(y)) != {-1.0, 1.0}:
                raise ValueError(f"targets: the {chosen.name} loss needs labels -1 and +1, both of them")
            labels = ClassLabels(y.mean())
            field = (y - y.mean()) / y.std()
        alignment = matrix.T @ field / len(y)
        if chosen.binary:
            covariance = covariance - np.outer(alignment, alignment)  # within classes
        spectrum = ExplicitSpectrum.from_covariance(covariance, alignment)
        if not chosen.binary:
            spectrum = _without_chance(spectrum, float(np.mean(field**2)), len(y))
        return cls(
            spectrum,
            np.mean(field**2),
            n_train=n_train,
            ridge=ridge,
            features=matrix,
            targets=y,
            labels=labels,
            loss=chosen,
            penalty=penalty,
        )


def _without_chance(spectrum: ExplicitSpectrum, power: float, examples: int) -> ExplicitSpectrum:
    """Of squared projections measured on some examples those of the population: less lambda_k sigma^2/examples, sigma^2 the
    variance that no mode explains, estimated without bias."""
    values, squares = np.asarray(spectrum.eigenvalues), np.asarray(spectrum.projections)
    kept = values > 0
    freedom = max(1 - kept.sum() / examples, 1 / examples)
    unexplained = max(power - np.sum(squares[kept] / values[kept]), 0.0) / freedom
    return ExplicitSpectrum(values, np.maximum(squares - values * unexplained / examples, 0.0))
