"""What every theory of kernel regression predicts and every experiment measures, averaged over
random training sets.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result


class LearningCurve(Result):
    """One point of a learning curve. Errors are mean squares without a factor 1/2, of the posterior
    mean f, summed over outputs.

    test_error:          E (f(x) - y(x))^2 at points outside the training set, against targets without noise. For an infinite
                         population this is the population error.
    population_error:    the same over the measure the training set is drawn from; on a pool it includes the training points.
    train_error:         (1/P) sum (f - y_noisy)^2 over the training set.
    bias, variance:      parts of the population error: E_x (E_D f - y)^2 and E_x Var_D f, over data sets D with noisy labels.
    posterior_variance:  mean posterior variance of f over the population. The error of a single posterior sample (Gibbs error)
                         exceeds that of the mean by this much.
    effective_ridge:     P kappa: ridge plus posterior variance (see `orderparam.kernels.effective_ridge`).
    effective_dimension: number of modes learned, E tr K (K + T)^-1 = P - T E tr (K + T)^-1.
    target_learnability: E <f, y> / <y, y> over the population.
    squared_discrepancy: mean of t^2 over the training set, t = (y_noisy - f)/T = (K + T)^-1 y_noisy. It is finite at T = 0
                         while P is below the rank, and diverges there above it as soon as anything
                         is left unexplained.
    residual, converged: of the equation that was solved.
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
    """One training set's share of a learning curve; every observable means what it means in
    `LearningCurve`.

    converged: False where K + T was not positive definite to working precision; the observables
    then are NaN.
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
    """The observables of the training set, from t = (K + T)^-1 y and the diagonal of (K + T)^-1; T
    may differ by example.
    """
    squares = jnp.sum(discrepancy**2, axis=1)
    return {
        "train_error": jnp.mean(ridge**2 * squares),
        "effective_dimension": jnp.sum(1 - ridge * inverse_diagonal),
        "squared_discrepancy": jnp.mean(squares),
        "converged": jnp.isfinite(jnp.sum(squares)),
    }


def solved(measured: Any, temperature: Float[Array, ""] | float) -> Any:
    """The measurement, `ValueError` when K + T was singular. Under `vmap` over keys `converged`
    alone says so.
    """
    if not isinstance(measured.converged, jax.core.Tracer) and not bool(measured.converged):
        raise ValueError(
            f"temperature = {float(temperature):g}: the training kernel plus the temperature is not positive definite "
            "(equal inputs, or a temperature below rounding); raise it"
        )
    return measured


def held_out(
    population_error: Float[Array, ""],
    clean_train_error: Float[Array, ""],
    sampled_fraction: Float[Array, ""],
) -> Float[Array, ""]:
    """Error outside the training set, which is the share p of the population: E = (E_population - p
    E_train) / (1 - p).

    E_train is measured against targets without noise. Derived for this package, not in the cited
    papers.
    """
    return (population_error - sampled_fraction * clean_train_error) / (1 - sampled_fraction)


def clean_train_error(
    shrinkage: Float[Array, "*input"],
    error: Float[Array, "*input"],
    noise: float | Float[Array, ""],
) -> Float[Array, "*input"]:
    """Error at training points against targets without noise, s^2 error + (1 - s)^2 noise with s
    the shrinkage T/(T + V).

    At a training point f - y = s (f - y)_outside + (1 - s) (label noise): it has been pulled
    towards its noisy label.
    """
    return shrunk(shrinkage, error) + (1 - shrinkage) ** 2 * noise


def shrunk(
    shrinkage: Float[Array, "*input"], error: Float[Array, "*input"]
) -> Float[Array, "*input"]:
    """shrinkage^2 error, which is 0 without a ridge even where the error diverges."""
    inside = shrinkage > 0
    return jnp.where(inside, shrinkage**2 * jnp.where(inside, error, 0.0), 0.0)
