"""Errors of perceptrons that learn from a teacher: bounds for every student, the worst student
without a training error, and typical students.

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
_TERMS = 4096  # largest number of terms that are added in the growth function


class Bound(Result):
    """A bound on the error of a student.

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

    There are $n = \alpha d$ examples ($\alpha$ = `sample_ratio`). d = `input_dim` is the
    Vapnik-Chervonenkis dimension of perceptrons without a threshold. With $\delta$ = 1 -
    `confidence` and $\epsilon$ the error, the bound by the growth function G is

    $$ \epsilon \le \frac2n \log_2 \frac{2 G(2n)}{\delta}, \qquad
       G(m) = 2 \sum_{k<d} \binom{m - 1}{k} $$

    where G(m) is the number of ways in which perceptrons can label m points (dichotomies).

    Args:
        form: "growth function" is the bound above; "dimension" is $\sqrt{[d (\ln(2n/d) + 1) +
            \ln(4/\delta)]/n}$, which bounds the difference between test and training error of any
            student, for n of at least d/2; "square root" is $\sqrt{d/n}$, which is not a bound and
            shows the order of magnitude only.

    Accuracy: 1e-9. Only the 4096 largest terms of the sum are added.

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
    r"""Largest error of all students without a training error, in the limit of large d.

    Consider the students at a fixed angle $\theta$ to the teacher. The fraction of them without a
    training error vanishes at the angle that solves

    $$ \alpha (\theta - \sin\theta \cos\theta) = \pi \sin^2 \theta $$

    with $\alpha$ = `sample_ratio` and $\theta = \pi \epsilon$, $\epsilon$ = `error`. This is
    Gardner's condition for the capacity at zero margin, applied to students whose overlap with the
    teacher is fixed at $\cos\theta$. The error is $3/(2 \alpha)$ for many examples.

    Accuracy: 1e-9. For $\alpha$ up to 2 the angle is at least $\pi/2$. The students without a
    training error whose angle is at least $\theta$ then form a convex set, and the result is exact.
    For larger $\alpha$ the result is replica symmetric and an upper bound.

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

    R is `overlap`, the cosine of the angle between student and teacher, and `error` is
    $\arccos(R)/\pi$. With $\alpha$ = `sample_ratio` and z standard normal, the overlap q of two
    random students without a training error solves

    $$ q = \alpha \sqrt{\frac{2 (1 - q)}{\pi}}\, E_z \frac{\varphi(\sqrt q z)}{\Phi(\sqrt q z)};
          \qquad
       R = q \text{ (Gibbs)}, \quad R = \sqrt q \text{ (Bayes)} $$

    For the student of largest margin, with $s^2 = 1 - R^2$ and its stability $\kappa$, the smallest
    $y\, w \cdot x/|w|$ of all examples,

    $$ s^2 = 2 \alpha \int_{-\infty}^\kappa Dt\, \Phi\Big( \frac{R t}{s} \Big) (\kappa - t)^2,
          \qquad
       R = \frac{2 \alpha}{s} \int_{-\infty}^\kappa Dt\, \varphi\Big( \frac{R t}{s} \Big) (\kappa
          - t) $$

    Args:
        learner: "Gibbs" is a random student without a training error; "Bayes" is the majority vote
            of all these students, which has the smallest possible error; "largest margin" is the
            student of largest stability; "Hebb" is $w = \sum y x$, at the angle $\theta$ to the
            teacher with $\tan\theta = \sqrt{\pi/(2\alpha)}$. For many examples the errors are
            0.625/alpha (Gibbs), 0.442/alpha (Bayes), 0.5005/alpha (largest margin) and
            0.40/sqrt(alpha) (Hebb).

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
    """Overlap and error of a random student without a training error, or of the majority vote of
    all these students if `vote`.

    q is the overlap of two random students without a training error, which is also the overlap of
    such a student with the teacher. The usual form of its equation, q/(1 - q) = alpha/(pi (1 - q))
    int Dz exp(-v^2)/H(v) with v = z sqrt(q/(1 - q)) and H(v) = Phi(-v), is simplified by a
    substitution that takes exp(-v^2/2) into the normal density: q = alpha sqrt(2 (1 - q)/pi) E
    phi(u)/Phi(u), u = z sqrt(q). The unknown is ln(q/(1 - q)).
    """
    z, weight = standard_normal_rule()

    def equation(logit: Number, ratio: Number) -> Number:
        # phi(u)/Phi(u) is the relative change of the probability Phi(u) of a label with its field.
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
    """The function theta - sin(theta) cos(theta); at small angles, where its terms cancel, by its
    power series.
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
    """Overlap and error of a student at this angle to the teacher."""
    return Typical(
        overlap=jnp.cos(angle), error=angle / np.pi, residual=residual, converged=converged
    )


def _log_dichotomies(points: Number | float, dim: Number | float) -> Number:
    """Logarithm of 2 sum_{k < d} C(m - 1, k), the number of dichotomies of m points.

    For m <= d it is m ln 2, because every dichotomy can be realised. For m > d the largest `_TERMS`
    terms are added.
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
    r"""Square root of the number W of weights per training example: the order of magnitude of
    bounds on the error of a network.

    $$ \sqrt{\frac{W}{n}}, \qquad W = p\, (x + p + 10) $$

    with p = `width`, x the number of pixels and n = `n_train`; there are 10 classes and no biases.
    `error` itself is not a bound. It is smaller than every bound by the Vapnik-Chervonenkis
    dimension, which for relu networks is of order W times the depth, up to logarithms.

    Source: Bartlett, Harvey, Liaw, Mehrabian (2019), for the dimension.

    >>> system = ImageClassifier(np.zeros((6, 4)), np.zeros(6), n_train=5, width=2)
    >>> round(float(counting_bound(system).error), 6)
    2.529822
    """
    weights = system.width * (system.inputs.shape[1] + system.width + 10)
    return Bound(error=jnp.sqrt(weights / system.n_train))
