"""Real students: trained on a drawn set, or on a stream of examples."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.channels import SignLabels
from orderparam.core.verb import experiment
from orderparam.losses.margin import shortest_vector
from orderparam.systems.perceptron.rules.model import BatchPerceptron, OnlinePerceptron
from orderparam.systems.perceptron.rules.theory import OnlineError, RuleError

_BLOCK = 64  # examples of a stream that are drawn together


@experiment
def batch_student(system: BatchPerceptron, key: PRNGKeyArray) -> RuleError:
    """One student on one drawn training set. Raises `ValueError` for sizes that round to nothing."""
    d, n = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if n < 1:
        raise ValueError(f"BatchPerceptron.sample_ratio = {float(system.sample_ratio):g}: leaves no example at input_dim = {d}")
    return _batch(np.asarray(jax.random.normal(key, (n, d))) / np.sqrt(d), system.rule)


def _batch(inputs: Float[np.ndarray, "train input"], rule: str) -> RuleError:
    """The teacher is all ones."""
    labels = np.sign(inputs.sum(axis=1))
    converged, stability = np.asarray(True), np.nan
    if rule == "hebb":
        weights = labels @ inputs
    elif rule == "pseudo-inverse":
        weights = np.linalg.lstsq(inputs, labels)[0]
    else:
        weights, converged = shortest_vector(inputs * labels[:, None], np.ones(len(labels)))
        stability = np.sqrt(inputs.shape[1]) / np.linalg.norm(weights)
    overlap = jnp.asarray(weights.sum() / (np.sqrt(inputs.shape[1]) * np.linalg.norm(weights)))
    return RuleError(overlap, jnp.arccos(overlap) / np.pi, jnp.asarray(stability), jnp.zeros(()), jnp.asarray(converged))


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
def _stream(key: PRNGKeyArray, count: Array, rate: Float[Array, ""] | float, d: int, rule: str) -> Float[Array, "input"]:
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
