"""State evolution of minimisers with l1 and l2 penalties: any convex loss, and least squares."""

from typing import Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.optimize import minimize_scalar

from orderparam.channels import Fields
from orderparam.core.fields import check_iteration
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.quadrature import standard_normal_rule
from orderparam.losses import ChannelErrors
from orderparam.priors import Prior
from orderparam.solve.fixed_point import fixed_point
from orderparam.systems.generalised_linear.penalised.model import ElasticNet, PenalisedFit

# ------------------------------------------------------------------------------------------------
# What l1 and l2 penalties make of weights that are seen through Gaussian noise.

Scalar = Float[Array, ""]


class Shrunk(NamedTuple):
    """error: E (w - w0)^2. overlap: E w w0. power: E w^2. support: P(w != 0). response: E dw/db."""

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
    """w = sign(b) max(|b| - l1, 0) / (stiffness + ridge), b = alignment w0 + sqrt(power) z, w0 from
    the prior.

    b is a mixture of Gaussians, cut at -l1 and l1.
    """
    shares, means, variances = prior.components
    centre, total = alignment * means, alignment**2 * variances + power
    spread = jnp.sqrt(total)
    z, weight = standard_normal_rule([(side - centre) / spread for side in (-l1, l1)])
    b = centre[:, None] + spread[:, None] * z
    found = jnp.sign(b) * jnp.maximum(jnp.abs(b) - l1, 0.0) / (stiffness + ridge)
    true = means[:, None] + (alignment * variances / total)[:, None] * (b - centre[:, None])
    weight = shares[:, None] * weight
    left = jnp.sum(shares * variances * power / total)
    support = jnp.sum(weight * (jnp.abs(b) > l1))
    missed = jnp.sum(weight * (found - true) ** 2) + left
    return Shrunk(
        missed,
        jnp.sum(weight * found * true),
        jnp.sum(weight * found**2),
        support,
        support / (stiffness + ridge),
    )


# ------------------------------------------------------------------------------------------------
# State evolution of penalised losses: the overlap m with the weights, the power q and the response V of the minimiser.
#
#     A = alpha E(-dg/dw),  mh = alpha E g dln Z/dM,  qh = alpha E g^2,  g = (prox(y, w) - w) / V,
#     b = mh w0 + sqrt(qh) z,  w = sign(b) max(|b| - l1, 0) / (A + ridge),  V = P(|b| > l1) / (A + ridge).
#
# Convex problems have one solution; exact as d grows: Thrampoulidis, Abbasi, Hassibi 2018; Aubin,
# Krzakala, Lu, Zdeborová 2020 (arXiv:2006.06560); Loureiro et al. 2021 (arXiv:2102.08127).


class Fit(Result):
    """teacher_overlap: m = w.w0/d. self_overlap: q = |w|^2/d. support: share of weights that are
    not zero. error: |w - w0|^2/d.

    test_error, train_error: mean (y - f)^2, noise included; test_loss, train_loss: mean l(y, f);
    classification_error: P(sign f != y) of new examples, NaN for real labels.
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
    """response: V, by how much a prediction follows its label."""

    response: Scalar


class BestPenalty(Result):
    """penalty: of least error. least_error: that error, the classification error for labels that
    are signs, or the test error.
    """

    penalty: Scalar
    least_error: Scalar


class PenalisedOrder(NamedTuple):
    """m / sqrt(q rho), ln q and ln V."""

    cosine: Scalar
    log_power: Scalar
    log_response: Scalar


@theory(differentiable=False, check=check_iteration)
def penalised_fit(
    system: PenalisedFit, *, damping: float = 0.2, max_steps: int = 3000
) -> FitTheory:
    """`converged` is False where max_steps were not enough, as happens at vanishing penalties."""
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
    solved = fixed_point(
        update, start, system, damping=damping, tolerance=1e-11, max_steps=max_steps
    )
    found, errors = _step(system, solved.value), _errors(system, solved.value)
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
    """By Brent's method in its logarithm between 1e-4 and 1e4, the other penalty as given; the
    penalty to 1e-6.
    """

    def value(logarithm: float) -> float:
        found = penalised_fit(system.with_(**{which: float(np.exp(logarithm))}))
        return float(found.classification_error if system.labels.binary else found.test_error)

    found = minimize_scalar(
        value, bounds=(np.log(1e-4), np.log(1e4)), method="bounded", options={"xatol": 1e-7}
    )
    return BestPenalty(jnp.exp(jnp.asarray(found.x)), jnp.asarray(found.fun))


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
#     A = alpha / (1 + V),  b = A w0 + sqrt(alpha (E + noise)) / (1 + V) z,  w = sign(b) max(|b| - l1, 0) / (A + ridge),
#     E = E (w - w0)^2,  V = P(|b| > l1) / (A + ridge)
#
# Bayati, Montanari 2012 (Lasso; arXiv:1008.2581); exact as d grows at n = alpha d.


class SparseFit(Result):
    """error: |w - w0|^2 / d. overlap: w.w0/d. support: share of weights that are not zero.
    test_error: mean (y - f)^2 of new examples, noise included; train_error: of training examples.
    """

    error: Scalar
    overlap: Scalar
    support: Scalar
    test_error: Scalar
    train_error: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


class SparseFitTheory(SparseFit):
    """response: V, by how much a prediction follows its label when that example is added."""

    response: Scalar


@theory(differentiable=False)
def elastic_net(system: ElasticNet, *, max_steps: int = 3000) -> SparseFitTheory:
    """By plain iteration; the problem is convex and has one solution. `converged` is False where
    max_steps were not enough, as happens at vanishing penalties and fewer examples than weights."""

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
    """Error, overlap, support and response."""
    stiffness = system.sample_ratio / (1 + response)
    power = system.sample_ratio * (error + system.noise) / (1 + response) ** 2
    found = shrunk(system.prior, stiffness, power, stiffness, system.l1, system.ridge)
    return found.error, found.overlap, found.support, found.response
