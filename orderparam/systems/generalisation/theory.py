"""Learning curves of perceptrons without training errors: bounds on the worst case, and the
typical error.

All errors are probabilities of a wrong sign on a new input.
"""

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp
from jax.scipy.special import gammaln
from jaxtyping import Array, Bool, Float

from orderparam.channels.largest_margin import largest_margin
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian import standard_normal_rule
from orderparam.gaussian.tail import hazard
from orderparam.solve.root import decreasing_root
from orderparam.systems.generalisation.model import ImageClassifier, PerceptronLearning

Number = Float[Array, ""]
_TERMS = 4096  # most terms of the growth function that are added


class Bound(Result):
    """A bound on the error.

    Fields:
        error: upper bound on the probability of a wrong label; a bound above 1 is vacuous.
    """

    error: Float[Array, ""]


class Typical(Result):
    """Typical overlap and error of a student.

    Fields:
        overlap: R, the cosine of the angle between student and teacher.
        error: probability of a wrong sign on a new input, arccos(R)/pi.
        residual: residual of the equation for R.
        converged: whether the equation was solved.
    """

    overlap: Float[Array, ""]
    error: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def uniform_bound(
    system: PerceptronLearning,
    *,
    form: Literal["growth function", "dimension", "square root"] = "growth function",
) -> Bound:
    r"""Upper bound on the error of every student without a training error, which holds with
    probability `confidence`.

    With $n = \alpha d$ examples ($\alpha$ = `sample_ratio`, d = `input_dim`, the
    Vapnik-Chervonenkis dimension) and $\delta$ = 1 - `confidence`, the bound by the growth function
    is

    $$ \epsilon \le \frac2n \log_2 \frac{2 G(2n)}{\delta}, \qquad
       G(m) = 2 \sum_{k<d} \binom{m - 1}{k} $$

    where G(m) is the number of dichotomies of m points.

    Args:
        form: "growth function" is the bound above; "dimension" is $\sqrt{[d (\ln(2n/d) + 1) +
            \ln(4/\delta)]/n}$, which bounds the difference between test and training error of any
            student, for n of at least d/2; "square root" is $\sqrt{d/n}$, for orientation.

    Accuracy: 1e-9. The sum takes its largest 4096 terms.

    Source: Cover (1965) for G; Blumer, Ehrenfeucht, Haussler, Warmuth (1989) and Vapnik (1998) for
    the bounds.

    >>> round(float(uniform_bound(PerceptronLearning(20.0, input_dim=50)).error), 6)
    0.668453
    """
    d, delta = system.input_dim, 1 - system.confidence
    n = system.sample_ratio * d
    if form == "square root":
        return Bound(error=jnp.sqrt(d / n))
    if form == "dimension":
        capacity = jnp.where(2 * n > d, d * (jnp.log(jnp.maximum(2 * n / d, 1.0)) + 1), 2 * n)
        return Bound(error=jnp.sqrt((capacity + jnp.log(4 / delta)) / n))
    return Bound(
        error=2
        / n
        * (_log_dichotomies(jnp.maximum(2 * n, 1.0), d) + jnp.log(2 / delta))
        / np.log(2.0)
    )


@theory
def worst_consistent(system: PerceptronLearning) -> Typical:
    r"""Error, in the limit of large d, of the student farthest from the teacher among all students
    without a training error.

    At the angle $\theta = \pi \epsilon$ to the teacher the volume of students without a training
    error vanishes,

    $$ \alpha (\theta - \sin\theta \cos\theta) = \pi \sin^2 \theta $$

    with $\alpha$ = `sample_ratio` and $\epsilon$ = `error`. This is Gardner's condition at zero
    margin and fixed overlap. The error is $3/(2 \alpha)$ for many examples.

    Accuracy: 1e-9. For alpha up to 2 the angle is at least pi/2, the set of students at that angle
    is convex, and the result is exact. For larger alpha the replica-symmetric result is an upper
    bound.

    Source: derived here.

    >>> round(float(worst_consistent(PerceptronLearning(5.0)).error), 8)
    0.27085822
    """

    def equation(angle: Number, ratio: Number) -> Number:
        return jnp.log(np.pi * jnp.sin(angle) ** 2 / (ratio * _segment(angle)))

    lowest = jnp.minimum(1.0, 1 / system.sample_ratio)
    root = decreasing_root(equation, lowest, jnp.asarray(np.pi - 1e-12), system.sample_ratio)
    return _learned(root.value, root.residual, root.converged)


