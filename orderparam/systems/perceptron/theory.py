"""Replica-symmetric theory of the perceptron in equilibrium at a temperature, and the transitions
of binary weights. Annealed theory and the limit of high temperature are in `annealed`.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float

from orderparam.channels import Fields, SignLabels, labelled_nodes
from orderparam.channels.base import SHARP
from orderparam.core.late import brentq, minimize_scalar
from orderparam.core.needs import at_most, equal
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.quadrature import standard_normal_rule
from orderparam.gaussian.tail import log_cdf
from orderparam.solve.root import decreasing_root
from orderparam.systems.perceptron.model import ThermalPerceptron
from orderparam.systems.perceptron.prolonged import prolonged_fixed_point

# ------------------------------------------------------------------------------------------------
# Replica-symmetric theory of a student at a temperature, and the transitions of binary weights.
#
# Source: Györgyi 1990; Sompolinsky, Tishby, Seung 1990; Seung, Sompolinsky, Tishby 1992. An error
# costs the Boltzmann factor e = exp(-1/T), so that the student's likelihood of a label is e + (1 -
# e) Phi(u). Up to the factor 1 + e this is the likelihood of a label that is flipped with
# probability e/(1 + e). The mean w of the student's field has variance q and covariance R with the
# teacher's field. The variance of the student's field around w is V = 1 - q. Let u = y w/sqrt(V)
# and g = d ln[e + (1 - e) Phi(u)]/dw. Given w the teacher's field has the mean M, and Z0 is the
# probability that the teacher gives the label y. The equations are
#
#     qh = alpha E g^2,  Rh = alpha E sum_y (dZ0/dM) g;
#     binary: q = E tanh^2(sqrt(qh) z + Rh),  R = E tanh(sqrt(qh) z + Rh);
#     spherical: q = (qh + Rh^2)(1 - q)^2,  R = Rh (1 - q).
#
# In the code qh is called `power` and Rh `alignment`. The replica-symmetric entropy of binary
# weights becomes negative at low T; replica symmetry is wrong there.

Scalar = Float[Array, ""]

# Binary weights are taken to be the teacher's if 1 - q is below this value, because then 1 - R^2/q,
# which is of order (1 - q)^2, is lost to rounding.
_KNOWN = 1e-6
_LEAST = 1e-12  # smallest 1 - q that is used
# Value of ln qh and ln Rh if binary weights equal the teacher's; at this value 1 - q is zero to
# rounding.
_TAUGHT = np.log(1e4)
_UNALIGNED = -6.0  # ln Rh of students with almost no overlap with the teacher
_HOTTEST = 1e6  # highest temperature of `binary_transitions`
_SPINODAL = (-1.0, 2.0)  # bounds of ln Rh at the spinodal: 1.2 at T = 0, 0.2 as T grows


class Learner(Result):
    """Overlaps and errors of a student.

    Fields:
        teacher_overlap: R, the overlap of a student with the teacher.
        self_overlap: q, the overlap of two students that learn the same examples.
        classification_error: probability of a wrong label on a new input, arccos(R)/pi.
        mistakes: fraction of the training examples that a student misclassifies.
        converged: for a theory, whether the equations were solved; for a simulation, whether it has
            reached equilibrium.
    """

    teacher_overlap: Scalar
    self_overlap: Scalar
    classification_error: Scalar
    mistakes: Scalar
    converged: Bool[Array, ""]


class Quenched(Learner):
    """Replica-symmetric state of a student.

    Fields:
        free_entropy: (1/N) E ln Z; for binary weights it is zero at R = 1.
        entropy: entropy of the students per weight; for spherical weights relative to the entropy
            of the whole sphere.
        bayes_error: arccos(sqrt(q))/pi, the error of the majority vote of the students at T = 0.
        replicon: alpha E (dg/dw)^2 times the mean square of the variance of a weight. The
            replica-symmetric state is stable where it is below 1 (de Almeida, Thouless 1978).
        residual: change of ln qh and ln Rh, the logarithms of the conjugates, in the last step.
    """

    free_entropy: Scalar
    entropy: Scalar
    bayes_error: Scalar
    replicon: Scalar
    residual: Scalar


class BinaryTransitions(Result):
    """Transitions of the perceptron with binary weights at the system's temperature.

    Fields:
        thermodynamic: sample ratio alpha above which perfect generalisation, R = 1, has the largest
            free entropy.
        overlap: overlap R, at that alpha, of the competing state, which is the state R < 1 of
            `quenched`.
        freezing: alpha at which the entropy of the state with R < 1 vanishes; infinite if this
            state ends at a smaller alpha.
        freezes: whether the entropy of the state with R < 1 vanishes before the state ends.
        spinodal: alpha at which the state with R < 1 ends.
        spinodal_overlap: R of this state at the spinodal.
        converged: whether all equations were solved.
    """

    thermodynamic: Scalar
    overlap: Scalar
    freezing: Scalar
    freezes: Bool[Array, ""]
    spinodal: Scalar
    spinodal_overlap: Scalar
    converged: Bool[Array, ""]


@theory(differentiable=False)
def quenched(system: ThermalPerceptron, *, max_steps: int = 2000) -> Quenched:
    r"""Replica-symmetric state of a student in the limit of large N, on the branch that begins at R
    = 0.

    Let $e = e^{-1/T}$ (T = `temperature`), let $w \sim N(0, q)$ be the mean field of the student,
    $u = y w/\sqrt{1 - q}$ and $g = \partial_w \ln[e + (1 - e) \Phi(u)]$. The teacher's field has a
    mean M given w; let $Z_0(y, w)$ be the probability of label y by the teacher. With $\alpha$ =
    `sample_ratio` and z standard normal,

    $$ \hat q = \alpha\, E g^2, \qquad \hat R = \alpha\, E \sum_y \partial_M Z_0\, g $$

    $$ \text{binary: } q = E \tanh^2(\sqrt{\hat q} z + \hat R), \quad R = E \tanh(\sqrt{\hat q} z
          + \hat R); \qquad
       \text{spherical: } q = (\hat q + \hat R^2)(1 - q)^2, \quad R = \hat R (1 - q) $$

    determine `self_overlap` q and `teacher_overlap` R. For binary weights this state is metastable
    beyond the first-order transition, where its `free_entropy` is negative. Beyond its spinodal the
    solution is the teacher: R = q = 1, and free entropy, entropy and errors are 0.

    Args:
        max_steps: largest number of pairs of iteration steps.

    Accuracy: 1e-8. For binary weights a negative `entropy` shows that replica symmetry is broken.
    This theory cannot be differentiated.

    Source: Györgyi (1990); Sompolinsky, Tishby, Seung (1990); Seung, Sompolinsky, Tishby (1992).

    >>> found = quenched(ThermalPerceptron(1.0, weights="spherical"))
    >>> round(float(found.teacher_overlap), 6), round(float(found.bayes_error), 6)
    (0.486264, 0.254373)
    """
    binary = system.weights == "binary"

    def update(fields: Float[Array, "2"], system: ThermalPerceptron) -> Float[Array, "2"]:
        self_overlap, overlap = _overlaps(system, *jnp.exp(fields))
        generalised = binary & (self_overlap >= 1 - _KNOWN)
        labels = _labels(
            system, *(jnp.where(generalised, 0.5, part) for part in (self_overlap, overlap))
        )
        return jnp.where(generalised, _TAUGHT, jnp.log(jnp.stack([labels.power, labels.alignment])))

    start = jnp.full(2, jnp.log(0.01 * jnp.minimum(system.sample_ratio, 1.0)))
    solved = prolonged_fixed_point(update, start, system, tolerance=1e-11, max_steps=max_steps)
    power, alignment = jnp.exp(solved.value)
    self_overlap, overlap = _overlaps(system, power, alignment)
    # If the student is the teacher, all results are known (see `unless_taught`). The averages are
    # computed all the same, and the value 0.5 keeps them finite.
    generalised = binary & (self_overlap >= 1 - _KNOWN)
    power, alignment, self_overlap, overlap = (
        jnp.where(generalised, 0.5, part) for part in (power, alignment, self_overlap, overlap)
    )
    labels = _labels(system, self_overlap, overlap)
    free, spread = _weights(system, self_overlap, overlap, power, alignment)
    free = free + labels.free_entropy

    def unless_taught(value: Scalar, taught_value: float) -> Scalar:
        return jnp.where(generalised, taught_value, value)

    return Quenched(
        teacher_overlap=unless_taught(overlap, 1.0),
        self_overlap=unless_taught(self_overlap, 1.0),
        classification_error=unless_taught(jnp.arccos(jnp.clip(overlap, -1, 1)) / np.pi, 0.0),
        mistakes=unless_taught(labels.mistakes, 0.0),
        converged=solved.converged,
        free_entropy=unless_taught(free, 0.0),
        entropy=unless_taught(free + _inverse(system) * system.sample_ratio * labels.mistakes, 0.0),
        bayes_error=unless_taught(jnp.arccos(jnp.sqrt(jnp.clip(self_overlap, 0, 1))) / np.pi, 0.0),
        replicon=unless_taught(spread * labels.curvature, 0.0),
        residual=solved.residual,
    )


_BINARY = {"weights": equal("binary", why="spherical weights have no transition")}


class _Solution(NamedTuple):
    """The sample ratio alpha at which a given Rh solves the equations, and the observables at this
    alpha."""

    sample_ratio: Scalar
    overlap: Scalar
    free_entropy: Scalar
    entropy: Scalar
    converged: Bool[Array, ""]


@theory(
    traced=False,
    needs=_BINARY
    | {
        "temperature": at_most(
            _HOTTEST, why="digits are lost beyond; high_temperature_transitions has the limit"
        )
    },
)
def binary_transitions(system: ThermalPerceptron) -> BinaryTransitions:
    r"""Transitions of the perceptron with binary weights at the system's temperature.

    All solutions of the equations of `quenched` lie on one curve, which is parametrised by the
    conjugate $\hat R$: $\hat q$ is the root of the first equation, and $\alpha$ follows from the
    second,

    $$ \frac{\hat R}{\hat q} = \frac{E \sum_y \partial_M Z_0\, g}{E g^2}, \qquad
       \alpha = \frac{\hat q}{E g^2} $$

    From $\hat R = 0$ on, the curve follows the state that is reached from R = 0 up to its
    `spinodal`, where $\alpha$ is largest. Beyond the spinodal the curve returns to smaller $\alpha$
    along an unstable state. `thermodynamic` and `freezing` are the $\alpha$ before the spinodal at
    which the free entropy and the entropy are zero. The system's `sample_ratio` is not used.

    Raises:
        ValueError: for spherical weights, which have no transition, and for temperatures above 1e6,
            where `high_temperature_transitions` has the limit.

    Accuracy: 1e-9; the overlap at the spinodal 1e-7. This theory cannot be differentiated.

    Source: Györgyi (1990); Sompolinsky, Tishby, Seung (1990); the curve is derived here.

    >>> found = binary_transitions(ThermalPerceptron(1.0))
    >>> round(float(found.thermodynamic), 6), round(float(found.spinodal), 6)
    (1.244684, 1.492632)
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
        freezes=jnp.asarray(freezes),
        spinodal=last.sample_ratio,
        spinodal_overlap=last.overlap,
        converged=last.converged & transition.converged & frozen.converged,
    )


