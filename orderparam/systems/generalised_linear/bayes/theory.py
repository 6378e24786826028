"""State evolution of the Bayes-optimal estimator: one equation for the precision qh with which the labels measure a weight,

    V(qh) = E (w - <w>)^2,    q = rho - V,    qh = alpha I(q, V),    I = E g(y, omega, V)^2,

exact as d grows: Barbier, Krzakala, Macris, Miolane, Zdeborová 2019 (arXiv:1708.03395). Given qh, q follows from the prior alone
and alpha = qh / I: the whole curve of solutions, unstable ones included, is explicit. An AMP run starts at q = 0 and stays on the
first branch; the stable solution of largest free entropy,

    f = alpha E ln Z - i(qh) + qh V / 2,    i the information that an observation of precision qh has about its weight,

is the Bayes-optimal one. Weights of which a share D has a density (the others are atoms) have V = D / qh as qh grows, and labels
that fix a share delta of their fields I = delta / V: known weights are a solution for alpha > D / delta, where their free entropy
(delta alpha - D) ln(1/V) / 2 is infinite, and the optimal one from there on.
"""

from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.optimize import brentq, minimize_scalar

from orderparam.channels import SignLabels
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.fixed_point import fixed_point
from orderparam.systems.generalised_linear.bayes.model import GeneralisedLinear

Scalar = Float[Array, ""]

_KNOWN = 1e-24  # V / rho at which weights count as known
_FIXED = 1e-16  # where labels without noise fix them
_FIRST, _LAST = 1e-8, 1e14  # precisions of the curve, in units of 1 / rho
_INFORMED = 1e6
_ROUNDING = 1e-7  # relative: where weights are all but known the curve is flat
_WEAK = 1e-3  # alpha at the first point of the curve that says that q = 0 is a solution


class TeacherEstimate(Result):
    """overlap: q = E w <w>, and of a run the mean of w times its estimate. error: E (w - <w>)^2.

    cosine: of the angle between weights and estimate, sqrt(q / rho). classification_error: that sign(field) is not y; NaN for
    labels that are no signs.
    """

    overlap: Scalar
    error: Scalar
    cosine: Scalar
    classification_error: Scalar
    converged: Bool[Array, ""]


class OptimalEstimate(TeacherEstimate):
    """precision: qh. free_entropy: (1/d) ln P(y | x) at this solution, infinite where labels without noise fix the weights.
    steps: iterations, those of AMP.

    residual: change of ln qh in another step.
    """

    precision: Scalar
    free_entropy: Scalar
    steps: Scalar
    residual: Scalar


class SolutionCurve(Result):
    """All solutions with q > 0, ordered by q: where alpha = sample_ratio. stable: alpha increases with q there.

    free_entropy: of each solution at its alpha.
    """

    sample_ratio: Float[Array, "point"]
    overlap: Float[Array, "point"]
    error: Float[Array, "point"]
    free_entropy: Float[Array, "point"]
    stable: Bool[Array, "point"]


class Thresholds(Result):
    """weak: alpha above which q = 0 is left; 0 where it is no solution. algorithmic: where the branch that starts at q = 0 ends,
    and AMP jumps; without a jump, where the weights are known exactly; inf where they never are. information: where the optimal
    solution jumps; equal to `algorithmic` where nothing does. informed: where the branch that it jumps to begins; 0 where that is
    always there. overlap_before, overlap_after: at the information-theoretic transition, NaN where there is none. first_order:
    whether there is one.
    """

    weak: Scalar
    algorithmic: Scalar
    information: Scalar
    informed: Scalar
    overlap_before: Scalar
    overlap_after: Scalar
    first_order: Bool[Array, ""]


@theory(differentiable=False)
def state_evolution(
    system: GeneralisedLinear, *, start: Literal["uninformed", "informed"] = "uninformed", max_steps: int = 2000
) -> OptimalEstimate:
    """The solution that the iteration reaches from q = 0 (what AMP reaches) or from q = rho (the best there is).

    Where q = 0 is a solution by symmetry, the iteration starts beside it, as AMP does.
    """
    rho = system.prior.power
    first = (1e-6 if start == "uninformed" else _INFORMED) / rho

    def update(log_precision: Scalar, system: GeneralisedLinear) -> Scalar:
        _, _, information, _ = at_precision(system, jnp.exp(log_precision))
        return jnp.log(system.sample_ratio * information)

    solved = fixed_point(update, jnp.log(first), system, tolerance=1e-11, max_steps=max_steps)
    precision = jnp.exp(solved.value)
    overlap, error, _, free = at_precision(system, precision)
    fixed = system.labels.determined > 0
    known = error <= jnp.where(fixed, _FIXED, 1.001 * _KNOWN) * rho
    free = jnp.where(known & fixed, jnp.inf, free[0] + system.sample_ratio * free[1])
    residual = jnp.where(known, 0.0, solved.residual)
    return OptimalEstimate(
        overlap=jnp.where(known, rho, overlap),
        error=jnp.where(known, 0.0, error),
        cosine=jnp.where(known, 1.0, jnp.sqrt(overlap / rho)),
        classification_error=classification_error(system, jnp.where(known, rho, overlap)),
        converged=solved.converged | known,
        precision=precision,
        free_entropy=free,
        steps=solved.steps.astype(float),
        residual=residual,
    )


