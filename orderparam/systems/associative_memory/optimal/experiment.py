"""Simulations of networks of optimal stability, whose couplings are trained neuron by neuron."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.losses.margin import shortest_vector
from orderparam.systems.associative_memory.optimal.model import OptimalStability


class TrainedTrajectory(Result):
    """Measured overlaps in the course of recall by a trained network.

    Fields:
        overlap: overlap of the state with the pattern after 0, 1, ... parallel steps, averaged over
            initial states.
        stability: smallest stability of all patterns at a neuron, averaged over neurons.
        converged: whether the couplings of all neurons satisfy their constraints to 1e-9.
    """

    overlap: Float[Array, "time"]
    stability: Float[Array, ""]
    converged: Bool[Array, ""]


@experiment
def trained_network(
    system: OptimalStability, key: PRNGKeyArray, *, steps: int = 1, starts: int = 20
) -> TrainedTrajectory:
    r"""Recall in one network whose couplings have the largest stability, by parallel steps.

    The couplings of each neuron are the exact solution of a quadratic programme, the shortest J
    with $\xi_i^\mu J \cdot \xi^\mu \ge 1$ for all patterns, and its stability is 1/|J|. The state
    then follows $s \leftarrow \mathrm{sign}(J s)$. The initial states have the overlap `start` with
    one pattern each; all patterns are used in turn. The number of patterns is `load` * `inputs`,
    rounded and at least 1.

    Args:
        steps: number of parallel steps.
        starts: number of initial states over which the result is averaged.

    Cost: one quadratic programme of `load` * `inputs` constraints for each neuron.

    Source: Gardner (1988); Krauth, Mézard, Nadal (1988).

    >>> import jax
    >>> system = OptimalStability(0.3, inputs=10, neurons=20, start=0.8)
    >>> path = trained_network(system, jax.random.key(0))
    >>> path.overlap.shape, bool(path.converged)
    ((2,), True)
    """
    inputs, neurons = system.size("inputs"), system.size("neurons")
    patterns = max(1, round(float(system.load) * inputs))
    for_patterns, for_inputs, for_start = jax.random.split(key, 3)
    stored = np.asarray(jax.random.rademacher(for_patterns, (patterns, neurons), float))
    others = np.argsort(jax.random.uniform(for_inputs, (neurons, neurons - 1)), axis=1)[:, :inputs]
    sources = others + (others >= np.arange(neurons)[:, None])  # no neuron is its own input
    demand = np.ones(patterns)
    signed = (stored[:, sources] * stored[:, :, None]).swapaxes(0, 1)
    # The shortest J with all aligned fields at least 1 has the largest stability, 1/|J|.
    couplings, found = zip(*(shortest_vector(one, demand) for one in signed))
    couplings = np.stack(couplings)

    # Exactly round((1 - start) N/2) spins at random places are reversed: the overlap is `start`.
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
    return TrainedTrajectory(
        overlap=jnp.asarray(path),
        stability=jnp.asarray(stability),
        converged=jnp.asarray(all(found)),
    )
