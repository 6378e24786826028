"""Learning curves of perceptrons that make no error on their examples: bounds on the worst, and
what is typical.

All errors are probabilities of a wrong sign on a fresh input.
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
_TERMS = 4096  # of the growth function


class Bound(Result):
    """error: an upper bound on the error, larger than 1 where it says nothing."""

    error: Float[Array, ""]


class Typical(Result):
    """overlap with the teacher, and error. residual, converged: of the equation."""

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
    """Error of any student without a training error, d_VC = d, with probability delta = 1 -
    confidence of being wrong.

    growth function: (2/n) log2(2 G(2n)/delta), G(m) = 2 sum_{k<d} C(m-1, k) the number of
    dichotomies of m points (Cover 1965); the bound for consistent students (Blumer et al. 1989;
    Vapnik 1998). dimension: sqrt((d (ln(2n/d) + 1) + ln(4/delta))/n) (Vapnik 1998), which holds for
    the difference of test and training error of any student, from n = d/2 on. square root:
    sqrt(d/n), what is left of it for orientation.
    """
    d, delta = system.input_dim, 1 - system.confidence
    n = system.sample_ratio * d
    if form == "square root":
        return Bound(jnp.sqrt(d / n))
    if form == "dimension":
        capacity = jnp.where(2 * n > d, d * (jnp.log(jnp.maximum(2 * n / d, 1.0)) + 1), 2 * n)
        return Bound(jnp.sqrt((capacity + jnp.log(4 / delta)) / n))
    return Bound(
        2 / n * (_log_dichotomies(jnp.maximum(2 * n, 1.0), d) + jnp.log(2 / delta)) / np.log(2.0)
    )


@theory
def worst_consistent(system: PerceptronLearning) -> Typical:
    """The student farthest from the teacher among those without a training error, as d grows.

    At the angle theta its patterns leave no room: alpha (theta - sin theta cos theta) = pi sin^2
    theta, from Gardner's condition at zero margin and fixed overlap. For alpha < 2 the angle
    exceeds pi/2; the set at that angle is convex and the angle exact. Beyond, replica symmetry
    gives an upper bound on it. error = 3/(2 alpha) as alpha grows.
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
    """The error as d grows.

    Gibbs: a student drawn from those without a training error; Bayes: the vote of all of them, the
    best there is (Györgyi 1990; Opper, Haussler 1991; Watkin 1993). largest margin: the student of
    largest stability (Opper, Kinzel, Kleinz, Nehl 1990). Hebb: w = sum y x (Vallet 1989). As alpha
    grows: 0.625/alpha, 0.442/alpha, 0.5005/alpha, and 0.40/sqrt(alpha).
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
    """q = alpha sqrt(2 (1 - q)/pi) E phi(u)/Phi(u), u = z sqrt(q), typical overlap of two students
    and of student and teacher.

    The usual form, q/(1 - q) = alpha/(pi (1 - q)) int Dz exp(-v^2)/H(v) with v = z sqrt(q/(1 - q)),
    after the substitution that takes exp(-v^2/2) into the normal density. Unknown: ln(q/(1 - q)).
    """
    z, weight = standard_normal_rule()

    def equation(logit: Number, ratio: Number) -> Number:
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
    """theta - sin theta cos theta, by its series where that would cancel."""
    x = 2 * angle
    small = x < 0.3
    near, far = jnp.where(small, x, 0.3), jnp.where(small, 0.3, x)
    square = near**2
    series = (
        near**3 / 6 * (1 - square / 20 * (1 - square / 42 * (1 - square / 72 * (1 - square / 110))))
    )
    return jnp.where(small, series, far - jnp.sin(far)) / 2


def _learned(angle: Number, residual: Number, converged: Bool[Array, ""]) -> Typical:
    return Typical(jnp.cos(angle), angle / np.pi, residual, converged)


def _log_dichotomies(points: Number | float, dim: Number | float) -> Number:
    """ln of 2 sum_{k < d} C(m - 1, k): m ln 2 where m <= d (all of them), else the sum over its
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
# What counting weights says about a network's test error.


@theory
def counting_bound(system: ImageClassifier) -> Bound:
    """sqrt(W/n), W the number of weights: less than any bound by the Vapnik-Chervonenkis dimension,
    which for relu networks is of the order of W times the depth, up to logarithms (Bartlett,
    Harvey, Liaw, Mehrabian 2019)."""
    weights = system.width * (system.inputs.shape[1] + system.width + 10)
    return Bound(jnp.sqrt(weights / system.n_train))
