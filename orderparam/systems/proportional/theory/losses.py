"""Train and test loss of a Bayesian network, split into bias and variance: what theories and experiments of the room return."""

import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result


class Losses(Result):
    """Posterior averages <.> of the squared losses, without a factor 1/2, per example and summed over the outputs.

    train_error = mean_mu <|y_mu - f(x_mu)|^2> over the training set, test_error the same over the test set. Each is the sum of
    bias = mean |y - <f>|^2 and variance = mean <|f - <f>|^2>; the variance is that of f itself, without the noise T.
    accuracy: share of test points where <f> has the sign of y, or, with several outputs, its largest entry where y has it.
    """

    train_error: Float[Array, ""]
    train_bias: Float[Array, ""]
    train_variance: Float[Array, ""]
    test_error: Float[Array, ""]
    test_bias: Float[Array, ""]
    test_variance: Float[Array, ""]
    accuracy: Float[Array, ""]


class Prediction(Losses):
    """The losses, and what the network says at every test point: mean and variance of f(x) over the posterior."""

    mean: Float[Array, "test"]
    variance: Float[Array, "test"]


class PredictionOfSeveral(Losses):
    """The losses, and mean and variance of every output at every test point."""

    mean: Float[Array, "test output"]
    variance: Float[Array, "test output"]


def accuracy(mean: Float[Array, "test *output"], targets: Float[Array, "test *output"]) -> Float[Array, ""]:
    """Share of test points that are classified as their targets say."""
    if mean.ndim == 1:
        return jnp.mean(jnp.sign(mean) == jnp.sign(targets), dtype=float)
    return jnp.mean(jnp.argmax(mean, axis=-1) == jnp.argmax(targets, axis=-1), dtype=float)


def losses(
    train_bias: Float[Array, ""],
    train_variance: Float[Array, ""],
    mean: Float[Array, "test *output"],
    variance: Float[Array, "test *output"],
    targets: Float[Array, "test *output"],
) -> dict[str, Float[Array, "..."]]:
    """The fields of `Prediction`. Predictor of the test points: mean and variance of every output."""
    test = targets.shape[0]
    test_bias, test_variance = jnp.sum((targets - mean) ** 2) / test, jnp.sum(variance) / test
    return {
        "train_error": train_bias + train_variance,
        "train_bias": train_bias,
        "train_variance": train_variance,
        "test_error": test_bias + test_variance,
        "test_bias": test_bias,
        "test_variance": test_variance,
        "accuracy": accuracy(mean, targets),
        "mean": mean,
        "variance": variance,
    }


def regression(
    kernel: Float[Array, "train train"],
    rows: Float[Array, "test train"],
    diagonal: Float[Array, "test"],
    targets: Float[Array, "train"],
    test_targets: Float[Array, "test"],
    temperature: Float[Array, ""],
) -> dict[str, Float[Array, "..."]]:
    """The fields of `Prediction` for Gaussian-process regression with the (renormalised) kernel and noise variance T.

    With A = K + T and a = A^{-1} y: mean k a, variance k_00 - k A^{-1} k^T; over the training set y - <f> = T a and the variance
    has trace T tr(K A^{-1}), K A^{-1} = 1 - T A^{-1}   (Rasmussen, Williams 2006, section 2.2).
    """
    n = kernel.shape[0]
    cholesky = jnp.linalg.cholesky(kernel + temperature * jnp.eye(n))
    dual = jsl.cho_solve((cholesky, True), targets)
    half = jsl.solve_triangular(cholesky, rows.T, lower=True)
    inverse_half = jsl.solve_triangular(cholesky, jnp.eye(n), lower=True)
    return losses(
        temperature**2 * dual @ dual / n,
        temperature * (n - temperature * jnp.sum(inverse_half**2)) / n,
        rows @ dual,
        jnp.maximum(diagonal - jnp.sum(half**2, axis=0), 0.0),
        test_targets,
    )


def reached(residual: Float[Array, ""], tolerance: float = 1e-9) -> Bool[Array, ""]:
    """Whether the dimensionless gradient of the action vanishes."""
    return residual < tolerance
