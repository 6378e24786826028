"""Networks of optimal stability, trained and set going: recurrent, and layered with patterns of their own in each layer."""

from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.losses.margin import margin_dual
from orderparam.systems.associative_memory.optimal.model import OptimalStability


class TrainedTrajectory(Result):
    """overlap after 0, 1, ... parallel steps, averaged over starts; stability: mean over neurons of the first layer.

    converged: the optimality conditions of all couplings hold to 1e-6.
    """

    overlap: Float[Array, "time"]
    stability: Float[Array, ""]
    converged: Bool[Array, ""]


@experiment
def trained_network(
    system: OptimalStability,
    key: PRNGKeyArray,
    *,
    layout: Literal["layered", "recurrent"] = "layered",
    steps: int = 1,
    starts: int = 20,
    max_sweeps: int = 3000,
) -> TrainedTrajectory:
    """Couplings of largest stability, found exactly, and `steps` parallel steps s <- sign(J s) from `starts` random states.

    recurrent: one network. layered: each step goes through another network, from patterns to the independent patterns of the
    next layer, so that states never know of the couplings they meet. P is load N, rounded, at least 1.
    """
    n = system.size("inputs")
    patterns = max(1, round(float(system.load) * n))
    return _trained(system.start, key, n, patterns, layout == "recurrent", steps, starts, max_sweeps)


def stable_couplings(
    inputs: Float[Array, "pattern input"], labels: Float[Array, "neuron pattern"], own: bool, max_sweeps: int = 3000
) -> tuple[Float[Array, "neuron input"], Bool[Array, ""]]:
    """The shortest couplings J with y J.x >= 1 of every neuron, and whether all of them are optimal to 1e-6.

    own: neuron i may use input i. Where it may not, the labels must be the inputs, transposed.
    """
    gram = (inputs @ inputs.T)[None] * labels[:, :, None] * labels[:, None, :]
    if not own:
        gram = gram - 1.0  # the own input is the label: their product is 1
    dual, found = margin_dual(gram, jnp.ones(labels.shape), max_sweeps)
    couplings = (dual * labels) @ inputs
    return couplings if own else couplings * (1 - jnp.eye(len(labels))), jnp.all(found)


@partial(jax.jit, static_argnames=("n", "patterns", "recurrent", "steps", "starts", "max_sweeps"))
def _trained(
    start: Float[Array, ""],
    key: PRNGKeyArray,
    n: int,
    patterns: int,
    recurrent: bool,
    steps: int,
    starts: int,
    max_sweeps: int,
) -> TrainedTrajectory:
    for_patterns, for_start = jax.random.split(key)
    layers = 1 if recurrent else steps
    stored = jax.random.rademacher(for_patterns, (layers + (0 if recurrent else 1), patterns, n), float)
    couplings, found, stability = [], [], jnp.zeros(())
    for layer in range(layers):
        source, image = stored[layer], stored[layer if recurrent else layer + 1]
        trained, converged = stable_couplings(source, image.T, not recurrent, max_sweeps)
        couplings.append(trained)
        found.append(converged)
        stability = stability if layer else jnp.mean(1 / jnp.linalg.norm(trained, axis=1))
    rank = jnp.argsort(jax.random.uniform(for_start, (starts, n)), axis=1)
    pattern = jnp.arange(starts) % patterns
    state = jnp.where(rank < jnp.round((1 - start) / 2 * n), -1.0, 1.0) * stored[0, pattern]
    path = [jnp.mean(state * stored[0, pattern])]
    for step in range(steps):
        state = jnp.sign(state @ couplings[min(step, layers - 1)].T)
        path.append(jnp.mean(state * stored[0 if recurrent else step + 1, pattern]))
    return TrainedTrajectory(jnp.stack(path), stability, jnp.all(jnp.stack(found)))
