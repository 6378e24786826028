"""State evolution of Bayes-optimal estimation: message passing, thresholds, and sparse weights."""

from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.channels import SignLabels
from orderparam.core.late import brentq, minimize_scalar
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.fixed_point import fixed_point
from orderparam.systems.generalised_linear.bayes.model import GeneralisedLinear

# ------------------------------------------------------------------------------------------------
# State evolution of the Bayes-optimal estimator is one equation for qh, the precision with which
# all labels together measure a weight,
#
#     V(qh) = E (w - <w>)^2,    q = rho - V,    qh = alpha I(q, V),    I = E g(y, omega, V)^2,
#
# which is exact as d grows (Barbier, Krzakala, Macris, Miolane, Zdeborová 2019). Given qh, the
# prior alone determines q, and then alpha = qh / I. The whole curve of solutions, unstable ones
# included, is therefore explicit. Approximate message passing (AMP) starts at q = 0 and stays on
# the first branch. The stable solution of largest free entropy,
#
#     f = alpha E ln Z - i(qh) + qh V / 2,
#
# with i the information of an observation of precision qh about its weight, is the Bayes-optimal
# one. Suppose that a fraction D of the weights has a density (the others are atoms), so that V = D
# / qh as qh grows, and that the labels determine a fraction delta of the fields, so that I = delta
# / V. Exactly known weights are then a solution for alpha > D / delta. Its free entropy (delta
# alpha - D) ln(1/V) / 2 is infinite, so that it is the optimal solution.

Scalar = Float[Array, ""]

_DETERMINED = 1e-24  # V / rho below which weights count as known
_FIXED = 1e-16  # the same, where labels without noise fix the weights
_FIRST, _LAST = 1e-8, 1e14  # precisions of the curve, in units of 1 / rho
_INFORMED = 1e6
_ROUNDING = 1e-7  # relative; where weights are nearly known the curve is flat
_WEAK = 1e-3  # alpha at the first point of the curve above which q = 0 is a solution


class TeacherEstimate(Result):
    """Accuracy of an estimate of the weights.

    Fields:
        overlap: q = E w <w>; in an experiment the mean of w times its estimate.
        error: E (w - <w>)^2 of a weight (no factor 1/2).
        cosine: cosine of the angle between weights and estimate, sqrt(q / rho).
        classification_error: probability that the predicted sign of a new label is wrong; NaN for
            labels that are not signs.
        converged: whether the iteration ended.
    """

    overlap: Scalar
    error: Scalar
    cosine: Scalar
    classification_error: Scalar
    converged: Bool[Array, ""]


class OptimalEstimate(TeacherEstimate):
    """Solution of state evolution that an iteration reaches.

    Fields:
        precision: qh, the precision with which all labels together measure a weight.
        free_entropy: (1/d) ln P(y | x) at this solution; infinite where labels without noise fix
            the weights.
        steps: number of iterations, which equals that of message passing.
        residual: change of ln qh in one further step.
    """

    precision: Scalar
    free_entropy: Scalar
    steps: Scalar
    residual: Scalar


class SolutionCurve(Result):
    """All solutions with q > 0, ordered by q.

    Fields:
        sample_ratio: alpha at which the solution holds.
        overlap: q.
        error: V = E (w - <w>)^2.
        free_entropy: free entropy of the solution at its alpha.
        stable: whether the solution is stable, which means that alpha increases with q.
    """

    sample_ratio: Float[Array, "point"]
    overlap: Float[Array, "point"]
    error: Float[Array, "point"]
    free_entropy: Float[Array, "point"]
    stable: Bool[Array, "point"]


