"""Replica-symmetric theory of a student at a temperature, its annealed approximation, and the transitions of binary weights.

Györgyi 1990; Sompolinsky, Tishby, Seung 1990; Seung, Sompolinsky, Tishby 1992. A temperature acts as if labels were turned over
with probability e/(1 + e), e = exp(-1/T): the student's likelihood of a label is e + (1 - e) Phi(u). With the student's field w
of variance q, what is left of it V = 1 - q, and the teacher's field of covariance R,

    qh = alpha E g^2,  Rh = alpha E sum_y (dZ0/dM) g;   binary: q = E tanh^2(sqrt(qh) z + Rh),  R = E tanh(sqrt(qh) z + Rh);
    spherical: q = (qh + Rh^2)(1 - q)^2,  R = Rh (1 - q).

The replica-symmetric entropy of binary weights becomes negative at low T, where it is wrong.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy
from jaxtyping import Array, Bool, Float
from scipy.optimize import brentq, minimize_scalar

from orderparam.channels import Fields, SignLabels, labelled_nodes
from orderparam.channels.base import SHARP
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.quadrature import standard_normal_rule
from orderparam.gaussian.tail import log_cdf
from orderparam.priors import Rademacher
from orderparam.systems.perceptron.equilibrium.model import ThermalPerceptron
from orderparam.systems.perceptron.equilibrium.prolonged import prolonged_fixed_point

Scalar = Float[Array, ""]

_KNOWN = 1e-6  # 1 - q below which binary weights are drawn to the teacher; 1 - R^2/q, of order (1 - q)^2, is soon rounding
_LEAST = 1e-12  # 1 - q of spherical ones at the least
_TAUGHT = np.log(1e4)  # ln qh and ln Rh of binary weights that are the teacher's: 1 - q is zero to rounding
_TEACHER = 0.99  # an overlap that only the state R = 1 has
_HOTTEST = 1.0


class Learner(Result):
    """teacher_overlap: R. self_overlap: q. classification_error: P(wrong on a new input), arccos(R)/pi. mistakes: per example."""

    teacher_overlap: Scalar
    self_overlap: Scalar
    classification_error: Scalar
    mistakes: Scalar
    converged: Bool[Array, ""]


class Quenched(Learner):
    """free_entropy: (1/N) E ln Z, zero at R = 1 for binary weights. entropy: (1/N) times that of the students, without
    the constant of the sphere for spherical ones. bayes_error: arccos(sqrt(q))/pi, that of the majority of students at T = 0.

    replicon: of binary or spherical weights E (variance of a weight)^2 alpha E (dg/dw)^2; the replica-symmetric state is stable
    against its breaking where it is below 1 (de Almeida, Thouless 1978).
    """

    free_entropy: Scalar
    entropy: Scalar
    bayes_error: Scalar
    replicon: Scalar
    residual: Scalar


class Annealed(Result):
    """The maximum of the annealed free entropy that is reached from R = 0; `free_entropy` is zero at R = 1."""

    teacher_overlap: Scalar
    classification_error: Scalar
    free_entropy: Scalar
    converged: Bool[Array, ""]


class WarmTransitions(Result):
    """Values of alpha / T. thermodynamic, overlap: where R = 1 becomes the state of largest free entropy, and R of the other
    state there. spinodal, spinodal_overlap: where that state ends."""

    thermodynamic: Scalar
    overlap: Scalar
    spinodal: Scalar
    spinodal_overlap: Scalar


class BinaryTransitions(Result):
    """Of binary weights at the system's temperature. thermodynamic: alpha at which R = 1 becomes the state of largest free
    entropy. freezing: alpha at which the entropy of the state R < 1 vanishes. spinodal: alpha at which that state ends, known at
    T = 0 only (NaN otherwise). overlap: R of that state at the thermodynamic transition.
    """

    thermodynamic: Scalar
    freezing: Scalar
    spinodal: Scalar
    overlap: Scalar


@theory(differentiable=False)
def quenched(system: ThermalPerceptron, *, max_steps: int = 2000) -> Quenched:
    """The solution reached from R = 0. For binary weights it is metastable beyond their first-order transition, and beyond its
    spinodal it is the teacher: R = q = 1, free entropy, entropy and errors 0. residual: the last change of ln qh and ln Rh.
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
    power, alignment, known, overlap = (jnp.where(taught, 0.5, part) for part in (power, alignment, known, overlap))
    labels = _labels(system, known, overlap)
    free, spread = _weights(system, known, overlap, power, alignment)
    free = free + labels.free_entropy
    inverse = jnp.where(system.temperature > 0, 1 / jnp.where(system.temperature > 0, system.temperature, 1.0), 0.0)

    def unless_taught(value: Scalar, taught_value: float) -> Scalar:
        return jnp.where(taught, taught_value, value)

    return Quenched(
        teacher_overlap=unless_taught(overlap, 1.0),
        self_overlap=unless_taught(known, 1.0),
        classification_error=unless_taught(jnp.arccos(jnp.clip(overlap, -1, 1)) / np.pi, 0.0),
        mistakes=unless_taught(labels.mistakes, 0.0),
        converged=solved.converged,
        free_entropy=unless_taught(free, 0.0),
        entropy=unless_taught(free + inverse * system.sample_ratio * labels.mistakes, 0.0),
        bayes_error=unless_taught(jnp.arccos(jnp.sqrt(jnp.clip(known, 0, 1))) / np.pi, 0.0),
        replicon=unless_taught(spread * labels.curvature, 0.0),
        residual=solved.residual,
    )


