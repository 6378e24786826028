"""Kernel regression on random subsets of a finite pool of real data: which points will be predicted wrongly.

Every pool point is in the training set with probability p = P/M. Taking one point out (the cavity) leaves a Gaussian for the
prediction there, whose variance and bias depend on the point. Derived for this package in the spirit of Malzahn and Opper (2001);
not in the cited papers in this form.
"""

import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from orderparam.core.verb import theory
from orderparam.kernels.effective_ridge import effective_ridge, ratio
from orderparam.kernels.spectrum import Spectrum
from orderparam.solve.fixed_point import fixed_point
from orderparam.systems.kernel_regression.learning_curve import LearningCurve
from orderparam.systems.kernel_regression.pool.model import PoolRegression
from orderparam.systems.kernel_regression.pool.theory.self_consistent import held_in


class CavityCurve(LearningCurve):
    """Learning curve of the cavity theory, point by point.

    point_error:    (pool,) expected squared error at each point, over the training sets that do not contain it.
    point_variance: (pool,) posterior variance there, over the same training sets.
    """

    point_error: Float[Array, "pool"]
    point_variance: Float[Array, "pool"]


@theory
def cavity(system: PoolRegression) -> CavityCurve:
    """Held-out error of every point of the pool, averaged over random training sets.

    With p = P/M, the cavity variances V solve

        Lambda_x = p / (T + (1-p) V_x),   C = (K^-1 + diag Lambda)^-1,   V_x = 1 / (1/C_xx - Lambda_x)

    and the held-out errors e follow from one linear system,

        z_x = 1 - p V_x / (T + V_x),   h = (C Lambda y - y) / z,   A_xx' = (1 - delta_xx') C_xx'^2 / (z_x^2 z_x'^2 (T + V_x')^2)
        e = h^2 + p (1-p) A e + p s2 A 1

    test_error is the mean of e, train_error the mean of (T/(T+V_x))^2 (e_x + s2). For small p and a kernel that is the same
    everywhere this is the self-consistent theory. Still a few per cent low at small T and P. Cost: one Cholesky factorisation of
    the pool's kernel per iteration, some tens of iterations. `converged` is False, too, where the linear system has no solution
    e >= 0: the error grows without bound.
    """
    return site_dependent_cavity(system, system.spectrum, system.kernel, jnp.zeros(system.pool_size))


def site_dependent_cavity(
    system: PoolRegression,
    spectrum: Spectrum,
    kernel: Float[Array, "pool pool"],
    local: Float[Array, "pool"],
) -> CavityCurve:
    """`cavity` for a kernel matrix plus a diagonal one, `local`: variance that no other point tells anything about.

    The diagonal part is a ridge that depends on the point, T(x) = T + local(x), in the equations of the kernel that is left; the
    prediction error and variance of a point include it. `spectrum`: of `kernel`, from which the iteration starts.
    """
    size, temperature, noise = system.pool_size, system.temperature, system.noise
    fraction = system.sampled_fraction
    diagonal = jnp.diag(kernel)
    typical = effective_ridge(spectrum, system.n_train, temperature)
    homogeneous = typical.threshold * (spectrum.multiplicities @ typical.learnability)

    def inverse_precision(variance: Float[Array, "pool"], args: tuple) -> Float[Array, "pool"]:
        _, ridge, fraction = args
        return (ridge + (1 - fraction) * variance) / fraction  # 1/Lambda

    def inverse(variance: Float[Array, "pool"], args: tuple) -> Float[Array, "pool pool"]:
        factor = jnp.linalg.cholesky(args[0] + jnp.diag(inverse_precision(variance, args)))
        root = solve_triangular(factor, jnp.eye(size), lower=True)
        return root.T @ root  # G = (K + 1/Lambda)^-1

    def step(log_variance: Float[Array, "pool"], args: tuple) -> Float[Array, "pool"]:
        # C = 1/Lambda - G/Lambda^2 turns 1/(1/C_xx - Lambda_x) into (K G)_xx / G_xx: nothing cancels at small or large T.
        g = inverse(jnp.exp(log_variance), args)
        return jnp.log(jnp.sum(args[0] * g, axis=1) / jnp.diag(g))

    ridge = temperature + local
    args = (kernel, ridge, fraction)
    start = jnp.log(diagonal * homogeneous / jnp.mean(diagonal))
    solution = fixed_point(step, start, args, tolerance=1e-11, max_steps=200)
    learnable = jnp.exp(solution.value)
    scale = inverse_precision(learnable, args)
    g = inverse(learnable, args)

    targets = system.columns
    variance = learnable + local
    total = temperature + variance
    shrinkage = temperature / total
    z = 1 - fraction * learnable / total
    outside = -(scale / z)[:, None] * (g @ targets)  # mean of f - y over the training sets without the point
    coupling = (g * scale[:, None] * scale / (z[:, None] * z * total)) ** 2
    coupling = coupling - jnp.diag(jnp.diag(coupling))
    error = jnp.linalg.solve(
        jnp.eye(size) - fraction * (1 - fraction) * coupling,
        jnp.sum(outside**2, axis=1) + fraction * noise * jnp.sum(coupling, axis=1),
    )

    mean_gap = (1 - fraction * (1 - shrinkage))[:, None] * outside  # over all training sets
    population_error = jnp.mean(held_in(error, shrinkage, noise, fraction))
    bias = jnp.mean(jnp.sum(mean_gap**2, axis=1))
    return CavityCurve(
        test_error=jnp.mean(error),
        population_error=population_error,
        train_error=jnp.mean(shrinkage**2 * (error + noise)),
        bias=bias,
        variance=population_error - bias,
        posterior_variance=jnp.mean((1 - fraction + fraction * shrinkage) * variance),
        effective_ridge=1 / jnp.mean(1 / total),
        effective_dimension=system.n_train * jnp.mean(1 - shrinkage),
        target_learnability=ratio(jnp.sum((targets + mean_gap) * targets), jnp.sum(targets**2)),
        squared_discrepancy=jnp.mean((error + noise) / total**2),
        point_error=error,
        point_variance=variance,
        residual=solution.residual,
        converged=solution.converged & jnp.all(error >= 0),
    )