class Thresholds(Result):
    """Sample ratios at which solutions appear, vanish and exchange their order.

    Fields:
        weak: alpha above which the iteration leaves q = 0; 0 where q = 0 is no solution.
        algorithmic: alpha at which the branch from q = 0 ends and message passing jumps. Without a
            jump it is the alpha above which the weights are known exactly; infinite if they never
            are.
        information: alpha at which the optimal solution jumps; equal to `algorithmic` without a
            jump.
        informed: alpha at which the branch begins to which the optimal solution jumps; 0 where this
            branch always exists.
        informed_always: whether the branch to which the optimal solution jumps exists at every
            alpha.
        overlap_before: q before the jump of the optimal solution; NaN without a jump.
        overlap_after: q after the jump of the optimal solution; NaN without a jump.
        first_order: whether the optimal solution jumps.
    """

    weak: Scalar
    algorithmic: Scalar
    information: Scalar
    informed: Scalar
    informed_always: Bool[Array, ""]
    overlap_before: Scalar
    overlap_after: Scalar
    first_order: Bool[Array, ""]


@theory
def state_evolution(
    system: GeneralisedLinear,
    *,
    start: Literal["uninformed", "informed"] = "uninformed",
    max_steps: int = 2000,
) -> OptimalEstimate:
    r"""Solution of state evolution that the iteration reaches from an uninformed or an informed
    start.

    All labels together measure each weight with one precision $\hat q$ (`precision`),

    $$ V(\hat q) = E (w - \langle w \rangle)^2 , \qquad q = \rho - V , \qquad
       \hat q = \alpha I(q, V) , \qquad I = E\, g(y, \omega, V)^2 , $$

    with $g = \partial_\omega \ln Z$ of the evidence $Z(y, \omega, V)$ of a label whose field is
    $N(\omega, V)$, $\omega \sim N(0, q)$; $q$ = `overlap`, $V$ = `error`, $\alpha$ =
    `sample_ratio`. The free entropy is

    $$ f = \alpha E \ln Z - i(\hat q) + \tfrac12 \hat q V $$

    with $i$ the information of an observation of precision $\hat q$ about its weight. The stable
    solution of largest $f$ is the Bayes-optimal estimator.

    Args:
        start: "uninformed" (the default) starts at q = 0 and gives the result of message passing;
            "informed" starts near q = rho. Where q = 0 is a solution by symmetry, the uninformed
            iteration starts at a small positive q.
        max_steps: largest number of iterations; 2000 by default.

    Accuracy: exact as d grows; the fixed point is solved to 1e-11. Close to a threshold the number
    of iterations grows without bound (see `amp_fixed_point`). `jax.grad` gives the derivatives
    along a branch; at the end of a branch they are infinite.

    Source: Barbier, Krzakala, Macris, Miolane, Zdeborová (2019).

    >>> found = state_evolution(GeneralisedLinear(1.0, "sign", "rademacher"))
    >>> round(float(found.overlap), 4)
    0.5607
    """
    rho = system.prior.power
    first = (1e-6 if start == "uninformed" else _INFORMED) / rho

    def update(log_precision: Scalar, system: GeneralisedLinear) -> Scalar:
        _, _, information, _ = at_precision(system, jnp.exp(log_precision))
        return jnp.log(system.sample_ratio * information)

    solved = fixed_point(
        update, jnp.log(first), system, tolerance=1e-11, max_steps=max_steps, sequential=True
    )
    precision = jnp.exp(solved.value)
    overlap, error, _, free = at_precision(system, precision)
    fixed = system.labels.determined > 0
    determined = error <= jnp.where(fixed, _FIXED, 1.001 * _DETERMINED) * rho
    free = jnp.where(determined & fixed, jnp.inf, free[0] + system.sample_ratio * free[1])
    residual = jnp.where(determined, 0.0, solved.residual)
    return OptimalEstimate(
        overlap=jnp.where(determined, rho, overlap),
        error=jnp.where(determined, 0.0, error),
        cosine=jnp.where(determined, 1.0, jnp.sqrt(overlap / rho)),
        classification_error=classification_error(system, jnp.where(determined, rho, overlap)),
        converged=solved.converged | determined,
        precision=precision,
        free_entropy=free,
        steps=solved.steps.astype(float),
        residual=residual,
    )