@theory(differentiable=False)
def annealed(system: ThermalPerceptron, *, points: int = 20001) -> Annealed:
    """ln of the mean of Z: s(R) + alpha ln(1 - (1 - e) arccos(R)/pi), e = exp(-1/T), at its first maximum in R.

    s(R) = -sum (1 +- R)/2 ln((1 +- R)/2), or ln(1 - R^2)/2 for spherical weights. From a grid and a parabola: 1e-8. `converged`
    is False where there is no maximum below R = 1.
    """

    def gain(error: Array) -> Array:
        return system.sample_ratio * jnp.log1p(-(1 - _penalty(system)) * error)

    return _first_maximum(system, gain, points)


def _warm(system: ThermalPerceptron, **options: object) -> None:
    if not float(system.temperature) > 0:
        raise ValueError("ThermalPerceptron.temperature = 0: the limit of high temperatures needs one; must be > 0")


@theory(differentiable=False, check=_warm)
def high_temperature(system: ThermalPerceptron, *, points: int = 20001) -> Annealed:
    """The limit T -> infinity at alpha / T held, where every example only adds its mean error: free entropy
    s(R) - (alpha / T) arccos(R)/pi, at its first maximum in R (Seung, Sompolinsky, Tishby 1992). As `annealed` otherwise.

    Raises `ValueError` for temperature 0.
    """
    return _first_maximum(system, lambda error: -system.sample_ratio / system.temperature * error, points)


@theory(traced=False)
def high_temperature_transitions(system: ThermalPerceptron) -> WarmTransitions:
    """Of binary weights for T -> infinity, to 1e-9; nothing of the system's numbers is used. Saddle points have
    alpha / T = pi sqrt(1 - R^2) artanh(R): the spinodal is its maximum, and the transition where the free entropy is zero.

    Raises `ValueError` for spherical weights, which have none.
    """
    if system.weights != "binary":
        raise ValueError("ThermalPerceptron.weights: spherical weights have no transition; must be binary")

    def ratio(overlap: float) -> float:
        return float(np.pi * np.sqrt(1 - overlap**2) * np.arctanh(overlap))

    def free(overlap: float) -> float:
        up, down = (1 + overlap) / 2, (1 - overlap) / 2
        return float(-up * np.log(up) - down * np.log(down) - ratio(overlap) * np.arccos(overlap) / np.pi)

    end = minimize_scalar(lambda overlap: -ratio(overlap), bounds=(0.1, 0.999), method="bounded", options={"xatol": 1e-12}).x
    place = brentq(free, 0.01, end, xtol=1e-14)
    return WarmTransitions(*(jnp.asarray(x) for x in (ratio(place), place, ratio(end), end)))


def _first_maximum(system: ThermalPerceptron, gain: Callable[[Array], Array], points: int) -> Annealed:
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
        raise ValueError("ThermalPerceptron.weights: spherical weights have no transition; must be binary")
    if float(system.temperature) > _HOTTEST:
        raise ValueError(f"ThermalPerceptron.temperature = {float(system.temperature):g}: must be <= {_HOTTEST:g} here")


