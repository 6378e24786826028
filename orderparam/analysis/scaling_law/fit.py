"""A law fitted to runs by a robust likelihood: minimum of sum_i huber(log L(u)_i - log L_i), many
starts, bootstrap.

Huber's function is quadratic up to `delta` and linear beyond (Hoffmann et al. 2022 use delta = 1e-3
on logarithms of the loss): for scatter well above delta it gives the sum of absolute deviations,
which a few failed runs hardly affect. The sum is minimised, never the mean: at gradients of 1e-6
minimisers stop early (Besiroglu et al. 2024, arXiv:2404.10102).
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from orderparam.analysis.scaling_law.forms import Form, Inputs, inputs_of, starts
from orderparam.analysis.scaling_law.runs import Runs

DELTA = 1e-3
_BEST = 12  # number of starts that are minimised completely
_STEPS = 300


def huber(residual: Array, delta: Array | float) -> Array:
    """Huber's loss of the residuals: half their square up to `delta`, and linear beyond."""
    size = jnp.abs(residual)
    return jnp.where(size <= delta, residual**2 / 2, delta * (size - delta / 2))


def objective(
    form: Form,
    unknowns: Array,
    inputs: Inputs,
    log_loss: Array,
    weights: Array,
    delta: Array | float,
) -> Float[Array, ""]:
    """Weighted sum of Huber's loss of the deviations of ln loss from a law, which the fit
    minimises."""
    return weights @ huber(form.log_loss(unknowns, inputs) - log_loss, delta)


@partial(jax.jit, static_argnames="form")
def _descend(
    form: Form, start: Array, inputs: Inputs, log_loss: Array, weights: Array, delta: Array
) -> tuple[Array, Array]:
    """Levenberg-Marquardt steps; a residual above delta has the weight delta / |residual|."""

    def step(_: Array, state: tuple) -> tuple:
        unknowns, value, damping = state
        residual = form.log_loss(unknowns, inputs) - log_loss
        slopes = jax.jacfwd(form.log_loss)(unknowns, inputs)
        weighted = weights * jnp.minimum(1.0, delta / jnp.maximum(jnp.abs(residual), 1e-300))
        matrix = slopes.T @ (weighted[:, None] * slopes)
        diagonal = jnp.diag(matrix) + 1e-12 * jnp.max(jnp.diag(matrix)) + 1e-300
        change = jnp.linalg.solve(
            matrix + damping * jnp.diag(diagonal), slopes.T @ (weighted * residual)
        )
        trial = unknowns - change
        reached = objective(form, trial, inputs, log_loss, weights, delta)
        better = reached < value
        return (
            jnp.where(better, trial, unknowns),
            jnp.where(better, reached, value),
            jnp.where(better, damping / 4, damping * 4),
        )

    value = objective(form, start, inputs, log_loss, weights, delta)
    first = (start, jnp.where(jnp.isfinite(value), value, jnp.inf), jnp.asarray(1e-3))
    unknowns, value, _ = lax.fori_loop(
        0, _STEPS, lambda i, s: step(i, (s[0], s[1], jnp.clip(s[2], 1e-15, 1e15))), first
    )
    return unknowns, value


_from_all = jax.jit(jax.vmap(_descend, in_axes=(None, 0, None, None, None, None)), static_argnums=0)
_of_all = jax.jit(jax.vmap(_descend, in_axes=(None, None, None, None, 0, None)), static_argnums=0)
_values = jax.jit(jax.vmap(objective, in_axes=(None, 0, None, None, None, None)), static_argnums=0)
_slope = jax.jit(jax.value_and_grad(objective, 1), static_argnums=0)


def minimise(
    form: Form, runs: Runs, delta: float = DELTA, weights: np.ndarray | None = None
) -> np.ndarray:
    """The unknowns of the best fit: the best of many starts, followed by quasi-Newton steps down to
    rounding. weights: those of the runs, by default one."""
    from scipy.optimize import minimize

    weights = np.ones(len(runs)) if weights is None else weights
    problem = (inputs_of(runs), jnp.log(runs.loss), jnp.asarray(weights), delta)
    tried = jnp.asarray(starts(form, runs.rows(weights > 0)))
    first = np.asarray(_values(form, tried, *problem))
    order = np.argsort(np.where(np.isfinite(first), first, np.inf))[:_BEST]
    unknowns, values = _from_all(form, tried[order], *problem)
    best = int(np.nanargmin(np.asarray(values)))

    def scaled(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = _slope(form, u, *problem)
        return float(value) / delta**2, np.asarray(slope) / delta**2

    polished = minimize(scaled, unknowns[best], jac=True, method="BFGS", options={"gtol": 1e-9})
    return (
        polished.x if polished.fun * delta**2 < float(values[best]) else np.asarray(unknowns[best])
    )


def bootstrapped(
    form: Form, runs: Runs, best: np.ndarray, draws: int, seed: int, delta: float = DELTA
) -> np.ndarray:
    """The bootstrap (draw, unknown): fits to runs drawn with replacement, each started from the
    best fit."""
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(len(runs), np.full(len(runs), 1 / len(runs)), size=draws).astype(
        float
    )
    return np.asarray(
        _of_all(
            form,
            jnp.asarray(best),
            inputs_of(runs),
            jnp.log(runs.loss),
            jnp.asarray(weights),
            delta,
        )[0]
    )
