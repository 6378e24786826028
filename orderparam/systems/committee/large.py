"""Majorities of many hidden units with Gaussian weights: K -> infinity after d, at alpha = n/d
proportional to K [D].

The sum of K signs over sqrt(K) is a Gaussian field. With overlaps Q = q 1 + (1 - q) 11^T/K of
weights and estimates (the mean of all units is known from alpha = O(1) on) its overlap is

    R = (2/pi) (arcsin q + 1 - q),

and the free entropy per dimension and unit, at n/(K d) = a samples,

    phi(q) = a Psi(R(q)) + (q + ln(1 - q)) / 2,    Psi(R) = 2 E_x Phi(u) ln Phi(u),   u = sqrt(R/(1 - R)) x, x ~ N(0, 1).

q = 0 solves phi' = 0 for every a and is stable: all units have the same estimate, and algorithms
stay there up to n of order K^2 d. A solution with q > 0, units apart, begins with a jump, and has
the larger free entropy from a = 7.68 on (7.65 K is the number of Schwarze and Hertz 1992, and of
Aubin et al. 2018). Replica symmetric.
"""

from functools import cache
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.optimize import brentq, minimize_scalar

from orderparam.core.result import Result
from orderparam.core.system import System, parameter
from orderparam.core.verb import theory
from orderparam.gaussian import standard_normal_rule
from orderparam.gaussian.tail import hazard, log_cdf
from orderparam.solve.root import decreasing_root

Scalar = Float[Array, ""]

_LAST = 60.0  # -ln(1 - q) of the bracket


class LargeCommittee(System):
    """A majority of many units with Gaussian weights, learned from n = unit_ratio * K * d
    inputs."""

    unit_ratio: float = parameter("samples per dimension and unit, n/(K d)", above=0)


class LargeCommitteeState(Result):
    """overlap q of a unit with its estimate. classification_error of the likeliest label.
    free_entropy phi.

    residual, converged: of the equation for q; with branch="apart" not converged where there is no
    such solution.
    """

    overlap: Scalar
    classification_error: Scalar
    free_entropy: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


class LargeCommitteeTransition(Result):
    """unit_ratio: from where on the state with units apart has the larger free entropy; overlap:
    its q there. begin, begin_overlap: where that state begins, and its q."""

    unit_ratio: Scalar
    overlap: Scalar
    begin: Scalar
    begin_overlap: Scalar


@theory
def large_committee(
    system: LargeCommittee, *, branch: Literal["stable", "alike", "apart"] = "stable"
) -> LargeCommitteeState:
    """The solution with equal units, with units apart, or that of the larger free entropy."""
    first, _ = _begin()
    ratio = jnp.asarray(system.unit_ratio)

    def equation(log_gap: Scalar, ratio: Scalar) -> Scalar:
        return jnp.log(ratio) - jnp.log(_ratio(jnp.exp(-log_gap)))

    root = decreasing_root(equation, jnp.asarray(-np.log1p(-first)), jnp.asarray(_LAST), ratio)
    gap = jnp.exp(-root.value)
    entropies = _free_entropy(jnp.ones(()), ratio), _free_entropy(gap, ratio)
    apart = {
        "alike": jnp.asarray(False),
        "apart": jnp.asarray(True),
        "stable": root.converged & (entropies[1] > entropies[0]),
    }
    chosen = apart[branch]
    gap = jnp.where(chosen, gap, 1.0)
    return LargeCommitteeState(
        overlap=1 - gap,
        classification_error=jnp.arcsin(jnp.sqrt(_missing(gap))) / np.pi,
        free_entropy=jnp.where(chosen, entropies[1], entropies[0]),
        residual=jnp.where(chosen, root.residual, 0.0),
        converged=~chosen | root.converged,
    )


@theory(traced=False)
def large_committee_transition(system: LargeCommittee) -> LargeCommitteeTransition:
    """Where phi is the same in both states, and where the second begins; whatever `unit_ratio`
    is."""
    first, begin = _begin()

    def difference(overlap: float) -> float:
        ratio = float(_ratio(1 - overlap))
        return float(_free_entropy(1 - overlap, ratio) - _free_entropy(1.0, ratio))

    overlap = brentq(difference, first, 1 - 1e-6, xtol=1e-13)
    return LargeCommitteeTransition(
        *map(jnp.asarray, (float(_ratio(1 - overlap)), overlap, begin, first))
    )


@cache
def _begin() -> tuple[float, float]:
    """The overlap and the ratio at which units apart are first a solution: the smallest ratio on
    their curve.
    """
    with jax.ensure_compile_time_eval():
        found = minimize_scalar(
            lambda q: float(_ratio(1 - q)),
            bounds=(0.5, 0.99),
            method="bounded",
            options={"xatol": 1e-10},
        )
    return float(found.x), float(found.fun)


def _missing(gap: Scalar) -> Scalar:
    """1 - R, from 1 - q = gap, without cancellation."""
    return 2 / np.pi * (2 * jnp.arcsin(jnp.sqrt(gap / 2)) - gap)


@jax.jit
def _ratio(gap: Scalar) -> Scalar:
    """n/(K d) at which 1 - q = gap solves phi' = 0: q / (2 (1 - q) Psi' R'), Psi' = E
    (phi(u)/Phi(u))^2 Phi(u) / (1 - R).
    """
    missing = _missing(gap)
    u, weight = _fields(missing)
    information = jnp.sum(weight * hazard(u) ** 2 * jnp.exp(log_cdf(u))) / missing
    root = jnp.sqrt(gap * (2 - gap))
    slope = 2 / np.pi * (1 - gap) ** 2 / (root * (1 + root))  # (1/root - 1) with 1 - root^2 = q^2
    return (1 - gap) / (2 * gap * information * slope)


@jax.jit
def _free_entropy(gap: Scalar, ratio: Scalar) -> Scalar:
    u, weight = _fields(_missing(gap))
    return (
        ratio * 2 * jnp.sum(weight * jnp.exp(log_cdf(u)) * log_cdf(u))
        + (1 - gap + jnp.log(gap)) / 2
    )


def _fields(missing: Scalar) -> tuple[Array, Array]:
    x, weight = standard_normal_rule()
    return jnp.sqrt((1 - missing) / missing) * x, weight
