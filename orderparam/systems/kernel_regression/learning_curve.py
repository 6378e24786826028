"""The observables of a learning curve. Every theory of kernel regression predicts their averages
over random training sets, and every experiment measures them on one training set.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result


class LearningCurve(Result):
    """One point of a learning curve, as a theory predicts it.

    Errors are mean squares of the posterior mean f without a factor 1/2, summed over outputs.

    Fields:
        test_error: E (f(x) - y(x))^2 at points outside the training set, against targets without
            noise. For an infinite population this is the population error.
        population_error: E (f(x) - y(x))^2 over the measure that the training set is drawn from; on
            a pool it includes the training points.
        train_error: (1/P) sum (f - y_noisy)^2 over the P points of the training set.
        bias: E_x (E_D f - y)^2, the part of the population error that remains after averaging f
            over training sets D with noisy labels.
        variance: E_x Var_D f, the part of the population error that is due to the choice of D.
        posterior_variance: mean posterior variance of f over the population. The error of a single
            posterior sample (Gibbs error) exceeds that of the mean by this much.
        effective_ridge: P kappa, the ridge plus the posterior variance (see
            `orderparam.kernels.effective_ridge`).
        effective_dimension: number of modes learned, E tr K (K + T)^-1 = P - T E tr (K + T)^-1.
        target_learnability: E <f, y> / <y, y>, with scalar products over the population.
        squared_discrepancy: mean of t^2 over the training set, t = (y_noisy - f)/T = (K + T)^-1
            y_noisy. At T = 0 it is finite if P is below the rank of the kernel. Above the rank it
            diverges unless the kernel explains the labels completely.
        residual: residual of the equation for the effective ridge.
        converged: whether this equation was solved.
    """

    test_error: Float[Array, ""]
    population_error: Float[Array, ""]
    train_error: Float[Array, ""]
    bias: Float[Array, ""]
    variance: Float[Array, ""]
    posterior_variance: Float[Array, ""]
    effective_ridge: Float[Array, ""]
    effective_dimension: Float[Array, ""]
    target_learnability: Float[Array, ""]
    squared_discrepancy: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class MeasuredLearningCurve(Result):
    """One point of a learning curve, measured on one training set.

    Errors are mean squares of the posterior mean f without a factor 1/2, summed over outputs.

    Fields:
        test_error: mean of (f(x) - y(x))^2 at points outside the training set, against targets
            without noise.
        population_error: mean of (f(x) - y(x))^2 over the population.
        train_error: (1/P) sum (f - y_noisy)^2 over the training set.
        posterior_variance: mean posterior variance of f over the population.
        effective_dimension: number of modes learned, tr K (K + T)^-1.
        target_learnability: <f, y> / <y, y>, with scalar products over the population.
        squared_discrepancy: mean over the training set of t^2, t = (K + T)^-1 y_noisy.
        converged: whether K + T was positive definite to working precision; otherwise all fields
            are NaN.
    """

    test_error: Float[Array, ""]
    population_error: Float[Array, ""]
    train_error: Float[Array, ""]
    posterior_variance: Float[Array, ""]
    effective_dimension: Float[Array, ""]
    target_learnability: Float[Array, ""]
    squared_discrepancy: Float[Array, ""]
    converged: Bool[Array, ""]


def on_training_set(
    discrepancy: Float[Array, "train output"],
    inverse_diagonal: Float[Array, "train"],
    ridge: Float[Array, ""] | Float[Array, "train"],
) -> dict[str, Array]:
    """The observables of the training set, from t = (K + T)^-1 y and the diagonal of (K + T)^-1.

    Args:
        discrepancy: t, which is (y - f)/T.
        inverse_diagonal: diagonal of (K + T)^-1.
        ridge: the ridge T, one number or one for each example.
    """
    # y - f = T t, and K (K + T)^-1 = 1 - T (K + T)^-1
    squares = jnp.sum(discrepancy**2, axis=1)
    return {
        "train_error": jnp.mean(ridge**2 * squares),
        "effective_dimension": jnp.sum(1 - ridge * inverse_diagonal),
        "squared_discrepancy": jnp.mean(squares),
        "converged": jnp.isfinite(jnp.sum(squares)),
    }


def solved(measured: Any, temperature: Float[Array, ""] | float) -> Any:
    """The measurement, unchanged; an error is raised if K + T was not positive definite.

    Raises:
        ValueError: where K + T is not positive definite. Under `vmap` over keys the measurement is
            returned and `converged` is False.
    """
    if not isinstance(measured.converged, jax.core.Tracer) and not bool(measured.converged):
        raise ValueError(
            f"temperature = {float(temperature):g}: the training kernel plus the temperature is "
            "not positive definite (equal inputs, or a temperature below rounding); raise it"
        )
    return measured


def held_out(
    population_error: Float[Array, ""],
    clean_train_error: Float[Array, ""],
    sampled_fraction: Float[Array, ""],
) -> Float[Array, ""]:
    r"""Error outside the training set, from the error over the whole population.

    $$ E = \frac{E_{\mathrm{population}} - p\, E_{\mathrm{train}}}{1 - p} $$

    with p the fraction of the population that is in the training set (`sampled_fraction`), and
    $E_{\mathrm{train}}$ the training error against targets without noise (`clean_train_error`).

    Source: derived here.
    """
    return (population_error - sampled_fraction * clean_train_error) / (1 - sampled_fraction)


def clean_train_error(
    shrinkage: Float[Array, "*input"],
    error: Float[Array, "*input"],
    noise: float | Float[Array, ""],
) -> Float[Array, "*input"]:
    """Error s^2 error + (1 - s)^2 noise at training points, against targets without noise.

    The shrinkage is s = T/(T + V), with V the posterior variance at the point if it is not in the
    training set. At a training point f - y is s times the deviation of the predictor that is
    trained without this point, plus (1 - s) times the label noise of the point.

    Source: derived here.
    """
    return shrunk(shrinkage, error) + (1 - shrinkage) ** 2 * noise


def shrunk(
    shrinkage: Float[Array, "*input"], error: Float[Array, "*input"]
) -> Float[Array, "*input"]:
    """Product shrinkage^2 error. It is 0 where the shrinkage is 0, also if the error is infinite
    there."""
    inside = shrinkage > 0
    return jnp.where(inside, shrinkage**2 * jnp.where(inside, error, 0.0), 0.0)
