"""The first correction to the equivalent kernel with its exact dependence on position, on a pool."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.verb import theory
from orderparam.kernels.effective_ridge import ratio
from orderparam.systems.kernel_regression.learning_curve import clean_train_error, held_out
from orderparam.systems.kernel_regression.pool.model import PoolRegression
from orderparam.systems.kernel_regression.spectrum.theory.equivalent_kernel import VALID, EquivalentKernelCurve


class PoolEquivalentKernelCurve(EquivalentKernelCurve):
    """The same on a pool, with the dependence on position.

    point_error: (pool,) squared error at every point, over all training sets (those that contain the point included). Where the
                 expansion falls below zero it is given as 0, and the curve is not `valid`.
    """

    point_error: Float[Array, "pool"]


def _needs_a_ridge(system: PoolRegression) -> None:
    if np.any(np.asarray(system.temperature) <= 0):
        raise ValueError(f"PoolRegression.temperature = {system.temperature}: an expansion in 1/T needs a temperature > 0")


@theory(check=_needs_a_ridge)
def equivalent_kernel_on_pool(system: PoolRegression) -> PoolEquivalentKernelCurve:
    """First order in v/T with the exact dependence on position, for any distribution of the features, on a pool.

        C = (K^-1 + (P/T) mu)^-1,   v(x) = C(x, x),   D = f_0 - y,   f_0 the equivalent-kernel predictor, mu the pool's measure
        E f(x) = f_0(x) + (P/T^2) E_x' C(x, x') v(x') D(x'),   Var f(x) = (P/T^2) E_x' C(x, x')^2 (D(x')^2 + s2)

    (Cohen, Malka and Ringel 2021, to order 1/T^2 for a Poisson number of samples with mean P; derived for this package in this
    form.) Train error and learnability are those of the ridge T + v(x), to the same order. Cost: two Cholesky factorisations of
    the pool's kernel. Raises `ValueError` at T = 0.
    """
    size, n_train, temperature, noise = system.pool_size, system.n_train, system.temperature, system.noise
    targets = system.columns
    level = size * temperature / n_train
    factor = jax.scipy.linalg.cho_factor(system.kernel + level * jnp.eye(size))
    # c = C/T. Every quantity below is free of a division by T.
    c = (size / n_train) * jax.scipy.linalg.cho_solve(factor, system.kernel)
    local = jnp.diag(c)
    gap = -level * jax.scipy.linalg.cho_solve(factor, targets)
    shift = (n_train / size) * c @ (local[:, None] * gap)
    gap_squared = jnp.sum(gap**2, axis=1)
    variance = (n_train / size) * c**2 @ (gap_squared + noise)
    point_error = gap_squared + 2 * jnp.sum(gap * shift, axis=1) + variance

    kept = jnp.maximum(point_error, 0.0)
    error = jnp.mean(kept)
    shrinkage = 1 / (1 + local)
    raised = jax.scipy.linalg.cho_factor(system.kernel + level * jnp.diag(1 + local))
    predicted = system.kernel @ jax.scipy.linalg.cho_solve(raised, targets)
    small = jnp.mean(local)
    dimension = n_train * small
    return PoolEquivalentKernelCurve(
        test_error=held_out(error, jnp.mean(clean_train_error(shrinkage, kept, noise)), system.sampled_fraction),
        population_error=error,
        train_error=jnp.mean(shrinkage**2 * (kept + noise)),
        bias=error - jnp.mean(variance),
        variance=jnp.mean(variance),
        posterior_variance=temperature * small,
        effective_ridge=temperature * (1 + small),
        effective_dimension=dimension,
        target_learnability=ratio(jnp.sum(predicted * targets), jnp.sum(targets**2)),
        squared_discrepancy=jnp.mean((shrinkage / temperature) ** 2 * (kept + noise)),
        fluctuation_ratio=small,
        valid=(small**2 < VALID) & jnp.all(point_error >= 0),
        point_error=kept,
        residual=jnp.zeros_like(error),
        converged=jnp.isfinite(error),
    )
