"""Minima of a function of a few unknowns, by Newton steps that always go downhill, with implicit derivatives."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

_TOLERANCE = 1e-11
_LONGEST = 1.0  # the unknowns are of order one: logarithms of positive quantities, for example
_ROUNDING = 1e-12  # relative rounding error of the value, by which it may seem to rise next to its minimum

Vector = Float[Array, "unknown"]


def minimise(
    value: Callable[[Vector], Float[Array, ""]],
    gradient: Callable[[Vector], Vector],
    start: Vector,
    curvature: Callable[[Vector], Float[Array, "unknown unknown"]] | None = None,
    max_steps: int = 40,
) -> Vector:
    """The minimum of `value` next to `start`. The gradient may carry any positive factor, of which it should be of order one.

    curvature: the derivative of `gradient`, where it is known in closed form; by default differentiated forward.
    max_steps: evaluations, those of shortened steps included.

    Newton steps with the absolute values of the Hessian's eigenvalues, at most one long in each unknown, shortened until the
    value does not rise. Where the value is not a number nothing is accepted, so that barriers of a domain are respected: only the
    start must lie inside. Derivatives with respect to whatever the functions close over follow from the implicit function
    theorem. Works under `vmap`. Never raises: evaluate the gradient to see whether the minimum was reached.
    """
    bent = jax.jacfwd(gradient) if curvature is None else curvature

    def solve(gradient: Callable, start: Vector) -> Vector:
        def step(state: tuple) -> tuple:
            trial, best, lowest, direction, scale, _, count = state
            reached = value(trial)
            accepted = reached <= lowest + _ROUNDING * (1 + jnp.abs(reached))
            slope, curvature = gradient(trial), bent(trial)
            eigenvalues, vectors = jnp.linalg.eigh((curvature + curvature.T) / 2)
            newton = -vectors @ ((vectors.T @ slope) / jnp.maximum(jnp.abs(eigenvalues), 1e-8))
            newton = newton * jnp.minimum(1.0, _LONGEST / jnp.max(jnp.abs(newton)))
            best = jnp.where(accepted, trial, best)
            direction = jnp.where(accepted, newton, direction)
            scale = jnp.where(accepted, jnp.minimum(1.0, 4 * scale), scale / 4)  # lengths that worked are remembered
            residual = jnp.where(accepted, jnp.max(jnp.abs(slope)), jnp.inf)
            return best + scale * direction, best, jnp.where(accepted, reached, lowest), direction, scale, residual, count + 1

        def unfinished(state: tuple) -> Array:
            *_, residual, count = state
            return (residual > _TOLERANCE) & (count < max_steps)

        infinity = jnp.asarray(jnp.inf)
        initial = (start, start, infinity, jnp.zeros_like(start), jnp.ones(()), infinity, jnp.asarray(0))
        return lax.while_loop(unfinished, step, initial)[1]

    def tangent(linear: Callable, rhs: Vector) -> Vector:
        return jnp.linalg.solve(jax.jacfwd(linear)(jnp.zeros_like(rhs)), rhs)

    return lax.custom_root(gradient, lax.stop_gradient(start), solve, tangent)
