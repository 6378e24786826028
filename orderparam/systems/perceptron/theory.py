"""Students at a temperature (replica-symmetric and annealed theory, transitions), and what learning
rules reach.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float, PyTree
from scipy.optimize import brentq, minimize_scalar

from orderparam.channels import Fields, SignLabels, labelled_nodes
from orderparam.channels.base import SHARP
from orderparam.channels.largest_margin import largest_margin
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.quadrature import standard_normal_rule
from orderparam.gaussian.tail import log_cdf
from orderparam.solve.fixed_point import fixed_point
from orderparam.solve.flow import flow
from orderparam.solve.root import decreasing_root
from orderparam.solve.solved import Solved
from orderparam.systems.perceptron.model import BatchPerceptron, OnlinePerceptron, ThermalPerceptron

# ------------------------------------------------------------------------------------------------
# Fixed points by pairs of steps, each pair prolonged by the geometric series that it belongs to.

# ratio of a geometric series of steps, and how far it is followed at once
_STEEPEST, _FARTHEST = 0.9, 0.1
_SHORT = 1e-8  # steps that are not prolonged: rounding is no series

Vector = Float[Array, "unknown"]


def prolonged_fixed_point(
    update: Callable[[Vector, PyTree], Vector],
    start: Vector,
    args: PyTree[Any],
    *,
    tolerance: float,
    max_steps: int,
) -> Solved:
    """y = update(y, args), for unknowns of order one or their logarithms; `max_steps` counts pairs.

    residual: the largest |update(y) - y|, of a single step. `converged` where pairs of steps change
    y by less than tolerance * (1 + |y|), and a single step by less than ten times that: values that
    `update` exchanges are no fixed points, though a pair of steps leaves them where they are.
    """

    def prolonged(y: Vector, args: PyTree) -> Vector:
        first = update(y, args)
        second = update(first, args)
        before, step = first - y, second - first
        ratio = jnp.clip(step @ before / jnp.maximum(before @ before, 1e-300), 0.0, _STEEPEST)
        further = jnp.clip(step * ratio / (1 - ratio), -_FARTHEST, _FARTHEST)
        return second + jnp.where(jnp.max(jnp.abs(step)) > _SHORT, further, 0.0)

    found = fixed_point(prolonged, start, args, tolerance=tolerance, max_steps=max_steps)
    change = jnp.abs(update(found.value, args) - found.value)
    settled = jnp.all(change < 10 * tolerance * (1 + jnp.abs(found.value)))
    whole = (jnp.max(change), found.converged & settled)
    return eqx.tree_at(lambda one: (one.residual, one.converged), found, whole)


# ------------------------------------------------------------------------------------------------
# Replica-symmetric theory of a student at a temperature, its annealed approximation, and the transitions of binary weights.
#
# Györgyi 1990; Sompolinsky, Tishby, Seung 1990; Seung, Sompolinsky, Tishby 1992. A temperature acts
# as if labels were turned over with probability e/(1 + e), e = exp(-1/T): the student's likelihood
# of a label is e + (1 - e) Phi(u). With the student's field w of variance q, what is left of it V =
# 1 - q, and the teacher's field of covariance R,
#
#     qh = alpha E g^2,  Rh = alpha E sum_y (dZ0/dM) g;   binary: q = E tanh^2(sqrt(qh) z + Rh),  R = E tanh(sqrt(qh) z + Rh);
#     spherical: q = (qh + Rh^2)(1 - q)^2,  R = Rh (1 - q).
#
# The replica-symmetric entropy of binary weights becomes negative at low T, where it is wrong.

Scalar = Float[Array, ""]

# 1 - q below which binary weights are drawn to the teacher; 1 - R^2/q, of order (1 - q)^2, is soon
# rounding
_KNOWN = 1e-6
_LEAST = 1e-12  # 1 - q of spherical ones at the least
# ln qh and ln Rh of binary weights that are the teacher's: 1 - q is zero to rounding
_TAUGHT = np.log(1e4)
_UNALIGNED = -6.0  # ln Rh of students that know almost nothing
_HOTTEST = 1e6
_SPINODAL = (-1.0, 2.0)  # ln Rh at the spinodal is between: 1.2 at T = 0, 0.2 for T to infinity


class Learner(Result):
    """teacher_overlap: R. self_overlap: q. classification_error: P(wrong on a new input),
    arccos(R)/pi. mistakes: per example.
    """

    teacher_overlap: Scalar
    self_overlap: Scalar
    classification_error: Scalar
    mistakes: Scalar
    converged: Bool[Array, ""]


class Quenched(Learner):
    """free_entropy: (1/N) E ln Z, zero at R = 1 for binary weights. entropy: (1/N) times that of
    the students, without the constant of the sphere for spherical ones. bayes_error:
    arccos(sqrt(q))/pi, that of the majority of students at T = 0.

    replicon: of binary or spherical weights E (variance of a weight)^2 alpha E (dg/dw)^2; the
    replica-symmetric state is stable against its breaking where it is below 1 (de Almeida, Thouless
    1978).
    """

    free_entropy: Scalar
    entropy: Scalar
    bayes_error: Scalar
    replicon: Scalar
    residual: Scalar


class Annealed(Result):
    """The maximum of the annealed free entropy that is reached from R = 0; `free_entropy` is zero
    at R = 1.
    """

    teacher_overlap: Scalar
    classification_error: Scalar
    free_entropy: Scalar
    converged: Bool[Array, ""]


class WarmTransitions(Result):
    """Values of alpha / T. thermodynamic, overlap: where R = 1 becomes the state of largest free
    entropy, and R of the other state there. spinodal, spinodal_overlap: where that state ends."""

    thermodynamic: Scalar
    overlap: Scalar
    spinodal: Scalar
    spinodal_overlap: Scalar


class BinaryTransitions(Result):
    """Of binary weights at the system's temperature. thermodynamic: alpha at which R = 1 becomes
    the state of largest free entropy, and overlap: R of the other state there. freezing: alpha at
    which the entropy of that state vanishes, infinite where it ends before. spinodal,
    spinodal_overlap: alpha at which that state ends, and its R there.
    """

    thermodynamic: Scalar
    overlap: Scalar
    freezing: Scalar
    spinodal: Scalar
    spinodal_overlap: Scalar
    converged: Bool[Array, ""]


@theory(differentiable=False)
def quenched(system: ThermalPerceptron, *, max_steps: int = 2000) -> Quenched:
    """The solution reached from R = 0. For binary weights it is metastable beyond their first-order
    transition, and beyond its spinodal it is the teacher: R = q = 1, free entropy, entropy and
    errors 0. residual: the last change of ln qh and ln Rh.
    """
    binary = system.weights == "binary"

    def update(fields: Float[Array, "2"], system: ThermalPerceptron) -> Float[Array, "2"]:
        known, overlap = _overlaps(system, *jnp.exp(fields))
        taught = binary & (known >= 1 - _KNOWN)
        labels = _labels(system, *(jnp.where(taught, 0.5, part) for part in (known, overlap)))
        return jnp.where(taught, _TAUGHT, jnp.log(jnp.stack([labels.power, labels.alignment])))

    start = jnp.full(2, jnp.log(0.01 * jnp.minimum(system.sample_ratio, 1.0)))
    solved = prolonged_fixed_point(update, start, system, tolerance=1e-11, max_steps=max_steps)
    power, alignment = jnp.exp(solved.value)
    known, overlap = _overlaps(system, power, alignment)
    taught = binary & (known >= 1 - _KNOWN)
    power, alignment, known, overlap = (
        jnp.where(taught, 0.5, part) for part in (power, alignment, known, overlap)
    )
    labels = _labels(system, known, overlap)
    free, spread = _weights(system, known, overlap, power, alignment)
    free = free + labels.free_entropy

    def unless_taught(value: Scalar, taught_value: float) -> Scalar:
        return jnp.where(taught, taught_value, value)

    return Quenched(
        teacher_overlap=unless_taught(overlap, 1.0),
        self_overlap=unless_taught(known, 1.0),
        classification_error=unless_taught(jnp.arccos(jnp.clip(overlap, -1, 1)) / np.pi, 0.0),
        mistakes=unless_taught(labels.mistakes, 0.0),
        converged=solved.converged,
        free_entropy=unless_taught(free, 0.0),
        entropy=unless_taught(free + _inverse(system) * system.sample_ratio * labels.mistakes, 0.0),
        bayes_error=unless_taught(jnp.arccos(jnp.sqrt(jnp.clip(known, 0, 1))) / np.pi, 0.0),
        replicon=unless_taught(spread * labels.curvature, 0.0),
        residual=solved.residual,
    )


@theory(differentiable=False)
def annealed(system: ThermalPerceptron, *, points: int = 20001) -> Annealed:
    """ln of the mean of Z: s(R) + alpha ln(1 - (1 - e) arccos(R)/pi), e = exp(-1/T), at its first
    maximum in R.

    s(R) = -sum (1 +- R)/2 ln((1 +- R)/2), or ln(1 - R^2)/2 for spherical weights. From a grid and a
    parabola: 1e-8. `converged` is False where there is no maximum below R = 1.
    """

    def gain(error: Array) -> Array:
        return system.sample_ratio * jnp.log1p(-(1 - _penalty(system)) * error)

    return _first_maximum(system, gain, points)


def _warm(system: ThermalPerceptron, **options: object) -> None:
    if not float(system.temperature) > 0:
        raise ValueError(
            "ThermalPerceptron.temperature = 0: the limit of high temperatures needs one; must be > 0"
        )


@theory(differentiable=False, check=_warm)
def high_temperature(system: ThermalPerceptron, *, points: int = 20001) -> Annealed:
    """The limit T -> infinity at alpha / T held, where every example only adds its mean error: free
    entropy s(R) - (alpha / T) arccos(R)/pi, at its first maximum in R (Seung, Sompolinsky, Tishby
    1992). As `annealed` otherwise.

    Raises `ValueError` for temperature 0.
    """
    return _first_maximum(
        system, lambda error: -system.sample_ratio / system.temperature * error, points
    )


@theory(traced=False)
def high_temperature_transitions(system: ThermalPerceptron) -> WarmTransitions:
    """Of binary weights for T -> infinity, to 1e-9; nothing of the system's numbers is used. Saddle
    points have alpha / T = pi sqrt(1 - R^2) artanh(R): the spinodal is its maximum, and the
    transition where the free entropy is zero.

    Raises `ValueError` for spherical weights, which have none.
    """
    if system.weights != "binary":
        raise ValueError(
            "ThermalPerceptron.weights: spherical weights have no transition; must be binary"
        )

    def ratio(overlap: float) -> float:
        return float(np.pi * np.sqrt(1 - overlap**2) * np.arctanh(overlap))

    def free(overlap: float) -> float:
        up, down = (1 + overlap) / 2, (1 - overlap) / 2
        return float(
            -up * np.log(up) - down * np.log(down) - ratio(overlap) * np.arccos(overlap) / np.pi
        )

    # where d ratio/dR = 0
    end = brentq(lambda overlap: overlap * np.arctanh(overlap) - 1, 0.1, 0.999, xtol=1e-14)
    place = brentq(free, 0.01, end, xtol=1e-14)
    return WarmTransitions(*(jnp.asarray(x) for x in (ratio(place), place, ratio(end), end)))


def _first_maximum(
    system: ThermalPerceptron, gain: Callable[[Array], Array], points: int
) -> Annealed:
    """Of s(R) + gain(error) as R grows from 0."""
    overlap = jnp.sin(np.pi / 2 * jnp.linspace(0.0, 1.0, points)[:-1])
    entropy = jnp.log1p(-(overlap**2)) / 2
    if system.weights == "binary":
        up, down = (1 + overlap) / 2, (1 - overlap) / 2
        entropy = -(xlogy(up, up) + xlogy(down, down))
    value = entropy + gain(jnp.arccos(overlap) / np.pi)
    falls = value[1:] < value[:-1]
    place = jnp.argmax(falls)
    i = jnp.clip(place, 1, points - 3)
    left, middle, right = value[i - 1], value[i], value[i + 1]
    shift = (left - right) / (2 * (left - 2 * middle + right))
    best = jnp.sin(np.pi / 2 * (i + shift) / (points - 1))
    free = middle - (left - right) * shift / 4
    return Annealed(best, jnp.arccos(best) / np.pi, free, jnp.any(falls) & (place > 0))


def _binary(system: ThermalPerceptron, **options: object) -> None:
    if system.weights != "binary":
        raise ValueError(
            "ThermalPerceptron.weights: spherical weights have no transition; must be binary"
        )


class _Solution(NamedTuple):
    """The alpha that has a given Rh, and what is found there."""

    sample_ratio: Scalar
    overlap: Scalar
    free_entropy: Scalar
    entropy: Scalar
    converged: Bool[Array, ""]


def _below_the_limit(system: ThermalPerceptron, **options: object) -> None:
    _binary(system)
    if float(system.temperature) > _HOTTEST:
        raise ValueError(
            f"ThermalPerceptron.temperature = {float(system.temperature):g}: must be <= {_HOTTEST:g}, where digits are lost; "
            "high_temperature_transitions has the limit"
        )


@theory(traced=False, check=_below_the_limit)
def binary_transitions(system: ThermalPerceptron) -> BinaryTransitions:
    """On the curve of all solutions, to 1e-9 (the overlap at the spinodal, the place of a maximum,
    to 1e-7); alpha of the system is not used.

    Rh from 0 on leads along the state reached from R = 0 to its spinodal, where alpha is largest,
    and back along a state that nothing reaches. Transitions are zeros of the free entropy and of
    the entropy on the way there. Raises `ValueError` for spherical weights, and for temperatures
    above 1e6.
    """

    def at(log_alignment: float) -> _Solution:
        return _solution(system, jnp.asarray(log_alignment))

    def zero(name: str) -> _Solution:
        return at(brentq(lambda u: float(getattr(at(u), name)), _UNALIGNED, end, xtol=1e-13))

    end = minimize_scalar(
        lambda u: -at(u).sample_ratio, bounds=_SPINODAL, method="bounded", options={"xatol": 1e-10}
    ).x
    last, transition = at(end), zero("free_entropy")
    freezes = last.entropy < 0
    frozen = zero("entropy") if freezes else last
    return BinaryTransitions(
        thermodynamic=transition.sample_ratio,
        overlap=transition.overlap,
        freezing=jnp.where(freezes, frozen.sample_ratio, jnp.inf),
        spinodal=last.sample_ratio,
        spinodal_overlap=last.overlap,
        converged=last.converged & transition.converged & frozen.converged,
    )


@eqx.filter_jit
def _solution(system: ThermalPerceptron, log_alignment: Scalar) -> _Solution:
    """Rh/qh = (E dZ0/dM g)/(E g^2), at the q and R of both, has one root qh; then alpha = qh / E
    g^2.
    """
    one, alignment = system.with_(sample_ratio=1.0), jnp.exp(log_alignment)

    def averages(log_share: Scalar) -> tuple[Scalar, Scalar, Scalar, _Labels]:
        power = alignment * jnp.exp(-log_share)
        known, overlap = _overlaps(one, power, alignment)
        return power, known, overlap, _labels(one, known, overlap)

    def lack(log_share: Scalar, _: None) -> Scalar:
        labels = averages(log_share)[-1]
        return jnp.log(labels.alignment / labels.power) - log_share

    share = decreasing_root(lack, jnp.asarray(-0.5), 1.5 + jnp.log1p(system.temperature))
    power, known, overlap, labels = averages(share.value)
    ratio = power / labels.power
    free = _weights(one, known, overlap, power, alignment)[0] + ratio * labels.free_entropy
    return _Solution(
        ratio, overlap, free, free + _inverse(system) * ratio * labels.mistakes, share.converged
    )


def _inverse(system: ThermalPerceptron) -> Scalar:
    """1/T, of which T = 0 has no use: 0."""
    cold = system.temperature == 0
    return jnp.where(cold, 0.0, 1 / jnp.where(cold, 1.0, system.temperature))


def _penalty(system: ThermalPerceptron) -> Scalar:
    """e = exp(-1/T)."""
    return jnp.where(system.temperature == 0, 0.0, jnp.exp(-_inverse(system)))


def _overlaps(system: ThermalPerceptron, power: Scalar, alignment: Scalar) -> tuple[Scalar, Scalar]:
    """q and R from qh and Rh."""
    if system.weights == "spherical":
        rest = 2 / (1 + jnp.sqrt(1 + 4 * (power + alignment**2)))
        return 1 - rest, alignment * rest
    z, weight = standard_normal_rule([-alignment / jnp.sqrt(power)], SHARP)
    m = jnp.tanh(jnp.sqrt(power) * z + alignment)
    return jnp.sum(weight * m**2), jnp.sum(weight * m)


class _Labels(NamedTuple):
    """alpha times E g^2, E dZ0/dM g, E ln Z and E (dg/dw)^2, and the errors per training
    example."""

    power: Scalar
    alignment: Scalar
    free_entropy: Scalar
    curvature: Scalar
    mistakes: Scalar


def _labels(system: ThermalPerceptron, known: Scalar, overlap: Scalar) -> _Labels:
    """Averages over the student's field and labels; both labels give the same."""
    e = _penalty(system)
    student = SignLabels(e / (1 + e))
    rest = jnp.maximum(1 - known, _LEAST)
    # The student's evidence e + (1 - e) Phi(u) bends where both terms are equal, at u far below
    # zero when T is small.
    bend = jnp.sqrt(rest) * norm.ppf(jnp.maximum(student.flip, 1e-300))
    w, weight, evidence, change = labelled_nodes(
        SignLabels(), 1.0, Fields(known, 1.0, overlap), (bend,), panels=SHARP
    )
    g = student.denoiser(1.0, w, rest)
    slope = student.denoiser_slope(1.0, w, rest)
    log_evidence = student.log_evidence(1.0, w, rest)
    warm = e > 0  # at T = 0 no student makes a mistake
    wrong = jnp.where(
        warm,
        student.flip * jnp.exp(log_cdf(-w / jnp.sqrt(rest)) - jnp.where(warm, log_evidence, 0.0)),
        0.0,
    )
    parts = (
        evidence * g**2,
        change * g,
        evidence * log_evidence,
        evidence * slope**2,
        evidence * wrong,
    )
    power, alignment, free, curvature, errors = (
        2 * jnp.sum(weight * part, axis=-1) for part in parts
    )
    ratio = system.sample_ratio
    return _Labels(
        ratio * power, ratio * alignment, ratio * (free + jnp.log1p(e)), ratio * curvature, errors
    )


