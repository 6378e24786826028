"""Storage by real couplings (Gardner, Cover) and by binary ones (Krauth and Mezard): capacity,
entropy, margin, errors.
"""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betainc
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.quadrature import DEEP, standard_normal_rule
from orderparam.gaussian.tail import hazard, hazard_excess, log_cdf
from orderparam.solve.root import decreasing_root
from orderparam.systems.storage_capacity.model import BinaryPatterns, SphericalPatterns

# ------------------------------------------------------------------------------------------------
# Gardner's theory of storage: capacity, volume of solutions, largest margin, fewest errors; and Cover's law for finite N.

Number = Float[Array, ""]

_REACH = 12.0  # of the normal density
_NODES, _WEIGHTS = (x / 2 for x in np.polynomial.legendre.leggauss(128))


class Capacity(Result):
    """capacity alpha_c, up to which patterns can be stored; alignment M = sum J / sqrt(N |J|^2), by
    which couplings use the bias.

    exact: margin >= 0. For a negative margin the solutions are not connected, replica symmetry is
    broken, and alpha_c is an upper bound. residual, converged: of the equation for M.
    """

    capacity: Float[Array, ""]
    alignment: Float[Array, ""]
    exact: Bool[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class Volume(Result):
    """overlap q of two random solutions, and entropy (1/N) ln of their share of the sphere.
    converged: load < alpha_c, too.
    """

    overlap: Float[Array, ""]
    entropy: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class StoredMargin(Result):
    """margin kappa up to which the patterns can be stored. valid: load < 2; beyond, kappa < 0 is an
    upper bound.
    """

    margin: Float[Array, ""]
    valid: Bool[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class MinimalError(Result):
    """error_fraction: smallest share of patterns that are not stored; gap x, by which stabilities
    below the margin avoid it: inf below the capacity. at_value alpha int_{kappa - x}^kappa Dt:
    below 1 Gardner and Derrida's criterion calls replica symmetry stable. As the distribution of
    stabilities has a gap it is unstable for every load above the capacity (Bouten 1994), and the
    fraction is a lower bound there."""

    error_fraction: Float[Array, ""]
    gap: Float[Array, ""]
    at_value: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class InstabilityLine(Result):
    """load: where Gardner and Derrida's criterion calls replica symmetry unstable, from this load
    on. valid: margin >= 0; for a negative margin it is unstable throughout."""

    load: Float[Array, ""]
    valid: Bool[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class SuccessFraction(Result):
    """success_fraction: probability that random patterns can be stored."""

    success_fraction: Float[Array, ""]


def _unbiased(system: SphericalPatterns, **_: object) -> None:
    if system.bias != 0:
        raise ValueError(
            f"SphericalPatterns.bias = {float(system.bias):g}: must be 0 (only the capacity is solved with a bias)"
        )


def _cover_holds(system: SphericalPatterns, **_: object) -> None:
    _unbiased(system)
    if system.margin != 0:
        raise ValueError(
            f"SphericalPatterns.margin = {float(system.margin):g}: must be 0 (Cover counts separations without margin)"
        )


@theory
def capacity(system: SphericalPatterns) -> Capacity:
    """1/alpha_c = (1 + b)/2 I_2(a_+) + (1 - b)/2 I_2(a_-), a_+- = (kappa -+ b M)/sqrt(1 - b^2),
    with (1 + b) I_1(a_+) = (1 - b) I_1(a_-) for M, and I_k(a) = int_{-a}^inf Dt (t + a)^k (Gardner
    1988, eqs. 29 to 36); 1/alpha_c = I_2(kappa) without bias. Replica symmetric; whatever `load`
    is."""
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
    inverse = along + against
    alignment = jnp.where(
        bias == 0, hazard_excess(margin), root.value / jnp.where(bias == 0, 1.0, bias)
    )
    return Capacity(
        1 / inverse, alignment, margin >= 0, root.residual, root.converged & (inverse > 0)
    )


@theory(check=_unbiased)
def volume(system: SphericalPatterns) -> Volume:
    """The saddle point over q of (1/2) ln(1 - q) + q/(2(1 - q)) + alpha int Dt ln H(u), u = (kappa
    + sqrt(q) t)/sqrt(1 - q) (Gardner 1988): q/(1 - q) = alpha int Dt (phi(u)/H(u))^2. H(u) =
    Phi(-u). Exact for margin >= 0."""
    margin, load = jnp.asarray(system.margin), jnp.asarray(system.load)

    def argument(ratio: Number, margin: Number) -> tuple[Array, Array]:
        """-u and weights at q/(1 - q) = ratio."""
        root = jnp.sqrt(ratio / (1 + ratio))
        t, weight = standard_normal_rule((-margin / root,), DEEP)
        return -(margin + root * t) * jnp.sqrt(1 + ratio), weight

    def equation(log_ratio: Number, args: tuple[Number, Number]) -> Number:
        load, margin = args
        minus, weight = argument(jnp.exp(log_ratio), margin)
        return jnp.log(load * jnp.sum(weight * hazard(minus) ** 2)) - log_ratio

    low = jnp.log(load) + 2 * jnp.log(hazard(-margin)) - 1
    # From h(u) < max(-u, 0) + h(0) for the hazard h = phi/Phi: a quadratic inequality for sqrt(1 +
    # ratio).
    free, tilt = (
        1 - load * _second(margin),
        hazard(jnp.zeros(())) * load * jnp.exp(_log_first(margin)),
    )
    bound = (tilt + jnp.sqrt(tilt**2 + free * (1 + load * 2 / np.pi))) / free
    high = jnp.where(free > 1e-15, jnp.log(bound) * 2 + 0.1, jnp.maximum(low, 0.0) + 45)
    root = decreasing_root(equation, low, high, (load, margin))
    ratio = jnp.exp(root.value)
    minus, weight = argument(ratio, margin)
    entropy = (ratio - jnp.log1p(ratio)) / 2 + load * jnp.sum(weight * log_cdf(minus))
    return Volume(ratio / (1 + ratio), entropy, root.residual, root.converged)


@theory(check=_unbiased)
def largest_margin(system: SphericalPatterns) -> StoredMargin:
    """kappa with alpha = alpha_c(kappa), 1/alpha = int_{-kappa}^inf Dt (t + kappa)^2 (Gardner
    1988), whatever `margin` is.
    """
    load = jnp.asarray(system.load)

    def equation(kappa: Number, load: Number) -> Number:
        return -jnp.log(load) - _log_second(kappa)

    high = jnp.sqrt(1 / load) + 1
    low = -jnp.sqrt(2 * jnp.log1p(load)) - 1
    root = decreasing_root(equation, low, high, load)
    return StoredMargin(root.value, load < 2, root.residual, root.converged)


@theory(check=_unbiased)
def minimal_error(system: SphericalPatterns) -> MinimalError:
    """Of all couplings those that leave the fewest patterns below the margin: alpha int_{kappa -
    x}^kappa Dt (kappa - t)^2 = 1 gives the gap x, and Phi(kappa - x) the fraction (Gardner, Derrida
    1988, section 4). Zero below the capacity."""
    margin, load = jnp.asarray(system.margin), jnp.asarray(system.load)

    def equation(log_gap: Number, args: tuple[Number, Number]) -> Number:
        load, margin = args
        return -jnp.log(load) - jnp.log(_below(margin, jnp.exp(log_gap), 2) + 1e-300)

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


@theory(check=_unbiased)
def at_line_gardner_derrida(system: SphericalPatterns) -> InstabilityLine:
    """alpha int_{kappa - x}^kappa Dt = 1 together with the equation for the gap x of
    `minimal_error` (Gardner, Derrida 1988), whatever `load` is. See `MinimalError` for what is
    known of this criterion."""
    margin = jnp.asarray(system.margin)
    end = jnp.abs(margin) + _REACH

    def equation(gap: Number, margin: Number) -> Number:
        return _below(margin, gap, 0) - _below(margin, gap, 2)

    inside = jnp.where(margin > 0, margin, 1.0)
    root = decreasing_root(equation, jnp.ones(()), jnp.where(margin > 0, end, 20.0), inside)
    gap = jnp.where(margin > 0, root.value, end)
    residual = jnp.where(margin > 0, root.residual, 0.0)
    return InstabilityLine(
        1 / _below(margin, gap, 0), margin >= 0, residual, (margin <= 0) | root.converged
    )


@theory(check=_cover_holds, differentiable=False)
def cover(system: SphericalPatterns) -> SuccessFraction:
    """Of the ways to label p points in general position 2^(1 - p) sum_{k<N} C(p - 1, k) can be
    separated (Cover 1965): exactly, for every N; 1/2 at p = 2N. The incomplete beta function
    continues it to any p; one up to p = N."""
    n, patterns = system.input_dim, system.load * system.input_dim
    beyond = patterns > n
    fraction = betainc(jnp.where(beyond, patterns - n, 1.0), n, 0.5)
    return SuccessFraction(jnp.where(beyond, fraction, 1.0))


def _log_first(a: Number) -> Number:
    """ln int_{-a}^inf Dt (t + a)."""
    return log_cdf(a) + jnp.log(hazard_excess(a))


def _second(a: Number) -> Number:
    """int_{-a}^inf Dt (t + a)^2."""
    return jnp.exp(_log_second(a))


def _log_second(a: Number) -> Number:
    return log_cdf(a) + jnp.log1p(a * hazard_excess(a))


def _below(margin: Number, gap: Number, power: int) -> Number:
    """int_{margin - gap}^margin Dt (margin - t)^power."""
    low, high = jnp.maximum(margin - gap, -_REACH), jnp.clip(margin, -_REACH, _REACH)
    length = jnp.maximum(high - low, 0.0)
    t = low + length * (0.5 + _NODES)
    return (
        length
        * jnp.sum(_WEIGHTS * (margin - t) ** power * jnp.exp(-(t**2) / 2))
        / np.sqrt(2 * np.pi)
    )


# ------------------------------------------------------------------------------------------------
# Krauth and Mezard's theory of the binary perceptron: the entropy of solutions, and the load at which it vanishes.

_LARGEST = 200.0  # conjugate, where 1 - q is below exp(-100)


class Solutions(Result):
    """entropy (1/N) ln of the number of solutions, overlap q of two of them, and annealed_entropy
    ln 2 + alpha ln H(kappa), the logarithm of the mean number, never below it.

    frozen: the replica-symmetric entropy is negative: there are no solutions, and the true state is
    frozen, with one step of replica symmetry breaking whose states are single couplings (Krauth,
    Mezard 1989). residual, converged: of the saddle point.
    """

    entropy: Float[Array, ""]
    overlap: Float[Array, ""]
    annealed_entropy: Float[Array, ""]
    frozen: Bool[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class BinaryCapacity(Result):
    """capacity alpha_c, where the entropy of solutions vanishes, and their overlap there."""

    capacity: Float[Array, ""]
    overlap: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def solutions(system: BinaryPatterns) -> Solutions:
    """The saddle point of -qh (1 - q)/2 + int Dz ln 2cosh(sqrt(qh) z) + alpha int Dz ln H(u), u =
    (kappa - sqrt(q) z)/sqrt(1 - q) (Krauth, Mezard 1989, eqs. 7 to 9), H(u) = Phi(-u): q = int Dz
    tanh^2(sqrt(qh) z), qh (1 - q) = alpha int Dz (phi(u)/H(u))^2. At given qh both q and alpha
    follow, and qh alone is searched."""

    margin, load = jnp.asarray(system.margin), jnp.asarray(system.load)

    def equation(log_conjugate: Number, args: tuple[Number, Number]) -> Number:
        load, margin = args
        return jnp.log(load) - jnp.log(_state(jnp.exp(log_conjugate), margin)[1])

    low = jnp.log(load) + 2 * jnp.log(hazard(-margin)) - 2
    root = decreasing_root(equation, low, jnp.maximum(low + 1, jnp.log(_LARGEST)), (load, margin))
    q, _, free, constraint = _state(jnp.exp(root.value), margin)
    entropy = free + load * constraint
    annealed = jnp.log(2.0) + load * log_cdf(-margin)
    return Solutions(entropy, q, annealed, entropy < 0, root.residual, root.converged)


@theory
def binary_capacity(system: BinaryPatterns) -> BinaryCapacity:
    """The load at which the entropy of `solutions` vanishes (Krauth, Mezard 1989), whatever `load`
    is: 0.8331 without margin, a threshold since proved (Ding, Sun 2019; Huang 2024)."""

    def entropy(log_conjugate: Number, margin: Number) -> Number:
        _, load, free, constraint = _state(jnp.exp(log_conjugate), margin)
        return free + load * constraint

    margin = jnp.asarray(system.margin)
    root = decreasing_root(entropy, jnp.log(jnp.asarray(1e-8)), jnp.log(_LARGEST), margin)
    q, load, *_ = _state(jnp.exp(root.value), margin)
    return BinaryCapacity(load, q, root.residual, root.converged)


def _state(conjugate: Number, margin: Number) -> tuple[Number, Number, Number, Number]:
    """q, alpha, the entropy without patterns and what each pattern per input adds to it, at a
    conjugate qh.
    """
    root = jnp.sqrt(conjugate)
    z, weight = standard_normal_rule((0.0,), refine=4)
    x = jnp.abs(root * z)
    fade = jnp.exp(-2 * x)
    q = jnp.sum(weight * jnp.tanh(x) ** 2)
    rest = jnp.sum(weight * 4 * fade / (1 + fade) ** 2)  # 1 - q
    free = -conjugate * rest / 2 + jnp.sum(weight * (x + jnp.log1p(fade)))
    z, weight = standard_normal_rule((margin / jnp.sqrt(q),))
    minus = (jnp.sqrt(q) * z - margin) / jnp.sqrt(rest)
    return (
        q,
        conjugate * rest / jnp.sum(weight * hazard(minus) ** 2),
        free,
        jnp.sum(weight * log_cdf(minus)),
    )
