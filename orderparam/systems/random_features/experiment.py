"""Convex learning of random features on one random training set, with errors measured on fresh
examples.
"""

from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.gaussian import Activation
from orderparam.gaussian.draws import normal, unit
from orderparam.losses import (
    FittedWeights,
    Loss,
    RealLabels,
    Square,
    field_means,
    fresh_means,
    minimise,
)
from orderparam.losses.fitted import measured_errors
from orderparam.losses.fresh import Batch
from orderparam.solve.root import decreasing_root
from orderparam.systems.random_features.model import (
    GaussianFeatures,
    RandomFeatures,
    gaussian_equivalent,
)
from orderparam.systems.random_features.pool import FeaturePool, gaussian_clone
from orderparam.systems.random_features.theory import Minimiser, optimal_ridge

Features = Literal["real", "gaussian"]
Source = Callable[[PRNGKeyArray, int], Batch]


class MeasuredCurve(Minimiser):
    """Errors and order parameters of the minimiser on one training set."""


@experiment
def learn(
    system: RandomFeatures | GaussianFeatures,
    key: PRNGKeyArray,
    *,
    features: Features = "real",
    test_points: int = 4000,
) -> MeasuredCurve:
    r"""Errors of a convex learner on one drawn training set, measured on fresh inputs.

    $$ \min_a \sum_{\mu=1}^n \ell(y_\mu, f(x_\mu)) + \frac\lambda2 |a|^2 , \qquad
       f(x) = \frac{a \cdot \phi(x)}{\sqrt p} $$

    The minimum is found to rounding. Inputs, weights W and labels are newly drawn.

    Args:
        features: "real" (the default) computes activation(W x); "gaussian" draws its Gaussian
            equivalent mu_0 + mu_1 W x + mu_* xi, with xi ~ N(0, I) drawn for every input.
            `GaussianFeatures` are Gaussian in either case.
        test_points: number of further inputs on which errors are measured, rounded up to thousands;
            4000 by default.

    Raises:
        ValueError: for sizes that are not whole numbers.

    Source: Gerace, Loureiro, Krzakala, Mézard, Zdeborová (2020); Goldt et al. (2020) for the
    equivalent.

    >>> system = RandomFeatures(50, 80, n_train=60, ridge=0.1)
    >>> run = learn(system, jax.random.key(0), test_points=1000)
    >>> bool(run.converged), bool(0 < run.test_error < 1)
    (True, True)
    """
    count, world_key, train_key, label_key, test_key = (
        system.size("n_train"),
        *jax.random.split(key, 4),
    )
    source = (
        _random_features(system, world_key, features)
        if isinstance(system, RandomFeatures)
        else _gaussian_features(system)
    )
    matrix, teacher = source(train_key, count)
    labels = system.labels.draw(teacher, label_key)
    minimum = _minimise(system.loss, matrix, labels, system.summed_ridge)
    means = fresh_means(system.loss, system.labels, minimum.weights, source, test_key, test_points)
    return _measured(system.loss, minimum, labels, means)


@experiment
def learn_at_optimal_ridge(
    system: RandomFeatures | GaussianFeatures,
    key: PRNGKeyArray,
    *,
    features: Features = "real",
    test_points: int = 4000,
) -> MeasuredCurve:
    """Errors of a convex learner at the ridge for which the theory predicts the lowest test error.

    The ridge is the result of `optimal_ridge`; training and test are done as in `learn`.

    Args:
        features: "real" (the default) or "gaussian", as in `learn`.
        test_points: number of further inputs on which errors are measured, rounded up to thousands;
            4000 by default.

    Raises:
        ValueError: for sizes that are not whole numbers.

    Source: Gerace, Loureiro, Krzakala, Mézard, Zdeborová (2020).

    >>> system = RandomFeatures(50, 80, n_train=60, ridge=1.0, labels=RealLabels(noise=0.1))
    >>> run = learn_at_optimal_ridge(system, jax.random.key(0), test_points=1000)
    >>> bool(run.converged)
    True
    """
    best = optimal_ridge(system).ridge
    return learn(system.with_(ridge=best), key, features=features, test_points=test_points)


@experiment
def learn_pool(
    system: FeaturePool, key: PRNGKeyArray, *, features: Features = "real"
) -> MeasuredCurve:
    """Errors of a convex learner on n_train examples of a pool, measured on the other examples.

    Every example is drawn at most once. Drawing with replacement would represent an infinite
    population at any number of examples, but the errors of repeated examples are not those of
    Gaussian features.

    Args:
        features: "real" (the default) learns the examples of the pool. "gaussian" learns a newly
            drawn pool of Gaussian features that has the same sample covariance and the same sample
            correlation with the targets.

    Raises:
        ValueError: for an `n_train` that is not whole or leaves no example for testing.

    Source: Loureiro, Gerbelot et al. (2021).

    >>> x = jax.random.normal(jax.random.key(0), (200, 20))
    >>> pool = FeaturePool.from_data(x, x[:, 0], n_train=50, ridge=0.1)
    >>> bool(learn_pool(pool, jax.random.key(1)).test_error < 0.2)
    True
    """
    count, size = system.size("n_train"), len(system.targets)
    if count >= size:
        raise ValueError(
            f"n_train = {count}: must be at most {size - 1}; the pool has {size} examples"
        )
    if features == "gaussian":
        key, clone_key = jax.random.split(key)
        system = gaussian_clone(system, clone_key)
    draw_key, label_key = jax.random.split(key)
    matrix = system.features / jnp.sqrt(system.feature_count)
    order = jax.random.permutation(draw_key, size)
    chosen, rest = order[:count], order[count:]
    labels = system.labels.draw(system.field[chosen], label_key)
    minimum = _minimise(system.loss, matrix[chosen], labels, system.summed_ridge)
    means = field_means(
        system.loss, minimum.weights, matrix[rest], system.field[rest], system.targets[rest]
    )
    if isinstance(system.labels, RealLabels):
        noise = system.labels.noise
        means |= {
            "test_error": means["test_error"] + noise,
            "test_loss": means["test_loss"] + noise / 2,
            "classification_error": _wrong(
                matrix[rest] @ minimum.weights + system.offset, system.targets[rest] + system.offset
            ),
        }
    return _measured(system.loss, minimum, labels, means)


