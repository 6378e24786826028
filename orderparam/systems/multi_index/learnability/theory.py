"""The exponents of a target as a Result, and the estimate that climbs its stairs."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from orderparam.core.fields import check_iteration
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
_MEMORY, _LONGEST = 3, 10.0  # steps of the iteration that the next one is made of, and the longest, in units of its own


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


@theory(traced=False, check=check_iteration)
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
    rest = np.eye(size)
    while len(rest):
        stair = lowest_stair(moments_given(g, overlap, rest) if np.any(overlap) else label_moments(g, 3), rest)
        following = np.inf if stair is None else stair.threshold
        if stair is None or following >= alpha:
            break
        overlap, change = _risen(g, alpha, overlap + _FIRST * stair.directions.T @ stair.directions, max_steps)
        residual, following = max(residual, change), np.inf
        rest = split(overlap)[1]
    shown = np.diagonal(overlap)
    return Climb(
        overlap=jnp.asarray(np.where(shown > 1 - NOTHING, 1.0, shown)),
        next_threshold=jnp.asarray(following),
        converged=jnp.asarray(residual < _UNCERTAIN),
        residual=jnp.asarray(residual),
    )


def _risen(g: Target, alpha: float, overlap: np.ndarray, max_steps: int) -> tuple[np.ndarray, float]:
    """The fixed point in the span of the known directions that is reached from an overlap, and the last change of ln qh.

    Steps are Anderson's (of the last `_MEMORY` ones), at most ten times as long as the iteration's own: a longer one might lead
    to a fixed point beyond the next. Directions whose precision passes 1 / `_KNOWN` are known from there on.
    """
    least, most = np.log(2 * NOTHING), -np.log(_KNOWN)
    partly, fresh, change = split(overlap)[0], True, 0.0
    heights: list[np.ndarray] = []
    steps: list[np.ndarray] = []
    for _ in range(max_steps):
        if not len(partly):
            return overlap, 0.0
        if fresh:
            share = partly @ overlap @ partly.T
            known = overlap - partly.T @ share @ partly
            height = _of(share, lambda x: np.log(x / (1 - x)))
            heights, steps, fresh = [], [], False
        precision = alpha * information(g, overlap, partly)
        step = _of(precision, lambda x: np.clip(np.log(np.maximum(x, NOTHING)), least, most)) - height
        change = float(np.max(np.abs(step)))
        if change < _UNCERTAIN:
            break
        heights, steps = [*heights[-_MEMORY:], height], [*steps[-_MEMORY:], step]
        height = _of(height + _anderson(np.stack(heights), np.stack(steps)), lambda x: np.maximum(x, least))
        overlap = known + partly.T @ _of(height, lambda x: np.where(x < most, 1 / (1 + np.exp(-x)), 1.0)) @ partly
        if np.linalg.eigvalsh(height)[-1] >= most:
            partly, fresh = split(overlap)[0], True
    return overlap, change


def _anderson(values: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """The step from the last of successive values, given the steps of the iteration there."""
    slopes, moves = (np.diff(x.reshape(len(x), -1), axis=0) for x in (steps, values))
    last = steps[-1].ravel()
    step = last - np.linalg.lstsq(slopes.T, last, rcond=1e-6)[0] @ (moves + slopes)
    if step @ last <= 0:  # away from where the iteration goes: there is no fixed point near
        step = last
    longest = _LONGEST * float(np.linalg.norm(last))
    return step.reshape(steps.shape[1:]) * min(1.0, longest / max(float(np.linalg.norm(step)), 1e-300))


def _of(matrix: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The function of a symmetric matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * function(values)) @ vectors.T
