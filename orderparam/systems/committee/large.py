"""Majorities of many hidden units with Gaussian weights: the limit K -> infinity after d ->
infinity, at n/d of order K (derived for this package).

The sum of K signs, divided by sqrt(K), is a Gaussian field. At n of order K d the mean of the
weights of all units is known exactly, because n of order d is enough for it. The overlaps of
weights and estimates are therefore Q = q 1 + (1 - q) 11^T/K, with q the overlap of the weights of
one unit. The overlap of the Gaussian field with its estimate is then

    R = (2/pi) (arcsin q + 1 - q),

and the free entropy per dimension and unit, at a = n/(K d) examples per dimension and unit, is

    phi(q) = a Psi(R(q)) + (q + ln(1 - q)) / 2,
    Psi(R) = 2 E_x Phi(u) ln Phi(u),   u = sqrt(R/(1 - R)) x, x ~ N(0, 1).

q = 0 is a maximum of phi for every a: all units have the same estimate, and algorithms stay in this
state up to n of order K^2 d. A second maximum at q > 0, in which the units have different estimates
(specialisation), appears discontinuously. It is the higher one for a > 7.68 (Schwarze and Hertz
1992 and Aubin et al. 2018 give n/d = 7.65 K). The theory is replica symmetric.
"""

from functools import cache
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.late import brentq, minimize_scalar
from orderparam.core.result import Result
from orderparam.core.system import System, parameter
from orderparam.core.verb import theory
from orderparam.gaussian import standard_normal_rule
from orderparam.gaussian.tail import hazard, log_cdf
from orderparam.solve.root import decreasing_root

Scalar = Float[Array, ""]

_LAST = 60.0  # largest -ln(1 - q) of the search


class LargeCommittee(System):
    """A majority of many hidden units with Gaussian weights, learned from n = a K d examples, with
    a = `unit_ratio`.

    First the dimension d grows to infinity, then the number K of units. Inputs and labels are those
    of `Committee`.
    """

    unit_ratio: float = parameter("samples per dimension and unit, n/(K d)", above=0)


class LargeCommitteeState(Result):
    """One solution of the equations for many hidden units.

    Fields:
        overlap: overlap q of the weights of a unit with their estimate.
        classification_error: probability that the likeliest label of a new input is wrong.
        free_entropy: phi(q) per dimension and unit.
        residual: residual of the equation for q; 0 where q = 0.
        converged: whether this equation was solved.
        valid: whether the state exists; the other numbers are NaN if it does not. The specialised
            state exists from the `begin` of `large_committee_transition` on.
    """

    overlap: Scalar
    classification_error: Scalar
    free_entropy: Scalar
    residual: Scalar
    converged: Bool[Array, ""]
    valid: Bool[Array, ""]


class LargeCommitteeTransition(Result):
    """Transitions of a majority of many hidden units.

    Fields:
        unit_ratio: n/(K d) above which the specialised state has the larger free entropy.
        overlap: q of the specialised state at `unit_ratio`.
        begin: n/(K d) at which the specialised state appears.
        begin_overlap: q of the specialised state where it appears.
    """

    unit_ratio: Scalar
    overlap: Scalar
    begin: Scalar
    begin_overlap: Scalar


@theory
def large_committee(
    system: LargeCommittee, *, branch: Literal["stable", "unspecialised", "specialised"] = "stable"
) -> LargeCommitteeState:
    r"""Bayes-optimal overlap and error of a majority of many hidden units, replica symmetric.

    The overlap q is a stationary point of the free entropy per dimension and unit,

    $$ \phi(q) = 2 a\, E_x \Phi(u) \ln \Phi(u) + \tfrac12 (q + \ln(1 - q)), \qquad
       u = \sqrt{\frac{R}{1 - R}}\, x, \quad R = \frac2\pi (\arcsin q + 1 - q) $$

    with a = `unit_ratio` and x standard normal. `classification_error` is $\arccos(\sqrt R)/\pi$.

    Args:
        branch: "unspecialised" is the state q = 0, in which all units have the same estimate;
            "specialised" is the state with q > 0; "stable" is the state of larger free entropy.

    Accuracy: 1e-10.

    Source: derived here; the problem is that of Schwarze, Hertz (1992).

    >>> found = large_committee(LargeCommittee(8.0))
    >>> round(float(found.overlap), 8), round(float(found.classification_error), 8)
    (0.95403581, 0.13293533)
    """
    first, begin = _begin()
    ratio = jnp.asarray(system.unit_ratio)

    def equation(log_gap: Scalar, ratio: Scalar) -> Scalar:
        return jnp.log(ratio) - jnp.log(_ratio(jnp.exp(-log_gap)))

    root = decreasing_root(equation, jnp.asarray(-np.log1p(-first)), jnp.asarray(_LAST), ratio)
    exists = ratio >= begin
    gap = jnp.where(exists, jnp.exp(-root.value), jnp.nan)
    unspecialised_entropy, specialised_entropy = (
        _free_entropy(jnp.ones(()), ratio),
        _free_entropy(gap, ratio),
    )
    specialised = {
        "unspecialised": jnp.asarray(False),
        "specialised": jnp.asarray(True),
        "stable": exists & (specialised_entropy > unspecialised_entropy),
    }[branch]
    gap = jnp.where(specialised, gap, 1.0)
    solved = specialised & exists
    return LargeCommitteeState(
        overlap=1 - gap,
        classification_error=jnp.arcsin(jnp.sqrt(_missing(gap))) / np.pi,
        free_entropy=jnp.where(specialised, specialised_entropy, unspecialised_entropy),
        residual=jnp.where(solved, root.residual, 0.0),
        converged=~solved | root.converged,
        valid=~specialised | exists,
    )


