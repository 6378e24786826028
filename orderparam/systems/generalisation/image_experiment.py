"""Networks on images that are trained from a random start, and from a start that has memorised
random labels, with and without regularisation."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.systems.generalisation.model import ImageClassifier

# The protocol is that of Liu, Papailiopoulos and Achlioptas (2019). Weights are in float32, and
# their first values are normal with variance 2/(number of inputs of the layer), He's law. There are
# no biases.

ARMS = (
    "random start",
    "adversarial start",
    "adversarial start, regularised",
    "random start, regularised",
)
_CLASSES = 10
_EVERY = 10  # epochs between two evaluations of the training error

Weights = tuple[Array, ...]


class Trained(Result):
    """Errors of a network that is trained from a random start.

    Fields:
        error: fraction of test pictures with a wrong label.
        train_error: fraction of training pictures with a wrong label.
        converged: whether `train_error` is zero.
    """

    error: Float[Array, ""]
    train_error: Float[Array, ""]
    converged: Bool[Array, ""]


class Arms(Result):
    """Errors and weights of one network after each of the four ways of training of `ARMS`.

    Fields:
        error: fraction of test pictures with a wrong label.
        train_error: fraction of training pictures with a wrong label.
        weight_norm: Euclidean norm of all weights together.
        distance: Euclidean distance of all weights from the random start.
        memorised: fraction of the random labels that the adversarial start reproduces.
        converged: whether all four ways of training end without a training error.
    """

    error: Float[Array, "arm"]
    train_error: Float[Array, "arm"]
    weight_norm: Float[Array, "arm"]
    distance: Float[Array, "arm"]
    memorised: Float[Array, ""]
    converged: Bool[Array, ""]


class _Rates(NamedTuple):
    """Learning rate, momentum and weight decay of a training by SGD."""

    learning_rate: Float[Array, ""] | float
    momentum: Float[Array, ""] | float
    weight_decay: Float[Array, ""] | float


@experiment
def trained_network(
    system: ImageClassifier, key: PRNGKeyArray, *, max_epochs: int = 500
) -> Trained:
    """Test error of a network that plain SGD trains from a random start until no training example
    is wrong.

    Args:
        max_epochs: largest number of epochs; the training error is evaluated every 10 epochs.

    Source: Liu, Papailiopoulos, Achlioptas (2019), for the protocol.

    >>> import jax
    >>> x = np.random.default_rng(0).normal(size=(30, 8))
    >>> y = (x[:, 0] > 0).astype(int)
    >>> system = ImageClassifier(x, y, n_train=20, width=8, learning_rate=0.2, batch_size=5)
    >>> float(trained_network(system, jax.random.key(0), max_epochs=200).train_error)
    0.0
    """
    train, test, start, key = _prepared(system, key)
    rates = _Rates(system.learning_rate, jnp.zeros(()), jnp.zeros(()))
    weights = _sgd(start, train, rates, key, system.size("batch_size"), 0, max_epochs)
    wrong = _wrong_share(weights, *train)
    return Trained(error=_wrong_share(weights, *test), train_error=wrong, converged=wrong == 0)


@experiment
def bad_minima(
    system: ImageClassifier,
    key: PRNGKeyArray,
    *,
    max_epochs: int = 600,
    regularised_epochs: int = 400,
) -> Arms:
    """Test errors of one network that is trained to zero training error in four ways, from random
    and from adversarial starts.

    To prepare the adversarial start, the network at the random start is trained with momentum on
    `copies` copies of each training picture with random labels, until it reproduces all these
    labels or for `max_epochs` epochs. A random fraction `dropped` of the pixels of each copy is set
    to zero. From either start the network is then trained on the true labels, by plain SGD or by
    SGD with momentum and weight decay, until no training example is wrong. `ARMS` names the four
    ways.

    Args:
        max_epochs: largest number of epochs of each training; errors are evaluated every 10 epochs.
        regularised_epochs: smallest number of epochs with momentum and weight decay; up to
            `max_epochs` more epochs follow while a training example is wrong.

    Source: Liu, Papailiopoulos, Achlioptas (2019).

    >>> import jax
    >>> x = np.random.default_rng(0).normal(size=(20, 4))
    >>> y = (x[:, 0] > 0).astype(int)
    >>> system = ImageClassifier(x, y, n_train=10, width=8, copies=1, batch_size=5)
    >>> found = bad_minima(system, jax.random.key(0), max_epochs=20, regularised_epochs=10)
    >>> found.error.shape == (len(ARMS),)
    True
    """
    train, test, random, key = _prepared(system, key)
    for_copies, for_labels, *keys = jax.random.split(key, 7)
    copies = jnp.tile(train[0], (system.size("copies"), 1))
    copies = jnp.where(
        jax.random.uniform(for_copies, copies.shape) < system.dropped, 0.0, copies
    ).astype(jnp.float32)
    noise = copies, jax.random.randint(for_labels, (len(copies),), 0, _CLASSES)
    batch, zero = system.size("batch_size"), jnp.zeros(())
    plain = _Rates(system.learning_rate, zero, zero)
    careful = _Rates(system.learning_rate, system.momentum, system.weight_decay)
    memorise = _Rates(system.learning_rate, system.momentum, zero)
    adversarial = _sgd(random, noise, memorise, keys[0], batch, 0, max_epochs)
    ways = [
        (random, plain, 0),
        (adversarial, plain, 0),
        (adversarial, careful, regularised_epochs),
        (random, careful, regularised_epochs),
    ]
    ends = [
        _sgd(start, train, rates, k, batch, least, max_epochs + least)
        for (start, rates, least), k in zip(ways, keys[1:])
    ]
    train_error = jnp.stack([_wrong_share(end, *train) for end in ends])
    return Arms(
        error=jnp.stack([_wrong_share(end, *test) for end in ends]),
        train_error=train_error,
        weight_norm=jnp.stack([_norm(end) for end in ends]),
        distance=jnp.stack([_norm(jax.tree.map(jnp.subtract, end, random)) for end in ends]),
        memorised=1 - _wrong_share(adversarial, *noise),
        converged=jnp.all(train_error == 0),
    )


def _prepared(system: ImageClassifier, key: PRNGKeyArray) -> tuple:
    """Training and test examples, a network at its random start, and a key for the training."""
    n, width, pixels = system.size("n_train"), system.size("width"), system.inputs.shape[1]
    inputs, labels = system.inputs.astype(jnp.float32), system.labels.astype(int)
    for_weights, key = jax.random.split(key)
    shapes = (pixels, width), (width, width), (width, _CLASSES)
    start = tuple(
        jax.random.normal(k, shape, jnp.float32) * jnp.sqrt(2 / shape[0]).astype(jnp.float32)
        for k, shape in zip(jax.random.split(for_weights, 3), shapes)
    )
    return (inputs[:n], labels[:n]), (inputs[n:], labels[n:]), start, key


def _outputs(
    weights: Weights, inputs: Float[Array, "example pixel"]
) -> Float[Array, "example class"]:
    first, second, last = weights
    return jax.nn.relu(jax.nn.relu(inputs @ first) @ second) @ last


@jax.jit
def _wrong_share(weights: Weights, inputs: Array, labels: Array) -> Float[Array, ""]:
    return jnp.mean((jnp.argmax(_outputs(weights, inputs), axis=1) != labels).astype(float))


def _norm(weights: Weights) -> Float[Array, ""]:
    return optax.tree.norm(jax.tree.map(lambda leaf: leaf.astype(float), weights))


@partial(jax.jit, static_argnames=("batch",))
def _sgd(
    start: Weights,
    data: tuple[Array, Array],
    rates: _Rates,
    key: PRNGKeyArray,
    batch: int,
    least: int,
    most: int,
) -> Weights:
    """Weights after SGD on random batches until no example is wrong.

    There are at least `least` and about `most` epochs, because errors are evaluated every `_EVERY`
    epochs. If an epoch does not divide into whole batches, the examples that are left over are not
    used in it.
    """
    inputs, labels = data
    rates = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), rates)
    batch = min(batch, len(labels))
    batches = len(labels) // batch

    def loss(weights: Weights, chosen: Array) -> Float[Array, ""]:
        outputs = _outputs(weights, inputs[chosen])
        return jnp.mean(
            optax.losses.softmax_cross_entropy_with_integer_labels(outputs, labels[chosen])
        )

    def step(state: tuple[Weights, Weights], chosen: Array) -> tuple[tuple[Weights, Weights], None]:
        weights, change = state
        slope = jax.grad(loss)(weights, chosen)
        change = jax.tree.map(
            lambda c, g, w: rates.momentum * c - rates.learning_rate * (g + rates.weight_decay * w),
            change,
            slope,
            weights,
        )
        return (jax.tree.map(jnp.add, weights, change), change), None

    def epoch(
        state: tuple[Weights, Weights], key: PRNGKeyArray
    ) -> tuple[tuple[Weights, Weights], None]:
        order = jax.random.permutation(key, len(labels))[: batches * batch]
        return jax.lax.scan(step, state, order.reshape(batches, batch))[0], None

    def stretch(state: tuple) -> tuple:
        moving, count = state
        keys = jax.random.split(jax.random.fold_in(key, count), _EVERY)
        return jax.lax.scan(epoch, moving, keys)[0], count + _EVERY

    def unfinished(state: tuple) -> Bool[Array, ""]:
        (weights, _), count = state
        return (count < least) | ((count < most) & (_wrong_share(weights, inputs, labels) > 0))

    begin = (start, jax.tree.map(jnp.zeros_like, start)), jnp.asarray(0)
    return jax.lax.while_loop(unfinished, stretch, begin)[0][0]
