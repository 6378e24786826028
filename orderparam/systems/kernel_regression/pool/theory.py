"""Theories of regression on training sets that are drawn from a pool: the self-consistent theory
for statistically equivalent points, the expansion to first order in 1/T, and the cavity theory,
which gives the error of every point.
"""

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from orderparam.core.needs import above
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
from orderparam.systems.kernel_regression.spectrum.equivalent_kernel import (
    VALID,
    EquivalentKernelCurve,
)

# ------------------------------------------------------------------------------------------------
# The self-consistent theory for subsets of a finite pool whose points are statistically equivalent.
# Derived for this package.


@theory
def self_consistent_on_pool(system: PoolRegression) -> LearningCurve:
    r"""Learning curve on subsets of a pool that are drawn without replacement, in the
    self-consistent theory for statistically equivalent points.

    The pool has M points, and the training set holds the fraction p = P/M of them (P = `n_train`).
    With $L_k = \lambda_k / (\lambda_k + \kappa)$, $D = \sum_k m_k L_k$ (`effective_dimension`) and
    $\gamma = \frac1P \sum_k m_k L_k^2$,

    $$ P = \frac{P T}{R} + D, \qquad \kappa = \frac{p T + (1 - p) R}{P}, \qquad
       z = 1 - \frac{p D}{P} $$

    $$ q = \frac{(1 - p) (\gamma - p D^2/P^2)}{z^2}, \qquad
       E = \frac{B / z^2 + s\, q / (1 - p)}{1 - q}, \qquad
       E_{\mathrm{train}} = \Big( \frac{T}{R} \Big)^2 (E + s) $$

    with T the `temperature`, s the label `noise`, $B = \sum_k (1 - L_k)^2 Y_k$, E the `test_error`
    and R = T + V the `effective_ridge`, V being the posterior variance outside the training set.
    This is the average of `cavity` over a pool of equivalent points, at the cost of
    `self_consistent`, to which it reduces for p -> 0, and at T = 0 for every p.

    Accuracy: the equation is solved to rounding; points of real pools are not equivalent, see
    `cavity`.

    Source: derived here.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(12, 3))
    >>> pool = PoolRegression.from_kernel(np.exp(x @ x.T / 3), x[:, 0], n_train=6, temperature=0.5)
    >>> round(float(self_consistent_on_pool(pool).test_error), 6)
    0.164788
    """
    spectrum, n_train, temperature, noise = (
        system.spectrum,
        system.n_train,
        system.temperature,
        system.noise,
    )
    fraction = system.sampled_fraction
    infinite = effective_ridge(spectrum, n_train, temperature)
    determined = infinite.threshold <= 0  # without a ridge the data determine every mode, and R = 0

    def excess(log_ridge: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        spectrum, n_train, temperature, fraction = args
        ridge = jnp.exp(log_ridge)
        threshold = (fraction * temperature + (1 - fraction) * ridge) / n_train
        dimension = (
            spectrum.multiplicities @ learnability(spectrum.eigenvalues, threshold)
            + spectrum.tail / threshold
        )
        return jnp.log(temperature * jnp.exp(-log_ridge) + dimension / n_train)

    # P kappa of the infinite population is a lower bound of R, and an upper bound of p T + (1 - p)
    # R.
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
    # `spread` is gamma; drawing without replacement reduces it by p (D/P)^2.
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
    """Error over all points of the pool, from the error outside the training set.

    The training set holds the fraction p (`fraction`) of the points.
    """
    return (1 - fraction) * error + fraction * clean_train_error(shrinkage, error, noise)


# ------------------------------------------------------------------------------------------------
# The first correction to the equivalent kernel with its exact dependence on position, on a pool.


class PoolEquivalentKernelCurve(EquivalentKernelCurve):
    """One point of a learning curve on a pool from the expansion in v/T, with its dependence on
    position.

    Fields:
        point_error: squared error at every point of the pool, averaged over all training sets,
            including those that contain the point. Where the expansion is negative the field is 0
            and `valid` is False.
    """

    point_error: Float[Array, "pool"]


@theory(needs={"temperature": above(0, why="this is an expansion in 1/T")})
def equivalent_kernel_on_pool(system: PoolRegression) -> PoolEquivalentKernelCurve:
    r"""Learning curve on a pool to first order in v/T with its dependence on position, for features
    of any distribution.

    $$ C = \Big( K^{-1} + \frac PT \mu \Big)^{-1}, \qquad v(x) = C(x, x), \qquad D = f_0 - y $$

    $$ E f(x) = f_0(x) + \frac{P}{T^2} E_{x'} C(x, x')\, v(x')\, D(x'), \qquad
       \mathrm{Var} f(x) = \frac{P}{T^2} E_{x'} C(x, x')^2 (D(x')^2 + s) $$

    with $f_0$ the predictor of the equivalent kernel, $\mu$ the uniform measure over the pool, P =
    `n_train`, T = `temperature` and s the label `noise`. `train_error` and `target_learnability`
    are computed with the ridge T + v(x), to first order.

    Raises:
        ValueError: for a temperature of 0.

    Accuracy: relative error of order (v/T)^2; `valid` says whether that is below 0.1.

    Cost: two Cholesky factorisations of the pool's kernel.

    Source: Cohen, Malka, Ringel (2021), to order 1/T^2 for a Poisson number of samples of mean P;
    in this form derived here.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(12, 3))
    >>> pool = PoolRegression.from_kernel(np.exp(x @ x.T / 3), x[:, 0], n_train=6, temperature=20.0)
    >>> curve = equivalent_kernel_on_pool(pool)
    >>> round(float(curve.test_error), 6), bool(curve.valid)
    (1.165764, True)
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
    # The learnability of the ridge T + v(x), which agrees to first order in v/T.
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
# Kernel regression on random subsets of a finite pool of real data: the error of every single
# point.
#
# Every point of the pool is in the training set with probability p = P/M. Consider the training
# sets that do not contain a given point (the cavity). Over these sets the prediction at the point
# is Gaussian, with a variance and a bias that depend on the point. Derived for this package in the
# spirit of Malzahn and Opper (2001); not in the cited papers in this form.


class CavityCurve(LearningCurve):
    """One point of the learning curve of the cavity theory, with the error of every point of the
    pool.

    Fields:
        point_error: expected squared error at each point, over the training sets that do not
            contain it.
        point_variance: posterior variance at each point, over these training sets.
    """

    point_error: Float[Array, "pool"]
    point_variance: Float[Array, "pool"]


@theory
def cavity(system: PoolRegression) -> CavityCurve:
    r"""Held-out error of every point of a pool, averaged over random training sets.

    With p = P/M the fraction of the M points that is in the training set (P = `n_train`), the
    cavity variances $V_x$ solve

    $$ \Lambda_x = \frac{p}{T + (1 - p) V_x}, \qquad C = (K^{-1} + \mathrm{diag}\, \Lambda)^{-1},
       \qquad V_x = \frac{1}{1/C_{xx} - \Lambda_x} $$

    and the held-out errors e follow from one linear system,

    $$ z_x = 1 - \frac{p V_x}{T + V_x}, \qquad h = \frac{C \Lambda y - y}{z}, \qquad
       A_{xx'} = \frac{(1 - \delta_{xx'})\, C_{xx'}^2}{z_x^2 z_{x'}^2 (T + V_{x'})^2} $$

    $$ e = h^2 + p (1 - p) A e + p\, s\, A 1 $$

    with T the `temperature` and s the label `noise`. `point_error` is e, `point_variance` is V,
    `test_error` the mean of e, and `train_error` the mean of $(T/(T + V_x))^2 (e_x + s)$. For small
    p and a homogeneous kernel this is `self_consistent`.

    Returns:
        `CavityCurve`. `converged` is False also where the linear system has no solution e >= 0,
        because the error grows without bound there.

    Accuracy: the error is a few per cent too low at small T and P.

    Cost: one Cholesky factorisation of the pool's kernel in each iteration, some tens of
    iterations.

    Source: derived here, in the spirit of Malzahn, Opper (2001).

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(12, 3))
    >>> pool = PoolRegression.from_kernel(np.exp(x @ x.T / 3), x[:, 0], n_train=6, temperature=0.5)
    >>> round(float(cavity(pool).test_error), 6)
    0.215498
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
    """Solution of the equations of `cavity` for a kernel matrix plus a diagonal one.

    The diagonal part, `local`, is prior variance at a point about which the other points give no
    information. In the equations of the remaining kernel it acts as a ridge that depends on the
    point, T(x) = T + local(x). It is included in the error and the variance at a point.

    Args:
        spectrum: spectrum of `kernel`, from which the iteration starts.
        kernel: the kernel matrix without its diagonal part.
        local: the diagonal part.
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
    # C Lambda y - y is the mean deviation over all training sets. Over the sets without the point
    # the deviation is larger by the factor 1/z.
    z = 1 - fraction * learnable / total
    # mean of f - y over the training sets without the point
    outside = -(scale / z)[:, None] * (g @ targets)
    # The matrix A: whether a point is in the training set is random, and this randomness times the
    # error at the point changes the prediction at all other points.
    coupling = (g * scale[:, None] * scale / (z[:, None] * z * total)) ** 2
    # a difference would leave the rounding error of the diagonal, which is large at few examples
    coupling = jnp.where(jnp.eye(size, dtype=bool), 0.0, coupling)
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