@eqx.filter_jit
def _solution(system: ThermalPerceptron, log_alignment: Scalar) -> _Solution:
    """Point of the curve of solutions at a given Rh.

    q and R are functions of qh and Rh. With them the equation Rh/qh = (E sum_y dZ0/dM g)/(E g^2)
    has one root qh, and alpha = qh/E g^2.
    """
    one, alignment = system.with_(sample_ratio=1.0), jnp.exp(log_alignment)

    def averages(log_share: Scalar) -> tuple[Scalar, Scalar, Scalar, _Labels]:
        power = alignment * jnp.exp(-log_share)
        self_overlap, overlap = _overlaps(one, power, alignment)
        return power, self_overlap, overlap, _labels(one, self_overlap, overlap)

    def excess(log_share: Scalar, _: None) -> Scalar:
        labels = averages(log_share)[-1]
        return jnp.log(labels.alignment / labels.power) - log_share

    share = decreasing_root(excess, jnp.asarray(-0.5), 1.5 + jnp.log1p(system.temperature))
    power, self_overlap, overlap, labels = averages(share.value)
    ratio = power / labels.power
    free = _weights(one, self_overlap, overlap, power, alignment)[0] + ratio * labels.free_entropy
    return _Solution(
        ratio, overlap, free, free + _inverse(system) * ratio * labels.mistakes, share.converged
    )


