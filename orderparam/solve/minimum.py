"""Minima of a function: of a few unknowns by Newton steps that always go downhill, of many by
L-BFGS, with implicit derivatives.

residual: the largest entry of the gradient.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Bool, Float

from orderparam.solve.implicit import Vector, dense, implicit_root, symmetric
from orderparam.solve.solved import Solved

_TOLERANCE = 1e-11
_ACCURACY = 1e-8  # error of a gradient of order one by rounding
_LONGEST = 1.0  # the unknowns are of order one: logarithms of positive quantities, for example
# relative rounding error of the value, by which it may seem to rise near its minimum
_ROUNDING = 1e-12

Local = tuple[Float[Array, ""], Vector, Float[Array, "unknown unknown"]]


def newton_minimum(local: Callable[[Vector], Local], start: Vector, max_steps: int = 40) -> Solved:
    """The minimum next to `start` of a function of order one in unknowns of order one.

    local: u -> value, gradient and Hessian; `differentiated(function)` where they are not known in
    closed form. max_steps: evaluations, those of shortened steps included.

    Newton steps with the absolute values of the Hessian's eigenvalues, at most one long in each
    unknown, shortened until the value does not rise. Where the value is not a number nothing is
    accepted, so that barriers of a domain are respected: only the start must lie inside.
    Derivatives with respect to all arrays that `local` closes over follow from the implicit
    function theorem. Works under `vmap`. Never raises: look at `converged`.
    """

    def solve(_gradient: Callable, start: Vector) -> tuple[Vector, Array]:
        def step(state: tuple) -> tuple:
            trial, best, lowest, direction, scale, residual, count = state
            reached, slope, curvature = local(trial)
            accepted = reached <= lowest + _ROUNDING * (1 + jnp.abs(lowest))
            eigenvalues, vectors = jnp.linalg.eigh((curvature + curvature.T) / 2)
            newton = -vectors @ ((vectors.T @ slope) / jnp.maximum(jnp.abs(eigenvalues), 1e-8))
            newton = newton * jnp.minimum(1.0, _LONGEST / jnp.max(jnp.abs(newton)))
            best = jnp.where(accepted, trial, best)
            direction = jnp.where(accepted, newton, direction)
            # the next step may be up to four times the last accepted fraction of a Newton step
            scale = jnp.where(accepted, jnp.minimum(1.0, 4 * scale), scale / 4)
            residual = jnp.where(accepted, jnp.max(jnp.abs(slope)), residual)
            return (
                best + scale * direction,
                best,
                jnp.where(accepted, reached, lowest),
                direction,
                scale,
                residual,
                count + 1,
            )

        def unfinished(state: tuple) -> Bool[Array, ""]:
            return (state[5] > _TOLERANCE) & (state[6] < max_steps)

        infinity = jnp.asarray(jnp.inf)
        initial = (
            start,
            start,
            infinity,
            jnp.zeros_like(start),
            jnp.ones(()),
            infinity,
            jnp.asarray(0),
        )
        _, best, *_, residual, count = lax.while_loop(unfinished, step, initial)
        return best, jnp.stack([residual, count.astype(float)])

    found, (residual, steps) = implicit_root(lambda u: local(u)[1], start, solve, dense)
    return Solved(found, residual, residual < _ACCURACY, steps.astype(int))


def differentiated(function: Callable[[Vector], Float[Array, ""]]) -> Callable[[Vector], Local]:
    """u -> value, gradient and Hessian of the function, differentiated backward and then
    forward."""

    def gradient(u: Vector) -> tuple[Vector, tuple[Array, Vector]]:
        value, slope = jax.value_and_grad(function)(u)
        return slope, (value, slope)

    def local(u: Vector) -> Local:
        curvature, (value, slope) = jax.jacfwd(gradient, has_aux=True)(u)
        return value, slope, curvature

    return local


def lbfgs_minimum(
    function: Callable[[Vector], Float[Array, ""]],
    start: Vector,
    *,
    tolerance: float = 1e-8,
    max_steps: int = 600,
) -> Solved:
    """The minimum next to `start` of a function of order one whose unknowns and curvature are of
    order one.

    converged: no entry of the gradient exceeds `tolerance`; the iteration aims at a tenth of it.
    Optax's line search accepts a step by the gradient where values are equal to rounding; searches
    by the value alone stop at gradients of 1e-8. Derivatives with respect to all arrays that
    `function` closes over follow from the implicit function theorem, by conjugate gradients on
    products with the Hessian. Works under `vmap`. Never raises.
    """
    gradient = jax.grad(function)

    def solve(_gradient: Callable, start: Vector) -> tuple[Vector, Array]:
        optimiser = optax.lbfgs(memory_size=20)
        value_and_gradient = optax.value_and_grad_from_state(function)

        def step(carry: tuple) -> tuple:
            unknowns, state, count, _ = carry
            reached, slope = value_and_gradient(unknowns, state=state)
            updates, state = optimiser.update(
                slope, state, unknowns, value=reached, grad=slope, value_fn=function
            )
            return (
                optax.apply_updates(unknowns, updates),
                state,
                count + 1,
                jnp.max(jnp.abs(optax.tree.get(state, "grad"))),
            )

        def unfinished(carry: tuple) -> Bool[Array, ""]:
            *_, count, size = carry
            return (size > tolerance / 10) & (count < max_steps)

        initial = (start, optimiser.init(start), jnp.asarray(0), jnp.asarray(jnp.inf))
        found, _, count, _ = lax.while_loop(unfinished, step, initial)
        return found, jnp.stack([jnp.max(jnp.abs(gradient(found))), count.astype(float)])

    found, (residual, steps) = implicit_root(gradient, start, solve, symmetric)
    return Solved(found, residual, residual < tolerance, steps.astype(int))
