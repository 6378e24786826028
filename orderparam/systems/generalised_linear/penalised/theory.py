"""State evolution of minimisers with l1 and l2 penalties: any convex loss, and least squares."""

from typing import Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.custom_batching import sequential_vmap
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float

from orderparam.channels import Fields
from orderparam.core.late import minimize_scalar
from orderparam.core.needs import iteration
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.tail import hazard_excess
from orderparam.losses import ChannelErrors
from orderparam.priors import Prior
from orderparam.solve.fixed_point import fixed_point
from orderparam.solve.secant import secant_fixed_point
from orderparam.systems.generalised_linear.penalised.model import ElasticNet, PenalisedFit

# ------------------------------------------------------------------------------------------------
# The effect of l1 and l2 penalties on weights that are observed with Gaussian noise.

Scalar = Float[Array, ""]


class Shrunk(NamedTuple):
    """Averages over the penalised weights.

    Fields:
        error: E (w - w0)^2.
        overlap: E w w0.
        power: E w^2.
        support: P(w != 0).
        response: E dw/db.
    """

    error: Scalar
    overlap: Scalar
    power: Scalar
    support: Scalar
    response: Scalar


def shrunk(
    prior: Prior,
    alignment: Scalar,
    power: Scalar,
    stiffness: Scalar,
    l1: Scalar | float,
    ridge: Scalar | float,
) -> Shrunk:
    """Averages of w = sign(b) max(|b| - l1, 0) / (stiffness + ridge), with b = alignment w0 +
    sqrt(power) z and w0 from the prior.

    b is a mixture of Gaussians. On either side of zero, w is proportional to max(y, 0), where y is
    Gaussian with variance 1, and its mean u is the mean distance of b from the threshold in units
    of the standard deviation of b. Then

        P(y > 0) = Phi(u),    E max(y, 0) = Phi(u) e,    E max(y, 0)^2 = Phi(u) (1 + u e),
        e = u + phi(u) / Phi(u).
    """
    shares, means, variances = prior.components
    centre, total = alignment * means, alignment**2 * variances + power
    spread, scale = jnp.sqrt(total), 1 / (stiffness + ridge)
    slope = alignment * variances / total  # slope of E[w0 | b]
    side = jnp.asarray([[1.0], [-1.0]])
    u = (side * centre - l1) / spread
    beyond, excess = norm.cdf(u), hazard_excess(u)
    mean, square = beyond * excess, beyond * (1 + u * excess)
    support = jnp.sum(shares * beyond)
    square_of_found = jnp.sum(shares * scale**2 * total * square)
    # E w w0, where the mean of w0 given b is means + slope (b - centre). Here side (b -
    # centre) = spread (y - u).
    product = jnp.sum(
        shares * scale * spread * (side * means * mean + slope * spread * (square - u * mean))
    )
    missed = square_of_found - 2 * product + prior.power
    return Shrunk(missed, product, square_of_found, support, support * scale)


# ------------------------------------------------------------------------------------------------
# State evolution of penalised losses: the overlap m of the minimiser with the weights, its power q
# and its response V.
#
#     A = alpha E(-dg/domega),  mh = alpha E g dln Z/dM,  qh = alpha E g^2,
#     g = (prox(y, omega) - omega) / V,   b = mh w0 + sqrt(qh) z,
#     w = sign(b) max(|b| - l1, 0) / (A + ridge),  V = P(|b| > l1) / (A + ridge).
#
# A convex problem has one solution, and so have these equations. They are exact as d grows
# (Thrampoulidis, Abbasi, Hassibi 2018; Aubin, Krzakala, Lu, Zdeborová 2020; Loureiro, Gerbelot et
# al. 2021).


class Fit(Result):
    """A penalised fit: its weights and its errors.

    Fields:
        teacher_overlap: m = w.w0/d.
        self_overlap: q = |w|^2/d.
        support: fraction of weights that are not zero.
        error: |w - w0|^2/d (no factor 1/2).
        test_error: mean of (y - f)^2 over new examples, noise included (no factor 1/2).
        train_error: mean of (y - f)^2 over the training examples.
        test_loss: mean of the loss over new examples.
        train_loss: mean of the loss over the training examples.
        classification_error: P(sign f != y) of new examples; NaN for real labels.
        residual: last change of the iteration; in an experiment, violation of the conditions on the
            gradient in units of the penalties (NaN where the loss has no gradient).
        converged: whether the residual is below the tolerance.
    """

    teacher_overlap: Scalar
    self_overlap: Scalar
    support: Scalar
    error: Scalar
    test_error: Scalar
    train_error: Scalar
    test_loss: Scalar
    train_loss: Scalar
    classification_error: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


class FitTheory(Fit):
    """State evolution of a penalised fit.

    Fields:
        response: V, the response of an example's prediction to its own label.
    """

    response: Scalar


