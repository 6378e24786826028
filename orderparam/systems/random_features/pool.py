"""Features of real data: the pool from which training sets are drawn, and its spectrum."""

from functools import lru_cache
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Num, PRNGKeyArray

from orderparam.core.system import parameter, part, structure
from orderparam.data import Dataset, apply_task, centre, load
from orderparam.gaussian import activation as find_activation
from orderparam.gaussian.draws import normal
from orderparam.losses import ClassLabels, Penalty, RealLabels, Square
from orderparam.losses import loss as find_loss
from orderparam.solve.root import decreasing_root
from orderparam.systems.random_features.model import (
    ExplicitSpectrum,
    FeatureRegression,
    FeatureSpectrum,
    Scalar,
    SpectralAverages,
)


class PoolSpectrum(FeatureSpectrum):
    r"""Spectrum of a population, estimated from a pool of N examples that were sampled from it.

    The eigenvalues w_i and the squared projections t_i^2 are those measured on the pool, and rho is
    the mean square of the field. In a sample of N examples the eigenvalues are spread out, and
    every mode has an additional random projection. The deterministic equivalents of the resolvent
    of a sample covariance correct both. With D_i = penalty' + stiffness w_i and the penalty' for
    which

    $$ \text{penalty} = \text{penalty}' / c , \qquad
       c = 1 - \frac1N \sum_i \text{stiffness}\, w_i / D_i , $$

    the sums over the population's modes are

    $$ \sum \frac{\omega}{\text{penalty} + \text{stiffness}\, \omega} = \sum_i \frac{w_i}{D_i} ,
       \qquad
       \sum \frac{s^2}{\text{penalty} + \text{stiffness}\, \omega}
       = \frac1c \Big[ \sum_i \frac{t_i^2}{D_i} - \frac{\rho}{N} \sum_i \frac{w_i}{D_i} \Big] , $$

    and their derivatives give the other sums. For classes, Omega - s s^T, the covariance within a
    class, takes the place of Omega.

    Source: Ledoit, Péché (2011) and Dobriban, Wager (2018) for the equivalents; their use for a
    finite pool is derived here.
    """

    eigenvalues: Float[Array, "feature"] = parameter(
        "eigenvalues of the covariance of the pool", minimum=0
    )
    projections: Float[Array, "feature"] = parameter(
        "squared projections of the field, measured on the pool", minimum=0
    )
    power: float = parameter("mean square rho of the field", above=0)
    examples: float = parameter("number N of examples in the pool", above=0)
    within_classes: bool = structure(
        "True for the covariance of each class about its own mean", default=False, kw_only=True
    )

    @property
    def mean_eigenvalue(self) -> Scalar:
        return jnp.mean(self.eigenvalues)

    def averages(self, penalty: Scalar | float, stiffness: Scalar | float) -> SpectralAverages:
        given, stiff = (jnp.asarray(one, jnp.float64) for one in (penalty, stiffness))
        count = self.eigenvalues.shape[0]

        def excess(logarithm: Scalar, args: Any) -> Scalar:
            spectrum, aim, stiffness = args
            return jnp.log(aim) - jnp.log(spectrum._sums(jnp.exp(logarithm), stiffness)[0])

        least = jnp.maximum(1 - count / self.examples, 1e-15)
        ends = jnp.log(given * least) - 1e-6, jnp.log(given) + 1e-6
        own = jnp.exp(decreasing_root(excess, *ends, (self, given, stiff)).value)
        one, none = jnp.ones_like(own), jnp.zeros_like(own)
        (_, response, overlap), by_own = jax.jvp(self._sums, (own, stiff), (one, none))
        _, by_stiffness = jax.jvp(self._sums, (own, stiff), (none, one))
        # at constant penalty, penalty' changes with the stiffness
        power, signal = (
            jnp.maximum(first * by_stiffness[0] / by_own[0] - second, 0.0)
            for first, second in zip(by_own[1:], by_stiffness[1:], strict=True)
        )
        weight_power, weight_signal = (jnp.maximum(-slope / by_own[0], 0.0) for slope in by_own[1:])
        return SpectralAverages(
            response=response / count,
            power=power / count,
            weight_power=weight_power / count,
            overlap=overlap,
            signal=signal,
            weight_signal=weight_signal,
        )

    def _sums(self, own: Scalar, stiffness: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """The penalty, and the sums of omega/D and of s^2/D over the population's modes."""
        inverse = 1 / (own + stiffness * self.eigenvalues)
        learned = jnp.sum(self.eigenvalues * inverse)
        share = 1 - stiffness * learned / self.examples
        penalty = own / share
        overlap = (
            jnp.sum(self.projections * inverse) - self.power * learned / self.examples
        ) / share
        overlap = jnp.maximum(overlap, 0.0)
        if not self.within_classes:
            return penalty, learned, overlap
        squared = jnp.sum(self.eigenvalues * inverse**2) / self.examples
        left = self.power - stiffness * overlap
        weights = (jnp.sum(self.projections * inverse**2) - left * squared) / (
            1 - stiffness * penalty * squared
        )
        rest = 1 - stiffness * overlap
        return penalty, learned - penalty * jnp.maximum(weights, 0.0) / rest, overlap / rest


class FeaturePool(FeatureRegression):
    """Features of real data with their targets. Training sets are drawn from the pool, which is a
    sample of N from the population. Build it with `FeaturePool.from_data`.

    features: (pool, feature), centred; targets: (pool,).

    Errors of the square loss depend on the data only through the covariance of the features, their
    correlation with y and the power of y; the teacher's field is y itself. Logistic and hinge loss
    take labels ±1, and their errors depend on more properties of the data. For them the features of
    each class are assumed to be Gaussian about the mean of the class, with a common covariance
    (`ClassLabels`). This is an approximation, because real classes are not Gaussian. `PoolSpectrum`
    corrects the pool's covariance and correlation for the bias of a sample of N examples; without
    this correction errors would be 20 % too small with two features for every five examples.
    """

    takes_classes: ClassVar[bool] = True

    pool_spectrum: PoolSpectrum = part(
        "covariance of the features and its alignment with the targets"
    )
    features: Float[Array, "pool feature"] = parameter("centred features of the pool", kw_only=True)
    targets: Float[Array, "pool"] = parameter("targets of the pool", kw_only=True)
    offset: float = parameter(
        "what was taken from targets -1 and 1: the sign of a prediction and this is its class",
        default=0.0,
        kw_only=True,
    )

    def __check_init__(self) -> None:
        wanted = RealLabels if isinstance(self.loss, Square) else ClassLabels
        if not isinstance(self.labels, wanted):
            raise ValueError(
                f"FeaturePool.labels: the {self.loss.name} loss needs {wanted.__name__} here (see "
                "the class)"
            )

    @property
    def feature_count(self) -> int:
        return self.features.shape[-1]

    @property
    def teacher_power(self) -> Any:
        return self.pool_spectrum.power

    @property
    def spectrum(self) -> PoolSpectrum:
        return self.pool_spectrum

    @property
    def field(self) -> Float[Array, "pool"]:
        """The teacher's field of every example: y; for classes y centred and scaled to variance
        1.
        """
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
        offset: float = 0.0,
    ) -> Self:
        """The pool with centred features, the modes of their covariance, and the correlation with
        the targets.

        noise: variance of noise added to training and test labels (square loss). offset: mean that
        was subtracted from targets -1 and 1 (square loss).

        Raises:
            ValueError: for arrays that are not finite or do not fit each other, and for a binary
                loss whose targets are not -1 and +1.
        """
        matrix, y = np.asarray(features, np.float64), np.asarray(targets, np.float64)
        if matrix.ndim != 2 or y.shape != matrix.shape[:1] or matrix.size == 0:
            raise ValueError(
                f"features has shape {matrix.shape} and targets {y.shape}: must be (pool, feature) "
                "and (pool,)"
            )
        if not (np.isfinite(matrix).all() and np.isfinite(y).all()):
            raise ValueError("features and targets must be finite numbers")
        chosen = find_loss(loss)
        matrix = matrix - matrix.mean(axis=0)
        covariance, field = matrix.T @ matrix / len(y), y
        labels: RealLabels | ClassLabels = RealLabels("linear", noise)
        if chosen.binary:
            if set(np.unique(y)) != {-1.0, 1.0}:
                raise ValueError(
                    f"targets: the {chosen.name} loss needs labels -1 and +1, both of them"
                )
            labels = ClassLabels(y.mean())
            field = (y - y.mean()) / y.std()
        modes = ExplicitSpectrum.from_covariance(covariance, matrix.T @ field / len(y))
        if not np.any(modes.eigenvalues):
            raise ValueError("features: no feature varies")
        spectrum = PoolSpectrum(
            modes.eigenvalues,
            modes.projections,
            np.mean(field**2),
            len(y),
            within_classes=chosen.binary,
        )
        return cls(
            spectrum,
            n_train=n_train,
            ridge=ridge,
            features=matrix,
            targets=y,
            labels=labels,
            loss=chosen,
            penalty=penalty,
            offset=offset,
        )


