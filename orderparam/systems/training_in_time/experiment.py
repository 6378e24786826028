"""Experiments on learning in time: regression on random training sets, and trained networks of
finite width."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from orderparam.core.result import Result, along_time
from orderparam.core.verb import experiment
from orderparam.networks.architecture import Architecture, of_width
from orderparam.networks.random_kernels import empirical_ntk
from orderparam.systems.training_in_time.descent import PoolError, stopped
from orderparam.systems.training_in_time.model import (
    FeatureTraining,
    IsotropicTraining,
    NetworkDescent,
    PoolDescent,
    SpectralDescent,
)
from orderparam.systems.training_in_time.theory import DescentError

Scalar = Float[Array, ""]


class FlowErrors(Result):
    """Errors after a training time on one training set.

    Fields:
        test_error: |Sigma^(1/2) (w - theta)|^2, the exact error on new inputs, without label noise.
        train_error: (1/n) |X w - y|^2 against the noisy labels.
    """

    test_error: Float[Array, ""]
    train_error: Float[Array, ""]


class DescentPath(Result):
    """Errors of one network along gradient descent, and the change of its tangent kernel.

    Fields:
        test_error: mean squared error on the test inputs after 0, 1, ... steps.
        train_error: mean squared error on the training set after 0, 1, ... steps.
        kernel_drift: Frobenius norm of Theta_T - Theta_0 on the training set, divided by that of
            Theta_0; T is the last step.
    """

    test_error: Float[Array, "step"]
    train_error: Float[Array, "step"]
    kernel_drift: Float[Array, ""]


@experiment
def drawn_flow(system: FeatureTraining, key: PRNGKeyArray) -> FlowErrors:
    r"""Errors of gradient flow on one drawn training set, exact in time.

    The features, the label noise, the weights at the start and the direction of the target inside
    every level of the spectrum are drawn; the flow is solved in the eigenbasis of $X^T X/n$.

    Raises:
        ValueError: if the multiplicities or `n_train` are not whole numbers.

    Cost: one eigendecomposition of a d x d matrix, where d is the number of modes.

    Source: the experiment of Ali, Kolter, Tibshirani (2019), for any spectrum.

    >>> import jax
    >>> from orderparam.kernels.spectra import power_law
    >>> system = FeatureTraining(power_law(1.2, 0.5, 50, infinite=False), n_train=40, time=10.0)
    >>> drawn_flow(system, jax.random.key(0)).test_error.shape
    ()
    """
    return _flow(system, _draw(system, key, *_whole(system)))


@experiment
def drawn_descent(system: IsotropicTraining, key: PRNGKeyArray) -> DescentError:
    r"""Errors along gradient descent with momentum on one drawn training set.

    There are n = `sample_ratio` * `input_dim` examples, rounded; every step is taken.

    Source: the experiment of Paquette, Lee, Pedregosa, Paquette (2021) with all examples in a step.

    >>> import jax
    >>> found = drawn_descent(IsotropicTraining(2.0, input_dim=20, steps=5), jax.random.key(0))
    >>> found.test_error.shape
    (6,)
    """
    dimension = system.size("input_dim")
    return _descent(system, key, max(1, round(float(system.sample_ratio) * dimension)), dimension)


@experiment
def trained_network(system: NetworkDescent, key: PRNGKeyArray) -> DescentPath:
    r"""Errors of one network of finite width, drawn from the prior and trained by gradient descent.

    Every step changes all trained parameters of the network; momentum is that of the heavy ball.

    Source: the experiment of Lee et al. (2019).

    >>> import jax
    >>> import jax.numpy as jnp
    >>> from orderparam.networks.fully_connected import fully_connected
    >>> x = jnp.eye(3)
    >>> network = fully_connected(1, None, "erf")
    >>> system = NetworkDescent(x, jnp.ones(3), x, jnp.ones(3), network, width=8, steps=2)
    >>> trained_network(system, jax.random.key(0)).test_error.shape
    (3,)
    """
    architecture = of_width(system.architecture, system.size("width"))
    return _train(system, architecture, architecture.draw(key, system.inputs.shape[1]))


@experiment
def drawn_spectral_descent(system: SpectralDescent, key: PRNGKeyArray) -> DescentError:
    r"""Errors along gradient descent with momentum on one drawn training set, for any spectrum.

    The same quantities are drawn as in `drawn_flow`, and every step is taken.

    Raises:
        ValueError: if the multiplicities or `n_train` are not whole numbers.

    Source: the experiment of Paquette, Lee, Pedregosa, Paquette (2021), for any spectrum.

    >>> import jax
    >>> from orderparam.kernels.spectrum import Spectrum
    >>> system = SpectralDescent(Spectrum([1.0, 0.1], [0.5, 0.5], [5, 20]), n_train=10, steps=3)
    >>> drawn_spectral_descent(system, jax.random.key(0)).test_error.shape
    (4,)
    """
    return _descend(system, _draw(system, key, *_whole(system)))


@experiment
def drawn_pool_network(system: PoolDescent, key: PRNGKeyArray) -> PoolError:
    r"""Errors of one network of finite width along training on drawn examples of the pool.

    Raises:
        ValueError: if `n_train` or `width` is not a whole number.

    Source: the experiment of Lee et al. (2019), with flipped labels.

    >>> import jax
    >>> import jax.numpy as jnp
    >>> from orderparam.networks.fully_connected import fully_connected
    >>> system = PoolDescent(jnp.eye(4), [1, -1, 1, 1], fully_connected(1, None, "relu"), steps=4)
    >>> drawn_pool_network(system.with_(width=8), jax.random.key(0)).test_error.shape
    (4,)
    """
    draw_key, start_key = jax.random.split(key)
    architecture = of_width(system.architecture, system.size("width"))
    start = architecture.draw(start_key, system.inputs.shape[1])
    return _train_on_drawn(system, architecture, start, draw_key, system.size("n_train"))


@experiment
def drawn_pool_kernel(system: PoolDescent, key: PRNGKeyArray) -> PoolError:
    r"""Errors of an infinitely wide network along training on drawn examples of the pool.

    The examples are the same as in `drawn_pool_network` with the same key, and the steps of the
    frozen tangent kernel are computed in its eigenbasis. A comparison of both separates the effect
    of the width from the average over examples.

    Raises:
        ValueError: if `n_train` is not a whole number.

    Source: the experiment of Lee et al. (2019), with flipped labels.

    >>> import jax
    >>> import jax.numpy as jnp
    >>> from orderparam.networks.fully_connected import fully_connected
    >>> system = PoolDescent(jnp.eye(4), [1, -1, 1, 1], fully_connected(1, None, "relu"), steps=4)
    >>> drawn_pool_kernel(system, jax.random.key(0)).test_error.shape
    (4,)
    """
    return _freeze_on_drawn(system, jax.random.split(key)[0], system.size("n_train"))


def _drawn_labels(
    system: PoolDescent, key: PRNGKeyArray, examples: int
) -> tuple[Int[Array, "train"], Float[Array, "train"]]:
    """Row indices of the drawn examples, and their labels, some of which are flipped."""
    row_key, flip_key = jax.random.split(key)
    rows = jax.random.randint(row_key, (examples,), 0, len(system.labels))
    wrong = jax.random.bernoulli(flip_key, system.flipped, (examples,))
    return rows, jnp.where(wrong, -1.0, 1.0) * system.labels[rows]


def _pool_error(system: PoolDescent, outputs: Float[Array, "pool"]) -> Scalar:
    return jnp.mean((outputs - (1 - 2 * system.flipped) * system.labels) ** 2)


@eqx.filter_jit
def _train_on_drawn(
    system: PoolDescent, architecture: Architecture, start: Any, key: PRNGKeyArray, examples: int
) -> PoolError:
    rows, y = _drawn_labels(system, key, examples)
    x = system.inputs[rows]
    slope = jax.grad(
        lambda weights: 0.5 * jnp.sum((_antisymmetric(architecture, weights, x) - y) ** 2)
    )

    def step(_: Any, weights: Any) -> Any:
        return jax.tree.map(lambda w, g: w - system.learning_rate * g, weights, slope(weights))

    def record(weights: Any, steps: Array) -> tuple[Any, Array]:
        weights = jax.lax.fori_loop(0, steps, step, weights)
        outputs = _antisymmetric(architecture, weights, system.inputs)
        return weights, _pool_error(system, outputs)

    gaps = np.diff(system.recorded, prepend=0)
    _, errors = jax.lax.scan(record, (start, start), jnp.asarray(gaps))
    return stopped(system, errors)


@eqx.filter_jit
def _freeze_on_drawn(system: PoolDescent, key: PRNGKeyArray, examples: int) -> PoolError:
    rows, y = _drawn_labels(system, key, examples)
    cross = system.architecture.kernel(system.inputs, system.inputs[rows]).ntk
    rates, modes = jnp.linalg.eigh(cross[rows])
    rates = jnp.maximum(rates, 1e-14 * rates[-1])
    projected, target = cross @ modes, modes.T @ y
    left = (1 - system.learning_rate * rates) ** jnp.asarray(system.recorded, float)[:, None]
    outputs = ((1 - left) / rates * target) @ projected.T
    return stopped(system, jax.vmap(lambda row: _pool_error(system, row))(outputs))


def _antisymmetric(architecture: Architecture, weights: Any, inputs: Array) -> Array:
    """The function f = (f_1 - f_2)/sqrt(2) of two copies of a network. With equal weights f is
    zero, and its tangent kernel is that of one copy."""
    first, second = (architecture.apply(one, inputs)[:, 0] for one in weights)
    return (first - second) / jnp.sqrt(2.0)


class DrawnFeatures(NamedTuple):
    """One drawn training set of a linear regression, its target and the weights at the start."""

    variances: Float[Array, "mode"]
    inputs: Float[Array, "example mode"]
    labels: Float[Array, "example"]
    target: Float[Array, "mode"]
    start: Float[Array, "mode"]


def _whole(system: FeatureTraining | SpectralDescent) -> tuple[int, tuple[int, ...]]:
    """The number of examples and the numbers of modes in the levels, which must all be whole."""
    counts = [float(count) for count in system.spectrum.multiplicities]
    if any(count != round(count) for count in counts):
        raise ValueError("spectrum.multiplicities: must be whole numbers, to draw features")
    examples = float(system.n_train)
    if examples != round(examples):
        raise ValueError(f"n_train = {examples:g}: must be a whole number, to draw examples")
    return round(examples), tuple(round(count) for count in counts)


@eqx.filter_jit
def _draw(
    system: FeatureTraining | SpectralDescent,
    key: PRNGKeyArray,
    examples: int,
    counts: tuple[int, ...],
) -> DrawnFeatures:
    feature_key, target_key, noise_key, start_key = jax.random.split(key, 4)
    spectrum = system.spectrum
    each = jnp.asarray(counts)
    total = sum(counts)
    sigma = jnp.repeat(spectrum.eigenvalues, each, total_repeat_length=total)
    x = jnp.sqrt(sigma) * jax.random.normal(feature_key, (examples, total))
    # The direction of the target inside a level is uniform; its power in the level is exact.
    direction = jax.random.normal(target_key, (total,))
    level = jnp.repeat(jnp.arange(len(counts)), each, total_repeat_length=total)
    norm = jax.ops.segment_sum(direction**2, level, len(counts))
    theta = direction * jnp.sqrt((spectrum.target_power / norm / spectrum.eigenvalues)[level])
    start = jnp.sqrt(system.start) * jax.random.normal(start_key, (total,))
    y = x @ theta + jnp.sqrt(system.noise) * jax.random.normal(noise_key, (examples,))
    return DrawnFeatures(sigma, x, y, theta, start)


@eqx.filter_jit
def _flow(system: FeatureTraining, drawn: DrawnFeatures) -> FlowErrors:
    x, y = drawn.inputs, drawn.labels
    rates, modes = jnp.linalg.eigh(x.T @ x / len(x))
    rates = jnp.maximum(rates, 0.0) + system.weight_decay
    left = jnp.exp(-rates * system.time)
    grown = jnp.where(
        rates > 0, -jnp.expm1(-rates * system.time) / jnp.where(rates > 0, rates, 1.0), system.time
    )
    weights = modes @ (grown * (modes.T @ (x.T @ y)) / len(x) + left * (modes.T @ drawn.start))
    return FlowErrors(
        test_error=drawn.variances @ (weights - drawn.target) ** 2,
        train_error=jnp.mean((x @ weights - y) ** 2),
    )


@eqx.filter_jit
def _descend(system: SpectralDescent, drawn: DrawnFeatures) -> DescentError:
    x, y = drawn.inputs, drawn.labels

    def errors(w: Array) -> DescentError:
        return DescentError(
            test_error=drawn.variances @ (w - drawn.target) ** 2,
            train_error=jnp.mean((x @ w - y) ** 2),
        )

    return _heavy_ball(system, x, y, drawn.start, errors)


def _heavy_ball(
    system: IsotropicTraining | SpectralDescent,
    x: Float[Array, "example mode"],
    y: Float[Array, "example"],
    start: Float[Array, "mode"],
    errors: Callable[[Array], DescentError],
) -> DescentError:
    """Errors along steps of the heavy ball on the mean loss, the start included."""

    def step(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], DescentError]:
        w, before = state
        slope = x.T @ (x @ w - y) / len(x) + system.weight_decay * w
        following = w - system.learning_rate * slope + system.momentum * (w - before)
        return (following, w), errors(following)

    _, along = jax.lax.scan(step, (start, start), length=system.steps)
    return along_time(errors(start), along)


@eqx.filter_jit
def _descent(
    system: IsotropicTraining, key: PRNGKeyArray, examples: int, dimension: int
) -> DescentError:
    input_key, noise_key, target_key = jax.random.split(key, 3)
    x = jax.random.normal(input_key, (examples, dimension))
    theta = jax.random.normal(target_key, (dimension,))
    theta = theta / jnp.linalg.norm(theta)
    y = x @ theta + jnp.sqrt(system.noise) * jax.random.normal(noise_key, (examples,))

    def errors(w: Array) -> DescentError:
        return DescentError(
            test_error=jnp.sum((w - theta) ** 2), train_error=jnp.mean((x @ w - y) ** 2)
        )

    return _heavy_ball(system, x, y, jnp.zeros(dimension), errors)


@eqx.filter_jit
def _train(system: NetworkDescent, architecture: Architecture, drawn: Any) -> DescentPath:
    x, y = system.inputs, system.targets
    start = (drawn, drawn) if system.antisymmetric else (drawn,)

    def output(weights: Any, inputs: Array) -> Array:
        if len(weights) == 2:
            return _antisymmetric(architecture, weights, inputs)
        return architecture.apply(weights[0], inputs)[:, 0]

    def loss(weights: Any) -> Array:
        return 0.5 * jnp.sum((output(weights, x) - y) ** 2)

    def errors(weights: Any) -> tuple[Array, Array]:
        test = jnp.mean((output(weights, system.test_inputs) - system.test_targets) ** 2)
        return test, jnp.mean((output(weights, x) - y) ** 2)

    def step(state: tuple[Any, Any], _: None) -> tuple[tuple[Any, Any], Any]:
        weights, before = state
        slope = jax.grad(loss)(weights)
        following = jax.tree.map(
            lambda w, old, g: w - system.learning_rate * g + system.momentum * (w - old),
            weights,
            before,
            slope,
        )
        return (following, weights), errors(following)

    def tangent_kernel(weights: Any) -> Array:
        """The tangent kernel of f: the mean over the copies, whose gradients are independent."""
        each = [empirical_ntk(architecture.network_from_whitened(one), x) for one in weights]
        return sum(each[1:], each[0]) / len(each)

    (end, _), along = jax.lax.scan(step, (start, start), length=system.steps)
    before = tangent_kernel(start)
    moved = jnp.linalg.norm(tangent_kernel(end) - before) / jnp.linalg.norm(before)
    test, train = (
        jnp.concatenate([first[None], rest]) for first, rest in zip(errors(start), along)
    )
    return DescentPath(test_error=test, train_error=train, kernel_drift=moved)
