"""The overlap with the teacher that a learning rule reaches as N grows."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float

from orderparam.channels import SignLabels
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.quadrature import LEAN, standard_normal_rule
from orderparam.solve.flow import flow
from orderparam.solve.root import decreasing_root
from orderparam.systems.perceptron.rules.model import BatchPerceptron, OnlinePerceptron

Scalar = Float[Array, ""]

_FIRST = 1e-7  # sqrt(alpha) at which the flow of Rosenblatt's rule starts


class RuleError(Result):
    """teacher_overlap: R, the cosine of the angle to the teacher. test_error: arccos(R)/pi. stability: the smallest margin
    sqrt(N) y w.x / |w| of the examples, for maximal stability; NaN for other rules."""

    teacher_overlap: Scalar
    test_error: Scalar
    stability: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


class OnlineError(Result):
    """teacher_overlap: R, the cosine of the angle to the teacher. length: |w| / sqrt(N). test_error: arccos(R)/pi."""

    teacher_overlap: Scalar
    length: Scalar
    test_error: Scalar
    converged: Bool[Array, ""]


@theory
def batch_rule(system: BatchPerceptron) -> RuleError:
    """Hebb: R^2 = 2 alpha/(pi + 2 alpha) (Vallet 1989). Pseudo-inverse: R^2 = 2 alpha (1 - alpha)/(pi - 2 alpha) for alpha < 1,
    2 (alpha - 1)/(pi + 2 alpha - 4) above (Opper, Kinzel, Kleinz, Nehl 1990), chance at alpha = 1. Maximal stability kappa:

        s^2 = 1 - R^2 = 2 alpha E_{t<kappa} Phi(R t/s) (kappa - t)^2,    R = 2 alpha E_{t<kappa} phi(R t/s)/s (kappa - t)

    (Opper, Kinzel, Kleinz, Nehl 1990), one equation for R with kappa from the first. `stability` is kappa.
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
        overlap, stability, health = _maximal_stability(alpha)
    return RuleError(overlap, jnp.arccos(overlap) / np.pi, stability, *health)


def _maximal_stability(alpha: Scalar) -> tuple[Scalar, Scalar, tuple[Scalar, Bool[Array, ""]]]:
    """R and kappa. With R = sin(angle) both unknowns are looked for in logarithms; for given R the first equation fixes kappa."""

    def stability(odds: Scalar, alpha: Scalar) -> Scalar:
        overlap, rest = _from_odds(odds)

        def lack(log_kappa: Scalar, args: tuple) -> Scalar:
            overlap, rest, alpha = args
            return 2 * jnp.log(rest) - jnp.log(2 * alpha) - jnp.log(_margins(jnp.exp(log_kappa), overlap, rest)[0])

        return decreasing_root(lack, jnp.asarray(-30.0), jnp.asarray(8.0), (overlap, rest, alpha)).value

    def excess(odds: Scalar, alpha: Scalar) -> Scalar:
        overlap, rest = _from_odds(odds)
        reached = 2 * alpha * _margins(jnp.exp(stability(odds, alpha)), overlap, rest)[1]
        return jnp.log(reached) - jnp.log(overlap)

    root = decreasing_root(excess, jnp.asarray(-14.0), jnp.asarray(14.0), alpha)
    overlap, _ = _from_odds(root.value)
    return overlap, jnp.exp(stability(root.value, alpha)), (root.residual, root.converged)


def _from_odds(odds: Scalar) -> tuple[Scalar, Scalar]:
    """R and sqrt(1 - R^2) from the logarithm of their ratio."""
    return jnp.exp(-jnp.log1p(jnp.exp(-2 * odds)) / 2), jnp.exp(-jnp.log1p(jnp.exp(2 * odds)) / 2)


def _margins(kappa: Scalar, overlap: Scalar, rest: Scalar) -> tuple[Scalar, Scalar]:
    """E_{t<kappa} Phi(R t/s) (kappa - t)^2 and E_{t<kappa} phi(R t/s)/s (kappa - t)."""
    t, weight = standard_normal_rule([jnp.zeros(()), kappa], LEAN._replace(gradings=10))
    gap = jnp.maximum(kappa - t, 0.0)
    return jnp.sum(weight * norm.cdf(overlap * t / rest) * gap**2), jnp.sum(weight * norm.pdf(overlap * t / rest) / rest * gap)


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


def _rosenblatt(alpha: Scalar, rate: Scalar) -> tuple[Scalar, Scalar, Bool[Array, ""]]:
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


def _adaline_power(alpha: Scalar, rate: Scalar) -> Scalar:
    """Q of dQ = -(2 eta - eta^2) Q + 2 eta (1 - eta) c M + eta^2, M = c (1 - exp(-eta alpha)), Q = 0 at first."""
    c, decay = 2 / np.pi, rate * (2 - rate)
    constant = 2 * rate * (1 - rate) * c + rate**2

    def grown(speed: Scalar) -> Scalar:
        """(exp(speed alpha) - 1) / speed."""
        small = jnp.abs(speed) < 1e-12
        return jnp.where(small, alpha, jnp.expm1(jnp.where(small, 1.0, speed) * alpha) / jnp.where(small, 1.0, speed))

    lag = jnp.exp(-rate * alpha) * grown(rate - decay)  # integral of exp(-decay (alpha - t) - eta t) over t
    return constant * grown(-decay) - 2 * rate * (1 - rate) * c * lag


def _optimal(alpha: Scalar) -> OnlineError:
    def field(state: Array, args: Array) -> Array:
        rest = jnp.exp(state[0])
        return -jnp.stack([rest * SignLabels().averages(1 - rest, rest).information])

    solved = flow(field, jnp.zeros(1), alpha[None], jnp.zeros(()), rtol=1e-10, atol=1e-12)
    cosine = jnp.sqrt(-jnp.expm1(solved.value[0, 0]))
    return OnlineError(cosine, cosine, jnp.arccos(cosine) / np.pi, solved.converged)