@theory
def typical(
    system: PerceptronLearning,
    *,
    learner: Literal["Bayes", "Gibbs", "largest margin", "Hebb"] = "Bayes",
) -> Typical:
    r"""Typical overlap and error of a student in the limit of large d.

    With $\alpha$ = `sample_ratio`, the overlap q of two random students without a training error
    solves

    $$ q = \alpha \sqrt{\frac{2 (1 - q)}{\pi}}\, E_z \frac{\varphi(\sqrt q z)}{\Phi(\sqrt q z)};
          \qquad
       R = q \text{ (Gibbs)}, \quad R = \sqrt q \text{ (Bayes)} $$

    The error is arccos(R)/pi. For the largest margin R solves, with $s^2 = 1 - R^2$ and the
    stability $\kappa$,

    $$ s^2 = 2 \alpha \int_{-\infty}^\kappa Dt\, \Phi\Big( \frac{R t}{s} \Big) (\kappa - t)^2,
          \qquad
       R = \frac{2 \alpha}{s} \int_{-\infty}^\kappa Dt\, \varphi\Big( \frac{R t}{s} \Big) (\kappa
          - t) $$

    Args:
        learner: "Gibbs" is a random student without a training error; "Bayes" the majority vote of
            all of them, which has the smallest possible error; "largest margin" the student of
            largest stability; "Hebb" is $w = \sum y x$, with $\tan\theta = \sqrt{\pi/(2\alpha)}$.
            Their errors are 0.625/alpha, 0.442/alpha, 0.5005/alpha and 0.40/sqrt(alpha) for many
            examples.

    Accuracy: 1e-8.

    Source: Györgyi (1990); Opper, Haussler (1991); Opper, Kinzel, Kleinz, Nehl (1990); Vallet
    (1989) for Hebb's rule.

    >>> system = PerceptronLearning(5.0)
    >>> [round(float(typical(system, learner=one).error), 6) for one in ("Bayes", "Gibbs")]
    [0.083935, 0.118006]
    """
    ratio = system.sample_ratio
    if learner == "Hebb":
        tangent = jnp.sqrt(np.pi / (2 * ratio))
        return _learned(jnp.arctan(tangent), jnp.zeros(()), jnp.asarray(True))
    if learner == "largest margin":
        found = largest_margin(ratio)
        return _learned(found.angle, found.residual, found.converged)
    return _version_space(ratio, learner == "Bayes")


def _version_space(ratio: Number | float, vote: bool) -> Typical:
    """Typical overlap q of two students without a training error, which is also that of student
    and teacher.

    The usual form of the equation, q/(1 - q) = alpha/(pi (1 - q)) int Dz exp(-v^2)/H(v) with v = z
    sqrt(q/(1 - q)), is simplified by a substitution that takes exp(-v^2/2) into the normal density:
    q = alpha sqrt(2 (1 - q)/pi) E phi(u)/Phi(u), u = z sqrt(q). The unknown is ln(q/(1 - q)).
    """
    z, weight = standard_normal_rule()

    def equation(logit: Number, ratio: Number) -> Number:
        # Each example shrinks the set of students at the rate of the hazard phi/Phi of its label.
        softplus = jnp.logaddexp(0.0, logit)  # -ln(1 - q)
        mean = jnp.sum(weight * hazard(z * jnp.exp((logit - softplus) / 2)))
        return jnp.log(ratio * np.sqrt(2 / np.pi) * mean) + softplus / 2 - logit

    middle = jnp.log(ratio)
    root = decreasing_root(equation, -jnp.abs(middle) - 10.0, 2 * jnp.abs(middle) + 10.0, ratio)
    rest = -jnp.logaddexp(0.0, root.value) / 2  # ln sqrt(1 - q)
    sine = jnp.exp(rest)
    angle = jnp.arcsin(sine) if vote else 2 * jnp.arcsin(sine / np.sqrt(2.0))
    return _learned(angle, root.residual, root.converged)


def _segment(angle: Number) -> Number:
    """The function theta - sin theta cos theta, by its series at small angles, where the terms
    would cancel.
    """
    x = 2 * angle
    small = x < 0.3
    near, far = jnp.where(small, x, 0.3), jnp.where(small, 0.3, x)
    square = near**2
    series = (
        near**3 / 6 * (1 - square / 20 * (1 - square / 42 * (1 - square / 72 * (1 - square / 110))))
    )
    return jnp.where(small, series, far - jnp.sin(far)) / 2


def _learned(angle: Number, residual: Number, converged: Bool[Array, ""]) -> Typical:
    return Typical(
        overlap=jnp.cos(angle), error=angle / np.pi, residual=residual, converged=converged
    )


def _log_dichotomies(points: Number | float, dim: Number | float) -> Number:
    """Logarithm of 2 sum_{k < d} C(m - 1, k), the number of dichotomies of m points.

    For m <= d it is m ln 2, because all dichotomies can be realised; beyond, the sum takes its
    largest `_TERMS` terms.
    """
    highest = jnp.minimum(dim - 1, jnp.floor((points - 1 + _TERMS) / 2))
    k = highest - jnp.arange(float(_TERMS))
    there = (k >= 0) & (k <= points - 1)
    k = jnp.where(there, k, 0.0)
    logs = gammaln(points) - gammaln(k + 1) - gammaln(points - k)
    few = jnp.where(
        points <= dim, jnp.log(2.0) * (points - 1), logsumexp(jnp.where(there, logs, -jnp.inf))
    )
    return jnp.log(2.0) + few


# ------------------------------------------------------------------------------------------------
# A network's test error and the number of its weights.


@theory
def counting_bound(system: ImageClassifier) -> Bound:
    r"""Bound sqrt(W/n) on the error of a network with W weights, for orientation.

    $$ \epsilon \approx \sqrt{\frac{W}{n}}, \qquad W = p\, (x + p + 10) $$

    with p = `width`, x the number of pixels and n = `n_train`. It is smaller than any bound by the
    Vapnik-Chervonenkis dimension, which for relu networks is of order W times the depth, up to
    logarithms.

    Source: Bartlett, Harvey, Liaw, Mehrabian (2019), for the dimension.

    >>> system = ImageClassifier(np.zeros((6, 4)), np.zeros(6), n_train=5, width=2)
    >>> round(float(counting_bound(system).error), 6)
    2.529822
    """
    weights = system.width * (system.inputs.shape[1] + system.width + 10)
    return Bound(error=jnp.sqrt(weights / system.n_train))
