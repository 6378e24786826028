"""The exponents of a target as a Result, and the estimate that climbs its stairs."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from orderparam.core.verb import theory
from orderparam.gaussian.target import Target
from orderparam.systems.multi_index.formulas import read
from orderparam.systems.multi_index.learnability.exponents import exponents
from orderparam.systems.multi_index.learnability.label_moments import label_moments, lowest_stair
from orderparam.systems.multi_index.learnability.model import ORDERS, Climb, Hardness, LearnedTarget, WeakLearnability
from orderparam.systems.multi_index.learnability.partly_known import NOTHING, information, moments_given, split
from orderparam.systems.multi_index.learnability.second_moment import normalised

_FIRST = 0.05  # overlap of directions that were just seen
_KNOWN = 1e-6  # 1 - overlap of directions that are known
_UNCERTAIN = 5e-4  # relative change of precisions that sampling leaves undecided


@theory(differentiable=False)
def hardness(system: WeakLearnability) -> Hardness:
    """`exponents` of the target, computed when the program is compiled."""
    found = exponents(system.target)

    def number(x: float | None) -> Array:
        return jnp.asarray(np.inf if x is None else float(x))

    return Hardness(
        information=number(found.information),
        leap=number(found.leap),
        generative=number(found.generative),
        generative_leap=number(found.generative_leap),
        degree=number(found.degree),
        threshold=number(found.threshold),
        hermite_power=jnp.asarray(np.square(found.hermite[1 : ORDERS + 1])),
        converged=jnp.asarray(True),
    )


@theory(traced=False)
def grand_staircase(system: LearnedTarget, *, max_steps: int = 200) -> Climb:
    """State evolution stair by stair (Troiani et al. 2024): directions whose threshold, given what is known of those before, is
    below n / d join the estimate, and their overlaps Q grow until Q = qh (1 + qh)^-1, with qh(Q) of `moments_given`.

    What message passing reaches from Q = 0. By sampling: as if n / d were off by a few parts in a thousand, and by 1 % where
    overlaps are below 0.1. Overlaps of known with unknown directions are taken to stay zero, as they do where signs of the
    unknown ones leave y as it is. Not converged after `max_steps` iterations (near a threshold): where they have come.
    """
    g, _ = normalised(read(system.target))
    alpha, size = float(system.sample_ratio), g.dimension
    overlap, residual, following = np.zeros((size, size)), 0.0, np.inf
    known, rest = split(overlap)
    while len(rest):
        stair = lowest_stair(moments_given(g, overlap, rest) if len(known) else label_moments(g, 3), rest)
        following = np.inf if stair is None else stair.threshold
        if stair is None or following >= alpha:
            break
        overlap = overlap + _FIRST * stair.directions.T @ stair.directions
        known, rest = split(overlap)
        overlap, change = _risen(g, alpha, overlap, known, max_steps)
        residual, following = max(residual, change), np.inf
    shown = np.diagonal(overlap)
    return Climb(
        overlap=jnp.asarray(np.where(shown > 1 - 2 * _KNOWN, 1.0, shown)),
        next_threshold=jnp.asarray(following),
        converged=jnp.asarray(residual < _UNCERTAIN),
        residual=jnp.asarray(residual),
    )


def _risen(g: Target, alpha: float, overlap: np.ndarray, known: np.ndarray, max_steps: int) -> tuple[np.ndarray, float]:
    """The fixed point in the span of the known directions that is reached from an overlap, and the last change of ln qh.

    Every second step is prolonged by the geometric series that it belongs to, to at most ten times its length.
    """
    step, last = np.array(np.inf), None
    precision = np.linalg.eigvalsh(known @ overlap @ known.T)
    height = np.log(precision / (1 - precision))
    for _ in range(max_steps):
        precision, vectors = np.linalg.eigh(alpha * information(g, overlap, known))
        new = np.log(np.clip(precision, 2 * NOTHING, 1 / _KNOWN))
        step, axes = new - height, vectors.T @ known
        if np.max(np.abs(step)) < _UNCERTAIN:
            break
        if last is not None:
            rate = np.clip(np.divide(step, last, out=np.zeros_like(step), where=last != 0), 0.0, 0.9)
            new = np.minimum(new + step * rate / (1 - rate), -np.log(_KNOWN))
        height, last = new, step if last is None else None
        overlap = (axes.T / (1 + np.exp(-height))) @ axes
    return overlap, float(np.max(np.abs(step)))
