"""Networks of optimal stability, trained neuron by neuron and set going."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.losses.margin import shortest_vector
from orderparam.systems.associative_memory.optimal.model import OptimalStability


class TrainedTrajectory(Result):
    """overlap after 0, 1, ... parallel steps, averaged over starts; stability: mean over neurons.

    converged: the couplings of all neurons meet their conditions to 1e-9.
    """

    overlap: Float[Array, "time"]
    stability: Float[Array, ""]
    converged: Bool[Array, ""]


@experiment
def trained_network(
    system: OptimalStability, key: PRNGKeyArray, *, steps: int = 1, starts: int = 20
) -> TrainedTrajectory:
    """One network with couplings of largest stability, found exactly, and `steps` parallel steps s
    <- sign(J s) from `starts` random states around its patterns in turn. P is load K, rounded, at
    least 1."""
    inputs, neurons = system.size("inputs"), system.size("neurons")
    patterns = max(1, round(float(system.load) * inputs))
    for_patterns, for_inputs, for_start = jax.random.split(key, 3)
    stored = np.asarray(jax.random.rademacher(for_patterns, (patterns, neurons), float))
    others = np.argsort(jax.random.uniform(for_inputs, (neurons, neurons - 1)), axis=1)[:, :inputs]
    sources = others + (others >= np.arange(neurons)[:, None])  # no neuron is its own input
    demand = np.ones(patterns)
    signed = (stored[:, sources] * stored[:, :, None]).swapaxes(0, 1)
    couplings, found = zip(*(shortest_vector(one, demand) for one in signed))
    couplings = np.stack(couplings)

    which = np.arange(starts) % patterns
    rank = np.argsort(jax.random.uniform(for_start, (starts, neurons)), axis=1)
    state = (
        np.where(rank < np.round((1 - float(system.start)) / 2 * neurons), -1.0, 1.0)
        * stored[which]
    )
    path = [np.mean(state * stored[which])]
    for _ in range(steps):
        state = np.sign(np.einsum("snk,nk->sn", state[:, sources], couplings))
        path.append(np.mean(state * stored[which]))
    stability = np.mean(1 / np.linalg.norm(couplings, axis=1))
    return TrainedTrajectory(jnp.asarray(path), jnp.asarray(stability), jnp.asarray(all(found)))
