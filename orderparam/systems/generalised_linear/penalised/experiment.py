"""Experiments: estimators of scikit-learn, fitted to randomly drawn problems."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray
from sklearn import linear_model, svm
from sklearn.exceptions import ConvergenceWarning

from orderparam.core.verb import experiment
from orderparam.losses import Hinge, Huber, Logistic, Quantile, Square, field_means, minimise
from orderparam.systems.generalised_linear.penalised.model import ElasticNet, PenalisedFit
from orderparam.systems.generalised_linear.penalised.theory import Fit, SparseFit

# ------------------------------------------------------------------------------------------------
# Estimators of scikit-learn on drawn problems: Ridge, Lasso, ElasticNet, LogisticRegression,
# LinearSVC, QuantileRegressor.
#
# scikit-learn has no estimator for the Huber loss at a given scale, nor for quantiles with an l2
# penalty: the former is minimised here, the latter raises an error.

_STEPS = 50_000
_TEST = 20_000


def estimator(system: PenalisedFit, n: int, tolerance: float) -> Any:
    """Estimator of scikit-learn for this loss and these penalties, or None for the Huber loss.
    Raises `ValueError` for penalties that scikit-learn does not have.
    """
    l1, ridge = float(system.l1), float(system.ridge)
    common: dict[str, Any] = {"fit_intercept": False}
    iterated = {**common, "tol": tolerance, "max_iter": _STEPS}
    if isinstance(system.loss, Square) and l1 == 0:
        return linear_model.Ridge(alpha=ridge, **common)
    if isinstance(system.loss, Square):
        return linear_model.ElasticNet((l1 + ridge) / n, l1_ratio=l1 / (l1 + ridge), **iterated)
    if isinstance(system.loss, Logistic) and l1 == 0:
        return linear_model.LogisticRegression(C=1 / ridge, **iterated)
    if isinstance(system.loss, Logistic):
        kind = {"penalty": "elasticnet", "solver": "saga", "l1_ratio": l1 / (l1 + ridge)}
        return linear_model.LogisticRegression(C=1 / (l1 + ridge), **kind, **iterated)
    if isinstance(system.loss, Hinge) and l1 == 0:
        return svm.LinearSVC(loss="hinge", C=1 / ridge, **iterated)
    if isinstance(system.loss, Quantile) and ridge == 0:
        return linear_model.QuantileRegressor(
            quantile=float(system.loss.level), alpha=l1 / n, solver="highs", **common
        )
    if isinstance(system.loss, Huber) and l1 == 0:
        return None
    raise ValueError(
        f"PenalisedFit.l1 = {l1:g}, ridge = {ridge:g}: there is no estimator for "
        f"{system.loss.name} with these penalties"
    )


@experiment
def fitted_estimator(system: PenalisedFit, key: PRNGKeyArray, *, tolerance: float = 1e-7) -> Fit:
    r"""Errors of one randomly drawn problem, fitted by an estimator of scikit-learn.

    $$ \min_w\; \sum_\mu \ell(y_\mu, w \cdot x_\mu) + l_1 |w|_1 + \frac\lambda2 |w|^2 $$

    Test errors are means over 20,000 new examples. scikit-learn has no estimator for the Huber loss
    at a given scale, which is minimised here.

    Args:
        tolerance: requested accuracy of the estimator; 1e-7 by default.

    Raises:
        ValueError: where the number of samples rounds to zero, and for penalties that no estimator
            has.

    Source: Aubin, Krzakala, Lu, Zdeborová (2020); estimators of scikit-learn.

    >>> system = PenalisedFit(2.0, "logistic", "sign", input_dim=50)
    >>> run = fitted_estimator(system, jax.random.key(0))
    >>> bool(run.converged), bool(run.classification_error < 0.4)
    (True, True)
    """
    d, n = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if n < 1:
        raise ValueError(
            f"PenalisedFit.sample_ratio = {float(system.sample_ratio):g}: leaves no sample at "
            f"input_dim = {d}"
        )
    chosen = estimator(system, n, tolerance)
    weight_key, matrix_key, label_key, test_key, field_key = jax.random.split(key, 5)
    true = system.prior.draw(weight_key, (d,))
    matrix = jax.random.normal(matrix_key, (n, d)) / np.sqrt(d)
    labels = system.labels.draw(matrix @ true, label_key)
    if chosen is None:
        weights = minimise(system.loss, matrix, labels, jnp.asarray(system.ridge)).weights
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # `converged` tells of it
            # scikit-learn warns of options that it renames
            warnings.simplefilter("ignore", FutureWarning)
            weights = jnp.asarray(
                np.ravel(chosen.fit(np.asarray(matrix), np.asarray(labels)).coef_)
            )
    # Fields of new examples are jointly Gaussian.
    powers = [jnp.mean(true**2), jnp.mean(true * weights), jnp.mean(weights**2)]
    z = jax.random.normal(test_key, (2, _TEST))
    fields = jnp.sqrt(powers[0]) * z[0]
    rest = jnp.sqrt(jnp.maximum(powers[2] - powers[1] ** 2 / powers[0], 0.0))
    student = powers[1] / jnp.sqrt(powers[0]) * z[0] + rest * z[1]
    test = field_means(
        system.loss, jnp.ones(1), student[:, None], fields, system.labels.draw(fields, field_key)
    )
    found = matrix @ weights
    residual = jnp.asarray(np.nan)
    if system.loss.smooth:
        pull = matrix.T @ system.loss.slope(labels, found) + system.ridge * weights
        size = jnp.where(
            weights == 0,
            jnp.maximum(jnp.abs(pull) - system.l1, 0.0),
            jnp.abs(pull + system.l1 * jnp.sign(weights)),
        )
        residual = jnp.max(size) / (system.l1 + system.ridge)
    return Fit(
        teacher_overlap=powers[1],
        self_overlap=powers[2],
        support=jnp.mean(weights != 0, dtype=float),
        error=jnp.mean((weights - true) ** 2),
        test_error=test["test_error"],
        train_error=jnp.mean((labels - found) ** 2),
        test_loss=test["test_loss"],
        train_loss=jnp.mean(system.loss(labels, found)),
        classification_error=test["classification_error"]
        if system.labels.binary
        else jnp.asarray(np.nan),
        residual=residual,
        converged=~(residual > 1e-2),
    )


# ------------------------------------------------------------------------------------------------
# Lasso, Ridge and ElasticNet of scikit-learn on drawn problems.

_ELASTIC_STEPS = 20_000


@experiment
def fitted_elastic_net(
    system: ElasticNet, key: PRNGKeyArray, *, tolerance: float = 1e-9
) -> SparseFit:
    r"""Lasso, Ridge or ElasticNet of scikit-learn on one drawn problem.

    $$ \min_w\; \tfrac12 |y - X w|^2 + l_1 |w|_1 + \frac\lambda2 |w|^2 $$

    The test error is the exact average over new examples, which is the error of the weights plus
    the noise.

    Args:
        tolerance: requested accuracy of the estimator; 1e-9 by default.

    Raises:
        ValueError: where the number of samples rounds to zero.

    Source: Bayati, Montanari (2012); estimators of scikit-learn.

    >>> run = fitted_elastic_net(ElasticNet(0.8, l1=0.1, input_dim=50), jax.random.key(0))
    >>> bool(run.converged), bool(0 < run.support < 1)
    (True, True)
    """
    d, n = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if n < 1:
        raise ValueError(
            f"ElasticNet.sample_ratio = {float(system.sample_ratio):g}: leaves no sample at "
            f"input_dim = {d}"
        )
    weight_key, matrix_key, noise_key = jax.random.split(key, 3)
    true = np.asarray(system.prior.draw(weight_key, (d,)))
    matrix = np.asarray(jax.random.normal(matrix_key, (n, d))) / np.sqrt(d)
    labels = matrix @ true + np.sqrt(float(system.noise)) * np.asarray(
        jax.random.normal(noise_key, (n,))
    )
    l1, ridge = float(system.l1), float(system.ridge)
    if l1 == 0:
        estimator = linear_model.Ridge(alpha=ridge, fit_intercept=False)
    else:
        penalty, share = (l1 + ridge) / n, l1 / (l1 + ridge)
        options = {"fit_intercept": False, "tol": tolerance, "max_iter": _ELASTIC_STEPS}
        estimator = linear_model.ElasticNet(penalty, l1_ratio=share, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # `converged` tells of it
        weights = estimator.fit(matrix, labels).coef_
    gradient = matrix.T @ (matrix @ weights - labels) + ridge * weights
    violation = np.where(
        weights == 0,
        np.maximum(np.abs(gradient) - l1, 0.0),
        np.abs(gradient + l1 * np.sign(weights)),
    )
    residual = violation.max() / (l1 + ridge)
    error = np.mean((weights - true) ** 2)
    return SparseFit(
        error=jnp.asarray(error),
        overlap=jnp.asarray(np.mean(weights * true)),
        support=jnp.asarray(np.mean(weights != 0)),
        test_error=jnp.asarray(error + float(system.noise)),
        train_error=jnp.asarray(np.mean((labels - matrix @ weights) ** 2)),
        residual=jnp.asarray(residual),
        converged=jnp.asarray(residual < 1e-3),
    )