@theory(traced=False)
def large_committee_transition(system: LargeCommittee) -> LargeCommitteeTransition:
    r"""Transition of a majority of many hidden units to the specialised state, and the point where
    that state appears.

    At `unit_ratio` the specialised state has the free entropy of the state q = 0,

    $$ \phi(q) = \phi(0), \quad \phi'(q) = 0 $$

    with q > 0 (`overlap`) and $\phi$ as in `large_committee`. `begin` is the
    smallest n/(K d) at which $\phi'$ has a zero q > 0. The system's `unit_ratio` is not used.

    Accuracy: 1e-8. This theory cannot be differentiated.

    Source: derived here; Schwarze, Hertz (1992) have 7.65 for the transition.

    >>> found = large_committee_transition(LargeCommittee(1.0))
    >>> round(float(found.unit_ratio), 6), round(float(found.begin), 6)
    (7.680221, 7.169239)
    """
    first, begin = _begin()

    def difference(overlap: float) -> float:
        ratio = float(_ratio(1 - overlap))
        return float(_free_entropy(1 - overlap, ratio) - _free_entropy(1.0, ratio))

    overlap = brentq(difference, first, 1 - 1e-6, xtol=1e-13)
    return LargeCommitteeTransition(
        unit_ratio=jnp.asarray(float(_ratio(1 - overlap))),
        overlap=jnp.asarray(overlap),
        begin=jnp.asarray(begin),
        begin_overlap=jnp.asarray(first),
    )


@cache
def _begin() -> tuple[float, float]:
    """Overlap q and n/(K d) at which the specialised state appears: the minimum of n/(K d) over the
    q of its solutions.
    """
    # compiled here, because a theory is being traced around it
    ratio = _ratio.lower(np.float64(0.5)).compile()
    found = minimize_scalar(
        lambda q: float(ratio(np.float64(1 - q))),
        bounds=(0.5, 0.99),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(found.x), float(found.fun)


def _missing(gap: Scalar) -> Scalar:
    """The value 1 - R from 1 - q = gap, without cancellation."""
    return 2 / np.pi * (2 * jnp.arcsin(jnp.sqrt(gap / 2)) - gap)


@jax.jit
def _ratio(gap: Scalar) -> Scalar:
    """The n/(K d) at which q = 1 - gap solves phi'(q) = 0.

    It is q / (2 (1 - q) Psi' R'), with Psi' = E (g/Phi)^2 Phi / (1 - R) at u, where g is the normal
    density, and R' = (2/pi) (1/sqrt(1 - q^2) - 1).
    """
    missing = _missing(gap)
    u, weight = _fields(missing)
    information = jnp.sum(weight * hazard(u) ** 2 * jnp.exp(log_cdf(u))) / missing
    root = jnp.sqrt(gap * (2 - gap))
    slope = 2 / np.pi * (1 - gap) ** 2 / (root * (1 + root))  # (1/root - 1) with 1 - root^2 = q^2
    return (1 - gap) / (2 * gap * information * slope)


@jax.jit
def _free_entropy(gap: Scalar, ratio: Scalar) -> Scalar:
    """Free entropy phi(q) at q = 1 - gap, per dimension and unit."""
    u, weight = _fields(_missing(gap))
    return (
        ratio * 2 * jnp.sum(weight * jnp.exp(log_cdf(u)) * log_cdf(u))
        + (1 - gap + jnp.log(gap)) / 2
    )


def _fields(missing: Scalar) -> tuple[Array, Array]:
    """Quadrature nodes u = sqrt(R/(1 - R)) x and weights, for 1 - R = `missing`."""
    x, weight = standard_normal_rule()
    return jnp.sqrt((1 - missing) / missing) * x, weight
