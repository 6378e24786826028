"""Experiments of Boolean functions: how often trained networks compute each function."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.networks.architecture import Architecture, of_width
from orderparam.systems.boolean_functions.model import BooleanTraining
from orderparam.systems.boolean_functions.theory import likely, three_laws, trained_kernel

FITTED = 1e-2  # largest residual of a network that fits its labels


class TrainedFunctions(Result):
    """Functions that many networks compute after training.

    Fields:
        probability: share of the networks with each pattern of signs. In the order of patterns the
            last input changes fastest, and -1 comes before 1.
        likely: share of the networks that compute each function of the likelier half, in the order
            of patterns, and share that compute any other function. Which half is likelier is taken
            from the law of the tangent kernel.
        squared_distance: sum over the functions of the squared difference from the probabilities of
            three laws (tangent kernel, regression posterior, label posterior). The bias of a finite
            number of networks is subtracted, so that the mean does not depend on this number.
        fitted: share of the networks with all training outputs within 0.01 of the labels; for the
            logistic loss, share with the signs of all labels.
    """

    probability: Float[Array, "pattern"]
    likely: Float[Array, "group"]
    squared_distance: Float[Array, "law"]
    fitted: Float[Array, ""]


@experiment
def trained_functions(system: BooleanTraining, key: PRNGKeyArray) -> TrainedFunctions:
    r"""Shares of the functions among networks of one width, which are drawn and trained one by one.

    The squared distance of the frequencies $\hat P$ of M networks from a law Q is estimated by
    $\sum_p [(\hat P_p - Q_p)^2 - \hat P_p (1 - \hat P_p)/(M - 1)]$, whose mean is the squared
    distance of the law of the networks from Q.

    Source: the experiment of Mingard et al. (2021).

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
    return _frequencies(system, architecture, starts, jax.random.fold_in(key, 1))


@eqx.filter_jit
def _frequencies(
    system: BooleanTraining, architecture: Architecture, starts: Any, key: PRNGKeyArray
) -> TrainedFunctions:
    rate = system.learning_rate / jnp.linalg.norm(trained_kernel(system, system.inputs), 2)

    def outputs(weights: Any) -> Array:
        return architecture.apply(weights, system.inputs)[:, 0]

    def one(start: Any, key: PRNGKeyArray) -> tuple[Array, Array]:
        def step(weights: Any, key: PRNGKeyArray) -> tuple[Any, None]:
            values, back = jax.vjp(outputs, weights)
            (slope,) = back(system.slope(values, key))
            if system.trained == "readout":
                still = jax.tree.map(jnp.zeros_like, slope)
                slope = (*still[:-1], slope[-1])
            return jax.tree.map(lambda w, g: w - rate * g, weights, slope), None

        end, _ = jax.lax.scan(step, start, jax.random.split(key, system.steps))
        values = outputs(end)
        right = jnp.max(jnp.abs(values - system.labels)) < FITTED
        if system.loss == "logistic":
            right = jnp.all(values * system.labels > 0)
        signs = architecture.apply(end, system.test_inputs)[:, 0] > 0
        weight = 2 ** jnp.arange(len(system.test_inputs))[::-1]
        return signs @ weight, right

    found, fitted = jax.vmap(one)(starts, jax.random.split(key, system.networks))
    share = jnp.bincount(found, length=2 ** len(system.test_inputs)) / system.networks
    chance = jnp.sum(share * (1 - share)) / (system.networks - 1)
    laws = three_laws(system)
    distance = jnp.sum((share - laws) ** 2, axis=1) - chance
    return TrainedFunctions(
        probability=share,
        likely=likely(share, laws[0]),
        squared_distance=distance,
        fitted=jnp.mean(fitted),
    )
