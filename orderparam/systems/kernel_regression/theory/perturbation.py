"""The equivalent kernel and the first correction to it: kernel regression when the ridge is large.

At high temperature the data act as a continuum, and the sum over samples becomes P times the integral over the input measure. The
corrections due to finite and random data form a series in v/T, where v is the posterior variance at a point.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.kernels.effective_ridge import learnability
from orderparam.systems.kernel_regression.model import KernelRegression, PoolRegression
from orderparam.systems.kernel_regression.theory.learning_curve import LearningCurve, held_out, ratio

# The first neglected order, in relative size, up to which a curve counts as valid.
_VALID = 0.1


class EquivalentKernelCurve(LearningCurve):
    """A learning curve from the expansion in v/T.

    fluctuation_ratio: v/T, the parameter of the expansion (posterior variance over ridge).
    valid:             whether the first neglected order, v/T or its square, is below 0.1.
    """

    fluctuation_ratio: Float[Array, ""]
    valid: Bool[Array, ""]


class PoolEquivalentKernelCurve(EquivalentKernelCurve):
    """The same on a pool, with the dependence on position.

    point_error: (pool,) squared error at every point, over all training sets (those that contain the point included).
    """

    point_error: Float[Array, "pool"]


def equivalent_kernel(system: KernelRegression) -> EquivalentKernelCurve:
    """Zeroth order: L_k = lambda_k / (lambda_k + T/P), error sum_k (1 - L_k)^2 Y_k, posterior variance (T/P) sum_k m_k L_k.

    (Silverman 1984; Sollich and Williams 2005.) Differences between data sets are neglected, and so is label noise in the
    predictor. The unresolved tail of the spectrum is added to the ridge T. Useless at small T: see `fluctuation_ratio`.
    """
    return _homogeneous(system, order=0)


def equivalent_kernel_corrected(system: KernelRegression) -> EquivalentKernelCurve:
    """First order in v/T, averaged over position: the equivalent kernel and the fluctuations between data sets.

        v = (T/P) sum_k m_k L_k,   E = E_0 + 2 (v/T) sum_k L_k (1 - L_k)^2 Y_k + (1/P) sum_k m_k L_k^2 (E_0 + s2)

    with E_0 and L_k of the equivalent kernel (Cohen, Malka and Ringel 2021, to order 1/T^2, with features of constant square). It
    is the expansion of the self-consistent theory in (P kappa - T)/T and overshoots where that is not small.
    """
    return _homogeneous(system, order=1)


def _homogeneous(system: KernelRegression, order: int) -> EquivalentKernelCurve:
    spectrum, n_train, noise = system.spectrum, system.n_train, system.noise
    ridge = system.temperature + spectrum.tail
    learned = learnability(spectrum.eigenvalues, ridge / n_train)
    dimension = spectrum.multiplicities @ learned
    small = order * dimension / n_train  # v/T

    lost = (1 - learned) ** 2 * spectrum.target_power
    zeroth = jnp.sum(lost) + spectrum.tail_power
    mean_shift = small * (learned @ lost)
    between_sets = order * (spectrum.multiplicities @ learned**2) / n_train * (zeroth + noise)
    error = zeroth + 2 * mean_shift + between_sets

    # The training error is (T / (ridge + v))^2 (error + s2), expanded to the same order.
    shrinkage = jnp.where(ridge > 0, ratio(system.temperature, ridge), 1.0)
    train = shrinkage**2 * (error + noise - 2 * small * (zeroth + noise))
    clean_train = shrinkage**2 * (error - 2 * small * zeroth)
    return EquivalentKernelCurve(
        test_error=held_out(error, clean_train, system.sampled_fraction),
        population_error=error,
        train_error=train,
        bias=zeroth + 2 * mean_shift,
        variance=between_sets,
        posterior_variance=ridge * dimension / n_train + spectrum.tail,
        effective_ridge=ridge * (1 + small),
        effective_dimension=dimension,
        target_learnability=ratio(
            (learned * (1 - small * (1 - learned))) @ spectrum.target_power, spectrum.total_power
        ),
        squared_discrepancy=ratio(train, system.temperature**2),
        fluctuation_ratio=dimension / n_train,
        valid=(dimension / n_train) ** (order + 1) < _VALID,
        residual=jnp.zeros_like(error),
        converged=jnp.ones_like(error, bool),
    )


def equivalent_kernel_on_pool(system: PoolRegression) -> PoolEquivalentKernelCurve:
    """First order in v/T with the exact dependence on position, for any distribution of the features, on a pool.

        C = (K^-1 + (P/T) mu)^-1,   v(x) = C(x, x),   D = f_0 - y,   f_0 the equivalent-kernel predictor, mu the pool's measure
        E f(x) = f_0(x) + (P/T^2) E_x' C(x, x') v(x') D(x'),   Var f(x) = (P/T^2) E_x' C(x, x')^2 (D(x')^2 + s2)

    (Cohen, Malka and Ringel 2021, to order 1/T^2 for a Poisson number of samples with mean P; derived for this package in this
    form.) Cost: one Cholesky factorisation of the pool's kernel.
    """
    size, n_train, temperature, noise = system.pool_size, system.n_train, system.temperature, system.noise
    targets = system.targets.reshape(size, -1)
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

    error = jnp.mean(point_error)
    train = jnp.mean(point_error + noise - 2 * local * (gap_squared + noise))
    clean_train = jnp.mean(point_error - 2 * local * gap_squared)
    small = jnp.mean(local)
    dimension = n_train * small
    return PoolEquivalentKernelCurve(
        test_error=held_out(error, clean_train, system.sampled_fraction),
        population_error=error,
        train_error=train,
        bias=error - jnp.mean(variance),
        variance=jnp.mean(variance),
        posterior_variance=temperature * small,
        effective_ridge=temperature * (1 + small),
        effective_dimension=dimension,
        target_learnability=ratio(jnp.sum((targets + gap + shift) * targets), jnp.sum(targets**2)),
        squared_discrepancy=ratio(train, temperature**2),
        fluctuation_ratio=small,
        valid=small**2 < _VALID,
        point_error=point_error,
        residual=jnp.zeros_like(error),
        converged=jnp.ones_like(error, bool),
    )