def _weights(
    system: ThermalPerceptron, known: Scalar, overlap: Scalar, power: Scalar, alignment: Scalar
) -> tuple[Scalar, Scalar]:
    """What the weights add to the free entropy, and the mean square of the variance of one."""
    if system.weights == "spherical":
        rest = jnp.maximum(1 - known, _LEAST)
        return jnp.log(rest) / 2 + (known - overlap**2) / (2 * rest), rest**2
    z, weight = standard_normal_rule([-alignment / jnp.sqrt(power)], SHARP)
    field = jnp.abs(jnp.sqrt(power) * z + alignment)
    free = (
        jnp.sum(weight * (field + jnp.log1p(jnp.exp(-2 * field))))
        - power * (1 - known) / 2
        - alignment * overlap
    )
    return free, jnp.sum(weight / jnp.cosh(jnp.minimum(field, 300.0)) ** 4)


# ------------------------------------------------------------------------------------------------
# The overlap with the teacher that a learning rule reaches as N grows.

_FIRST = 1e-7  # sqrt(alpha) at which the flow of Rosenblatt's rule starts


class RuleError(Result):
    """teacher_overlap: R, the cosine of the angle to the teacher. classification_error:
    arccos(R)/pi. stability: smallest margin sqrt(N) y w.x / |w| of the examples, for maximal
    stability; NaN for other rules."""

    teacher_overlap: Scalar
    classification_error: Scalar
    stability: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


