"""State evolution of vector approximate message passing (VAMP)."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.rules import unit_rule
from orderparam.solve.fixed_point import fixed_point
from orderparam.systems.generalised_linear.bayes.model import InvariantDesign
from orderparam.systems.generalised_linear.bayes.theory import Scalar

# Vector approximate message passing (VAMP) uses two estimators in turn. Each receives a Gaussian
# message from the other, and state evolution follows the precisions a1 and a2 of these messages:
#
#     v1 = E (w - <w>)^2 at precision a1,  a2 = 1/v1 - a1,
#     v2 = E_s 1 / (s^2/noise + a2),       a1 = 1/v2 - a2.
#
# Source: Rangan, Schniter, Fletcher 2019 (arXiv:1610.03082). The fixed points are those of the
# replica theory of rotationally invariant matrices. For the singular values of a matrix with
# Gaussian entries they are the fixed points of GAMP.


class MeasuredWeights(Result):
    """Accuracy of an estimate of the weights of an `InvariantDesign`.

    Fields:
        error: |w - estimate|^2 / d (no factor 1/2).
        overlap: w.estimate / d.
        steps: number of iterations.
        residual: last change of the estimate; in theory, last change of ln a1.
        converged: whether the iteration ended.
    """

    error: Scalar
    overlap: Scalar
    steps: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


class MeasuredWeightsTheory(MeasuredWeights):
    """State evolution of an `InvariantDesign`.

    Fields:
        precision: a1, the precision with which the measurements observe a weight.
    """

    precision: Scalar


@theory(differentiable=False)
def vector_state_evolution(
    system: InvariantDesign, *, max_steps: int = 2000
) -> MeasuredWeightsTheory:
    r"""State evolution of vector approximate message passing (VAMP) from an uninformed start.

    Two estimators are used in turn, each with the Gaussian message of the other,

    $$ v_1 = E (w - \langle w \rangle)^2 \text{ at precision } a_1 , \quad
       a_2 = \frac{1}{v_1} - a_1 , \qquad v_2 = E_s \frac{1}{s^2/\Delta + a_2} , \quad
       a_1 = \frac{1}{v_2} - a_2 , $$

    with $v_1$ = `error`, $a_1$ = `precision` and $\Delta$ = `noise`. The fixed points are those of
    the replica theory of rotationally invariant matrices; for the singular values of Gaussian
    entries they are those of `state_evolution`.

    Args:
        max_steps: largest number of iterations; 2000 by default.

    Accuracy: exact as d grows; 1e-11 of the fixed point.

    Source: Rangan, Schniter, Fletcher (2019).

    >>> round(float(vector_state_evolution(InvariantDesign(0.6)).error), 5)
    0.14511
    """

    def update(log_precision: Scalar, system: InvariantDesign) -> Scalar:
        precision = jnp.exp(log_precision)
        extrinsic = 1 / jnp.maximum(system.prior.averages(precision).error, 1e-300) - precision
        return jnp.log(measurement_precision(system, jnp.maximum(extrinsic, 1e-12)))

    start = jnp.log(1e-6 / system.prior.power)
    solved = fixed_point(update, start, system, tolerance=1e-11, max_steps=max_steps)
    precision = jnp.exp(solved.value)
    found = system.prior.averages(precision)
    steps = solved.steps.astype(float)
    return MeasuredWeightsTheory(
        error=found.error,
        overlap=found.overlap,
        steps=steps,
        residual=solved.residual,
        converged=solved.converged,
        precision=precision,
    )


def measurement_precision(system: InvariantDesign, extrinsic: Scalar) -> Scalar:
    """Precision a1 = 1/v2 - a2 = E[c/(c + a2)] / E[1/(c + a2)], with c = s^2/noise; c is zero in
    directions that are not measured.
    """
    place, weight = unit_rule(80)
    rank = jnp.minimum(system.sample_ratio, 1.0)
    power = (
        singular_power(system.condition, jnp.asarray(place))
        * system.sample_ratio
        / rank
        / system.noise
    )
    filtered = rank * jnp.sum(weight * power / (power + extrinsic))
    return filtered * extrinsic / (1 - filtered)


def singular_power(
    condition: Scalar | float, place: Float[Array, "value"]
) -> Float[Array, "value"]:
    """Squared singular values s^2, normalised to mean one, at relative ranks from 0 (the smallest)
    to 1 (the largest)."""
    width = 2 * jnp.log(condition)
    mean = jnp.where(width > 1e-8, jnp.expm1(width) / jnp.where(width > 1e-8, width, 1.0), 1.0)
    return jnp.exp(width * place) / mean
