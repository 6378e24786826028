"""State evolution of penalised losses: the overlap m with the weights, the power q and the response V of the minimiser.

    A = alpha E(-dg/dw),  mh = alpha E g dln Z/dM,  qh = alpha E g^2,  g = (prox(y, w) - w) / V,
    b = mh w0 + sqrt(qh) z,  w = sign(b) max(|b| - l1, 0) / (A + ridge),  V = P(|b| > l1) / (A + ridge).

Convex problems have one solution; exact as d grows: Thrampoulidis, Abbasi, Hassibi 2018; Aubin, Krzakala, Lu, Zdeborová 2020
(arXiv:2006.06560); Loureiro et al. 2021 (arXiv:2102.08127).
"""

from typing import Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.optimize import minimize_scalar

from orderparam.channels import Fields
from orderparam.core.fields import check_iteration
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.losses import ChannelErrors
from orderparam.solve.fixed_point import fixed_point
from orderparam.systems.generalised_linear.penalised.model import PenalisedFit
from orderparam.systems.generalised_linear.shrinkage import Shrunk, shrunk

Scalar = Float[Array, ""]


class Fit(Result):
    """teacher_overlap: m = w.w0/d. self_overlap: q = |w|^2/d. support: share of weights that are not zero. error: |w - w0|^2/d.

    test_error, train_error: mean (y - f)^2, noise included; test_loss, train_loss: mean l(y, f); classification_error:
    P(sign f != y) of new examples, NaN for real labels.
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
    """penalty: of least error. least_error: that error, the classification error for labels that are signs, or the test error."""

    penalty: Scalar
    least_error: Scalar


class PenalisedOrder(NamedTuple):
    """m / sqrt(q rho), ln q and ln V."""

    cosine: Scalar
    log_power: Scalar
    log_response: Scalar


@theory(differentiable=False, check=check_iteration)
def penalised_fit(system: PenalisedFit, *, damping: float = 0.2, max_steps: int = 3000) -> FitTheory:
    """`converged` is False where max_steps were not enough, as happens at vanishing penalties."""
    rho = system.prior.power

    def update(order: PenalisedOrder, system: PenalisedFit) -> PenalisedOrder:
        found = _step(system, order)
        power = jnp.maximum(found.power, 1e-30)
        return PenalisedOrder(found.overlap / jnp.sqrt(power * rho), jnp.log(power), jnp.log(jnp.maximum(found.response, 1e-30)))

    start = PenalisedOrder(jnp.asarray(0.3), jnp.zeros(()), jnp.zeros(()))
    solved = fixed_point(update, start, system, damping=damping, tolerance=1e-11, max_steps=max_steps)
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
    """By Brent's method in its logarithm between 1e-4 and 1e4, the other penalty as given; the penalty to 1e-6."""

    def value(logarithm: float) -> float:
        found = penalised_fit(system.with_(**{which: float(np.exp(logarithm))}))
        return float(found.classification_error if system.labels.binary else found.test_error)

    found = minimize_scalar(value, bounds=(np.log(1e-4), np.log(1e4)), method="bounded", options={"xatol": 1e-7})
    return BestPenalty(jnp.exp(jnp.asarray(found.x)), jnp.asarray(found.fun))


def _fields(system: PenalisedFit, order: PenalisedOrder) -> Fields:
    power, rho = jnp.exp(order.log_power), system.prior.power
    return Fields(power, rho, jnp.clip(order.cosine, -1.0, 1.0) * jnp.sqrt(power * rho))


def _step(system: PenalisedFit, order: PenalisedOrder) -> Shrunk:
    labels = system.channel.averages(jnp.exp(order.log_response), _fields(system, order))
    alignment, power, stiffness = (system.sample_ratio * part for part in (labels.alignment, labels.power, labels.stiffness))
    return shrunk(system.prior, alignment, power, stiffness, system.l1, system.ridge)


def _errors(system: PenalisedFit, order: PenalisedOrder) -> ChannelErrors:
    return system.channel.errors(jnp.exp(order.log_response), _fields(system, order))
