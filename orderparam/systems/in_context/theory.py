r"""Theory of in-context learning: errors of linear attention for any ridge, task distribution and
test distribution.

The layer is ridge regression on the d^2 quadratic features x (x) h. Their covariance is $(1/d)\, 1
\otimes B$ with B = R + x. Here R = (1/k) sum_j w_j w_j^T is the second moment of the training
tasks, and x = (tr R/d + rho)/alpha is the variance that the finite length of a context adds. The
theory has two equations of the same form. The equation for the sequences gives the effective ridge
nu. The equation for the tasks gives the effective ridge theta, with which traces of (R + y)^{-1} at
y = x + nu become sums over the eigenvalues of the covariance C of the tasks.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.kernels.effective_ridge import effective_ridge, ratio
from orderparam.kernels.spectrum import Spectrum
from orderparam.solve.root import decreasing_root
from orderparam.systems.in_context.model import LinearAttention

Scalar = Float[Array, ""]


class InContextErrors(Result):
    """Errors of linear attention in the limit of large dimension.

    Fields:
        icl_error: mean squared error on fresh tasks: in-context learning.
        idg_error: mean squared error on the training tasks, in new contexts.
        train_error: mean squared error on the training sequences.
        task_gap: icl_error - idg_error, which measures how much the layer remembers the training
            tasks.
        effective_ridge: nu, the effective ridge of the regression on the features.
        residual: largest relative error of the two equations.
        converged: whether both equations were solved.
    """

    icl_error: Scalar
    idg_error: Scalar
    train_error: Scalar
    task_gap: Scalar
    effective_ridge: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


class ContextRidge(Result):
    """Error of the best estimate of a fresh task from one context.

    Fields:
        icl_error: mean squared error on fresh tasks.
        residual: relative error of the equation.
        converged: whether the equation was solved.
    """

    icl_error: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


@theory
def linear_attention(system: LinearAttention) -> InContextErrors:
    r"""Errors of linear attention on fresh tasks and on the training tasks.

    Means $\langle \cdot \rangle$ are over the directions, along which the training tasks have the
    variances $c_i$. With $\alpha$ `context_ratio`, $\kappa$ `task_ratio`, $\tau$ `sample_ratio`,
    $\rho$ `noise`, $\lambda$ `ridge`, $x = (\langle c \rangle + \rho)/\alpha$ and $y = x + \nu$ the
    tasks give

    $$ 1 = \frac{y}{\theta} + \frac1\kappa \langle L \rangle, \qquad
        L_i = \frac{c_i}{c_i + \theta}, \qquad
       q = 1 - L, \qquad \gamma = \frac1\kappa \langle L^2 \rangle $$

    for $\theta$, and the sequences $\tau (1 - \lambda/\nu) = 1 - \frac{\nu}{y} \langle q \rangle$
    for $\nu$ `effective_ridge` ($\nu = 0$ for $\lambda = 0$, $\tau > 1$). Let

    $$ g = \frac{\langle L^2 \rangle (1 - s) + s \langle L - L^2 \rangle}{1 - \gamma}, \quad
       s = \frac{\langle L \rangle}{\kappa}, \quad
       T(M) = \left\langle M q \Big[ \frac{x}{y^2} + \frac{\nu L}{\theta y (1 - \gamma)} \Big]
       \right\rangle , \quad E_\nu = \rho + y \langle L \rangle - \nu g . $$

    On fresh tasks with variances $c'$, label noise $\rho'$ and context ratio $\alpha'$, with $x' =
    (\langle c' \rangle + \rho')/\alpha'$, the error is

    $$ \mathrm{icl} = \rho' + \langle c' (1 - 2L + L^2) \rangle + \frac{\langle L q \rangle
       \langle c' L q \rangle}{\kappa (1 - \gamma)} + x' g + \frac{E_\nu\, T(c' + x')}{\tau -
       \mathrm{df}_2} , $$

    where $\tau - \mathrm{df}_2 = \tau\lambda/\nu + \nu T(1)$. For the training tasks, with $x' =
    (\langle c \rangle + \rho')/\alpha'$,

    $$ \mathrm{idg} = \rho' + y \langle L \rangle + (x' - y) g + E_\nu \frac{\mathrm{df}_2 + (x' -
       x) T(1)}{\tau - \mathrm{df}_2} , $$

    and the training error is $(\lambda/\nu)^2\, \tau E_\nu/(\tau - \mathrm{df}_2)$.

    Returns:
        The limit of large dimension d. Corrections are of order 1/d and larger for smaller ridges:
        with l = d, n = 2 d^2, rho = 0.1 and k between d/2 and 4 d, the errors at d = 20 are larger
        by 3 to 5 % with a ridge of 0.3, and by 18 to 26 % without a ridge.

    Accuracy: 1e-10 relative. Without a ridge the errors are infinite at `sample_ratio` 1.

    Source: derived here; the case of isotropic tasks with no ridge is that of Lu, Letey,
    Zavatone-Veth, Maiti, Pehlevan (2025), equations of their result 1 and 2.

    >>> found = linear_attention(LinearAttention(1.0, 0.5, 2.0, noise=0.01))
    >>> round(float(found.icl_error), 6), round(float(found.idg_error), 6)
    (1.233993, 0.609561)
    """
    variances, fresh = system.task_law
    test_context, test_noise = system.test_law
    noise, per_sample, per_task = system.noise, 1 / system.sample_ratio, 1 / system.task_ratio
    size = jnp.mean(variances)
    blur = (size + noise) / system.context_ratio
    nu, root, residual, converged = _sequences(system, variances, blur)
    argument = blur + nu
    tasks = _tasks(variances, per_task, argument)
    learned, left = tasks.learnability, 1 - tasks.learnability
    threshold, rest = tasks.threshold, tasks.complement
    mean, square = jnp.mean(learned), jnp.mean(learned**2)
    share = per_task * mean

    # traces of Gamma = R (R + y)^-1 and of (B + nu)^-2, in a form without cancellations
    gamma_square = (square * (1 - share) + share * jnp.mean(learned * left)) / rest
    weight = left * (blur / argument**2 + nu * learned / (threshold * argument * rest))
    trace = jnp.mean(weight)
    unexplained = noise + argument * mean - nu * gamma_square
    unused = root + per_sample * nu * trace  # 1 - df2/tau
    noisy = ratio(per_sample * unexplained, unused)

    blur_fresh = (jnp.mean(fresh) + test_noise) / test_context
    spread = per_task * jnp.mean(learned * left) * jnp.mean(fresh * learned * left) / rest
    icl = test_noise + jnp.mean(fresh * left**2) + spread + blur_fresh * gamma_square
    icl += noisy * jnp.mean((fresh + blur_fresh) * weight)

    blur_known = (size + test_noise) / test_context
    df2 = 1 - (nu / argument) * jnp.mean(left) - nu * trace
    idg = test_noise + argument * mean + (blur_known - argument) * gamma_square
    idg += noisy * (df2 + (blur_known - blur) * trace)
    train = root**2 * ratio(unexplained, unused)
    residual = jnp.maximum(residual, tasks.residual)
    converged = converged & tasks.converged
    return InContextErrors(
        icl_error=icl,
        idg_error=idg,
        train_error=train,
        task_gap=icl - idg,
        effective_ridge=nu,
        residual=residual,
        converged=converged,
    )


@theory
def context_ridge(system: LinearAttention) -> ContextRidge:
    r"""Error of Bayes-optimal regression in one context, for Gaussian fresh tasks of known
    variances.

    The posterior mean under the prior $w \sim N(0, \mathrm{diag}(c'))$ is ridge regression; its
    error is $\alpha' K$ with

    $$ \alpha' = \frac{\rho'}{K} + \left\langle \frac{c'}{c' + K} \right\rangle $$

    at `test_context_ratio` $\alpha'$ and `test_noise` $\rho'$ (where these are not given, the
    values of training are taken). The mean is over the variances $c'$ of fresh tasks. No estimate
    from the context alone is better on fresh tasks. `task_ratio`, `sample_ratio` and `ridge` are
    not used.

    Returns:
        The limit of large dimension.

    Accuracy: 1e-12 relative.

    Source: the Bayes-optimal ridge as in Lu et al. (2025); the equation is that of Sollich (1999).

    >>> round(float(context_ridge(LinearAttention(1.0, 1.0, 1.0, noise=0.1)).icl_error), 6)
    0.370156
    """
    context, noise = system.test_law
    fresh = system.task_law[1]
    solved = effective_ridge(_directions(fresh), context, noise)
    return ContextRidge(
        icl_error=context * solved.threshold, residual=solved.residual, converged=solved.converged
    )


def _directions(variances: Array, weight: Any = 1.0) -> Spectrum:
    """The variances as a spectrum whose multiplicities sum to `weight`."""
    share = weight * jnp.ones_like(variances) / variances.size
    return Spectrum(variances, jnp.zeros_like(variances), share)


def _tasks(variances: Array, per_task: Any, argument: Any) -> Any:
    """Effective ridge theta of the tasks, and the sums that depend on it. It is the effective ridge
    of a spectrum with multiplicities 1/kappa for one sample."""
    return effective_ridge(_directions(variances, per_task), 1.0, argument)


def _sequences(
    system: LinearAttention, variances: Array, blur: Scalar
) -> tuple[Scalar, Scalar, Scalar, Bool[Array, ""]]:
    """Effective ridge nu, ratio lambda/nu, residual of the equation 1 = lambda/nu + df1(nu)/tau,
    and whether this equation was solved."""
    ridge, per_sample, per_task = system.ridge, 1 / system.sample_ratio, 1 / system.task_ratio
    determined = (ridge <= 0) & (per_sample <= 1)
    # Where nu = 0 is known, an equation with ridge 1 is solved in place of the true one, and its
    # solution is not used.
    solved_ridge = jnp.where(determined, 1.0, ridge)

    def excess(log_nu: Scalar, args: tuple) -> Scalar:
        variances, per_task, per_sample, ridge, blur = args
        nu = jnp.exp(log_nu)
        left = 1 - _tasks(variances, per_task, blur + nu).learnability
        df1 = 1 - nu / (blur + nu) * jnp.mean(left)
        return jnp.log(ridge / nu + per_sample * df1)

    args = (variances, per_task, per_sample, solved_ridge, blur)
    lower = jnp.log(jnp.maximum(solved_ridge, blur * (per_sample - 1)))
    upper = jnp.log(solved_ridge + per_sample * (jnp.mean(variances) + blur))
    root = decreasing_root(excess, lower - 1e-6, upper + 1e-6, args)
    # Without a ridge and with enough sequences nu is 0. The expression here is nu to first order in
    # the ridge, so that its derivative with respect to the ridge is correct.
    spare = jnp.where(determined & (per_sample < 1), 1 - per_sample, 1.0)
    nu = jnp.where(determined, ridge / spare, jnp.exp(root.value))
    left = 1 - _tasks(variances, per_task, blur + nu).learnability
    df1 = 1 - nu / (blur + nu) * jnp.mean(left)
    share = jnp.where(determined, 1 - per_sample * df1, ridge / jnp.where(determined, 1.0, nu))
    residual = jnp.where(determined, 0.0, root.residual)
    return nu, share, residual, determined | root.converged


# ------------------------------------------------------------------------------------------------
# Exact second moments of (h, s) at any dimension and context length. They give the error of any
# matrix Gamma without a test set.
#
# For a task w, with v = |w|^2/d + rho,
#
#     E h = w,    E s = v,    E h h^T = (1 + 1/l) w w^T + (d/l) v 1,
#     E h s = (1 + 2/l) v w,    E s^2 = (1 + 2/l) v^2.
#
# For |w|^2 = d the last moment is (1 + rho)^2 (1 + 2/l), not 1 + rho^2 (derived here).


class TaskMoments(eqx.Module):
    """Averages over a law of tasks and their contexts.

    labels: E y^2, the second moment of the label of the query.
    cross: E w (h, s)^T, the correlation of the task with the features.
    second: E (h, s) (h, s)^T, the second moment of the features.
    """

    labels: Float[Array, ""]
    cross: Float[Array, "input feature"]
    second: Float[Array, "feature feature"]


def mean_error(gamma: Float[Array, "input feature"], law: TaskMoments) -> Float[Array, ""]:
    """E (y - x^T Gamma (h, s))^2, averaged over tasks, contexts and queries."""
    explained = 2 * jnp.sum(gamma * law.cross) - jnp.sum(gamma @ law.second * gamma)
    return law.labels - explained / len(gamma)


@eqx.filter_jit
def moments_of(tasks: Float[Array, "task input"], noise: Any, context: Any) -> TaskMoments:
    """Moments of the given tasks, which have equal weights."""
    dimension = tasks.shape[1]
    variance = jnp.sum(tasks**2, axis=1) / dimension + noise
    return _moments(
        tasks.T @ tasks / len(tasks),
        jnp.mean(variance[:, None] * tasks, axis=0),
        jnp.mean(variance),
        jnp.mean(variance**2),
        context,
    )


@eqx.filter_jit
def fresh_moments(variances: Float[Array, "input"], noise: Any, context: Any) -> TaskMoments:
    """Moments of tasks C^(1/2) u with u uniform on the sphere |u|^2 = d."""
    dimension = len(variances)
    size = jnp.mean(variances)
    # E u_i^2 u_j^2 = d (1 + 2 delta_ij)/(d + 2) on the sphere
    scatter = 2 * (jnp.mean(variances**2) - size**2) / (dimension + 2)
    variance = size + noise
    none = jnp.zeros(dimension)
    return _moments(jnp.diag(variances), none, variance, variance**2 + scatter, context)


def _moments(second: Array, mixed: Array, variance: Any, square: Any, context: Any) -> TaskMoments:
    """`TaskMoments` from the averages `second` = E w w^T, `mixed` = E v w, `variance` = E v and
    `square` = E v^2 over the tasks."""
    dimension = len(second)
    more = 1 + 2 / context
    hh = (1 + 1 / context) * second + dimension / context * variance * jnp.eye(dimension)
    hs = more * mixed
    rows = jnp.concatenate([hh, hs[:, None]], axis=1)
    last = jnp.append(hs, more * square)
    return TaskMoments(
        variance,
        jnp.concatenate([second, mixed[:, None]], axis=1),
        jnp.concatenate([rows, last[None]], axis=0),
    )
