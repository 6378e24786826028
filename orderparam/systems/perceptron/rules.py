"""Theory of learning rules: the overlap with the teacher that a rule reaches."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from orderparam.channels import SignLabels
from orderparam.channels.largest_margin import largest_margin
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.flow import flow
from orderparam.systems.perceptron.model import BatchPerceptron, OnlinePerceptron
from orderparam.systems.perceptron.theory import Scalar

_FIRST = 1e-7  # sqrt(alpha) at which the flow of Rosenblatt's rule starts


class RuleError(Result):
    """Overlap and error of a student that learns from all examples at once.

    Fields:
        teacher_overlap: R, the cosine of the angle between student and teacher.
        classification_error: probability of a wrong label on a new input, arccos(R)/pi.
        stability: smallest margin kappa = sqrt(N) y w.x/|w| of the examples, with inputs of
            variance 1/N, for "maximal stability"; NaN for the other rules.
        residual: residual of the equations for "maximal stability"; 0 for the other rules.
        converged: whether the equations, or the optimisation, were solved.
    """

    teacher_overlap: Scalar
    classification_error: Scalar
    stability: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


class OnlineError(Result):
    """Overlap and error of a student that learns from each example once.

    Fields:
        teacher_overlap: R, the cosine of the angle between student and teacher.
        length: length |w|/sqrt(N) of the student's weights.
        classification_error: probability of a wrong label on a new input, arccos(R)/pi.
        converged: of the theory: whether the flow was integrated; of an experiment: whether the
            weights are finite and not zero.
    """

    teacher_overlap: Scalar
    length: Scalar
    classification_error: Scalar
    converged: Bool[Array, ""]


@theory
def batch_rule(system: BatchPerceptron) -> RuleError:
    r"""Overlap of a student with the teacher, in the limit of large N, for a rule that uses all
    examples at once.

    With $\alpha$ = `sample_ratio`, R = `teacher_overlap` is

    $$ \text{hebb: } R^2 = \frac{2 \alpha}{\pi + 2 \alpha}; \qquad
       \text{pseudo-inverse: } R^2 = \frac{2 \alpha (1 - \alpha)}{\pi - 2 \alpha} \; (\alpha <
          1), \quad \frac{2 (\alpha - 1)}{\pi + 2 \alpha - 4} \; (\alpha > 1) $$

    For "maximal stability", with $\kappa$ = `stability` and $s^2 = 1 - R^2$,

    $$ s^2 = 2 \alpha \int_{-\infty}^\kappa Dt\, \Phi\Big( \frac{R t}{s} \Big) (\kappa - t)^2,
          \qquad
       R = \frac{2 \alpha}{s} \int_{-\infty}^\kappa Dt\, \varphi\Big( \frac{R t}{s} \Big) (\kappa
          - t) $$

    The pseudo-inverse has no overlap with the teacher at $\alpha = 1$.

    Accuracy: rounding; 1e-8 for "maximal stability".

    Source: Vallet (1989) for Hebb's rule; Opper, Kinzel, Kleinz, Nehl (1990) for the others.

    >>> found = batch_rule(BatchPerceptron(2.0, "maximal stability"))
    >>> round(float(found.teacher_overlap), 6), round(float(found.stability), 6)
    (0.829758, 0.454578)
    """
    alpha = system.sample_ratio
    if system.rule == "hebb":
        overlap = jnp.sqrt(2 * alpha / (np.pi + 2 * alpha))
    elif system.rule == "pseudo-inverse":
        few = alpha < 1
        below = 2 * alpha * (1 - alpha) / jnp.where(few, np.pi - 2 * alpha, 1.0)
        above = 2 * (alpha - 1) / jnp.where(few, 1.0, np.pi + 2 * alpha - 4)
        overlap = jnp.sqrt(jnp.where(few, below, above))
    else:
        found = largest_margin(alpha)
        return RuleError(
            teacher_overlap=jnp.cos(found.angle),
            classification_error=found.angle / np.pi,
            stability=found.stability,
            residual=found.residual,
            converged=found.converged,
        )
    return RuleError(
        teacher_overlap=overlap,
        classification_error=jnp.arccos(overlap) / np.pi,
        stability=jnp.asarray(jnp.nan),
        residual=jnp.zeros(()),
        converged=jnp.asarray(True),
    )


@theory(differentiable=False)
def online_rule(system: OnlinePerceptron) -> OnlineError:
    r"""Overlap of a student with the teacher, in the limit of large N, for a rule that uses each
    example once.

    Let $M = w \cdot w_0/N = R \sqrt Q$ with the teacher's weights $w_0$ of length $\sqrt N$, $Q =
    |w|^2/N$ (`length` squared), $\epsilon = \arccos(R)/\pi$, $c = \sqrt{2/\pi}$ and $\eta$ =
    `rate`. A dot is the derivative in $\alpha$ = `sample_ratio`:

    $$ \text{hebb: } \dot M = \eta c, \quad \dot Q = 2 \eta c M + \eta^2; \qquad
       \text{adaline: } \dot M = \eta (c - M), \quad \dot Q = 2 \eta (c M - Q) + \eta^2 (1 - 2 c
          M + Q) $$

    $$ \text{rosenblatt: } \dot M = \tfrac12 \eta c (1 - R), \quad \dot Q = -\eta c \sqrt Q (1 -
          R) + \eta^2 \epsilon; \qquad
       \text{optimal: } R^2 = Q = q, \quad \dot q = (1 - q)^2 E g^2 $$

    from M = Q = 0, with g as in `OnlinePerceptron`.

    Accuracy: 1e-8. This theory cannot be differentiated.

    Source: Kinzel, Rujan (1990); Biehl, Schwarze (1992); Kinouchi, Caticha (1992) and Opper (1996)
    for the optimal rule.

    >>> found = online_rule(OnlinePerceptron(2.0, "hebb"))
    >>> round(float(found.teacher_overlap), 8), round(float(found.length), 8)
    (0.74839772, 2.13224743)
    """
    c, alpha, rate = np.sqrt(2 / np.pi), system.sample_ratio, system.rate
    if system.rule == "optimal":
        return _optimal(alpha)
    if system.rule == "hebb":
        along, power, sound = (
            rate * c * alpha,
            rate**2 * (c**2 * alpha**2 + alpha),
            jnp.asarray(True),
        )
    elif system.rule == "adaline":
        along = c * -jnp.expm1(-rate * alpha)
        power, sound = _adaline_power(alpha, rate), jnp.asarray(True)
    else:
        along, power, sound = _rosenblatt(alpha, rate)
    cosine = along / jnp.sqrt(power)
    sound = sound & jnp.isfinite(cosine) & jnp.isfinite(power)
    return OnlineError(
        teacher_overlap=cosine,
        length=jnp.sqrt(power),
        classification_error=jnp.arccos(jnp.clip(cosine, -1, 1)) / np.pi,
        converged=sound,
    )


def _rosenblatt(
    alpha: Scalar | float, rate: Scalar | float
) -> tuple[Scalar, Scalar, Bool[Array, ""]]:
    """Overlap M and squared length Q of Rosenblatt's rule.

    The variable of the flow is v = w/rate, because the equations for v do not contain the rate. The
    length of v grows as sqrt(alpha) at first, so that the flow is integrated in sqrt(alpha).
    """
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
    """Squared length Q of Adaline: the solution of dQ/dalpha = -(2 eta - eta^2) Q + 2 eta (1 - eta)
    c M + eta^2 from Q = 0, with M = c (1 - exp(-eta alpha)) and c = sqrt(2/pi).

    In this function `c` is the square 2/pi.
    """
    c, decay = 2 / np.pi, rate * (2 - rate)
    constant = 2 * rate * (1 - rate) * c + rate**2

    def grown(speed: Scalar | float) -> Scalar:
        """(exp(speed alpha) - 1) / speed."""
        small = jnp.abs(speed) < 1e-12
        return jnp.where(
            small,
            alpha,
            jnp.expm1(jnp.where(small, 1.0, speed) * alpha) / jnp.where(small, 1.0, speed),
        )

    # integral of exp(-decay (alpha - t) - eta t) over t from 0 to alpha
    lag = jnp.exp(-rate * alpha) * grown(rate - decay)
    return constant * grown(-decay) - 2 * rate * (1 - rate) * c * lag


def _optimal(alpha: Scalar | float) -> OnlineError:
    """Overlap and error of the optimal rule. The equation dV/dalpha = -V^2 E g^2 for V = 1 - q is
    integrated in ln V, which starts at 0."""

    def field(state: Array, args: Array) -> Array:
        rest = jnp.exp(state[0])
        return -jnp.stack([rest * SignLabels().averages(1 - rest, rest).information])

    solved = flow(
        field, jnp.zeros(1), jnp.asarray(alpha)[None], jnp.zeros(()), rtol=1e-10, atol=1e-12
    )
    cosine = jnp.sqrt(-jnp.expm1(solved.value[0, 0]))
    return OnlineError(
        teacher_overlap=cosine,
        length=cosine,
        classification_error=jnp.arccos(cosine) / np.pi,
        converged=solved.converged,
    )
