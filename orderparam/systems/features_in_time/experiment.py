"""Experiments of features in time: networks of finite width, trained on the same data."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result, along_time
from orderparam.core.verb import experiment
from orderparam.systems.features_in_time.model import (
    FeatureDescent,
    LinearLayersDescent,
    QuadraticDescent,
)
from orderparam.systems.features_in_time.quadratic import QuadraticPath, recorded_path
from orderparam.systems.features_in_time.theory import BestRate, best_of_rates

Scalar = Float[Array, ""]


class NetworkFeaturePath(Result):
    """Errors of one network along training, and how far its tangent kernel moved.

    Fields:
        test_error: mean squared error on the test inputs after 0, 1, ... steps.
        train_error: mean squared error on the training set after 0, 1, ... steps.
        kernel_drift: Frobenius norm of Theta_T - Theta_0 on the training set, divided by that of
            Theta_0; T is the last step.
    """

    test_error: Float[Array, "step"]
    train_error: Float[Array, "step"]
    kernel_drift: Scalar


class TrainedLayers(Result):
    """Errors along training of one linear network, and the sizes of its layers after the last step.

    Fields:
        train_error: mean squared error on the training set after 0, 1, ... steps.
        test_error: mean squared error on the test inputs after 0, 1, ... steps.
        layer_power: mean over training inputs of |h^l|^2/N for the layers 1, 2, ..., after the last
            step.
        readout_power: |w|^2/N after the last step.
    """

    train_error: Float[Array, "step"]
    test_error: Float[Array, "step"]
    layer_power: Float[Array, "layer"]
    readout_power: Scalar


class FeatureLayers(NamedTuple):
    """Weights of one network; all are drawn from N(0, 1) at the start."""

    hidden: Float[Array, "unit input"]
    readout: Float[Array, "unit"]


def _even(system: FeatureDescent) -> None:
    if system.size("width") % 2:
        raise ValueError(
            f"width = {system.size('width')}: must be even, for an antisymmetric start"
        )


@experiment(check=_even)
def trained_features(system: FeatureDescent, key: PRNGKeyArray) -> NetworkFeaturePath:
    r"""Errors of one network of `width` units along gradient descent, from an antisymmetric start.

    Raises:
        ValueError: for an odd width.

    Source: the experiment of Bordelon, Pehlevan (2022).

    >>> import jax
    >>> import numpy as np
    >>> x = np.eye(3)
    >>> system = FeatureDescent(x, np.ones(3), x, np.ones(3), width=8, steps=2)
    >>> trained_features(system, jax.random.key(0)).train_error.shape
    (3,)
    """
    return _train(system, _draw(system, key))


@experiment(check=_even)
def tuned_network(system: FeatureDescent, key: PRNGKeyArray) -> BestRate:
    r"""The learning rate with which one network of `width` units has the smallest training error
    after `steps` steps.

    The network is trained from the same start with every rate of the search of `best_rate`.

    Raises:
        ValueError: for an odd width.

    Source: the experiment of Yang et al. (2022), for small networks.

    >>> import jax
    >>> import numpy as np
    >>> x = np.eye(3)
    >>> system = FeatureDescent(x, np.ones(3), x, np.ones(3), width=8, steps=1)
    >>> bool(tuned_network(system, jax.random.key(0)).converged)
    True
    """
    return _tune(system, _draw(system, key))


@experiment
def trained_quadratic(system: QuadraticDescent, key: PRNGKeyArray) -> QuadraticPath:
    r"""Errors of one network of `width` quadratic units along gradient descent.

    Source: the experiment of Kumar, Bordelon, Gershman, Pehlevan (2024).

    >>> import jax
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal((40, 3))
    >>> y = x[:, 0]
    >>> system = QuadraticDescent(x[:20], y[:20], x[20:], y[20:], width=10, steps=200)
    >>> bool(trained_quadratic(system, jax.random.key(0)).converged)
    True
    """
    shape = (system.size("width"), system.inputs.shape[1])
    return _train_quadratic(system, jax.random.normal(key, shape))


@experiment
def trained_linear_layers(system: LinearLayersDescent, key: PRNGKeyArray) -> TrainedLayers:
    r"""Errors of one linear network with `depth` hidden layers of `width` units along training.

    Source: the experiment of Bordelon, Pehlevan (2022).

    >>> import jax
    >>> import numpy as np
    >>> x = np.eye(3)
    >>> system = LinearLayersDescent(x, np.ones(3), x, np.ones(3), width=16, steps=2)
    >>> trained_linear_layers(system, jax.random.key(0)).layer_power.shape
    (2,)
    """
    return _train_layers(system, key, system.size("width"))


@eqx.filter_jit
def _train_layers(system: LinearLayersDescent, key: PRNGKeyArray, width: int) -> TrainedLayers:
    sizes = [system.inputs.shape[1], *[width] * system.depth]
    keys = jax.random.split(key, len(sizes))
    start = [jax.random.normal(keys[0], (width,))]
    for one, fan_in in zip(keys[1:], sizes[:-1], strict=True):
        start.append(jax.random.normal(one, (width, fan_in)))

    def fields(weights: list[Array], inputs: Array) -> list[Array]:
        """Fields (point, unit) of all layers."""
        found = [inputs]
        for w in weights[1:]:
            found.append(found[-1] @ w.T / jnp.sqrt(w.shape[1]))
        return found[1:]

    def residual(weights: list[Array], inputs: Array, targets: Array) -> Array:
        output = fields(weights, inputs)[-1] @ weights[0] / (system.richness * width)
        return output - targets

    def loss(weights: list[Array]) -> Array:
        return 0.5 * jnp.sum(residual(weights, system.inputs, system.targets) ** 2)

    def errors(weights: list[Array]) -> tuple[Array, Array]:
        train = residual(weights, system.inputs, system.targets)
        test = residual(weights, system.test_inputs, system.test_targets)
        return jnp.mean(train**2), jnp.mean(test**2)

    rate = system.learning_rate * system.richness**2 * width

    def step(weights: list[Array], _: None) -> tuple[list[Array], tuple[Array, Array]]:
        following = jax.tree.map(lambda w, g: w - rate * g, weights, jax.grad(loss)(weights))
        return following, errors(following)

    end, along = jax.lax.scan(step, start, length=system.steps)
    train, test = along_time(errors(start), along)
    return TrainedLayers(
        train_error=train,
        test_error=test,
        layer_power=jnp.stack([jnp.mean(h**2) for h in fields(end, system.inputs)]),
        readout_power=jnp.mean(end[0] ** 2),
    )


@eqx.filter_jit
def _train_quadratic(
    system: QuadraticDescent, normals: Float[Array, "unit input"]
) -> QuadraticPath:
    start = jnp.sqrt(system.start_variance) * normals

    def output(weights: Array, inputs: Array) -> Array:
        h = inputs @ weights.T
        return system.laziness * jnp.mean(h + system.curvature / 2 * h**2, axis=1)

    wanted = system.targets + output(start, system.inputs)

    def loss(weights: Array) -> Array:
        return jnp.mean((output(weights, system.inputs) - wanted) ** 2) / 2

    rate = system.learning_rate * len(start) / system.laziness**2
    return recorded_path(system, start, lambda w: w - rate * jax.grad(loss)(w), output)


def _draw(system: FeatureDescent, key: PRNGKeyArray) -> FeatureLayers:
    pairs = system.size("width") // 2
    hidden_key, readout_key = jax.random.split(key)
    w = jax.random.normal(hidden_key, (pairs, system.inputs.shape[1]))
    a = jax.random.normal(readout_key, (pairs,))
    return FeatureLayers(jnp.concatenate([w, w]), jnp.concatenate([a, -a]))


def _output(system: FeatureDescent, layers: FeatureLayers, x: Array) -> Array:
    gamma = system.scales()[0]
    values = system.activation(x @ layers.hidden.T / jnp.sqrt(x.shape[1]))
    return values @ layers.readout / (gamma * len(layers.readout))


def _rates(system: FeatureDescent, rate: Scalar | None) -> FeatureLayers:
    """The factor by which the gradient of the summed loss is multiplied in a step, for each
    layer."""
    gamma, hidden_rate, readout_rate = system.scales(rate)
    scale = gamma * jnp.asarray(system.width, float)
    return FeatureLayers(scale * hidden_rate, scale * readout_rate)


def _descend(
    system: FeatureDescent, start: FeatureLayers, rate: Scalar | None
) -> tuple[FeatureLayers, tuple[Array, Array]]:
    rates = _rates(system, rate)

    def loss(layers: FeatureLayers) -> tuple[Array, Array]:
        residual = _output(system, layers, system.inputs) - system.targets
        return 0.5 * jnp.sum(residual**2), jnp.mean(residual**2)

    def step(layers: FeatureLayers, _: None) -> tuple[FeatureLayers, tuple[Array, Array]]:
        slope, train = jax.grad(loss, has_aux=True)(layers)
        test = _output(system, layers, system.test_inputs) - system.test_targets
        following = jax.tree.map(lambda w, eta, g: w - eta * g, layers, rates, slope)
        return following, (jnp.mean(test**2), train)

    end, (test, train) = jax.lax.scan(step, start, length=system.steps)
    last = jnp.mean((_output(system, end, system.test_inputs) - system.test_targets) ** 2)
    return end, (jnp.append(test, last), jnp.append(train, loss(end)[1]))


def _tangent(system: FeatureDescent, layers: FeatureLayers, rate: Scalar | None) -> Array:
    """The matrix that maps the residual y - f to the first-order change of f in a step."""
    rates = _rates(system, rate)
    slopes = jax.jacrev(lambda layers: _output(system, layers, system.inputs))(layers)
    hidden = slopes.hidden.reshape(len(system.targets), -1)
    return rates.hidden * hidden @ hidden.T + rates.readout * slopes.readout @ slopes.readout.T


@eqx.filter_jit
def _train(system: FeatureDescent, start: FeatureLayers) -> NetworkFeaturePath:
    end, (test, train) = _descend(system, start, None)
    before, after = (_tangent(system, layers, None) for layers in (start, end))
    drift = jnp.linalg.norm(after - before) / jnp.linalg.norm(before)
    return NetworkFeaturePath(test_error=test, train_error=train, kernel_drift=drift)


@eqx.filter_jit
def _tune(system: FeatureDescent, start: FeatureLayers) -> BestRate:
    def error(rate: Scalar) -> Scalar:
        return _descend(system, start, rate)[1][1][-1]

    tangent = _tangent(system, start, jnp.ones(()))
    rate, lowest, inside = best_of_rates(error, jnp.linalg.norm(tangent, 2))
    return BestRate(best_rate=rate, best_error=lowest, converged=inside)