@theory(differentiable=False)
def solutions(system: GeneralisedLinear, *, points: int = 161) -> SolutionCurve:
    r"""All solutions of state evolution as one curve, unstable ones included.

    Given the precision $\hat q$, the prior alone gives $V$ and $q$, and the sample ratio follows,

    $$ \alpha = \frac{\hat q}{I(q, V)} , $$

    so that no iteration is needed and no branch is missed. The sample ratio of the system is not
    used; equations as in `state_evolution`.

    Args:
        points: number of precisions, spaced geometrically from 1e-8 to 1e14 in units of 1/rho; 161
            by default.

    Source: Barbier, Krzakala, Macris, Miolane, Zdeborová (2019); the explicit curve is derived
    here.

    >>> curve = solutions(GeneralisedLinear(1.0, "sign", "rademacher"), points=41)
    >>> bool(curve.stable.all()), curve.overlap.shape
    (False, (41,))
    """
    rho = system.prior.power

    def point(log_precision: Scalar) -> tuple:
        precision = jnp.exp(log_precision)
        overlap, error, information, free = at_precision(system, precision)
        ratio = precision / information
        return ratio, overlap, error, free[0] + ratio * free[1]

    ratio, overlap, error, free = jax.lax.map(point, jnp.log(precisions(points) / rho))
    stable = jnp.asarray(jnp.gradient(ratio)) > 0
    return SolutionCurve(
        sample_ratio=ratio, overlap=overlap, error=error, free_entropy=free, stable=stable
    )


def _solution(
    system: GeneralisedLinear, precision: float, alpha: float | None
) -> tuple[float, float, float, bool]:
    """Sample ratio alpha(qh), overlap q, free entropy (at another sample ratio if `alpha` is
    given), and whether the weights are known."""
    overlap, error, information, (prior, labels) = (
        np.asarray(part) for part in _point(system, precision)
    )
    ratio = float(precision / information)
    free = prior + (ratio if alpha is None else alpha) * labels
    determined = bool(error <= 1.001 * _DETERMINED * float(system.prior.power))
    return ratio, float(overlap), float(free), determined


@theory(traced=False)
def thresholds(system: GeneralisedLinear, *, points: int = 97) -> Thresholds:
    r"""Sample ratios at which solutions appear, vanish and exchange their order.

    The thresholds follow from the curve of all solutions, $\alpha(\hat q) = \hat q / I$. The branch
    of message passing ends at its maximum (`algorithmic`), the informed branch begins at its
    minimum (`informed`), and the optimal solution jumps where the free entropies of both branches
    are equal (`information`). If a share $D$ of the weights has a density and labels without noise
    fix a fraction $\delta$ of their fields, the weights are known exactly for

    $$ \alpha > D / \delta , $$

    which is then an upper bound on `information`. The sample ratio of the system is not used.

    Args:
        points: number of precisions of the curve before refinement; 97 by default.

    Accuracy: 1e-9. Only transitions between the first and the last branch are found, also where the
    curve has three stable branches.

    Cost: some seconds for labels without a closed evidence.

    Source: Barbier, Krzakala, Macris, Miolane, Zdeborová (2019); the free entropy of known weights
    is derived here.

    >>> found = thresholds(GeneralisedLinear(1.0, "sign", "rademacher"))
    >>> round(float(found.information), 4), round(float(found.algorithmic), 4)
    (1.2447, 1.4926)
    """
    rho, fixed = float(system.prior.power), float(system.labels.determined)
    needed = float(system.prior.dimension) / fixed if fixed else np.inf

    def at(u: float, alpha: float | None = None) -> tuple[float, float, float, bool]:
        return _solution(system, np.exp(u), alpha)

    def ratio(u: float) -> float:
        return at(u)[0]

    u = np.log(np.asarray(precisions(points)) / rho)
    evaluated = [at(x) for x in u]
    determined = any(point[3] for point in evaluated)
    end = next(i for i, point in enumerate(evaluated) if point[3] or i == points - 1)
    u, curve = u[: end + 1], np.array([point[0] for point in evaluated[: end + 1]])
    # alpha = weak + O(qh) on the first branch: one step of Richardson's extrapolation to qh = 0
    weak = 2 * float(curve[0]) - ratio(u[0] + np.log(2.0)) if curve[0] > _WEAK else 0.0
    rises = np.diff(curve) > -_ROUNDING * curve[1:]
    if not weak:
        rises[0] = True
    if rises.all():
        return _thresholds(
            weak=weak,
            algorithmic=needed,
            information=needed,
            informed=needed,
            informed_always=False,
            overlap_before=np.nan,
            overlap_after=np.nan,
            first_order=False,
        )
    first = int(np.argmin(rises))
    top, algorithmic = (-np.inf, weak) if first == 0 else _extremum(ratio, u, first, -1.0)
    lowest = first + int(np.argmin(curve[first:]))
    # The curve approaches its limit at large qh only as ln(qh) / qh.
    ends = lowest == end or (fixed > 0 and bool(curve[lowest] > (1 - 1e-4) * needed))
    floor = needed if fixed else 0.0 if determined else float(curve[end])
    bottom, informed = (u[end], floor) if ends else _extremum(ratio, u, lowest, 1.0)

    def low(alpha: float) -> float:
        return (
            -np.inf
            if alpha <= curve[0]
            else brentq(lambda x: ratio(x) - alpha, u[0], top, xtol=1e-13)
        )

    def high(alpha: float) -> float:
        return (
            u[end]
            if ends or alpha >= curve[end]
            else brentq(lambda x: ratio(x) - alpha, bottom, u[end], xtol=1e-13)
        )

    def gain(alpha: float) -> float:
        """Free entropy of the last branch minus that of the first."""
        return at(high(alpha), alpha)[2] - at(low(alpha), alpha)[2]

    information = informed
    if not ends or (determined and not fixed):
        information = max(informed * (1 + 1e-12), 1e-6 * algorithmic)
        if gain(information) < 0:
            information = brentq(gain, information, algorithmic * (1 - 1e-12), xtol=1e-12)
    # Where exactly known weights are a solution, this solution is the optimal one.
    information = min(information, needed)
    after = rho if information == needed else at(high(information))[1]
    return _thresholds(
        weak=weak,
        algorithmic=algorithmic,
        information=information,
        informed=informed,
        informed_always=ends and floor == 0,
        overlap_before=at(low(information))[1],
        overlap_after=after,
        first_order=True,
    )


