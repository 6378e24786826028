"""Fixed points by pairs of steps, each pair prolonged by the geometric series that it belongs to."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from orderparam.solve.fixed_point import fixed_point
from orderparam.solve.solved import Solved

_STEEPEST, _FARTHEST = 0.9, 0.1  # ratio of a geometric series of steps, and how far it is followed at once
_SHORT = 1e-8  # steps that are not prolonged: rounding is no series

Vector = Float[Array, "unknown"]


def prolonged_fixed_point(
    update: Callable[[Vector, PyTree], Vector], start: Vector, args: PyTree[Any], *, tolerance: float, max_steps: int
) -> Solved:
    """y = update(y, args), for unknowns of order one or their logarithms; `max_steps` counts pairs.

    residual: the largest |update(y) - y|, of a single step. `converged` where pairs of steps change y by less than
    tolerance * (1 + |y|), and a single step by less than ten times that: values that `update` exchanges are no fixed points,
    though a pair of steps leaves them where they are.
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
