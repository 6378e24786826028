"""A solver for fixed points that extrapolates each pair of iteration steps as a geometric
series."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from orderparam.solve.fixed_point import fixed_point
from orderparam.solve.solved import Solved

# Largest ratio of two successive steps that the geometric series may use, and the largest
# extrapolated step.
_STEEPEST, _FARTHEST = 0.9, 0.1
_SHORT = 1e-8  # shorter steps are not extrapolated: rounding errors are no geometric series

Vector = Float[Array, "unknown"]


def prolonged_fixed_point(
    update: Callable[[Vector, PyTree], Vector],
    start: Vector,
    args: PyTree[Any],
    *,
    tolerance: float,
    max_steps: int,
) -> Solved:
    """Fixed point y = update(y, args). After each pair of steps y is extrapolated to the limit of
    the geometric series that the two steps define.

    Args:
        update: function of y and args.
        start: first y; unknowns should be of order one, or logarithms.
        args: further arguments of `update`.
        tolerance: relative change of y below which the iteration ends.
        max_steps: largest number of pairs of steps.

    Returns:
        the solution; its residual is the largest |update(y) - y|. It has converged if a pair of
            steps changes y by less than tolerance (1 + |y|) and a single step changes y by less
            than ten times that. The second condition excludes cycles of length two, which a pair of
            steps leaves unchanged.
    """

    def prolonged(y: Vector, args: PyTree) -> Vector:
        first = update(y, args)
        second = update(first, args)
        before, step = first - y, second - first
        ratio = jnp.clip(step @ before / jnp.maximum(before @ before, 1e-300), 0.0, _STEEPEST)
        further = jnp.clip(step * ratio / (1 - ratio), -_FARTHEST, _FARTHEST)
        return second + jnp.where(jnp.max(jnp.abs(step)) > _SHORT, further, 0.0)

    found = fixed_point(prolonged, start, args, tolerance=tolerance, max_steps=max_steps)
    change = jnp.abs(update(found.value, args) - found.value)
    settled = jnp.all(change < 10 * tolerance * (1 + jnp.abs(found.value)))
    whole = (jnp.max(change), found.converged & settled)
    return eqx.tree_at(lambda one: (one.residual, one.converged), found, whole)
