"""Experiments on trained networks: networks are trained and their order parameters are measured
with `orderparam.observables`."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.networks.architecture import Architecture
from orderparam.networks.composition import Serial
from orderparam.observables import (
    alignment,
    kernel_drift,
    lazy_to_rich,
    similarity,
    tangent_kernel,
    weight_spectrum,
)
from orderparam.systems.trained_networks.model import InspectedTraining, hidden

Scalar = Float[Array, ""]


class NetworkOrderParameters(Result):
    """Observables of one network at the start and at each level of training.

    Fields:
        test_error: mean squared error on the test inputs.
        train_error: mean squared error on the training set.
        lazy_to_rich: distance from the linearised network at the same training error, divided by
            the norm of what the linearised network has learned (`observables.lazy_to_rich`); 0 at
            the start.
        kernel_drift: relative change of the tangent kernel (`observables.kernel_drift`).
        shape_drift: 1 minus the similarity of the tangent kernel to the tangent kernel at the
            start.
        alignment: alignment of each hidden layer with the targets, as it is in this network.
        wide_alignment: unbiased estimate of the alignment of infinitely many neurons, of which the
            neurons of the layer are a sample; NaN where it is not determined.
        similarity: similarity of each hidden layer to itself at the start.
        outliers: number of singular values of the weights into each hidden layer, at the last
            level, that noise does not explain (with a probability of 1 % of a false alarm).
        converged: whether the training error reached all levels.
    """

    test_error: Float[Array, "level"]
    train_error: Float[Array, "level"]
    lazy_to_rich: Float[Array, "level"]
    kernel_drift: Float[Array, "level"]
    shape_drift: Float[Array, "level"]
    alignment: Float[Array, "level layer"]
    wide_alignment: Float[Array, "level layer"]
    similarity: Float[Array, "level layer"]
    outliers: Float[Array, "layer"]
    converged: Scalar


@experiment
def inspected_network(system: InspectedTraining, key: PRNGKeyArray) -> NetworkOrderParameters:
    r"""Order parameters of one network that is drawn from the prior and trained by gradient descent
    on all its parameters, measured at each level.

    Source: Chizat, Oyallon, Bach (2019) for the scaling of the output.

    >>> import jax
    >>> from orderparam.networks.fully_connected import fully_connected
    >>> x = np.random.default_rng(0).normal(size=(20, 4))
    >>> network = fully_connected(1, None, "erf")
    >>> system = InspectedTraining(x[:12], x[:12, 0], x[12:], x[12:, 0], network, 8, levels=(0.5,))
    >>> inspected_network(system, jax.random.key(0)).similarity.shape
    (2, 1)
    """
    shape = system.inputs.shape[1:]
    network = system.network()
    start, model = network.draw(key, shape), network.apply
    width = Serial(hidden(network)[-1]).output_shape(shape)[-1]
    gamma = float(system.richness) * width**0.5
    x, fresh, y = (np.asarray(one) for one in (system.inputs, system.test_inputs, system.targets))
    if system.below():
        kernel = tangent_kernel(model, start, x)
        across = tangent_kernel(model, start, fresh, x)
        # the part of the residual that a step removes along the largest eigenvalue of K / gamma^2
        step = float(system.learning_rate) * gamma**2 / np.linalg.eigvalsh(kernel)[-1]
    before = _layers(network, start, x)
    layers = [[_of_layer(one, one, y) for one in before]]
    test = np.asarray(system.test_targets)
    numbers, theta = [(np.mean(test**2), np.mean(y**2), 0.0, 0.0, 0.0)], start
    for level in system.below():
        theta = _trained(
            network,
            (x, system.targets),
            system.steps,
            start,
            theta,
            gamma,
            step,
            level * np.mean(y**2),
        )
        f, f_fresh = (np.asarray(_output(model, start, theta, z, gamma)) for z in (x, fresh))
        number = lazy_to_rich(
            0 * f_fresh, f_fresh, across / gamma**2, kernel / gamma**2, 0 * f, f, y, step
        )
        drift = kernel_drift(kernel, tangent_kernel(model, theta, x), draws=0)
        errors = np.mean((f_fresh - test) ** 2), np.mean((f - y) ** 2)
        numbers.append((*errors, number.value, drift.norm.value, drift.shape.value))
        now = _layers(network, theta, x)
        layers.append([_of_layer(one, late, y) for one, late in zip(before, now)])
    outliers = [float(len(weight_spectrum(w).outliers)) for w in _weights(theta)]
    columns, tables = jnp.asarray(numbers, float).T, jnp.asarray(layers, float)
    reached = columns[1, -1] <= (1.0, *system.below())[-1] * np.mean(y**2)
    return NetworkOrderParameters(
        test_error=columns[0],
        train_error=columns[1],
        lazy_to_rich=columns[2],
        kernel_drift=columns[3],
        shape_drift=columns[4],
        alignment=tables[..., 0],
        wide_alignment=tables[..., 1],
        similarity=tables[..., 2],
        outliers=jnp.asarray(outliers),
        converged=reached.astype(float),
    )


def _of_layer(before: np.ndarray, now: np.ndarray, y: np.ndarray) -> tuple[float, ...]:
    """Alignment of a layer, its estimate for infinitely many neurons, and its similarity to the
    start."""
    return (
        alignment(now, y, estimand="examples", draws=0).value,
        alignment(now, y, draws=0).value,
        similarity(before, now, draws=0).value,
    )


def _output(model: Any, start: Any, theta: Any, x: Any, gamma: float) -> Array:
    return (model(theta, x) - model(start, x))[:, 0] / gamma


@eqx.filter_jit
def _trained(
    network: Architecture,
    examples: tuple[Any, Any],
    steps: int,
    start: Any,
    theta: Any,
    gamma: Any,
    step: Any,
    goal: Any,
) -> Any:
    """Parameters at the first step at which the training error is below the goal."""
    model, (x, y) = network.apply, examples
    zero = model(start, x)[:, 0]

    def residual(theta: Any) -> Array:
        return (model(theta, x)[:, 0] - zero) / gamma - y

    def error(theta: Any) -> tuple[Array, Array]:
        gap = residual(theta)
        return 0.5 * jnp.sum(gap**2), jnp.mean(gap**2)

    def descend(state: Any) -> Any:
        theta, count, _ = state
        slope, _ = jax.grad(error, has_aux=True)(theta)
        following = jax.tree.map(lambda w, g: w - step * g, theta, slope)
        return following, count + 1, jnp.mean(residual(following) ** 2)

    def goes_on(state: Any) -> Array:
        return (state[2] > goal) & (state[1] < steps)

    first = theta, 0, jnp.mean(residual(theta) ** 2)
    return jax.lax.while_loop(goes_on, descend, first)[0]


def _layers(network: Architecture, theta: Any, x: np.ndarray) -> list[np.ndarray]:
    """Activations of each hidden layer (examples, channels, positions)."""
    found = [np.moveaxis(np.asarray(one), -1, 1) for one in _activations(network, theta, x)]
    return [one.reshape(*one.shape[:2], -1) for one in found]


@eqx.filter_jit
def _activations(network: Architecture, theta: Any, x: Any) -> list[Array]:
    scales = network.layers.multipliers(theta)
    weights = jax.tree.map(jnp.multiply, scales, theta)
    return [Serial(layers)(weights[: len(layers)], x) for layers in hidden(network)]


def _weights(theta: Any) -> list[np.ndarray]:
    """The weights of all layers but the read-out."""
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(theta) if leaf.ndim >= 2]
    return [one.reshape(len(one), -1) for one in arrays[:-1]]