@theory(differentiable=False)
def solutions(system: GeneralisedLinear, *, points: int = 161) -> SolutionCurve:
    """The curve of all solutions; the sample ratio of the system is not used. No iteration, and no branch is missed."""
    rho = system.prior.power

    def point(log_precision: Scalar) -> tuple:
        precision = jnp.exp(log_precision)
        overlap, error, information, free = at_precision(system, precision)
        ratio = precision / information
        return ratio, overlap, error, free[0] + ratio * free[1]

    ratio, overlap, error, free = jax.lax.map(point, jnp.log(precisions(points) / rho))
    stable = jnp.asarray(jnp.gradient(ratio)) > 0
    return SolutionCurve(ratio, overlap, error, free, stable)


@theory(traced=False)
def thresholds(system: GeneralisedLinear, *, points: int = 97) -> Thresholds:
    """Where solutions appear, vanish and exchange their order as alpha grows; the sample ratio of the system is not used.

    From the curve of all solutions, refined to 1e-9. Transitions between the first and the last branch are looked for. Where
    labels without noise fix the weights at the end of the curve, its end is the information-theoretic transition.
    """
    rho, fixed = float(system.prior.power), float(system.labels.determined)
    needed = float(system.prior.dimension) / fixed if fixed else np.inf

    def at(u: float, alpha: float | None = None) -> tuple[float, float, float, bool]:
        """alpha(qh), q, the free entropy (at another alpha, if one is given), and whether the weights are known."""
        precision = np.exp(u)
        overlap, error, information, (prior, labels) = (np.asarray(part) for part in _point(system, precision))
        ratio = float(precision / information)
        free = prior + (ratio if alpha is None else alpha) * labels
        return ratio, float(overlap), float(free), bool(error <= 1.001 * _KNOWN * rho)

    def ratio(u: float) -> float:
        return at(u)[0]

    u = np.log(np.asarray(precisions(points)) / rho)
    told = [at(x) for x in u]
    known = any(point[3] for point in told)
    end = next(i for i, point in enumerate(told) if point[3] or i == points - 1)
    u, curve = u[: end + 1], np.array([point[0] for point in told[: end + 1]])
    weak = float(curve[0]) if curve[0] > _WEAK else 0.0
    rises = np.diff(curve) > -_ROUNDING * curve[1:]
    if not weak:
        rises[0] = True
    if rises.all():
        return _thresholds(weak, needed, needed, needed, np.nan, np.nan, False)
    first = int(np.argmin(rises))
    top, algorithmic = (-np.inf, weak) if first == 0 else _extremum(ratio, u, first, -1.0)
    lowest = first + int(np.argmin(curve[first:]))
    ends = lowest == end or (fixed > 0 and bool(curve[lowest] > (1 - 1e-4) * needed))  # the end is approached as ln(qh) / qh
    floor = needed if fixed else 0.0 if known else float(curve[end])
    bottom, informed = (u[end], floor) if ends else _extremum(ratio, u, lowest, 1.0)

    def low(alpha: float) -> float:
        return -np.inf if alpha <= curve[0] else brentq(lambda x: ratio(x) - alpha, u[0], top, xtol=1e-13)

    def high(alpha: float) -> float:
        return u[end] if ends or alpha >= curve[end] else brentq(lambda x: ratio(x) - alpha, bottom, u[end], xtol=1e-13)

    def gain(alpha: float) -> float:
        """Free entropy of the last branch above that of the first."""
        return at(high(alpha), alpha)[2] - at(low(alpha), alpha)[2]

    information = informed
    if not ends or (known and not fixed):
        information = max(informed * (1 + 1e-12), 1e-6 * algorithmic)
        if gain(information) < 0:
            information = brentq(gain, information, algorithmic * (1 - 1e-12), xtol=1e-12)
    information = min(information, needed)  # where they are a solution, weights that are fixed are the best
    after = rho if information == needed else at(high(information))[1]
    return _thresholds(weak, algorithmic, information, informed, at(low(information))[1], after, True)


def _thresholds(*values: float) -> Thresholds:
    return Thresholds(*(jnp.asarray(value) for value in values))


def _extremum(ratio: Callable[[float], float], u: np.ndarray, index: int, sign: float) -> tuple[float, float]:
    """Place and height of the minimum (sign 1) or maximum (sign -1) of alpha next to a point of the grid."""
    found = minimize_scalar(lambda x: sign * ratio(x), bracket=(u[index - 1], u[index], u[index + 1]), options={"xtol": 1e-9})
    return float(found.x), sign * float(found.fun)


def precisions(points: int) -> Float[Array, "point"]:
    return jnp.geomspace(_FIRST, _LAST, points)


def at_precision(system: GeneralisedLinear, precision: Scalar) -> tuple[Scalar, Scalar, Scalar, Float[Array, "2"]]:
    """q, V, I(q, V), and the free entropies: of the prior qh V / 2 - i(qh), and of a label."""
    prior = system.prior.averages(precision)
    error = jnp.maximum(prior.error, _KNOWN * system.prior.power)
    labels = system.labels.averages(prior.overlap, error)
    return prior.overlap, error, labels.information, jnp.stack([precision * error / 2 - prior.information, labels.free_entropy])


_point = jax.jit(at_precision)


def classification_error(system: GeneralisedLinear, overlap: Scalar) -> Scalar:
    if not isinstance(system.labels, SignLabels):
        return jnp.full_like(overlap, jnp.nan)
    rho = system.prior.power
    return system.labels.disagreement(jnp.sqrt(overlap / rho), rho)
