"""The real thing: features computed, a training set drawn, the risk minimised to rounding, errors measured on fresh examples."""

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.losses import Labels, Loss, SignLabels, Square
from orderparam.solve.root import decreasing_root
from orderparam.systems.random_features.minimise import Minimum, minimise
from orderparam.systems.random_features.model import FeaturePool, FeatureRegression, GaussianFeatures, RandomFeatures
from orderparam.systems.random_features.theory import optimal_ridge

Features = Literal["real", "gaussian"]
Batch = tuple[Float[Array, "example feature"], Float[Array, "example"]]  # features (with their 1/sqrt(p)), teacher's field
Source = Callable[[PRNGKeyArray, int], Batch]

BATCH = 500  # test examples held at a time


class MeasuredCurve(Result):
    """One training set's share of a curve; every observable means what it means in `theory.FeatureCurve`.

    residual, converged: of the minimisation.
    """

    test_error: Float[Array, ""]
    train_error: Float[Array, ""]
    test_loss: Float[Array, ""]
    train_loss: Float[Array, ""]
    classification_error: Float[Array, ""]
    teacher_overlap: Float[Array, ""]
    self_overlap: Float[Array, ""]
    weight_power: Float[Array, ""]
    effective_dimension: Float[Array, ""]
    cross_validation: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def learn(
    system: RandomFeatures | GaussianFeatures, key: PRNGKeyArray, features: Features = "real", test_points: int = 4000
) -> MeasuredCurve:
    """One learner on fresh inputs, weights W and labels; errors on `test_points` further inputs (rounded up to batches of 500).

    features: "real" computes activation(W x); "gaussian" its Gaussian equivalent mu_0 + mu_1 W x + mu_* xi, xi ~ N(0, I) drawn
    anew for every input. `GaussianFeatures` are Gaussian in either case. Raises `ValueError` for another word, for a
    `FeaturePool` (see `learn_pool`), and for sizes that are not whole numbers.
    """
    if features not in ("real", "gaussian"):
        raise ValueError(f"features = {features!r}: must be 'real' or 'gaussian'")
    if not isinstance(system, RandomFeatures | GaussianFeatures) or isinstance(system, FeaturePool):
        raise ValueError(f"learn needs RandomFeatures or GaussianFeatures, not a {type(system).__name__}")
    sizes = (_whole("n_train", system.n_train), _whole("width", system.feature_count), -(-test_points // BATCH))
    dimension = _whole("input_dim", system.input_dim) if isinstance(system, RandomFeatures) else 0
    return _learn(_numbers(system), key, features, *sizes, dimension)


def learn_at_optimal_ridge(
    system: RandomFeatures | GaussianFeatures, key: PRNGKeyArray, features: Features = "real", test_points: int = 4000
) -> MeasuredCurve:
    """`learn` at the ridge that the theory finds best for the test error."""
    best = _best_ridge(_numbers(system))
    return learn(system.with_(ridge=float(best)), key, features, test_points)


def learn_pool(system: FeaturePool, key: PRNGKeyArray) -> MeasuredCurve:
    """n_train examples drawn from the pool with replacement, as from a population; errors over the whole pool.

    The teacher's field is the target itself.
    """
    if not isinstance(system, FeaturePool):
        raise ValueError(f"learn_pool needs a FeaturePool, not a {type(system).__name__}")
    return _learn_pool(_numbers(system), key, _whole("n_train", system.n_train))


@eqx.filter_jit
def _best_ridge(system: FeatureRegression) -> Float[Array, ""]:
    return optimal_ridge(system).ridge


@eqx.filter_jit
def _learn(
    system: Any, key: PRNGKeyArray, features: Features, count: int, width: int, batches: int, dimension: int
) -> MeasuredCurve:
    world_key, train_key, label_key, test_key = jax.random.split(key, 4)
    if isinstance(system, RandomFeatures):
        source = _random_features(system, world_key, features, width, dimension)
    else:
        source = _gaussian_features(system, width)
    matrix, teacher = source(train_key, count)
    labels = system.labels.draw(teacher, label_key)
    minimum = minimise(system.loss, matrix, labels, system.summed_ridge)

    def test(key: PRNGKeyArray) -> dict[str, Float[Array, ""]]:
        input_key, label_key = jax.random.split(key)
        matrix, teacher = source(input_key, BATCH)
        return _sums(system.loss, system.labels, matrix @ minimum.weights, teacher, system.labels.draw(teacher, label_key))

    sums = jax.lax.map(test, jax.random.split(test_key, batches))
    means = {name: jnp.mean(value) for name, value in sums.items()}
    return _measured(system.loss, minimum, labels, means, width)


@eqx.filter_jit
def _learn_pool(system: FeaturePool, key: PRNGKeyArray, count: int) -> MeasuredCurve:
    draw_key, label_key = jax.random.split(key)
    matrix = system.features / jnp.sqrt(system.features.shape[1])
    chosen = jax.random.randint(draw_key, (count,), 0, matrix.shape[0])
    labels = system.labels.draw(system.targets[chosen], label_key)
    minimum = minimise(system.loss, matrix[chosen], labels, system.summed_ridge)
    means = _sums(system.loss, system.labels, matrix @ minimum.weights, system.targets, system.targets)
    means["test_error"] += system.labels.noise  # type: ignore[attr-defined]
    means["test_loss"] += system.labels.noise / 2  # type: ignore[attr-defined]
    return _measured(system.loss, minimum, labels, means, matrix.shape[1])


def _random_features(system: RandomFeatures, key: PRNGKeyArray, features: Features, width: int, dimension: int) -> Source:
    """The teacher is the first axis: W and x have no preferred direction."""
    rows = jax.random.normal(key, (width, dimension))
    rows = rows / jnp.linalg.norm(rows, axis=1, keepdims=True)
    mean, linear, nonlinear = system.gaussian_equivalent

    def source(key: PRNGKeyArray, count: int) -> Batch:
        input_key, noise_key = jax.random.split(key)
        x = jax.random.normal(input_key, (count, dimension))
        z = x @ rows.T
        if features == "real":
            phi = system.activation(z)
        else:
            phi = mean + linear * z + nonlinear * jax.random.normal(noise_key, z.shape)
        return phi / jnp.sqrt(width), x[:, 0]

    return source


def _gaussian_features(system: GaussianFeatures, width: int) -> Source:
    """In the eigenbasis of the covariance; what the features do not explain of the teacher's field is independent."""
    omega, signal = system.spectrum.eigenvalues, system.spectrum.projections
    inside = omega > 0
    deviation, along = jnp.sqrt(omega), jnp.where(inside, jnp.sqrt(signal / jnp.where(inside, omega, 1.0)), 0.0)
    rest = jnp.sqrt(jnp.maximum(system.teacher_variance - jnp.sum(along**2), 0.0))

    def source(key: PRNGKeyArray, count: int) -> Batch:
        feature_key, rest_key = jax.random.split(key)
        z = jax.random.normal(feature_key, (count, width))
        return z * deviation / jnp.sqrt(width), z @ along + rest * jax.random.normal(rest_key, (count,))

    return source


def _sums(
    loss: Loss, law: Labels, fields: Float[Array, "example"], teacher: Float[Array, "example"], labels: Float[Array, "example"]
) -> dict[str, Float[Array, ""]]:
    """Means over test examples."""
    wrong = jnp.mean(fields * labels < 0, dtype=float) if isinstance(law, SignLabels) else jnp.asarray(jnp.nan)
    return {
        "test_error": jnp.mean((labels - fields) ** 2),
        "test_loss": jnp.mean(loss(labels, fields)),
        "classification_error": wrong,
        "overlap": jnp.mean(teacher * fields),
        "mean": jnp.mean(fields),
        "square": jnp.mean(fields**2),
    }


def _measured(
    loss: Loss, minimum: Minimum, labels: Float[Array, "train"], means: dict[str, Float[Array, ""]], width: int
) -> MeasuredCurve:
    return MeasuredCurve(
        test_error=means["test_error"],
        train_error=jnp.mean((labels - minimum.fields) ** 2),
        test_loss=means["test_loss"],
        train_loss=jnp.mean(loss(labels, minimum.fields)),
        classification_error=means["classification_error"],
        teacher_overlap=means["overlap"],
        self_overlap=means["square"] - means["mean"] ** 2,
        weight_power=jnp.sum(minimum.weights**2) / width,
        effective_dimension=minimum.effective_dimension,
        cross_validation=_cross_validation(loss, minimum, labels),
        residual=minimum.residual,
        converged=minimum.converged,
    )


def _cross_validation(loss: Loss, minimum: Minimum, labels: Float[Array, "train"]) -> Float[Array, ""]:
    """Mean square of y - w, w = f + V l'(y, f) the prediction without the example itself; NaN for a loss with a kink.

    V follows from the effective number of parameters, sum_mu V l''/(1 + V l''): for the square loss 1 + V = 1/(1 - df/n), and the
    estimate is generalised cross-validation (Craven, Wahba 1979).
    """
    if not loss.smooth:
        return jnp.asarray(jnp.nan)
    curvature = loss.curvature(labels, minimum.fields)
    if isinstance(loss, Square):
        return jnp.mean((labels - minimum.fields) ** 2) / (1 - minimum.effective_dimension / labels.size) ** 2

    def missing(log_response: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        curvature, dimension = args
        change = jnp.exp(log_response) * curvature
        return jnp.log(dimension) - jnp.log(jnp.sum(change / (1 + change)))

    lower = jnp.log(minimum.effective_dimension / jnp.sum(curvature))
    response = jnp.exp(decreasing_root(missing, lower - 1e-6, lower + 40.0, (curvature, minimum.effective_dimension)).value)
    return jnp.mean((labels - minimum.fields - response * loss.slope(labels, minimum.fields)) ** 2)


def _numbers(system: Any) -> Any:
    """The system with its numbers as arrays, so that other values compile nothing anew."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), system)


def _whole(name: str, value: Any) -> int:
    if int(value) != value:
        raise ValueError(f"{name} = {value}: an experiment needs a whole number")
    return int(value)