def _inverse(system: ThermalPerceptron) -> Scalar:
    """Inverse temperature 1/T; 0 at T = 0, where it is not used."""
    cold = system.temperature == 0
    return jnp.where(cold, 0.0, 1 / jnp.where(cold, 1.0, system.temperature))


def penalty(system: ThermalPerceptron) -> Scalar:
    """Boltzmann factor e = exp(-1/T) of one error."""
    return jnp.where(system.temperature == 0, 0.0, jnp.exp(-_inverse(system)))


def _overlaps(system: ThermalPerceptron, power: Scalar, alignment: Scalar) -> tuple[Scalar, Scalar]:
    """Overlaps q and R from their conjugates qh and Rh."""
    if system.weights == "spherical":
        rest = 2 / (1 + jnp.sqrt(1 + 4 * (power + alignment**2)))
        return 1 - rest, alignment * rest
    z, weight = standard_normal_rule([-alignment / jnp.sqrt(power)], SHARP)
    m = jnp.tanh(jnp.sqrt(power) * z + alignment)
    return jnp.sum(weight * m**2), jnp.sum(weight * m)


class _Labels(NamedTuple):
    """Averages over the student's field and the label.

    power: alpha E g^2, which is qh. alignment: alpha E sum_y (dZ0/dM) g, which is Rh. free_entropy:
    alpha E ln[e + (1 - e) Phi(u)]. curvature: alpha E (dg/dw)^2. mistakes: errors per training
    example.
    """

    power: Scalar
    alignment: Scalar
    free_entropy: Scalar
    curvature: Scalar
    mistakes: Scalar