def gaussian_clone(pool: FeaturePool, key: PRNGKeyArray) -> FeaturePool:
    """A pool of Gaussian features with as many examples as `pool`. Its sample covariance and its
    sample correlation with the targets are exactly those of `pool`, so that the theory of both
    pools is the same. For labels that are classes the covariance within classes is kept, and so are
    the labels.

    The left singular vectors of the features are replaced by random directions, orthogonal to the
    constant vector and to the field of classes.
    """
    x, field = pool.features, pool.field
    feature_key, target_key = jax.random.split(key)
    along = x.T @ field / len(x)
    classes = isinstance(pool.labels, ClassLabels)
    kept = [jnp.ones(len(x)), field] if classes else [jnp.ones(len(x))]
    within = x - jnp.outer(field, along) if classes else x
    _, scales, right = jnp.linalg.svd(within, full_matrices=False)
    drawn = jnp.column_stack([*kept, normal(feature_key, len(x), len(scales))])
    clone = jnp.linalg.qr(drawn)[0][:, len(kept) :] * scales @ right
    if classes:
        return eqx.tree_at(lambda one: one.features, pool, clone + jnp.outer(field, along))
    explained = clone @ (jnp.linalg.pinv(x.T @ x, rtol=1e-12, hermitian=True) @ (along * len(x)))
    drawn = jnp.column_stack([*kept, clone, normal(target_key, len(x))])
    rest = jnp.linalg.qr(drawn)[0][:, -1] * jnp.sqrt(jnp.sum(field**2) - jnp.sum(explained**2))
    return eqx.tree_at(lambda one: (one.features, one.targets), pool, (clone, explained + rest))