def _thresholds(**values: float) -> Thresholds:
    return Thresholds(**{name: jnp.asarray(value) for name, value in values.items()})


def _extremum(
    ratio: Callable[[float], float], u: np.ndarray, index: int, sign: float
) -> tuple[float, float]:
    """Position and value of the minimum (sign 1) or maximum (sign -1) of alpha next to a point of
    the grid."""
    found = minimize_scalar(
        lambda x: sign * ratio(x),
        bracket=(u[index - 1], u[index], u[index + 1]),
        options={"xtol": 1e-9},
    )
    return float(found.x), sign * float(found.fun)


def precisions(points: int) -> Float[Array, "point"]:
    """Precisions qh at which the branches of solutions are evaluated, in equal steps of ln qh."""
    return jnp.geomspace(_FIRST, _LAST, points)


def at_precision(
    system: GeneralisedLinear, precision: Scalar
) -> tuple[Scalar, Scalar, Scalar, Float[Array, "2"]]:
    """Overlap q, error V, information I(q, V), and the two terms of the free entropy: qh V / 2 -
    i(qh) of the prior, and E ln Z of a label.
    """
    prior = system.prior.averages(precision)
    error = jnp.maximum(prior.error, _DETERMINED * system.prior.power)
    labels = system.labels.averages(prior.overlap, error)
    return (
        prior.overlap,
        error,
        labels.information,
        jnp.stack([precision * error / 2 - prior.information, labels.free_entropy]),
    )


_point = jax.jit(at_precision)


def classification_error(system: GeneralisedLinear, overlap: Scalar) -> Scalar:
    """Probability that the sign of the estimate differs from a label; NaN for labels that are not
    signs."""
    if not isinstance(system.labels, SignLabels):
        return jnp.full_like(overlap, jnp.nan)
    rho = system.prior.power
    return system.labels.disagreement(jnp.sqrt(overlap / rho), rho)