@theory(traced=False, check=_binary)
def binary_transitions(system: ThermalPerceptron) -> BinaryTransitions:
    """Zeros of free entropy and entropy of the state R < 1 by bracketing in alpha, to 1e-9; alpha of the system is not used.

    At T = 0 the spinodal is the largest alpha = qh / I(q(qh)) along the curve of solutions, and the entropy is the free entropy.
    Raises `ValueError` for spherical weights and temperatures above 1.
    """

    def value(alpha: float, name: str) -> float:
        """Of the state R < 1; -1 beyond its end."""
        found = quenched(system.with_(sample_ratio=alpha))
        return float(getattr(found, name)) if float(found.teacher_overlap) < _TEACHER else -1.0

    spinodal, ceiling = np.nan, 1.0
    if system.temperature == 0:
        found = minimize_scalar(lambda u: -_zero_temperature_ratio(u), bracket=(0.0, 1.0, 2.5), options={"xtol": 1e-9})
        spinodal = ceiling = -float(found.fun)
    while value(ceiling * 0.999, "free_entropy") > 0:
        ceiling *= 1.1
    transition = brentq(lambda x: value(x, "free_entropy"), 0.5, 0.999 * ceiling, xtol=1e-11)
    if system.temperature == 0:
        freezing = transition
    else:
        while value(ceiling, "entropy") > 0:
            ceiling *= 1.05
        freezing = brentq(lambda x: value(x, "entropy"), 0.5, ceiling, xtol=1e-11)
        if abs(value(freezing * (1 - 1e-9), "entropy")) > 1e-6:  # the state ends before its entropy vanishes
            freezing = np.nan
    overlap = value(transition, "teacher_overlap")
    return BinaryTransitions(*(jnp.asarray(x) for x in (transition, freezing, spinodal, overlap)))


def _zero_temperature_ratio(log_precision: float) -> float:
    """alpha at which qh = Rh is a solution at T = 0, where q = R."""
    precision = jnp.exp(log_precision)
    weights = Rademacher().averages(precision)
    return float(precision / SignLabels().averages(weights.overlap, weights.error).information)


def _penalty(system: ThermalPerceptron) -> Scalar:
    """e = exp(-1/T)."""
    cold = system.temperature == 0
    return jnp.where(cold, 0.0, jnp.exp(-1 / jnp.where(cold, 1.0, system.temperature)))


def _overlaps(system: ThermalPerceptron, power: Scalar, alignment: Scalar) -> tuple[Scalar, Scalar]:
    """q and R from qh and Rh."""
    if system.weights == "spherical":
        rest = 2 / (1 + jnp.sqrt(1 + 4 * (power + alignment**2)))
        return 1 - rest, alignment * rest
    z, weight = standard_normal_rule([-alignment / jnp.sqrt(power)], SHARP)
    m = jnp.tanh(jnp.sqrt(power) * z + alignment)
    return jnp.sum(weight * m**2), jnp.sum(weight * m)


class _Labels(NamedTuple):
    """alpha times E g^2, E dZ0/dM g, E ln Z and E (dg/dw)^2, and the errors per training example."""

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
    w, weight, evidence, change = labelled_nodes(SignLabels(), 1.0, Fields(known, 1.0, overlap), panels=SHARP)
    g = student.denoiser(1.0, w, rest)
    slope = student.denoiser_slope(1.0, w, rest)
    log_evidence = student.log_evidence(1.0, w, rest)
    wrong = jnp.where(e > 0, student.flip, 0.0) * jnp.exp(log_cdf(-w / jnp.sqrt(rest)) - log_evidence)
    parts = (evidence * g**2, change * g, evidence * log_evidence, evidence * slope**2, evidence * wrong)
    power, alignment, free, curvature, errors = (2 * jnp.sum(weight * part, axis=-1) for part in parts)
    ratio = system.sample_ratio
    return _Labels(ratio * power, ratio * alignment, ratio * (free + jnp.log1p(e)), ratio * curvature, errors)


def _weights(
    system: ThermalPerceptron, known: Scalar, overlap: Scalar, power: Scalar, alignment: Scalar
) -> tuple[Scalar, Scalar]:
    """What the weights add to the free entropy, and the mean square of the variance of one."""
    if system.weights == "spherical":
        rest = jnp.maximum(1 - known, _LEAST)
        return jnp.log(rest) / 2 + (known - overlap**2) / (2 * rest), rest**2
    z, weight = standard_normal_rule([-alignment / jnp.sqrt(power)], SHARP)
    field = jnp.abs(jnp.sqrt(power) * z + alignment)
    free = jnp.sum(weight * (field + jnp.log1p(jnp.exp(-2 * field)))) - power * (1 - known) / 2 - alignment * overlap
    return free, jnp.sum(weight / jnp.cosh(jnp.minimum(field, 300.0)) ** 4)
