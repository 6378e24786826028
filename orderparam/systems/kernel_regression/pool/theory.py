"""Theories of training sets that are drawn from a pool: all points alike, the equivalent kernel,
and point by point.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from orderparam.core.verb import theory
from orderparam.kernels.effective_ridge import effective_ridge, learnability, ratio
from orderparam.kernels.spectrum import Spectrum
from orderparam.solve.fixed_point import fixed_point
from orderparam.solve.root import decreasing_root
from orderparam.systems.kernel_regression.learning_curve import (
    LearningCurve,
    clean_train_error,
    held_out,
)
from orderparam.systems.kernel_regression.pool.model import PoolRegression
from orderparam.systems.kernel_regression.spectrum.theory import VALID, EquivalentKernelCurve

# ------------------------------------------------------------------------------------------------
# The self-consistent theory for subsets of a finite pool, with all its points alike. Derived for this package.


@theory
def self_consistent_on_pool(system: PoolRegression) -> LearningCurve:
    """The self-consistent theory for subsets of a pool drawn without replacement, with all points
    alike.

    With p = P/M, D = sum_k m_k L_k, L_k = lambda_k / (lambda_k + kappa) and gamma = (1/P) sum_k m_k
    L_k^2,

        P = P T/R + D,   kappa = (p T + (1-p) R) / P,   z = 1 - p D/P,   q = (1-p) (gamma - p (D/P)^2) / z^2
        test_error e = [B / z^2 + s2 q/(1-p)] / (1 - q),   train_error = (T/R)^2 (e + s2)

    where R = T + V is the effective ridge and V the posterior variance outside the training set. It
    is the average of `cavity` over a pool whose points are all equivalent, at the cost of
    `self_consistent`, to which it reduces for p -> 0, and with which it agrees for any p at T = 0.
    Derived for this package, not in the cited papers.
    """
    spectrum, n_train, temperature, noise = (
        system.spectrum,
        system.n_train,
        system.temperature,
        system.noise,
    )
    fraction = system.sampled_fraction
    infinite = effective_ridge(spectrum, n_train, temperature)
    determined = infinite.threshold <= 0  # no ridge, and the data fix every mode: R = 0

    def excess(log_ridge: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        spectrum, n_train, temperature, fraction = args
        ridge = jnp.exp(log_ridge)
        threshold = (fraction * temperature + (1 - fraction) * ridge) / n_train
        dimension = (
            spectrum.multiplicities @ learnability(spectrum.eigenvalues, threshold)
            + spectrum.tail / threshold
        )
        return jnp.log(temperature * jnp.exp(-log_ridge) + dimension / n_train)

    # P kappa of the infinite population bounds R from below, and (p T + (1-p) R) from above.
    lower = jnp.where(determined, 1.0, n_train * infinite.threshold)
    upper = jnp.where(determined, 1.0, (lower - fraction * temperature) / (1 - fraction))
    root = decreasing_root(
        excess,
        jnp.log(lower) - 1e-6,
        jnp.log(upper) + 1e-6,
        (spectrum, n_train, temperature, fraction),
    )
    ridge = jnp.where(determined, 0.0, jnp.exp(root.value))

    threshold = (fraction * temperature + (1 - fraction) * ridge) / n_train
    learned = learnability(spectrum.eigenvalues, threshold)
    dimension = spectrum.multiplicities @ learned + ratio(spectrum.tail, threshold)
    shrinkage = 1 - dimension / n_train  # T/R
    z = 1 - fraction * dimension / n_train
    spread = spectrum.multiplicities @ learned**2 / n_train
    q = (1 - fraction) * (spread - fraction * (dimension / n_train) ** 2) / z**2
    bias = (1 - learned) ** 2 @ spectrum.target_power + spectrum.tail_power
    error = ratio(bias / z**2 + noise * q / (1 - fraction), 1 - q)
    population_error = held_in(error, shrinkage, noise, fraction)
    return LearningCurve(
        test_error=error,
        population_error=population_error,
        train_error=shrinkage**2 * (error + noise),
        bias=bias,
        variance=population_error - bias,
        posterior_variance=(1 - fraction + fraction * shrinkage) * (ridge - temperature),
        effective_ridge=ridge,
        effective_dimension=dimension,
        target_learnability=ratio(learned @ spectrum.target_power, spectrum.total_power),
        squared_discrepancy=ratio(error + noise, ridge**2),
        residual=jnp.where(determined, 0.0, root.residual),
        converged=jnp.where(determined, True, root.converged),
    )


def held_in(
    error: Float[Array, "*pool"],
    shrinkage: Float[Array, "*pool"],
    noise: float | Float[Array, ""],
    fraction: Float[Array, ""],
) -> Float[Array, "*pool"]:
    """Error over all points, from that outside the training set, to which a share p of the points
    belongs.
    """
    return (1 - fraction) * error + fraction * clean_train_error(shrinkage, error, noise)


# ------------------------------------------------------------------------------------------------
# The first correction to the equivalent kernel with its exact dependence on position, on a pool.


class PoolEquivalentKernelCurve(EquivalentKernelCurve):
    """The same on a pool, with the dependence on position.

    point_error: (pool,) squared error at every point, over all training sets (those that contain
    the point included). Where the
                 expansion falls below zero it is given as 0, and the curve is not `valid`.
    """

    point_error: Float[Array, "pool"]


def _needs_a_ridge(system: PoolRegression) -> None:
    if np.any(np.asarray(system.temperature) <= 0):
        raise ValueError(
            f"PoolRegression.temperature = {system.temperature}: an expansion in 1/T needs a temperature > 0"
        )


@theory(check=_needs_a_ridge)
def equivalent_kernel_on_pool(system: PoolRegression) -> PoolEquivalentKernelCurve:
    """First order in v/T with the exact dependence on position, for any distribution of the
    features, on a pool.

        C = (K^-1 + (P/T) mu)^-1,   v(x) = C(x, x),   D = f_0 - y,   f_0 the equivalent-kernel predictor, mu the pool's measure
        E f(x) = f_0(x) + (P/T^2) E_x' C(x, x') v(x') D(x'),   Var f(x) = (P/T^2) E_x' C(x, x')^2 (D(x')^2 + s2)

    (Cohen, Malka and Ringel 2021, to order 1/T^2 for a Poisson number of samples with mean P;
    derived for this package in this form.) Train error and learnability are those of the ridge T +
    v(x), to the same order. Cost: two Cholesky factorisations of the pool's kernel. Raises
    `ValueError` at T = 0.
    """
    size, n_train, temperature, noise = (
        system.pool_size,
        system.n_train,
        system.temperature,
        system.noise,
    )
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
        test_error=held_out(
            error, jnp.mean(clean_train_error(shrinkage, kept, noise)), system.sampled_fraction
        ),
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


# ------------------------------------------------------------------------------------------------
# Kernel regression on random subsets of a finite pool of real data: which points will be predicted wrongly.
#
# Every pool point is in the training set with probability p = P/M. Taking one point out (the
# cavity) leaves a Gaussian for the prediction there, whose variance and bias depend on the point.
# Derived for this package in the spirit of Malzahn and Opper (2001); not in the cited papers in
# this form.


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

    test_error is the mean of e, train_error the mean of (T/(T+V_x))^2 (e_x + s2). For small p and a
    kernel that is the same everywhere this is the self-consistent theory. Still a few per cent low
    at small T and P. Cost: one Cholesky factorisation of the pool's kernel per iteration, some tens
    of iterations. `converged` is False, too, where the linear system has no solution e >= 0: the
    error grows without bound.
    """
    return site_dependent_cavity(
        system, system.spectrum, system.kernel, jnp.zeros(system.pool_size)
    )


def site_dependent_cavity(
    system: PoolRegression,
    spectrum: Spectrum,
    kernel: Float[Array, "pool pool"],
    local: Float[Array, "pool"],
) -> CavityCurve:
    """`cavity` for a kernel matrix plus a diagonal one, `local`: variance that no other point tells
    anything about.

    The diagonal part is a ridge that depends on the point, T(x) = T + local(x), in the equations of
    the kernel that is left; the prediction error and variance of a point include it. `spectrum`: of
    `kernel`, from which the iteration starts.
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
        # C = 1/Lambda - G/Lambda^2 turns 1/(1/C_xx - Lambda_x) into (K G)_xx / G_xx: nothing
        # cancels at small or large T.
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
    # mean of f - y over the training sets without the point
    outside = -(scale / z)[:, None] * (g @ targets)
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
