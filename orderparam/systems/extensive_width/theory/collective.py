"""Collective first-order transitions: a finite fraction of all features learned at once, in the limit of infinite dimension.

They exist for read-outs of similar size (decay < 1/2) when alpha(s) = gamma (Lambda Delta + sum W)/k falls along a part of
the branch. Homogeneous read-outs (decay 0) are learned all together. Derived for this package, not in Nguyen and Barbier 2026.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.optimize import brentq, minimize_scalar

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.extensive_width.model import HierarchicalTeacher
from orderparam.systems.extensive_width.theory.channel import channel
from orderparam.systems.extensive_width.theory.continuum import Continuum
from orderparam.systems.extensive_width.theory.limits import check_flat

_LEVELS = 4096


class CollectiveTransition(Result):
    """All fields but `first_order` are NaN when the features are learned one after the other.

    sample_ratio:               alpha = n/d^2 at which both states have the same free entropy.
    coexistence:                lowest and highest alpha at which both exist.
    fraction_before, _after:    k_c / k.    error_before, _after: errors.
    overlap:                    of the weakest learned feature after the transition.
    """

    sample_ratio: Float[Array, ""]
    coexistence: Float[Array, "end"]
    fraction_before: Float[Array, ""]
    fraction_after: Float[Array, ""]
    error_before: Float[Array, ""]
    error_after: Float[Array, ""]
    overlap: Float[Array, ""]
    first_order: Bool[Array, ""]


@theory(traced=False, check=check_flat)
def collective_transition(teacher: HierarchicalTeacher) -> CollectiveTransition:
    """The common tangent of c(s), which means equal areas under alpha(s) - alpha_c along s = ln(signal of the weakest feature).

    For decay 0 the coexistence begins at the spinodal of the informed state. `teacher.n_train` plays no role. Not
    traceable; accurate to 1e-9. `flat_hierarchy(...).first_order_ratio > 1` tells the same region for whole grids at once.

    Raises `ValueError` for decay >= 1/2, where features are learned one by one.
    """
    tables = channel(teacher.activation)
    homogeneous = float(teacher.decay) == 0
    continuum = Continuum(tables, teacher.decay, teacher.noise)
    gamma = float(teacher.width / teacher.input_dim)

    def samples(s: float) -> float:
        return float(_samples(continuum, jnp.asarray(s)))

    threshold = float(tables.bayes.threshold)
    level, on_grid = (np.asarray(part) for part in _on_grid(continuum))
    if homogeneous:
        top, middle = threshold, int(np.searchsorted(level, threshold))
        highest = np.exp(threshold) * float(continuum.noise + tables.total)
        bottom, lowest = _minimum(lambda s: _informed_samples(continuum, s), float(tables.informed.threshold), threshold + 20)
        start = max(bottom, threshold)
    else:
        falling = np.flatnonzero(np.diff(on_grid) < -1e-12 * on_grid[1:])
        if falling.size == 0:
            none = jnp.asarray(jnp.nan)
            return CollectiveTransition(none, jnp.full(2, jnp.nan), none, none, none, none, none, jnp.asarray(False))
        first, middle = falling[0], falling[-1] + 1
        top, highest = _minimum(lambda s: -samples(s), level[max(first - 1, 0)], level[first + 1])
        highest = -highest
        bottom, lowest = _minimum(samples, level[middle - 1], level[middle + 1])
        start = bottom
    lower, upper = level[0] - 40.0, level[-1] + 40.0

    def before(alpha: float) -> float:
        if homogeneous:
            return float(np.log(alpha / float(continuum.noise + tables.total)))
        return brentq(lambda s: samples(s) - alpha, lower, top, xtol=1e-14)

    def after(alpha: float) -> float:
        return brentq(lambda s: samples(s) - alpha, start, upper, xtol=1e-14)

    def advantage(alpha: float) -> float:
        states = [float(_concave(continuum, jnp.asarray(s))) + alpha * s for s in (before(alpha), after(alpha))]
        return states[1] - states[0]

    margin = 1e-9 * highest
    alpha = brentq(advantage, samples(start) + margin, highest - margin, xtol=1e-14)
    low, high = before(alpha), after(alpha)
    states = [jnp.asarray(s) for s in (low, high)]
    fractions = [jnp.zeros(()) if homogeneous else continuum.learned(states[0]), continuum.learned(states[1])]
    errors = [alpha * (1 - 2 * continuum.beta) * jnp.exp(-s) - continuum.noise for s in states]
    weakest = tables.overlap(jnp.maximum(states[1], threshold), tables.bayes)
    return CollectiveTransition(
        sample_ratio=jnp.asarray(alpha * gamma),
        coexistence=jnp.asarray([lowest * gamma, highest * gamma]),
        fraction_before=fractions[0],
        fraction_after=fractions[1],
        error_before=errors[0],
        error_after=errors[1],
        overlap=weakest,
        first_order=jnp.asarray(True),
    )


_samples = eqx.filter_jit(Continuum.samples)
_concave = eqx.filter_jit(Continuum.concave)


@eqx.filter_jit
def _on_grid(continuum: Continuum) -> tuple[Array, Array]:
    level = continuum.levels(_LEVELS)
    return level, jax.lax.map(continuum.samples, level, batch_size=256)


def _informed_samples(continuum: Continuum, s: float) -> float:
    """alpha / gamma of the metastable state of homogeneous read-outs: lambda Delta + W(lambda)."""
    w = continuum.tables.state(jnp.asarray(s), continuum.tables.informed).unexplained
    return float(jnp.exp(s) * continuum.noise + w)


def _minimum(f: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    found = minimize_scalar(f, bounds=(float(low), float(high)), method="bounded", options={"xatol": 1e-10})
    return float(found.x), float(found.fun)
