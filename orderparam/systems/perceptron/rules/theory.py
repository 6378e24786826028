"""The overlap with the teacher that a learning rule reaches as N grows."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.channels import SignLabels
from orderparam.channels.largest_margin import largest_margin
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.flow import flow
from orderparam.systems.perceptron.rules.model import BatchPerceptron, OnlinePerceptron

Scalar = Float[Array, ""]

_FIRST = 1e-7  # sqrt(alpha) at which the flow of Rosenblatt's rule starts


class RuleError(Result):
    """teacher_overlap: R, the cosine of the angle to the teacher. classification_error: arccos(R)/pi. stability: smallest margin
    sqrt(N) y w.x / |w| of the examples, for maximal stability; NaN for other rules."""

    teacher_overlap: Scalar
    classification_error: Scalar
    stability: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


class OnlineError(Result):
    """teacher_overlap: R, the cosine of the angle to the teacher. length: |w| / sqrt(N). classification_error: arccos(R)/pi."""

    teacher_overlap: Scalar
    length: Scalar
    classification_error: Scalar
    converged: Bool[Array, ""]


@theory
def batch_rule(system: BatchPerceptron) -> RuleError:
    """Hebb: R^2 = 2 alpha/(pi + 2 alpha) (Vallet 1989). Pseudo-inverse: R^2 = 2 alpha (1 - alpha)/(pi - 2 alpha) for alpha < 1,
    2 (alpha - 1)/(pi + 2 alpha - 4) above, chance at alpha = 1; maximal stability: see `channels.largest_margin` (Opper, Kinzel,
    Kleinz, Nehl 1990).
    """
    alpha = system.sample_ratio
    nothing, exact = jnp.asarray(jnp.nan), (jnp.zeros(()), jnp.asarray(True))
    if system.rule == "hebb":
        overlap, stability, health = jnp.sqrt(2 * alpha / (np.pi + 2 * alpha)), nothing, exact
    elif system.rule == "pseudo-inverse":
        few = alpha < 1
        below = 2 * alpha * (1 - alpha) / jnp.where(few, np.pi - 2 * alpha, 1.0)
        above = 2 * (alpha - 1) / jnp.where(few, 1.0, np.pi + 2 * alpha - 4)
        overlap, stability, health = jnp.sqrt(jnp.where(few, below, above)), nothing, exact
    else:
        found = largest_margin(alpha)
        return RuleError(jnp.cos(found.angle), found.angle / np.pi, *found[1:])
    return RuleError(overlap, jnp.arccos(overlap) / np.pi, stability, *health)


@theory(differentiable=False)
def online_rule(system: OnlinePerceptron) -> OnlineError:
    """The flow of w.w0/N and Q = |w|^2/N in alpha, exact as N grows (Kinzel, Rujan 1990; Biehl, Schwarze 1992), to 1e-8.

    With c = sqrt(2/pi), eta = rate, R = w.w0/(N sqrt(Q)), M = R sqrt(Q) and epsilon = arccos(R)/pi:
    hebb: dM = eta c, dQ = 2 eta c M + eta^2. adaline: dM = eta (c - M), dQ = 2 eta (c M - Q) + eta^2 (1 - 2 c M + Q).
    rosenblatt: dM = eta c (1 - R)/2, dQ = -eta c sqrt(Q) (1 - R) + eta^2 epsilon. optimal: R^2 = q, dq = (1 - q)^2 I(q, 1 - q).
    """
    c, alpha, rate = np.sqrt(2 / np.pi), system.sample_ratio, system.rate
    if system.rule == "optimal":
        return _optimal(alpha)
    if system.rule == "hebb":
        along, power, sound = rate * c * alpha, rate**2 * (c**2 * alpha**2 + alpha), jnp.asarray(True)
    elif system.rule == "adaline":
        along = c * -jnp.expm1(-rate * alpha)
        power, sound = _adaline_power(alpha, rate), jnp.asarray(True)
    else:
        along, power, sound = _rosenblatt(alpha, rate)
    cosine = along / jnp.sqrt(power)
    sound = sound & jnp.isfinite(cosine) & jnp.isfinite(power)
    return OnlineError(cosine, jnp.sqrt(power), jnp.arccos(jnp.clip(cosine, -1, 1)) / np.pi, sound)


def _rosenblatt(alpha: Scalar | float, rate: Scalar | float) -> tuple[Scalar, Scalar, Bool[Array, ""]]:
    """M and Q: with w = rate v the rate drops out; v grows as sqrt(alpha) at first, and sqrt(alpha) is the time."""
    c = np.sqrt(2 / np.pi)

    def field(state: Array, _: None) -> Array:
        along, length, time = state
        cosine = jnp.clip(along / length, -1.0, 1.0)
        error = jnp.arccos(cosine) / np.pi
        slopes = jnp.stack([c * (1 - cosine) / 2, error / (2 * length) - c * (1 - cosine) / 2])
        return jnp.append(2 * time * slopes, 1.0)

    begin = jnp.asarray([c / 2 * _FIRST**2, _FIRST / np.sqrt(2), _FIRST])
    end = jnp.maximum(jnp.sqrt(alpha), 2 * _FIRST)
    solved = flow(field, begin, (end - _FIRST)[None], rtol=1e-10, atol=1e-16)
    return rate * solved.value[0, 0], (rate * solved.value[0, 1]) ** 2, solved.converged


def _adaline_power(alpha: Scalar | float, rate: Scalar | float) -> Scalar:
    """Q of dQ = -(2 eta - eta^2) Q + 2 eta (1 - eta) c M + eta^2, M = c (1 - exp(-eta alpha)), Q = 0 at first."""
    c, decay = 2 / np.pi, rate * (2 - rate)
    constant = 2 * rate * (1 - rate) * c + rate**2

    def grown(speed: Scalar | float) -> Scalar:
        """(exp(speed alpha) - 1) / speed."""
        small = jnp.abs(speed) < 1e-12
        return jnp.where(small, alpha, jnp.expm1(jnp.where(small, 1.0, speed) * alpha) / jnp.where(small, 1.0, speed))

    lag = jnp.exp(-rate * alpha) * grown(rate - decay)  # integral of exp(-decay (alpha - t) - eta t) over t
    return constant * grown(-decay) - 2 * rate * (1 - rate) * c * lag


def _optimal(alpha: Scalar | float) -> OnlineError:
    def field(state: Array, args: Array) -> Array:
        rest = jnp.exp(state[0])
        return -jnp.stack([rest * SignLabels().averages(1 - rest, rest).information])

    solved = flow(field, jnp.zeros(1), jnp.asarray(alpha)[None], jnp.zeros(()), rtol=1e-10, atol=1e-12)
    cosine = jnp.sqrt(-jnp.expm1(solved.value[0, 0]))
    return OnlineError(cosine, cosine, jnp.arccos(cosine) / np.pi, solved.converged)
