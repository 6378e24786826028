r"""Perceptrons beyond their capacity, with replica symmetry broken: the fewest errors of real
couplings, the capacity at a negative margin, and the fewest errors of binary couplings.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.needs import below, between
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.quadrature import standard_normal_rule
from orderparam.gaussian.tail import hazard, log_cdf
from orderparam.solve.minimum import lbfgs_minimum
from orderparam.solve.newton import newton_fixed_point
from orderparam.solve.parisi import (
    OverlapSteps,
    cascade,
    field_grid,
    increasing,
    overlaps_of,
    slope_squares,
)
from orderparam.solve.root import decreasing_root
from orderparam.systems.storage_capacity.model import BinaryPatterns, SphericalPatterns
from orderparam.systems.storage_capacity.theory import UNBIASED, capacity, minimal_error

Number = Float[Array, ""]
Vector = Float[Array, "unknown"]

_MOST = 6  # largest number of steps; the narrowest of more would be finer than the grid of fields
_REACH = 7.0


class BrokenError(Result):
    """Couplings that leave the fewest patterns below the margin, with replica symmetry broken in k
    steps.

    Fields:
        error_fraction: smallest fraction of patterns that are not stored. It is a lower bound,
            which rises with k, and 0 below the capacity.
        gap: x, the width of the interval below the margin in which there are no stabilities; inf
            below the capacity.
        overlaps: q_0, ..., q_(k-1), the overlaps at which the steps begin; the last step ends at 1.
        heights: y_1, ..., y_k, the heights of the steps.
        stationarity: largest relative deviation from stationarity with respect to y(q), at the
            overlaps and between them. It measures how far the k steps are from the solution of
            Parisi's equation.
        residual: largest entry of the gradient.
        converged: whether the residual is below 1e-8.
    """

    error_fraction: Number
    gap: Number
    overlaps: Float[Array, "step"]
    heights: Float[Array, "step"]
    stationarity: Number
    residual: Number
    converged: Bool[Array, ""]


class BrokenCapacity(Result):
    """Storage capacity with replica symmetry broken in k steps.

    Fields:
        capacity: alpha_c, an upper bound that falls with k.
        overlaps: q_0, ..., q_(k-1), the overlaps at which the steps begin; the last step ends at 1.
        heights: y_1, ..., y_k, the heights of the steps in units of chi.
        residual: largest entry of the gradient.
        converged: whether the residual is below 1e-8.
    """

    capacity: Number
    overlaps: Float[Array, "step"]
    heights: Float[Array, "step"]
    residual: Number
    converged: Bool[Array, ""]


class BinaryError(Result):
    """Smallest fraction of errors of binary couplings.

    Fields:
        error_fraction: smallest share of patterns that are not stored; 0 below the capacity.
        temperature: 1/beta_c, where the replica-symmetric entropy vanishes and the couplings
            freeze; 0 below the capacity.
        overlap: overlap q of two states at that temperature.
        residual: absolute value of the entropy.
        converged: whether the equations were solved.
    """

    error_fraction: Number
    temperature: Number
    overlap: Number
    residual: Number
    converged: Bool[Array, ""]


_BROKEN = UNBIASED | {"steps": between(1, _MOST)}


@theory(needs=_BROKEN)
def broken_minimal_error(system: SphericalPatterns, *, steps: int = 2) -> BrokenError:
    r"""Smallest fraction of patterns that real couplings leave below the margin, with replica
    symmetry broken in k steps.

    Let $\alpha$ = `load`, $\kappa$ = `margin` and $\Lambda(q) = \chi + \int_q^1 y$, and let $\phi$
    be the value of the cascade that starts from $\phi_k(h) = -\min[\theta(\kappa - h), (\kappa -
    h)_+^2/2\chi]$, over overlaps $q_0 < \dots < q_k = 1$ and heights $y_1 < \dots < y_k$. Then

    $$ -\alpha f = \min_{\chi, q, y} \Big\{ \frac12 \int_0^1 \frac{dq}{\Lambda(q)} + \alpha \phi
       \Big\} $$

    where f is `error_fraction` and $\sqrt{2\chi}$ the `gap`. At y = 0 the result is that of
    `minimal_error`.

    Args:
        steps: number k of steps, from 1 to 6.

    Raises:
        ValueError: for a bias, or for fewer than 1 or more than 6 steps.

    Accuracy: 1e-9 for the given number of steps, at loads that exceed the capacity by 5 % or more.
    The first step raises the replica-symmetric value by 4 to 27 %, the second step raises it by a
    further 0.05 to 0.5 %, and the third by less than 0.05 %.

    Source: Gardner, Derrida (1988); Majer, Engel, Zippelius (1993) for one step; Györgyi, Reimann
        (1997) for Parisi's equation. The form of the functional is derived here.

    >>> found = broken_minimal_error(SphericalPatterns(load=3.0), steps=1)
    >>> round(float(found.error_fraction), 6), round(float(found.gap), 4)
    (0.039098, 0.8599)
    """
    margin, load = jnp.asarray(system.margin), jnp.asarray(system.load)
    limit = capacity(system).capacity
    above = load > limit
    load = jnp.where(above, load, 2 * limit)
    grid = field_grid(_REACH)

    def parts(unknowns: Vector) -> tuple[Number, OverlapSteps]:
        overlaps = overlaps_of(unknowns[1 : steps + 1])
        return jnp.exp(unknowns[0]), OverlapSteps(
            jnp.append(overlaps, 1.0), increasing(unknowns[steps + 1 :])
        )

    def functional(unknowns: Vector) -> Number:
        softness, tried = parts(unknowns)
        first = _errors_inside(grid, margin, softness, tried.widths[-1], tried.heights[-1])
        return volume_term(softness, tried) + load * cascade(first, grid, tried.outer)

    level = jnp.arange(steps) / steps
    overlaps = 1 - 0.22 * (1 - level) ** 1.5
    heights = 5 * (1 + level * steps) ** 1.5
    softness = 0.1 * minimal_error(system.with_(load=load)).gap ** 2
    start = _unknowns(overlaps, heights, softness)
    found = lbfgs_minimum(functional, start)
    softness, solved = parts(found.value)

    fine = solved.halved()
    width, height = fine.widths[-1], fine.heights[-1]

    def first(h: Array) -> Array:
        return _errors_inside(h, margin, softness, width, height)

    squares = slope_squares(first(grid), jax.vmap(jax.grad(first))(grid), grid, fine.outer)
    wanted = _inverse_squares(softness, fine)[:-1]
    return BrokenError(
        error_fraction=jnp.where(above, -functional(found.value) / load, 0.0),
        gap=jnp.where(above, jnp.sqrt(2 * softness), jnp.inf),
        overlaps=solved.overlaps[:-1],
        heights=solved.heights,
        stationarity=jnp.where(above, jnp.max(jnp.abs(load * squares / wanted - 1)), 0.0),
        residual=jnp.where(above, found.residual, 0.0),
        converged=~above | found.converged,
    )


@theory(needs=_BROKEN | {"margin": below(0, why="`capacity` is exact for others")})
def broken_capacity(system: SphericalPatterns, *, steps: int = 2) -> BrokenCapacity:
    r"""Storage capacity at a negative margin, with replica symmetry broken in k steps.

    At the capacity the smallest fraction of errors vanishes, $\chi \to \infty$, and the heights are
    of order $\chi$. In units of $\chi$, with $\Lambda(q) = 1 + \int_q^1 y$ and the cascade $\phi$
    that starts from $-(\kappa - h)_+^2/2$ ($\kappa$ = `margin`),

    $$ \alpha_c = \min_{q, y} \Big\{ \frac12 \int_0^1 \frac{dq}{\Lambda(q)} \Big/ (-\phi) \Big\} $$

    At y = 0 the result is that of `capacity`. The system's load is not used.

    Args:
        steps: number k of steps, from 1 to 6.

    Raises:
        ValueError: for a bias, a margin that is not negative, or fewer than 1 or more than 6 steps.

    Accuracy: 1e-8 for up to 3 steps. `overlaps` and `heights` are accurate to 1e-6 only, because
    the capacity is stationary in them. Three steps are within 1e-4 of the limit of many steps for
    margins down to -1.

    Source: Franz, Parisi (2016) for symmetry breaking at negative margins; the form of the
        functional is derived here.

    >>> round(float(broken_capacity(SphericalPatterns(margin=-1.0), steps=1).capacity), 5)
    12.31963
    """
    margin = jnp.asarray(system.margin)
    grid = field_grid(_REACH)

    def steps_at(unknowns: Vector) -> OverlapSteps:
        return OverlapSteps(
            jnp.append(overlaps_of(unknowns[:steps]), 1.0), increasing(unknowns[steps:])
        )

    def functional(unknowns: Vector) -> Number:
        tried = steps_at(unknowns)
        first = _stored_inside(grid, margin, tried.widths[-1], tried.heights[-1])
        return jnp.log(volume_term(1.0, tried)) - jnp.log(-cascade(first, grid, tried.outer))

    level = jnp.arange(steps) / steps
    start = _unknowns(1 - 0.4 * (1 - level) ** 2, 6.0 * (1 + 2 * level * steps) ** 2.0)
    found = lbfgs_minimum(functional, start)
    solved = steps_at(found.value)
    return BrokenCapacity(
        capacity=jnp.exp(functional(found.value)),
        overlaps=solved.overlaps[:-1],
        heights=solved.heights,
        residual=found.residual,
        converged=found.converged,
    )


@theory
def binary_minimal_error(system: BinaryPatterns) -> BinaryError:
    r"""Smallest fraction of patterns that binary couplings leave below the margin.

    At the inverse temperature $\beta$ of the number of errors, with $Z = e^{-\beta} + (1 -
    e^{-\beta}) H(u)$, $u = (\kappa - \sqrt q z)/\sqrt{1 - q}$, $\alpha$ = `load` and $\kappa$ =
    `margin`, the replica-symmetric free energy is

    $$ -\beta \alpha f = -\frac{\hat q (1 - q)}{2} + \int Dz \ln 2\cosh(\sqrt{\hat q} z) + \alpha
       \int Dz \ln Z $$

    which is stationary in q and $\hat q$. At the temperature where the entropy of this state
    vanishes, the couplings freeze into single configurations. With one step of replica symmetry
    breaking the fraction of errors at all lower temperatures equals that at the freezing
    temperature.

    Accuracy: 1e-8, from loads 1 % above the capacity to loads of 20.

    Source: Krauth, Mézard (1989) for the freezing; the theory with errors is derived here.

    >>> round(float(binary_minimal_error(BinaryPatterns(load=2.0)).error_fraction), 8)
    0.14363158
    """
    margin, load = jnp.asarray(system.margin), jnp.asarray(system.load)

    def entropy(log_beta: Number, args: tuple[Number, Number]) -> Number:
        return _frozen(jnp.exp(log_beta), *args)[0]

    low, high = jnp.log(0.3), jnp.log(14.0)
    args = load, margin
    # beta_c is infinite at the capacity, because couplings without errors exist at lower loads
    above = entropy(high, args) < 0
    root = decreasing_root(entropy, low, high, (jnp.where(above, load, 2.0), margin))
    beta = jnp.exp(root.value)
    _, errors, overlap, solved = _frozen(beta, jnp.where(above, load, 2.0), margin)
    return BinaryError(
        error_fraction=jnp.where(above, errors, 0.0),
        temperature=jnp.where(above, 1 / beta, 0.0),
        overlap=jnp.where(above, overlap, 1.0),
        residual=jnp.where(above, root.residual, 0.0),
        converged=~above | (root.converged & solved),
    )


def _unknowns(overlaps: Array, heights: Array, softness: Number | None = None) -> Vector:
    """Unconstrained real numbers that `overlaps_of` and `increasing` map approximately to the given
    overlaps and heights."""
    shares = jnp.diff(overlaps, prepend=0.0, append=1.0)
    parts = [jnp.log(shares[:-1] / shares[-1]), jnp.log(jnp.diff(heights, prepend=0.0))]
    return jnp.concatenate(parts if softness is None else [jnp.log(softness)[None], *parts])


def _lambdas(softness: Number | float, steps: OverlapSteps) -> Float[Array, "level"]:
    """Lambda at every overlap, which is `softness` plus the integral of y from that overlap to the
    last one."""
    rises = jnp.cumsum((steps.heights * steps.widths)[::-1])[::-1]
    return softness + jnp.append(rises, 0.0)


def volume_term(softness: Number | float, steps: OverlapSteps) -> Number:
    """Half the integral of 1/Lambda from 0 to the last overlap, where Lambda is `softness`."""
    at = _lambdas(softness, steps)
    return (
        steps.overlaps[0] / at[0]
        + jnp.sum(jnp.log1p(steps.heights * steps.widths / at[1:]) / steps.heights)
    ) / 2


def _inverse_squares(softness: Number, steps: OverlapSteps) -> Float[Array, "level"]:
    """The integral of 1/Lambda^2 from 0 to every overlap."""
    at = _lambdas(softness, steps)
    rises = steps.widths / (at[1:] * at[:-1])
    return steps.overlaps[0] / at[0] ** 2 + jnp.append(0.0, jnp.cumsum(rises))


def _log_between(low: Array, high: Array) -> Array:
    """log[Phi(high) - Phi(low)], computed in that tail of the normal distribution where both values
    are small."""
    flip = low + high > 0
    below, above = jnp.where(flip, -high, low), jnp.where(flip, -low, high)
    return log_cdf(above) + jnp.log(-jnp.expm1(log_cdf(below) - log_cdf(above)))


def _errors_inside(
    h: Array, margin: Number, softness: Number, width: Number, height: Number
) -> Array:
    """The innermost average of the cascade, of -min[theta(kappa - h), (kappa - h)_+^2/(2 chi)]. It
    is the sum over patterns that are stored, patterns that are lifted to the margin, and patterns
    that are left below the gap."""
    scale, gap = jnp.sqrt(width), jnp.sqrt(2 * softness)
    total = softness + height * width
    spread = jnp.sqrt(width * softness / total)
    centre = (h * softness + height * width * margin) / total
    stored = log_cdf((h - margin) / scale)
    left = -height + log_cdf((margin - gap - h) / scale)
    lifted = (
        jnp.log(softness / total) / 2
        - height * (margin - h) ** 2 / (2 * total)
        + _log_between((margin - gap - centre) / spread, (margin - centre) / spread)
    )
    return jnp.logaddexp(jnp.logaddexp(stored, left), lifted) / height


def _stored_inside(h: Array, margin: Number, width: Number, height: Number) -> Array:
    """The innermost average of the cascade, of -(kappa - h)_+^2/2."""
    scale = jnp.sqrt(width)
    total = 1 + height * width
    centre = (h + height * width * margin) / total
    stored = log_cdf((h - margin) / scale)
    lifted = (
        -jnp.log(total) / 2
        - height * (margin - h) ** 2 / (2 * total)
        + log_cdf((margin - centre) / (scale / jnp.sqrt(total)))
    )
    return jnp.logaddexp(stored, lifted) / height


def _frozen(
    beta: Number, load: Number, margin: Number
) -> tuple[Number, Number, Number, Bool[Array, ""]]:
    """Replica-symmetric entropy per coupling, fraction of errors, overlap, and whether the equation
    of the overlap was solved, at an inverse temperature."""
    rest = -jnp.expm1(-beta)

    def patterns(q: Number) -> tuple[Array, Array, Array, Array]:
        scale = jnp.sqrt(1 - q)
        z, weight = standard_normal_rule((margin / jnp.sqrt(q),), refine=2)
        minus = (jnp.sqrt(q) * z - margin) / scale
        log_stored = log_cdf(minus)  # log H(u), u = -minus
        return weight, minus, log_stored, jnp.logaddexp(-beta, jnp.log(rest) + log_stored)

    def conjugate(q: Number) -> Number:
        weight, minus, log_stored, log_z = patterns(q)
        slope = rest * hazard(minus) * jnp.exp(log_stored - log_z)
        return load / (1 - q) * jnp.sum(weight * slope**2)

    def couplings(hat: Number) -> tuple[Number, Number]:
        z, weight = standard_normal_rule((0.0,), refine=4)
        x = jnp.abs(jnp.sqrt(hat) * z)
        return (
            jnp.sum(weight * jnp.tanh(x) ** 2),
            jnp.sum(weight * (x + jnp.log1p(jnp.exp(-2 * x)))),
        )

    solved = newton_fixed_point(
        lambda q, args: couplings(conjugate(q))[0], jnp.asarray(0.5), (beta, load, margin)
    )
    q = solved.value
    hat = conjugate(q)
    weight, _, log_stored, log_z = patterns(q)
    log_wrong = -beta + jnp.log(-jnp.expm1(jnp.minimum(log_stored, -1e-300)))
    errors = jnp.sum(weight * jnp.exp(log_wrong - log_z))
    free = -hat * (1 - q) / 2 + couplings(hat)[1] + load * jnp.sum(weight * log_z)
    return free + beta * load * errors, errors, q, solved.converged
