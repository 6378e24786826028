"""Newton's method for the few order parameters of a deep network, each evaluation of whose action costs O(P^3)."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jax import lax
from jaxtyping import Array, Float

_MAX_STEPS = 40
_TOLERANCE = 1e-11
_LONGEST = 1.0  # in log Q: a factor e at a time
_ROUNDING = 1e-12  # relative rounding error of the action, by which it may seem to rise next to its minimum

Vector = Float[Array, "layer"]


@jax.custom_jvp
def inverse(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """A^{-1} of a symmetric positive definite matrix; dA^{-1} = -A^{-1} dA A^{-1}."""
    return jsl.cho_solve((jnp.linalg.cholesky(matrix), True), jnp.eye(matrix.shape[-1]))


@inverse.defjvp
def _(primals, tangents):
    inverted = inverse(primals[0])
    return inverted, -inverted @ tangents[0] @ inverted


def minimise(
    value: Callable[[Vector], Float[Array, ""]], gradient: Callable[[Vector], Vector], start: Vector
) -> Vector:
    """The minimum of `value` next to `start`. The gradient may carry any positive factor, of which it should be of order one.

    Newton steps with the absolute values of the Hessian's eigenvalues, shortened until the value does not rise. Derivatives with
    respect to whatever the functions close over follow from the implicit function theorem.
    """

    def solve(gradient: Callable, start: Vector) -> Vector:
        def step(state: tuple) -> tuple:
            trial, best, lowest, direction, scale, _, count = state
            reached = value(trial)
            accepted = reached <= lowest + _ROUNDING * (1 + jnp.abs(reached))
            slope, curvature = gradient(trial), jax.jacfwd(gradient)(trial)
            eigenvalues, vectors = jnp.linalg.eigh((curvature + curvature.T) / 2)
            newton = -vectors @ ((vectors.T @ slope) / jnp.maximum(jnp.abs(eigenvalues), 1e-8))
            newton = newton * jnp.minimum(1.0, _LONGEST / jnp.max(jnp.abs(newton)))
            best = jnp.where(accepted, trial, best)
            direction = jnp.where(accepted, newton, direction)
            scale = jnp.where(accepted, 1.0, scale / 4)
            residual = jnp.where(accepted, jnp.max(jnp.abs(slope)), jnp.inf)
            return best + scale * direction, best, jnp.where(accepted, reached, lowest), direction, scale, residual, count + 1

        def unfinished(state: tuple) -> Array:
            *_, residual, count = state
            return (residual > _TOLERANCE) & (count < _MAX_STEPS)

        infinity = jnp.asarray(jnp.inf)
        initial = (start, start, infinity, jnp.zeros_like(start), jnp.ones(()), infinity, jnp.asarray(0))
        return lax.while_loop(unfinished, step, initial)[1]

    def tangent(linear: Callable, rhs: Vector) -> Vector:
        return jnp.linalg.solve(jax.jacfwd(linear)(jnp.zeros_like(rhs)), rhs)

    return lax.custom_root(gradient, lax.stop_gradient(start), solve, tangent)