class BestPenalty(Result):
    """Penalty with the lowest error.

    Fields:
        penalty: the best value.
        least_error: the lowest error: the classification error for labels that are signs, the test
            error otherwise.
    """

    penalty: Scalar
    least_error: Scalar


class PenalisedOrder(NamedTuple):
    """Unknowns of the iteration: m / sqrt(q rho), ln q and ln V."""

    cosine: Scalar
    log_power: Scalar
    log_response: Scalar


@theory(differentiable=False, needs=iteration("damping", "max_steps"))
def penalised_fit(
    system: PenalisedFit, *, damping: float = 0.2, max_steps: int = 3000
) -> FitTheory:
    r"""Overlaps and errors of the minimiser of a convex loss with l1 and l2 penalties.

    Let $\omega$ be a Gaussian field of variance $q$ whose covariance with the teacher's field is
    $m$, let $g = (\mathrm{prox}(y, \omega) - \omega) / V$ with the proximal operator of the loss,
    and let $M$ be the mean of the teacher's field given $\omega$. Then

    $$ A = \alpha E(-\partial_\omega g) , \qquad \hat m = \alpha E\, g\, \partial_M \ln Z , \qquad
       \hat q = \alpha E g^2 , $$

    $$ b = \hat m w_0 + \sqrt{\hat q} z , \qquad
       w = \frac{\mathrm{sign}(b) \max(|b| - l_1, 0)}{A + \lambda} , \qquad
       V = \frac{P(|b| > l_1)}{A + \lambda} $$

    with $m$ = `teacher_overlap`, $q$ = `self_overlap`, $V$ = `response` and $\lambda$ = `ridge`.
    The problem is convex and has one solution.

    Args:
        damping: fraction of the previous state that is kept in each plain step, before the secant
            steps; from 0 to below 1; 0.2 by default.
        max_steps: largest number of iterations; 3000 by default. At vanishing penalties they may
            not be enough, and `converged` is False.

    Accuracy: exact as d grows; 1e-11 of the fixed point.

    Source: Thrampoulidis, Abbasi, Hassibi (2018); Aubin, Krzakala, Lu, Zdeborová (2020); Loureiro,
    Gerbelot et al. (2021).

    >>> fit = penalised_fit(PenalisedFit(2.0, "logistic", "sign", ridge=0.1))
    >>> round(float(fit.classification_error), 4)
    0.1797
    """
    rho = system.prior.power

    def update(order: PenalisedOrder, system: PenalisedFit) -> PenalisedOrder:
        found = _step(system, order)
        power = jnp.maximum(found.power, 1e-30)
        return PenalisedOrder(
            found.overlap / jnp.sqrt(power * rho),
            jnp.log(power),
            jnp.log(jnp.maximum(found.response, 1e-30)),
        )

    start = PenalisedOrder(jnp.asarray(0.3), jnp.zeros(()), jnp.zeros(()))
    solved = secant_fixed_point(
        update,
        start,
        system,
        damping=damping,
        tolerance=1e-11,
        max_steps=max_steps,
        sequential=True,
    )
    # points are computed one after the other, because each needs quadrature nodes of its own
    found = sequential_vmap(_step)(system, solved.value)
    errors = _errors(system, solved.value)
    return FitTheory(
        teacher_overlap=found.overlap,
        self_overlap=found.power,
        support=found.support,
        error=found.error,
        test_error=errors.test_error,
        train_error=errors.train_error,
        test_loss=errors.test_loss,
        train_loss=errors.train_loss,
        classification_error=errors.classification_error,
        residual=solved.residual,
        converged=solved.converged,
        response=found.response,
    )


@theory(traced=False)
def best_penalty(system: PenalisedFit, *, which: Literal["ridge", "l1"] = "ridge") -> BestPenalty:
    r"""Ridge or l1 penalty at which the error of `penalised_fit` is lowest, with the other penalty
    fixed.

    $$ \text{penalty} = \arg\min_\lambda E(\lambda) , \qquad 10^{-4} \le \lambda \le 10^4 , $$

    with $E$ = `least_error` the classification error for labels that are signs and the test error
    otherwise, by Brent's method in $\ln \lambda$.

    Args:
        which: the penalty that is varied, "ridge" (the default) or "l1".

    Accuracy: 1e-6 of the penalty.

    Cost: some 30 solutions of `penalised_fit`.

    Source: derived here, with the errors of Aubin, Krzakala, Lu, Zdeborová (2020).

    >>> from orderparam.systems.generalised_linear import PenalisedFit
    >>> best = best_penalty(PenalisedFit(2.0, "square", "sign"))
    >>> round(float(best.penalty), 4)  # pi/2 - 1
    0.5708
    """

    def value(logarithm: float) -> float:
        found = penalised_fit(system.with_(**{which: float(np.exp(logarithm))}))
        return float(found.classification_error if system.labels.binary else found.test_error)

    found = minimize_scalar(
        value, bounds=(np.log(1e-4), np.log(1e4)), method="bounded", options={"xatol": 1e-7}
    )
    return BestPenalty(penalty=jnp.exp(jnp.asarray(found.x)), least_error=jnp.asarray(found.fun))