def _labels(system: ThermalPerceptron, self_overlap: Scalar, overlap: Scalar) -> _Labels:
    """Averages over the student's field and the label.

    By symmetry both labels contribute the same, so that twice the contribution of label 1 is taken.
    """
    e = penalty(system)
    student = SignLabels(e / (1 + e))
    rest = jnp.maximum(1 - self_overlap, _LEAST)
    # The logarithm of the likelihood e + (1 - e) Phi(u) bends where Phi(u) = e/(1 + e). At small T
    # this is at large negative u; the quadrature is divided at this field.
    bend = jnp.sqrt(rest) * norm.ppf(jnp.maximum(student.flip, 1e-300))
    w, weight, evidence, change = labelled_nodes(
        SignLabels(), 1.0, Fields(self_overlap, 1.0, overlap), (bend,), panels=SHARP
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
    system: ThermalPerceptron,
    self_overlap: Scalar,
    overlap: Scalar,
    power: Scalar,
    alignment: Scalar,
) -> tuple[Scalar, Scalar]:
    """Contribution of the weights to the free entropy per weight, and the mean square of the
    variance of a weight, a factor of the replicon.
    """
    if system.weights == "spherical":
        rest = jnp.maximum(1 - self_overlap, _LEAST)
        return jnp.log(rest) / 2 + (self_overlap - overlap**2) / (2 * rest), rest**2
    z, weight = standard_normal_rule([-alignment / jnp.sqrt(power)], SHARP)
    field = jnp.abs(jnp.sqrt(power) * z + alignment)
    free = (
        jnp.sum(weight * (field + jnp.log1p(jnp.exp(-2 * field))))
        - power * (1 - self_overlap) / 2
        - alignment * overlap
    )
    return free, jnp.sum(weight / jnp.cosh(jnp.minimum(field, 300.0)) ** 4)
