"""Real students: trained on a drawn set, or on a stream of examples."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.channels import SignLabels
from orderparam.core.verb import experiment
from orderparam.losses import Hinge, minimise
from orderparam.systems.perceptron.rules.model import BatchPerceptron, OnlinePerceptron
from orderparam.systems.perceptron.rules.theory import OnlineError, RuleError

_RIDGE = 1e-6  # below it the hinge loss has no example inside its margin, and its minimiser is that of largest stability
_BLOCK = 64  # examples of a stream that are drawn together


@experiment
def batch_student(system: BatchPerceptron, key: PRNGKeyArray) -> RuleError:
    """One student on one drawn training set. Raises `ValueError` for sizes that round to nothing."""
    d, n = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if n < 1:
        raise ValueError(f"BatchPerceptron.sample_ratio = {float(system.sample_ratio):g}: leaves no example at input_dim = {d}")
    return _batch(jax.random.normal(key, (n, d)) / jnp.sqrt(d), system.rule)


@partial(jax.jit, static_argnames=("rule",))
def _batch(inputs: Float[Array, "train input"], rule: str) -> RuleError:
    """The teacher is all ones."""
    d = inputs.shape[1]
    labels = jnp.sign(jnp.sum(inputs, axis=1))
    residual, converged, stability = jnp.zeros(()), jnp.asarray(True), jnp.asarray(jnp.nan)
    if rule == "hebb":
        weights = labels @ inputs
    elif rule == "pseudo-inverse":
        weights = jnp.linalg.lstsq(inputs, labels)[0]
    else:
        found = minimise(Hinge(), inputs, labels, jnp.asarray(_RIDGE))
        weights, residual = found.weights, found.residual
        stability = jnp.min(labels * found.fields) * jnp.sqrt(d) / jnp.linalg.norm(weights)
        converged = found.converged & (stability > 0)
    overlap = jnp.sum(weights) / (jnp.sqrt(d) * jnp.linalg.norm(weights))
    return RuleError(overlap, jnp.arccos(overlap) / jnp.pi, stability, residual, converged)


@experiment
def online_student(system: OnlinePerceptron, key: PRNGKeyArray) -> OnlineError:
    """alpha N examples, each seen once, in memory for a few of them. The optimal rule takes V from its flow's own step."""
    d, n = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if n < 1:
        raise ValueError(f"OnlinePerceptron.sample_ratio = {float(system.sample_ratio):g}: leaves no example at input_dim = {d}")
    weights = _stream(key, jnp.asarray(n), system.rate, d, system.rule)
    length = jnp.linalg.norm(weights) / jnp.sqrt(d)
    cosine = jnp.mean(weights) / jnp.where(length == 0, 1.0, length)
    return OnlineError(cosine, length, jnp.arccos(cosine) / jnp.pi, jnp.isfinite(cosine) & (length > 0))


@eqx.filter_jit
def _stream(key: PRNGKeyArray, count: Array, rate: Float[Array, ""], d: int, rule: str) -> Float[Array, "input"]:
    def learn(state: tuple, example: tuple) -> tuple[tuple, None]:
        weights, rest = state
        x, index = example
        label = jnp.sign(jnp.sum(x))  # the teacher is all ones
        margin = label * (x @ weights)
        if rule == "optimal":
            pull = rest * SignLabels().denoiser(1.0, margin, rest)
            information = -SignLabels().denoiser_slope(1.0, margin, rest)
        else:
            pull = rate * {"hebb": 1.0, "rosenblatt": jnp.where(margin <= 0, 1.0, 0.0), "adaline": 1 - margin}[rule]
            information = jnp.zeros(())
        seen = index < count
        weights = jnp.where(seen, weights + pull * label * x, weights)
        return (weights, jnp.where(seen, rest - rest**2 * information / d, rest)), None

    def block(number: Array, state: tuple) -> tuple:
        x = jax.random.normal(jax.random.fold_in(key, number), (_BLOCK, d)) / jnp.sqrt(d)
        return jax.lax.scan(learn, state, (x, number * _BLOCK + jnp.arange(_BLOCK)))[0]

    blocks = -(-count // _BLOCK)
    return jax.lax.fori_loop(0, blocks, block, (jnp.zeros(d), jnp.ones(())))[0]