def _fields(system: PenalisedFit, order: PenalisedOrder) -> Fields:
    power, rho = jnp.exp(order.log_power), system.prior.power
    return Fields(power, rho, jnp.clip(order.cosine, -1.0, 1.0) * jnp.sqrt(power * rho))


def _step(system: PenalisedFit, order: PenalisedOrder) -> Shrunk:
    labels = system.channel.averages(jnp.exp(order.log_response), _fields(system, order))
    alignment, power, stiffness = (
        system.sample_ratio * part for part in (labels.alignment, labels.power, labels.stiffness)
    )
    return shrunk(system.prior, alignment, power, stiffness, system.l1, system.ridge)


def _errors(system: PenalisedFit, order: PenalisedOrder) -> ChannelErrors:
    return system.channel.errors(jnp.exp(order.log_response), _fields(system, order))


# ------------------------------------------------------------------------------------------------
# State evolution of the elastic net: two unknowns, its error E = |w - w0|^2 / d and its response V.
#
#     A = alpha / (1 + V),  b = A w0 + sqrt(alpha (E + noise)) / (1 + V) z,
#     w = sign(b) max(|b| - l1, 0) / (A + ridge),  E = E (w - w0)^2,
#      V = P(|b| > l1) / (A + ridge)
#
# These equations are exact as d grows at n = alpha d (Bayati, Montanari 2012, for the Lasso).


class SparseFit(Result):
    """A fit by the Lasso, ridge regression or the elastic net.

    Fields:
        error: |w - w0|^2 / d (no factor 1/2).
        overlap: w.w0/d.
        support: share of weights that are not zero.
        test_error: mean of (y - f)^2 over new examples, noise included (no factor 1/2).
        train_error: mean of (y - f)^2 over the training examples.
        residual: last change of the iteration; in an experiment, the largest violation of the
            conditions on the gradient, in units of the penalties.
        converged: whether the residual is below the tolerance.
    """

    error: Scalar
    overlap: Scalar
    support: Scalar
    test_error: Scalar
    train_error: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


class SparseFitTheory(SparseFit):
    """State evolution of the elastic net.

    Fields:
        response: V, the response of a new example's prediction to its own label when it is added to
            the training set.
    """

    response: Scalar


@theory(differentiable=False)
def elastic_net(system: ElasticNet, *, max_steps: int = 3000) -> SparseFitTheory:
    r"""Error, support and overlaps of the Lasso, ridge regression or the elastic net.

    Two unknowns, the error $E = |w - w_0|^2/d$ and the response $V$, obey

    $$ b = \frac{\alpha w_0 + \sqrt{\alpha (E + \Delta)}\, z}{1 + V} , \qquad
       w = \frac{\mathrm{sign}(b) \max(|b| - l_1, 0)}{A + \lambda} , \qquad
       A = \frac{\alpha}{1 + V} , $$

    $$ E = E (w - w_0)^2 , \qquad V = \frac{P(|b| > l_1)}{A + \lambda} $$

    with $\Delta$ = `noise` and $\lambda$ = `ridge`; `support` is $P(|b| > l_1)$. The problem is
    convex and has one solution.

    Args:
        max_steps: largest number of iterations; 3000 by default. At vanishing penalties and fewer
            examples than weights they may not be enough, and `converged` is False.

    Accuracy: exact as d grows; 1e-11 of the fixed point.

    Source: Bayati, Montanari (2012).

    >>> fit = elastic_net(ElasticNet(0.8, l1=0.1, noise=0.01))
    >>> round(float(fit.error), 5), round(float(fit.support), 4)
    (0.09372, 0.5239)
    """

    def update(state: tuple[Scalar, Scalar], system: ElasticNet) -> tuple[Scalar, Scalar]:
        error, _, _, response = _weights(system, jnp.exp(state[0]), state[1])
        return jnp.log(error), response

    rho = system.prior.power
    start = (jnp.log(rho), jnp.ones(()))
    solved = fixed_point(update, start, system, tolerance=1e-11, max_steps=max_steps)
    error, overlap, support, response = _weights(system, jnp.exp(solved.value[0]), solved.value[1])
    test_error = error + system.noise
    return SparseFitTheory(
        error=error,
        overlap=overlap,
        support=support,
        test_error=test_error,
        train_error=test_error / (1 + response) ** 2,
        residual=solved.residual,
        converged=solved.converged,
        response=response,
    )


def _weights(
    system: ElasticNet, error: Scalar, response: Scalar
) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Error, overlap, support and response of the weights, given the error and the response of the
    previous step."""
    stiffness = system.sample_ratio / (1 + response)
    power = system.sample_ratio * (error + system.noise) / (1 + response) ** 2
    found = shrunk(system.prior, stiffness, power, stiffness, system.l1, system.ridge)
    return found.error, found.overlap, found.support, found.response