@jax.jit
def _wrong(predicted: Float[Array, "example"], labels: Float[Array, "example"]) -> Float[Array, ""]:
    """Share of wrong signs; NaN for labels that are not -1 and 1."""
    wrong = jnp.mean(predicted * labels <= 0, dtype=float)
    return jnp.where(jnp.allclose(jnp.abs(labels), 1.0), wrong, jnp.nan)


_minimise = eqx.filter_jit(minimise)
_equivalent = eqx.filter_jit(gaussian_equivalent)


def _random_features(system: RandomFeatures, key: PRNGKeyArray, features: Features) -> Source:
    """A source of batches of random features. The teacher's direction is the first axis, without
    loss of generality, because the laws of W and x are isotropic."""
    width, dimension = system.size("width"), system.size("input_dim")
    rows = normal(key, width, dimension)
    equivalent = _equivalent(system.activation)

    def source(key: PRNGKeyArray, count: int) -> Batch:
        input_key, noise_key = jax.random.split(key)
        x = normal(input_key, count, dimension)
        if features == "real":
            return _activated(system.activation, rows, x), x[:, 0]
        return _equivalent_features(equivalent, rows, x, normal(noise_key, count, width)), x[:, 0]

    return source


@eqx.filter_jit
def _activated(
    activation: Activation, rows: Float[Array, "feature input"], x: Float[Array, "example input"]
) -> Float[Array, "example feature"]:
    return activation(x @ unit(rows).T) / jnp.sqrt(rows.shape[0])


@jax.jit
def _equivalent_features(
    equivalent: tuple,
    rows: Float[Array, "feature input"],
    x: Float[Array, "example input"],
    noise: Float[Array, "example feature"],
) -> Float[Array, "example feature"]:
    mean, linear, nonlinear = equivalent
    return (mean + linear * x @ unit(rows).T + nonlinear * noise) / jnp.sqrt(rows.shape[0])


def _gaussian_features(system: GaussianFeatures) -> Source:
    """A source of batches of Gaussian features in the eigenbasis of their covariance. The part of
    the teacher's field that the features do not explain is independent of them.
    """
    omega, signal = system.spectrum.eigenvalues, system.spectrum.projections
    width = omega.size
    along = jnp.where(omega > 0, jnp.sqrt(signal / jnp.where(omega > 0, omega, 1.0)), 0.0)
    rest = jnp.sqrt(jnp.maximum(system.teacher_variance - jnp.sum(along**2), 0.0))

    def source(key: PRNGKeyArray, count: int) -> Batch:
        z = normal(key, count, width + 1)
        return z[:, :width] * jnp.sqrt(omega / width), z[:, :width] @ along + rest * z[:, width]

    return source


@eqx.filter_jit
def _measured(
    loss: Loss,
    minimum: FittedWeights,
    labels: Float[Array, "train"],
    means: dict[str, Float[Array, ""]],
) -> MeasuredCurve:
    return MeasuredCurve(
        **measured_errors(loss, minimum, labels, means),
        effective_dimension=minimum.effective_dimension,
        cross_validation=_cross_validation(loss, minimum, labels),
        residual=minimum.residual,
        converged=minimum.converged,
    )


def _cross_validation(
    loss: Loss, minimum: FittedWeights, labels: Float[Array, "train"]
) -> Float[Array, ""]:
    """Mean square of y - w, where w = f + V l'(y, f) is the prediction of a fit without the example
    itself; NaN for a loss with a kink.

    V follows from the effective number of parameters, sum_mu V l''/(1 + V l''). For the square loss
    1 + V = 1/(1 - df/n), and the estimate is generalised cross-validation (Craven, Wahba 1979).
    """
    if not loss.smooth:
        return jnp.asarray(jnp.nan)
    curvature = loss.curvature(labels, minimum.fields)
    if isinstance(loss, Square):
        return (
            jnp.mean((labels - minimum.fields) ** 2)
            / (1 - minimum.effective_dimension / labels.size) ** 2
        )

    def missing(log_response: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        curvature, dimension = args
        change = jnp.exp(log_response) * curvature
        return jnp.log(dimension) - jnp.log(jnp.sum(change / (1 + change)))

    lower = jnp.log(minimum.effective_dimension / jnp.sum(curvature))
    response = jnp.exp(
        decreasing_root(
            missing, lower - 1e-6, lower + 40.0, (curvature, minimum.effective_dimension)
        ).value
    )
    return jnp.mean((labels - minimum.fields - response * loss.slope(labels, minimum.fields)) ** 2)
