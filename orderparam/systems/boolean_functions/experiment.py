"""Boolean functions: how often trained networks become each of them."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.networks.architecture import Architecture, of_width
from orderparam.systems.boolean_functions.model import BooleanTraining
from orderparam.systems.boolean_functions.theory import three_laws

FITTED = 1e-2  # largest residual of a network that fits its labels


class TrainedFunctions(Result):
    """Functions that many networks have after training.

    Fields:
        probability: share of the networks with each pattern of signs, the last input changing
            fastest, -1 before 1.
        squared_distance: sum over the functions of the squared difference from the probabilities of
            three laws (tangent kernel, regression posterior, label posterior), less what chance
            adds: its mean does not depend on the number of networks.
        fitted: share of the networks with all training outputs within 0.01 of the labels.
    """

    probability: Float[Array, "pattern"]
    squared_distance: Float[Array, "law"]
    fitted: Float[Array, ""]


@experiment
def trained_functions(system: BooleanTraining, key: PRNGKeyArray) -> TrainedFunctions:
    r"""Shares of the functions among networks of one width, drawn and trained one by one.

    The distance of frequencies $\hat P$ of M networks from a law Q is $\sum_p [(\hat P_p - Q_p)^2 -
    \hat P_p (1 - \hat P_p)/(M - 1)]$, whose mean is the distance of the law of the networks.

    Source: the experiment of Mingard et al. (2021), for the square loss.

    >>> import jax
    >>> import jax.numpy as jnp
    >>> from orderparam.networks.fully_connected import fully_connected
    >>> x = jnp.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    >>> network = fully_connected(1, None, "erf")
    >>> system = BooleanTraining(x[:2], jnp.ones(2), x[2:], network, width=8, networks=4, steps=5)
    >>> trained_functions(system, jax.random.key(0)).probability.shape
    (2,)
    """
    architecture = of_width(system.architecture, system.size("width"))
    keys = jax.random.split(key, system.networks)
    starts = jax.vmap(lambda key: architecture.draw(key, system.inputs.shape[1]))(keys)
    return _frequencies(system, architecture, starts)


@eqx.filter_jit
def _frequencies(
    system: BooleanTraining, architecture: Architecture, starts: Any
) -> TrainedFunctions:
    kernel = system.architecture.kernel(system.inputs)
    frozen = kernel.nngp if system.trained == "readout" else kernel.ntk
    rate = system.learning_rate / jnp.linalg.norm(frozen, 2)

    def loss(weights: Any) -> Array:
        residual = architecture.apply(weights, system.inputs)[:, 0] - system.labels
        return 0.5 * jnp.sum(residual**2)

    def one(start: Any) -> tuple[Array, Array]:
        def step(weights: Any, _: None) -> tuple[Any, None]:
            slope = jax.grad(loss)(weights)
            if system.trained == "readout":
                still = jax.tree.map(jnp.zeros_like, slope)
                slope = (*still[:-1], slope[-1])
            return jax.tree.map(lambda w, g: w - rate * g, weights, slope), None

        end, _ = jax.lax.scan(step, start, length=system.steps)
        residual = architecture.apply(end, system.inputs)[:, 0] - system.labels
        signs = architecture.apply(end, system.test_inputs)[:, 0] > 0
        weight = 2 ** jnp.arange(len(system.test_inputs))[::-1]
        return signs @ weight, jnp.max(jnp.abs(residual)) < FITTED

    found, fitted = jax.vmap(one)(starts)
    share = jnp.bincount(found, length=2 ** len(system.test_inputs)) / system.networks
    chance = jnp.sum(share * (1 - share)) / (system.networks - 1)
    distance = jnp.sum((share - three_laws(system)) ** 2, axis=1) - chance
    return TrainedFunctions(share, distance, jnp.mean(fitted))
