"""Networks trained from a random start and from one that has memorised random labels, with and without regularisation.

The protocol of Liu, Papailiopoulos and Achlioptas (2019). Weights are in float32 and start from He's distribution; no biases.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.systems.generalisation.minima.model import ImageClassifier

ARMS = ("random start", "adversarial start", "adversarial start, regularised", "random start, regularised")
_CLASSES = 10
_EVERY = 10  # epochs between two looks at the training error

Weights = tuple[Array, ...]


class Trained(Result):
    """error: the share of wrong test pictures. train_error: of training pictures. converged: the latter is zero."""

    error: Float[Array, ""]
    train_error: Float[Array, ""]
    converged: Bool[Array, ""]


class Arms(Result):
    """For each of `ARMS`: error on the test pictures, train_error, weight_norm, and distance from the random start in weights.

    memorised: the share of random labels that the adversarial start reproduces. converged: no arm has a training error.
    """

    error: Float[Array, "arm"]
    train_error: Float[Array, "arm"]
    weight_norm: Float[Array, "arm"]
    distance: Float[Array, "arm"]
    memorised: Float[Array, ""]
    converged: Bool[Array, ""]


class _Rates(NamedTuple):
    learning_rate: Float[Array, ""] | float
    momentum: Float[Array, ""] | float
    weight_decay: Float[Array, ""] | float


@experiment
def trained_network(system: ImageClassifier, key: PRNGKeyArray, *, max_epochs: int = 500) -> Trained:
    """Plain SGD from a random start until no training example is wrong (looked at every 10 epochs)."""
    train, test, start, key = _prepared(system, key)
    rates = _Rates(system.learning_rate, jnp.zeros(()), jnp.zeros(()))
    weights = _sgd(start, train, rates, key, system.size("batch_size"), 0, max_epochs)
    wrong = _wrong(weights, *train)
    return Trained(_wrong(weights, *test), wrong, wrong == 0)


@experiment
def bad_minima(system: ImageClassifier, key: PRNGKeyArray, *, max_epochs: int = 600, regularised_epochs: int = 400) -> Arms:
    """One network along four ways to zero training error.

    The adversarial start: the random one, trained with momentum on `copies` copies of each training picture, of each of which a
    random share `dropped` of the pixels is blackened, with labels drawn at random, until all are reproduced. From either start,
    on the true labels: plain SGD until no training example is wrong; SGD with momentum and weight decay, at least
    `regularised_epochs` epochs.
    """
    train, test, random, key = _prepared(system, key)
    for_copies, for_labels, *keys = jax.random.split(key, 7)
    copies = jnp.tile(train[0], (system.size("copies"), 1))
    copies = jnp.where(jax.random.uniform(for_copies, copies.shape) < system.dropped, 0.0, copies).astype(jnp.float32)
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
    ends = [_sgd(start, train, rates, k, batch, least, max_epochs + least) for (start, rates, least), k in zip(ways, keys[1:])]
    train_error = jnp.stack([_wrong(end, *train) for end in ends])
    return Arms(
        error=jnp.stack([_wrong(end, *test) for end in ends]),
        train_error=train_error,
        weight_norm=jnp.stack([_norm(end) for end in ends]),
        distance=jnp.stack([_norm(jax.tree.map(jnp.subtract, end, random)) for end in ends]),
        memorised=1 - _wrong(adversarial, *noise),
        converged=jnp.all(train_error == 0),
    )


def _prepared(system: ImageClassifier, key: PRNGKeyArray) -> tuple:
    """Training and test examples, a network at its random start, and a key."""
    n, width, pixels = system.size("n_train"), system.size("width"), system.inputs.shape[1]
    inputs, labels = system.inputs.astype(jnp.float32), system.labels.astype(int)
    for_weights, key = jax.random.split(key)
    shapes = (pixels, width), (width, width), (width, _CLASSES)
    start = tuple(
        jax.random.normal(k, shape, jnp.float32) * jnp.sqrt(2 / shape[0]).astype(jnp.float32)
        for k, shape in zip(jax.random.split(for_weights, 3), shapes)
    )
    return (inputs[:n], labels[:n]), (inputs[n:], labels[n:]), start, key


def _outputs(weights: Weights, inputs: Float[Array, "example pixel"]) -> Float[Array, "example class"]:
    first, second, last = weights
    return jax.nn.relu(jax.nn.relu(inputs @ first) @ second) @ last


@jax.jit
def _wrong(weights: Weights, inputs: Array, labels: Array) -> Float[Array, ""]:
    return jnp.mean((jnp.argmax(_outputs(weights, inputs), axis=1) != labels).astype(float))


def _norm(weights: Weights) -> Float[Array, ""]:
    return optax.tree.norm(jax.tree.map(lambda leaf: leaf.astype(float), weights))


@partial(jax.jit, static_argnames=("batch",))
def _sgd(
    start: Weights, data: tuple[Array, Array], rates: _Rates, key: PRNGKeyArray, batch: int, least: int, most: int
) -> Weights:
    """SGD in epochs of random batches until no example is wrong, from `least` to `most` epochs; the last part of an epoch that
    fills no batch is left out."""
    inputs, labels = data
    rates = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), rates)
    batch = min(batch, len(labels))
    batches = len(labels) // batch

    def loss(weights: Weights, chosen: Array) -> Float[Array, ""]:
        outputs = _outputs(weights, inputs[chosen])
        return jnp.mean(optax.losses.softmax_cross_entropy_with_integer_labels(outputs, labels[chosen]))

    def step(state: tuple[Weights, Weights], chosen: Array) -> tuple[tuple[Weights, Weights], None]:
        weights, change = state
        slope = jax.grad(loss)(weights, chosen)
        change = jax.tree.map(
            lambda c, g, w: rates.momentum * c - rates.learning_rate * (g + rates.weight_decay * w), change, slope, weights
        )
        return (jax.tree.map(jnp.add, weights, change), change), None

    def epoch(state: tuple[Weights, Weights], key: PRNGKeyArray) -> tuple[tuple[Weights, Weights], None]:
        order = jax.random.permutation(key, len(labels))[: batches * batch]
        return jax.lax.scan(step, state, order.reshape(batches, batch))[0], None

    def stretch(state: tuple) -> tuple:
        moving, count = state
        keys = jax.random.split(jax.random.fold_in(key, count), _EVERY)
        return jax.lax.scan(epoch, moving, keys)[0], count + _EVERY

    def unfinished(state: tuple) -> Bool[Array, ""]:
        (weights, _), count = state
        return (count < least) | ((count < most) & (_wrong(weights, inputs, labels) > 0))

    begin = (start, jax.tree.map(jnp.zeros_like, start)), jnp.asarray(0)
    return jax.lax.while_loop(unfinished, stretch, begin)[0][0]
