"""Classifiers of images, trained by gradient descent."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.networks.architecture import Architecture
from orderparam.systems.trained_networks.classifiers.model import ImageArchitecture
from orderparam.systems.trained_networks.classifiers.theory import (
    ClassifierErrors,
    classifier_errors,
)

_POWER_STEPS = 30  # steps of the power iteration for the largest eigenvalue of the tangent kernel


@experiment
def trained_classifier(system: ImageArchitecture, key: PRNGKeyArray) -> ClassifierErrors:
    r"""Errors of one network drawn from the prior and trained by gradient descent on all its
    parameters.

    The step size is `learning_rate` divided by the largest eigenvalue of the network's tangent
    kernel at the start. Training ends when the training error is `level` times that of the start.

    Source: the experiment of Lee et al. (2019) and Novak et al. (2019), with all examples in every
    step.

    >>> import jax
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(6, 4, 4, 1))
    >>> y = np.eye(2)[np.arange(6) % 2] - 0.5
    >>> system = ImageArchitecture(x[:4], y[:4], x[4:], y[4:], channels=4, level=0.5)
    >>> bool(trained_classifier(system, jax.random.key(0)).converged)
    True
    """
    channels = system.size("channels")
    at = system.with_(channels=channels)
    network = at.architecture
    return _trained(at, network, network.draw(key, system.inputs.shape[1:]))


@eqx.filter_jit
def _trained(system: ImageArchitecture, network: Architecture, start: Any) -> ClassifierErrors:
    x, y = system.inputs, system.targets
    fitted = network.apply(start, x)

    def residual(theta: Any) -> Array:
        return network.apply(theta, x) - fitted - y

    def loss(theta: Any) -> tuple[Array, Array]:
        squared = jnp.sum(residual(theta) ** 2)
        return squared / 2, squared

    goal = system.level * jnp.sum(y**2)
    step = system.learning_rate / _largest(residual, start, y)

    def descend(state: Any) -> Any:
        theta, count, _ = state
        slope, squared = jax.grad(loss, has_aux=True)(theta)
        following = jax.tree.map(lambda w, g: w - step * g, theta, slope)
        # the error before this step, so that training ends one step after the level is reached
        return following, count + 1, squared

    def goes_on(state: Any) -> Array:
        return (state[2] > goal) & (state[1] < system.steps)

    theta, _, _ = jax.lax.while_loop(goes_on, descend, (start, 0, jnp.sum(y**2)))
    test = network.apply(theta, system.test_inputs) - network.apply(start, system.test_inputs)
    squared = jnp.sum(residual(theta) ** 2)
    return classifier_errors(system, test, squared / x.shape[0], squared <= goal)


def _largest(outputs: Any, theta: Any, like: Array) -> Array:
    """The largest eigenvalue of the tangent kernel, by power iteration on J J^T."""
    _, forward = jax.linearize(outputs, theta)
    backward = jax.linear_transpose(forward, theta)

    def again(vector: Array, _: None) -> tuple[Array, Array]:
        (gradient,) = backward(vector)
        following = forward(gradient)
        size = jnp.linalg.norm(following)
        return following / size, size

    first = like / jnp.linalg.norm(like)
    return jax.lax.scan(again, first, length=_POWER_STEPS)[1][-1]
