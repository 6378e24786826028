"""scikit-learn's own estimators on drawn problems."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray
from sklearn import linear_model
from sklearn.exceptions import ConvergenceWarning

from orderparam.core.verb import experiment
from orderparam.systems.generalised_linear.elastic_net.model import ElasticNet
from orderparam.systems.generalised_linear.elastic_net.theory import SparseFit

_STEPS = 20_000


@experiment
def fitted_elastic_net(system: ElasticNet, key: PRNGKeyArray, *, tolerance: float = 1e-9) -> SparseFit:
    """Lasso, Ridge or ElasticNet of scikit-learn on one drawn problem. test_error is that of all new examples, exactly.

    residual: the largest violation of the conditions on the gradient, in units of the penalties. Raises `ValueError` where the
    number of samples rounds to nothing.
    """
    d, n = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if n < 1:
        raise ValueError(f"ElasticNet.sample_ratio = {float(system.sample_ratio):g}: leaves no sample at input_dim = {d}")
    weight_key, matrix_key, noise_key = jax.random.split(key, 3)
    true = np.asarray(system.prior.draw(weight_key, (d,)))
    matrix = np.asarray(jax.random.normal(matrix_key, (n, d))) / np.sqrt(d)
    labels = matrix @ true + np.sqrt(float(system.noise)) * np.asarray(jax.random.normal(noise_key, (n,)))
    l1, ridge = float(system.l1), float(system.ridge)
    if l1 == 0:
        estimator = linear_model.Ridge(alpha=ridge, fit_intercept=False)
    else:
        penalty, share = (l1 + ridge) / n, l1 / (l1 + ridge)
        options = {"fit_intercept": False, "tol": tolerance, "max_iter": _STEPS}
        estimator = linear_model.ElasticNet(penalty, l1_ratio=share, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said by `converged`
        weights = estimator.fit(matrix, labels).coef_
    gradient = matrix.T @ (matrix @ weights - labels) + ridge * weights
    violation = np.where(weights == 0, np.maximum(np.abs(gradient) - l1, 0.0), np.abs(gradient + l1 * np.sign(weights)))
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
