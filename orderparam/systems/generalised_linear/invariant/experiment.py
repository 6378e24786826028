"""VAMP and GAMP on a drawn problem with a rotationally invariant matrix."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.channels import RealLabels
from orderparam.core.verb import experiment
from orderparam.priors import Prior
from orderparam.systems.generalised_linear.bayes.experiment import gamp
from orderparam.systems.generalised_linear.invariant.model import InvariantDesign
from orderparam.systems.generalised_linear.invariant.theory import MeasuredWeights, singular_power

_LEAST, _MOST = 1e-11, 1e11  # precisions of messages
_FAR = 1e3  # deviations of a weight at which estimates have diverged


@experiment
def vector_message_passing(
    system: InvariantDesign,
    key: PRNGKeyArray,
    *,
    algorithm: Literal["vamp", "gamp"] = "vamp",
    max_steps: int = 500,
    tolerance: float = 1e-5,
) -> MeasuredWeights:
    """gamp: what takes the entries for independent, on the same problem; it may diverge where they are not.

    Raises `ValueError` for a number of samples that rounds to nothing.
    """
    d, n = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if n < 1:
        raise ValueError(f"InvariantDesign.sample_ratio = {float(system.sample_ratio):g}: leaves no sample at input_dim = {d}")
    weight_key, left_key, right_key, noise_key, start_key = jax.random.split(key, 5)
    weights = system.prior.draw(weight_key, (d,))
    rank = min(n, d)
    power = singular_power(system.condition, (jnp.arange(rank) + 0.5) / rank)
    singular = jnp.sqrt(power / jnp.mean(power) * n / rank)
    left = jnp.linalg.qr(jax.random.normal(left_key, (n, rank)))[0]
    right = jnp.linalg.qr(jax.random.normal(right_key, (d, rank)))[0]
    noise = jnp.sqrt(system.noise) * jax.random.normal(noise_key, (n,))
    if algorithm == "vamp":
        seen = singular * (right.T @ weights) + left.T @ noise  # U^T y; the rest of y is noise
        estimate, steps, change, converged = _vamp(
            system.prior, right, singular, seen, jnp.asarray(system.noise), jnp.asarray(tolerance), max_steps
        )
    else:
        matrix = (left * singular) @ right.T
        first = 1e-2 * jnp.sqrt(system.prior.power) * jax.random.normal(start_key, (d,))
        law, (zero, close, least) = RealLabels("linear", system.noise), map(jnp.asarray, (0.0, tolerance, 1e-12))
        labels, power = matrix @ weights + noise, jnp.asarray(system.prior.power)
        found = gamp(matrix, labels, jnp.ones(n), law, system.prior, first, power, zero, close, least, max_steps)
        estimate, steps, change, converged = found.weights, found.steps, found.residual, found.converged
    scale = jnp.sqrt(system.prior.power)
    estimate = jnp.clip(jnp.nan_to_num(estimate), -_FAR * scale, _FAR * scale)
    error = jnp.mean((weights - estimate) ** 2)
    converged &= jnp.max(jnp.abs(estimate)) < _FAR * scale
    return MeasuredWeights(error, jnp.mean(weights * estimate), steps, change, converged)


@eqx.filter_jit
def _vamp(
    prior: Prior,
    right: Float[Array, "input value"],
    singular: Float[Array, "value"],
    seen: Float[Array, "value"],
    noise: Float[Array, ""],
    tolerance: Float[Array, ""],
    max_steps: int,
) -> tuple[Array, Array, Array, Array]:
    """The estimate, the steps, its last change, and whether that is small."""
    d, rho = right.shape[0], prior.power

    def bounded(precision: Array) -> Array:
        return jnp.clip(precision, _LEAST / rho, _MOST / rho)

    def step(state: tuple) -> tuple:
        old, message, precision, count, _ = state
        posterior = prior.posterior(precision * message, precision)
        variance = jnp.maximum(jnp.mean(posterior.variance), 1e-300)
        other = bounded(1 / variance - precision)
        back = (posterior.mean / variance - precision * message) / other
        gain = singular / (singular**2 + noise * other)  # of the least-squares estimate towards U^T y
        estimate = back + right @ (gain * (seen - singular * (right.T @ back)))
        filtered = jnp.sum(singular * gain) / d
        fresh = bounded(filtered * other / (1 - filtered))
        total = fresh + other
        message = (total * estimate - other * back) / fresh
        return posterior.mean, message, fresh, count + 1, jnp.sqrt(jnp.mean((posterior.mean - old) ** 2))

    def unfinished(state: tuple) -> Bool[Array, ""]:
        return (state[3] < max_steps) & ((state[3] < 3) | (state[4] > tolerance * jnp.sqrt(rho)))

    begin = (jnp.zeros(d), jnp.zeros(d), _LEAST / rho, jnp.asarray(0), jnp.asarray(jnp.inf))
    estimate, _, _, count, change = jax.lax.while_loop(unfinished, step, begin)
    done = (change <= tolerance * jnp.sqrt(rho)) & jnp.all(jnp.isfinite(estimate))
    return estimate, count.astype(float), change, done
