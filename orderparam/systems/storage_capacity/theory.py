"""Theory of storage by real couplings (Gardner 1988, Cover 1965): capacity, volume of the
solutions, largest margin and fewest errors.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betainc
from jaxtyping import Array, Bool, Float

from orderparam.core.needs import equal
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.rules import legendre_rule
from orderparam.gaussian.tail import hazard, hazard_excess, log_cdf
from orderparam.solve.root import decreasing_root
from orderparam.systems.storage_capacity.model import SphericalPatterns

# ------------------------------------------------------------------------------------------------
# Gardner's theory of storage: capacity, volume of solutions, largest margin, fewest errors; and
# Cover's law for finite N.

Number = Float[Array, ""]

_REACH = 12.0  # the normal density is taken as zero beyond this argument
_NODES, _WEIGHTS = (x / 2 for x in legendre_rule(128))
# Numbers of quadrature nodes in `_solutions`: with the smaller number the logarithm of a ratio is
# accurate to _NEAR.
_ALL, _FEW, _NEAR = 160, 48, 1e-3
# The unknown is the logarithm of the ratio in this unit. The search for a root ends at the rounding
# error of numbers of order one. The sum over nodes has a rounding error some ten times larger, so
# that in units of one Newton's steps would not end.
_UNIT = 16.0
_NORMAL_END = 9.0  # the normal density there is 1e-18 of that at 0
_SHARPEST = 1e-6  # length below which a kink is not resolved: it then errs by the square


class Capacity(Result):
    """Storage capacity of a perceptron with real couplings.

    Fields:
        capacity: alpha_c, the largest number of random patterns per input that can be stored.
        alignment: M = sum_i J_i/(sqrt N |J|), the alignment of the couplings with the mean of the
            inputs.
        exact: whether margin >= 0. For a negative margin the set of solutions is not connected,
            replica symmetry is broken, and alpha_c is an upper bound.
        residual: residual of the equation for M.
        converged: whether that equation was solved.
    """

    capacity: Float[Array, ""]
    alignment: Float[Array, ""]
    exact: Bool[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class Volume(Result):
    """Volume of the couplings that store the patterns.

    Fields:
        overlap: q of two random solutions, J.J'/(|J||J'|).
        entropy: logarithm of the fraction of the sphere that the solutions fill, over N.
        residual: residual of the saddle-point equation.
        converged: whether it was solved; always false above the capacity.
    """

    overlap: Float[Array, ""]
    entropy: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class StoredMargin(Result):
    """Largest margin at which the patterns can be stored.

    Fields:
        margin: kappa.
        valid: whether the load is below 2. At larger loads kappa is negative and is only an upper
            bound.
        residual: residual of the equation.
        converged: whether it was solved.
    """

    margin: Float[Array, ""]
    valid: Bool[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class MinimalError(Result):
    """Couplings that leave the fewest patterns below the margin.

    Fields:
        error_fraction: smallest fraction of patterns that are not stored: 0 below the capacity, and
            a lower bound above the capacity.
        gap: x, the width of the interval below the margin in which there are no stabilities; inf
            below the capacity.
        at_value: alpha int_{kappa - x}^kappa Dt. Gardner and Derrida's criterion calls replica
            symmetry stable where it is below 1. Because the distribution of stabilities has a gap,
            replica symmetry is unstable at every load above the capacity (Bouten 1994).
        residual: residual of the equation for the gap.
        converged: whether it was solved.
    """

    error_fraction: Float[Array, ""]
    gap: Float[Array, ""]
    at_value: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class InstabilityLine(Result):
    """Line of instability by the criterion of Gardner and Derrida.

    Fields:
        load: load above which replica symmetry is unstable by this criterion.
        valid: whether margin >= 0. For a negative margin replica symmetry is unstable at every
            load.
        residual: residual of the equation.
        converged: whether it was solved.
    """

    load: Float[Array, ""]
    valid: Bool[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class SuccessFraction(Result):
    """Probability of storage at finite N.

    Fields:
        success_fraction: probability that random patterns can be stored.
    """

    success_fraction: Float[Array, ""]


UNBIASED = {"bias": equal(0, why="only the capacity is solved with a bias")}


@theory
def capacity(system: SphericalPatterns) -> Capacity:
    r"""Storage capacity of a perceptron with real couplings at a given margin and bias, in the
    limit of large N.

    With $\kappa$ = `margin`, b = `bias`, $I_k(a) = \int_{-a}^\infty Dt\, (t + a)^k$ and $a_\pm =
    (\kappa \mp b M)/\sqrt{1 - b^2}$,

    $$ \frac{1}{\alpha_c} = \frac{1 + b}{2} I_2(a_+) + \frac{1 - b}{2} I_2(a_-), \qquad
       (1 + b) I_1(a_+) = (1 - b) I_1(a_-) $$

    The second equation determines M = `alignment`. Without a bias $1/\alpha_c = I_2(\kappa)$. The
    system's load is not used.

    Accuracy: 1e-9. The replica-symmetric result is exact for margin >= 0 (`exact`) and an upper
    bound for negative margins.

    Source: Gardner (1988), equations 29 to 36.

    >>> round(float(capacity(SphericalPatterns(margin=0.5)).capacity), 8)
    0.96120505
    """
    bias, margin = jnp.asarray(system.bias), jnp.asarray(system.margin)
    width = jnp.sqrt((1 - bias) * (1 + bias))
    odds = jnp.log1p(bias) - jnp.log1p(-bias)

    def equation(pull: Number, args: tuple[Number, Number, Number]) -> Number:
        margin, width, odds = args
        return odds + _log_first((margin - pull) / width) - _log_first((margin + pull) / width)

    high = jnp.abs(margin) + width * (5 + 2 * jnp.sqrt(odds))
    root = decreasing_root(equation, jnp.zeros(()) - 1e-3 * width, high, (margin, width, odds))
    shares = (1 + bias) / 2, (1 - bias) / 2
    along, against = (
        share * _second((margin + sign * root.value) / width)
        for share, sign in zip(shares, (-1, 1))
    )
    # 1/alpha_c is the mean square of the amount by which a pattern falls short of the margin,
    # averaged over both outputs.
    inverse = along + against
    alignment = jnp.where(
        bias == 0, hazard_excess(margin), root.value / jnp.where(bias == 0, 1.0, bias)
    )
    return Capacity(
        capacity=1 / inverse,
        alignment=alignment,
        exact=margin >= 0,
        residual=root.residual,
        converged=root.converged & (inverse > 0),
    )


@theory(needs=UNBIASED)
def volume(system: SphericalPatterns) -> Volume:
    r"""Overlap of two solutions and volume of the set of solutions, for real couplings in the limit
    of large N.

    The entropy is the saddle point over the `overlap` q of

    $$ \frac12 \ln(1 - q) + \frac{q}{2 (1 - q)} + \alpha \int Dt\, \ln H(u), \qquad
       u = \frac{\kappa + \sqrt q\, t}{\sqrt{1 - q}} $$

    with $\alpha$ = `load`, $\kappa$ = `margin` and $H(u) = \Phi(-u)$, so that $q/(1 - q) = \alpha
    \int Dt\, (\varphi(u)/H(u))^2$.

    Raises:
        ValueError: for a bias.

    Accuracy: 1e-8, also as q tends to 1. Exact for margin >= 0 below the capacity.

    Source: Gardner (1988).

    >>> found = volume(SphericalPatterns(load=1.0))
    >>> round(float(found.overlap), 8), round(float(found.entropy), 8)
    (0.58531185, -0.8558206)
    """
    margin, load = jnp.asarray(system.margin), jnp.asarray(system.load)

    def equation(unknown: Number, args: tuple[Number, Number], nodes: int = _ALL) -> Number:
        load, margin = args
        log_ratio = unknown * _UNIT
        minus, weight = _solutions(jnp.exp(log_ratio), margin, nodes)
        return jnp.log(load * jnp.sum(weight * hazard(minus) ** 2)) - log_ratio

    low = jnp.log(load) + 2 * jnp.log(hazard(-margin)) - 1
    # Upper end of the search: h(u) < max(-u, 0) + h(0) for the hazard h = phi/Phi gives a quadratic
    # inequality for sqrt(1 + ratio).
    free, tilt = (
        1 - load * _second(margin),
        hazard(jnp.zeros(())) * load * jnp.exp(_log_first(margin)),
    )
    bound = (tilt + jnp.sqrt(tilt**2 + free * (1 + load * 2 / np.pi))) / free
    high = jnp.where(free > 1e-15, jnp.log(bound) * 2 + 0.1, jnp.maximum(low, 0.0) + 45)
    args, low, high = (load, margin), low / _UNIT, high / _UNIT
    # A rule with few nodes finds the root approximately. A narrow bracket around it is used if the
    # sign changes within the bracket.
    near = decreasing_root(partial(equation, nodes=_FEW), low, high, args).value
    below, above = near - _NEAR / _UNIT, near + _NEAR / _UNIT
    low = jnp.where(equation(below, args) > 0, below, low)
    high = jnp.where(equation(above, args) < 0, above, high)
    root = decreasing_root(equation, low, high, args)
    ratio = jnp.exp(root.value * _UNIT)
    minus, weight = _solutions(ratio, margin, _ALL)
    entropy = (ratio - jnp.log1p(ratio)) / 2 + load * jnp.sum(weight * log_cdf(minus))
    return Volume(
        overlap=ratio / (1 + ratio),
        entropy=entropy,
        residual=root.residual,
        converged=root.converged,
    )


@theory(needs=UNBIASED)
def largest_margin(system: SphericalPatterns) -> StoredMargin:
    r"""Largest margin at which random patterns of the given load can be stored, in the limit of
    large N.

    $$ \frac1\alpha = \int_{-\kappa}^\infty Dt\, (t + \kappa)^2 $$

    with $\alpha$ = `load`; $\kappa$ is the `margin` of the result. The system's margin is not used.

    Raises:
        ValueError: for a bias.

    Accuracy: 1e-9. Exact for loads below 2 (`valid`).

    Source: Gardner (1988).

    >>> round(float(largest_margin(SphericalPatterns(load=1.0)).margin), 8)
    0.47065535
    """
    load = jnp.asarray(system.load)

    def equation(kappa: Number, load: Number) -> Number:
        return -jnp.log(load) - _log_second(kappa)

    high = jnp.sqrt(1 / load) + 1
    low = -jnp.sqrt(2 * jnp.log1p(load)) - 1
    root = decreasing_root(equation, low, high, load)
    return StoredMargin(
        margin=root.value, valid=load < 2, residual=root.residual, converged=root.converged
    )


@theory(needs=UNBIASED)
def minimal_error(system: SphericalPatterns) -> MinimalError:
    r"""Smallest fraction of patterns that real couplings leave below the margin, assuming replica
    symmetry.

    The stabilities have a gap x below the margin $\kappa$ = `margin`, which solves the first
    equation with $\alpha$ = `load`:

    $$ \alpha \int_{\kappa - x}^\kappa Dt\, (\kappa - t)^2 = 1, \qquad
       \mathrm{error\_fraction} = \Phi(\kappa - x) $$

    Below the capacity the fraction is zero.

    Raises:
        ValueError: for a bias.

    Accuracy: 1e-8 for the replica-symmetric value, which is a lower bound above the capacity.

    Source: Gardner, Derrida (1988), section 4; Bouten (1994) for the instability of replica
    symmetry.

    >>> found = minimal_error(SphericalPatterns(load=3.0))
    >>> round(float(found.error_fraction), 8), round(float(found.gap), 8)
    (0.03250534, 1.8451846)
    """
    margin, load = jnp.asarray(system.margin), jnp.asarray(system.load)

    def equation(log_gap: Number, args: tuple[Number, Number]) -> Number:
        load, margin = args
        return -jnp.log(load) - jnp.log(_below(margin, jnp.exp(log_gap), 2) + 1e-300)

    # Above the capacity the patterns whose stability is less than x below the margin are lifted to
    # the margin, and those farther below stay wrong. The gap x is as large as the freedom of the
    # couplings allows.
    above = load * _second(margin) > 1
    low = jnp.log(3 * np.sqrt(2 * np.pi) / load) / 3 - 1e-9
    high = jnp.log(jnp.abs(margin) + _REACH)
    root = decreasing_root(equation, jnp.minimum(low, high - 1), high, (load, margin))
    gap = jnp.where(above, jnp.exp(root.value), jnp.inf)
    return MinimalError(
        error_fraction=jnp.where(above, jnp.exp(log_cdf(margin - jnp.where(above, gap, 0.0))), 0.0),
        gap=gap,
        at_value=load
        * jnp.where(above, _below(margin, jnp.where(above, gap, 1.0), 0), jnp.exp(log_cdf(margin))),
        residual=jnp.where(above, root.residual, 0.0),
        converged=~above | root.converged,
    )


@theory(needs=UNBIASED)
def at_line_gardner_derrida(system: SphericalPatterns) -> InstabilityLine:
    r"""Load at which Gardner and Derrida's criterion calls replica symmetry of `minimal_error`
    unstable.

    The load and the gap x solve, with $\kappa$ = `margin`,

    $$ \alpha \int_{\kappa - x}^\kappa Dt = 1, \qquad
       \alpha \int_{\kappa - x}^\kappa Dt\, (\kappa - t)^2 = 1 $$

    The system's load is not used. `MinimalError` describes this criterion.

    Raises:
        ValueError: for a bias.

    Accuracy: 1e-8 for margin > 0. At margin 0 the gap diverges; it is cut at 12, beyond which the
    normal density is negligible.

    Source: Gardner, Derrida (1988).

    >>> round(float(at_line_gardner_derrida(SphericalPatterns(margin=1.0)).load), 8)
    1.66584475
    """
    margin = jnp.asarray(system.margin)
    end = jnp.abs(margin) + _REACH

    def equation(gap: Number, margin: Number) -> Number:
        return _below(margin, gap, 0) - _below(margin, gap, 2)

    inside = jnp.where(margin > 0, margin, 1.0)
    root = decreasing_root(equation, jnp.ones(()), jnp.where(margin > 0, end, 20.0), inside)
    gap = jnp.where(margin > 0, root.value, end)
    residual = jnp.where(margin > 0, root.residual, 0.0)
    return InstabilityLine(
        load=1 / _below(margin, gap, 0),
        valid=margin >= 0,
        residual=residual,
        converged=(margin <= 0) | root.converged,
    )


@theory(
    needs=UNBIASED | {"margin": equal(0, why="Cover counts separations without margin")},
    differentiable=False,
)
def cover(system: SphericalPatterns) -> SuccessFraction:
    r"""Probability that random patterns of a finite number of inputs can be stored without a
    margin.

    $$ 2^{1 - p} \sum_{k=0}^{N-1} \binom{p - 1}{k} $$

    is the fraction, among the $2^p$ ways to label $p = \alpha N$ points in general position, that a
    plane through the origin can separate, with N = `input_dim` and $\alpha$ = `load`. It is 1 up to
    p = N and 1/2 at p = 2N. The incomplete beta function continues it to real p.

    Raises:
        ValueError: for a margin or a bias.

    Accuracy: rounding. This theory cannot be differentiated.

    Source: Cover (1965).

    >>> round(float(cover(SphericalPatterns(load=1.5, input_dim=20)).success_fraction), 8)
    0.96928583
    """
    n, patterns = system.input_dim, system.load * system.input_dim
    beyond = patterns > n
    fraction = betainc(jnp.where(beyond, patterns - n, 1.0), n, 0.5)
    return SuccessFraction(success_fraction=jnp.where(beyond, fraction, 1.0))


def _solutions(ratio: Number, margin: Number, nodes: int) -> tuple[Array, Array]:
    """Nodes of -u = -(margin + t sqrt q)/sqrt(1 - q) and their weights in an average over the
    normal variable t, at q/(1 - q) = ratio.

    phi(u)/H(u) bends near u = 0 over a range of 1/sqrt(ratio) in t, and vanishes for large -u. The
    nodes lie at equal steps of x in t = place + scale sinh(x); for a smooth integrand the error of
    this rule is exponentially small.
    """
    fixed = jax.lax.stop_gradient((jnp.asarray(ratio, float), jnp.asarray(margin, float)))
    slope, shift = jnp.sqrt(fixed[0]), fixed[1] * jnp.sqrt(1 + fixed[0])  # u = shift + slope t
    place = jnp.clip(-shift / slope, -_NORMAL_END, _NORMAL_END)
    scale = jnp.clip(1 / slope, _SHARPEST, 1.0)
    start = jnp.maximum(-_NORMAL_END, place - _NORMAL_END / slope)
    low, high = (jnp.arcsinh((end - place) / scale) for end in (start, _NORMAL_END))
    grown = jnp.exp(low + (high - low) * np.linspace(0.0, 1.0, nodes))
    t = place + scale * (grown - 1 / grown) / 2
    stretch = (high - low) / (nodes - 1) * scale * (grown + 1 / grown) / 2
    weight = stretch * jnp.exp(-(t**2) / 2)
    root = jnp.sqrt(ratio / (1 + ratio))
    return -(margin + root * t) * jnp.sqrt(1 + ratio), weight / np.sqrt(2 * np.pi)


def _log_first(a: Number) -> Number:
    """Logarithm of I_1(a) = int_{-a}^inf Dt (t + a)."""
    return log_cdf(a) + jnp.log(hazard_excess(a))


def _second(a: Number) -> Number:
    """The integral I_2(a) = int_{-a}^inf Dt (t + a)^2."""
    return jnp.exp(_log_second(a))


def _log_second(a: Number) -> Number:
    return log_cdf(a) + jnp.log1p(a * hazard_excess(a))


def _below(margin: Number, gap: Number, power: int) -> Number:
    """The integral of (margin - t)^power over the normal density from margin - gap to margin."""
    low, high = jnp.maximum(margin - gap, -_REACH), jnp.clip(margin, -_REACH, _REACH)
    length = jnp.maximum(high - low, 0.0)
    t = low + length * (0.5 + _NODES)
    return (
        length
        * jnp.sum(_WEIGHTS * (margin - t) ** power * jnp.exp(-(t**2) / 2))
        / np.sqrt(2 * np.pi)
    )