class OnlineError(Result):
    """teacher_overlap: R, the cosine of the angle to the teacher. length: |w| / sqrt(N).
    classification_error: arccos(R)/pi.
    """

    teacher_overlap: Scalar
    length: Scalar
    classification_error: Scalar
    converged: Bool[Array, ""]


@theory
def batch_rule(system: BatchPerceptron) -> RuleError:
    """Hebb: R^2 = 2 alpha/(pi + 2 alpha) (Vallet 1989). Pseudo-inverse: R^2 = 2 alpha (1 -
    alpha)/(pi - 2 alpha) for alpha < 1, 2 (alpha - 1)/(pi + 2 alpha - 4) above, chance at alpha =
    1; maximal stability: see `channels.largest_margin` (Opper, Kinzel, Kleinz, Nehl 1990).
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
    """The flow of w.w0/N and Q = |w|^2/N in alpha, exact as N grows (Kinzel, Rujan 1990; Biehl,
    Schwarze 1992), to 1e-8.

    With c = sqrt(2/pi), eta = rate, R = w.w0/(N sqrt(Q)), M = R sqrt(Q) and epsilon = arccos(R)/pi:
    hebb: dM = eta c, dQ = 2 eta c M + eta^2. adaline: dM = eta (c - M), dQ = 2 eta (c M - Q) +
    eta^2 (1 - 2 c M + Q). rosenblatt: dM = eta c (1 - R)/2, dQ = -eta c sqrt(Q) (1 - R) + eta^2
    epsilon. optimal: R^2 = q, dq = (1 - q)^2 I(q, 1 - q).
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
    return OnlineError(cosine, jnp.sqrt(power), jnp.arccos(jnp.clip(cosine, -1, 1)) / np.pi, sound)