# ------------------------------------------------------------------------------------------------
# Random features of real images, as a pool to learn from.


@lru_cache(maxsize=4)
def image_features(
    dataset: str = "digits",
    task: str = "even-odd",
    activation: Any = "erf",
    width: int = 300,
    n_train: float = 300,
    ridge: float = 0.01,
    split: str | None = None,
    seed: int = 0,
    penalty: Penalty = "sum",
    loss: str = "square",
) -> FeaturePool:
    """Features activation(W x) of all images of a standard data set, with the ±1 targets of a task
    of `orderparam.data`, see `random_features`.
    """
    chosen, targets = apply_task(load(dataset, split), task)
    if targets.values.ndim != 1:
        raise ValueError(f"task = {task!r}: must have one output")
    features = random_features(chosen, activation, width, seed)
    return FeaturePool.from_data(
        features, targets.values, n_train, ridge, loss=loss, penalty=penalty
    )


def random_features(
    images: Dataset, activation: Any, width: int, seed: int = 0
) -> Float[Array, "example feature"]:
    """Features activation(W x) of images. The mean image is subtracted, and all pixels are scaled
    by one factor to mean square 1; W has `width` rows of entries N(0, 1/input_dim)."""
    x = centre(images).inputs
    x = x / np.sqrt(np.mean(x**2))
    rows = np.random.default_rng(seed).standard_normal((width, x.shape[1])) / np.sqrt(x.shape[1])
    return find_activation(activation)(jnp.asarray(x @ rows.T))
