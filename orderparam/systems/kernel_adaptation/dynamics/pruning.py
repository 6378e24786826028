"""Pruning a trained classifier in its latent kernel: how few directions of the hidden layer carry what was learned.

A network f = A phi(h(x)) with two hidden layers is trained by gradient descent on the loss |f - y|^2 / (2T), with weight decay
towards the weights u_0 of the start, |u - u_0|^2 / 2 in units of the prior; the read-out starts at zero. What no
example determines keeps its random value, as it does at the equilibrium of noisy training. With the activations Phi (examples,
units) of the last hidden layer on the training set and Phi^T Phi / examples = U diag(eigenvalues) U^T, rank k is kept by

    Phi -> Phi U_k U_k^T,   folded into the read-out A -> A U_k U_k^T, without retraining.

Seroussi, Naveh, Ringel 2023: what feature learning adds to the latent kernel lies in few directions, so that the bulk can go.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.systems.kernel_adaptation.dynamics.model import Classifier


class ClassifierWeights(NamedTuple):
    """Weights in units of the prior."""

    first: Float[Array, "unit input"]
    second: Float[Array, "unit unit"]
    readout: Float[Array, "class unit"]


class Pruned(Result):
    """One trained network, pruned to every rank.

    accuracy:        share of the test set classified rightly with the `rank` leading directions of the latent kernel kept.
    random_accuracy: with as many random orthonormal directions.
    magnitude_accuracy: with the `rank` units of the largest read-out weights kept, all others switched off.
    trace:           share of the trace of the latent kernel that the kept directions hold.
    full_accuracy:   of the whole network. eigenvalues: of C, falling, over their sum.
    participation:   (sum eigenvalues)^2 / sum eigenvalues^2, the number of directions in use.
    moved:           |change of the hidden weights| / |hidden weights at the start|: small in lazy training.
    train_accuracy:  of the whole network on its training set. converged: the gradient's norm is below a hundredth of the first.
    """

    rank: Float[Array, "kept"]
    accuracy: Float[Array, "kept"]
    random_accuracy: Float[Array, "kept"]
    magnitude_accuracy: Float[Array, "kept"]
    trace: Float[Array, "kept"]
    full_accuracy: Float[Array, ""]
    train_accuracy: Float[Array, ""]
    eigenvalues: Float[Array, "direction"]
    participation: Float[Array, ""]
    moved: Float[Array, ""]
    converged: Bool[Array, ""]


RANKS = (1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 16, 24, 32, 64, 128)


@experiment
def pruned_classifier(
    system: Classifier, key: PRNGKeyArray, *, steps: int = 1000, learning_rate: float = 0.02, train_hidden: bool = True
) -> Pruned:
    """Trains by Adam on the whole training set, the rate falling to zero as a cosine, and prunes the last hidden layer.

    train_hidden: False trains the read-out alone, on the features of the start: the fixed kernel of a random network.
    """
    draw_key, random_key = jax.random.split(key)
    width = system.size("width")
    first_key, second_key = jax.random.split(draw_key)
    start = ClassifierWeights(
        jax.random.normal(first_key, (width, system.inputs.shape[1]), jnp.float32),
        jax.random.normal(second_key, (width, width), jnp.float32),
        jnp.zeros((system.targets.shape[1], width), jnp.float32),
    )
    end, gradients = _train(system, start, steps, learning_rate, train_hidden)
    ranks = (*(k for k in RANKS if k < width), width)
    train, test = (latent(end, jnp.asarray(x)) for x in (system.inputs, system.test_inputs))
    values, vectors = jnp.linalg.eigh(train.T @ train / train.shape[0])
    values, vectors = values[::-1], vectors[:, ::-1]
    random = jnp.linalg.qr(jax.random.normal(random_key, (width, width)))[0]
    largest = jnp.eye(width)[:, jnp.argsort(-jnp.sum(end.readout**2, axis=0))]
    labels = jnp.argmax(system.test_targets, axis=1)

    def accuracies(basis: Array) -> Array:
        kept = [jnp.argmax(test @ basis[:, :k] @ (basis[:, :k].T @ end.readout.T), axis=1) == labels for k in ranks]
        return jnp.mean(jnp.stack(kept), axis=1)

    fitted = jnp.argmax(train @ end.readout.T, axis=1) == jnp.argmax(system.targets, axis=1)
    hidden = [(b - a, a) for a, b in zip(start[:2], end[:2])]
    moved = jnp.sqrt(sum(jnp.sum(change**2) for change, _ in hidden) / sum(jnp.sum(a**2) for _, a in hidden))
    return Pruned(
        rank=jnp.asarray(ranks, float),
        accuracy=accuracies(vectors),
        random_accuracy=accuracies(random),
        magnitude_accuracy=accuracies(largest),
        trace=jnp.cumsum(values)[jnp.asarray(ranks) - 1] / jnp.sum(values),
        full_accuracy=jnp.mean(jnp.argmax(test @ end.readout.T, axis=1) == labels),
        train_accuracy=jnp.mean(fitted),
        eigenvalues=values / jnp.sum(values),
        participation=jnp.sum(values) ** 2 / jnp.sum(values**2),
        moved=moved,
        converged=gradients[1] < 1e-2 * gradients[0],
    )


def latent(layers: ClassifierWeights, x: Float[Array, "example input"]) -> Float[Array, "example unit"]:
    """Activations of the last hidden layer."""
    first, second = (weights.astype(x.dtype) for weights in layers[:2])
    h = jax.nn.relu(x @ first.T / x.shape[1] ** 0.5)
    return jax.nn.relu(h @ second.T * (2 / second.shape[1]) ** 0.5)


@eqx.filter_jit
def _train(
    system: Classifier, start: ClassifierWeights, steps: int, rate: float, train_hidden: bool
) -> tuple[ClassifierWeights, Float[Array, "2"]]:
    """The trained weights, and the norms of the gradient at the start and at the end."""
    single = (system.inputs, system.targets, system.chi, system.temperature)
    x, y, chi, temperature = (jnp.asarray(numbers, jnp.float32) for numbers in single)
    optimiser = optax.adam(optax.cosine_decay_schedule(rate, steps))

    def energy(layers: ClassifierWeights) -> Array:
        phi = latent(layers, x)
        f = phi @ layers.readout.T / jnp.sqrt(chi * phi.shape[1])
        changed = sum(jnp.sum((b - a) ** 2) for a, b in zip(start, layers)) / 2
        return jnp.sum((f - y) ** 2) * chi / (2 * temperature) + changed

    def slope(layers: ClassifierWeights) -> ClassifierWeights:
        found = jax.grad(energy)(layers)
        still = jax.tree.map(jnp.zeros_like, found)
        return found if train_hidden else still._replace(readout=found.readout)

    def body(carry: tuple[ClassifierWeights, optax.OptState], _: None) -> tuple[tuple[ClassifierWeights, optax.OptState], None]:
        layers, state = carry
        updates, state = optimiser.update(slope(layers), state)
        return (optax.apply_updates(layers, updates), state), None

    (end, _), _ = jax.lax.scan(body, (start, optimiser.init(start)), length=steps)
    slopes = [jax.tree.leaves(slope(layers)) for layers in (start, end)]
    norms = jnp.sqrt(jnp.stack([sum(jnp.sum(leaf**2) for leaf in leaves) for leaves in slopes]))
    return jax.tree.map(lambda weights: weights.astype(float), end), norms.astype(float)