def _rosenblatt(
    alpha: Scalar | float, rate: Scalar | float
) -> tuple[Scalar, Scalar, Bool[Array, ""]]:
    """M and Q: with w = rate v the rate drops out; v grows as sqrt(alpha) at first, and sqrt(alpha)
    is the time.
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
    """Q of dQ = -(2 eta - eta^2) Q + 2 eta (1 - eta) c M + eta^2, M = c (1 - exp(-eta alpha)), Q =
    0 at first.
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

    # integral of exp(-decay (alpha - t) - eta t) over t
    lag = jnp.exp(-rate * alpha) * grown(rate - decay)
    return constant * grown(-decay) - 2 * rate * (1 - rate) * c * lag


def _optimal(alpha: Scalar | float) -> OnlineError:
    def field(state: Array, args: Array) -> Array:
        rest = jnp.exp(state[0])
        return -jnp.stack([rest * SignLabels().averages(1 - rest, rest).information])

    solved = flow(
        field, jnp.zeros(1), jnp.asarray(alpha)[None], jnp.zeros(()), rtol=1e-10, atol=1e-12
    )
    cosine = jnp.sqrt(-jnp.expm1(solved.value[0, 0]))
    return OnlineError(cosine, cosine, jnp.arccos(cosine) / np.pi, solved.converged)
