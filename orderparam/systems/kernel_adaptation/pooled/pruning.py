"""A trained convolutional classifier, pruned layer by layer along the eigenvectors of each layer's
latent kernel, without retraining."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.systems.kernel_adaptation.pooled.experiment import accuracy_of
from orderparam.systems.kernel_adaptation.pooled.model import (
    CONVOLUTIONS,
    WINDOW,
    PooledClassifier,
    PooledWeights,
    convolved,
    drawn_layers,
    passed_on,
    read,
    trained_layers,
)
from orderparam.systems.kernel_adaptation.readers import each_rank

RANKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


class PrunedPooled(Result):
    """Accuracies of one trained classifier of which one convolution keeps some directions only.

    Fields:
        rank: number of directions or channels kept.
        accuracy: fraction of the test set classified correctly with the `rank` leading directions
            of the layer's latent kernel kept.
        random_accuracy: the fraction with as many random orthonormal directions kept.
        magnitude_accuracy: the fraction with the `rank` channels kept whose outgoing weights are
            the largest.
        kernel_accuracy: the fraction for the Gaussian process that reads the leading directions of
            the layer.
        learnability: mean . y / y . y at the test points of this Gaussian process.
        fresh_learnability: the same for a Gaussian process on images that have not trained the
            network: on as many examples as there are in the training set, or half of the test set
            if that is less, taken from one half of the test set and tested on the other half.
        predicted_learnability: theory of `fresh_learnability`, averaged over training sets.
        trace: fraction of the trace of the latent kernel on the leading directions.
        eigenvalues: eigenvalues of the latent kernel in decreasing order, divided by their sum.
        full_accuracy: accuracy of the whole network on the test set.
        train_accuracy: accuracy of the whole network on its training set.
        train_error: squared error on the training set over that of the start.
    """

    rank: Float[Array, "kept"]
    accuracy: Float[Array, "layer kept"]
    random_accuracy: Float[Array, "layer kept"]
    magnitude_accuracy: Float[Array, "layer kept"]
    kernel_accuracy: Float[Array, "layer kept"]
    learnability: Float[Array, "layer kept"]
    fresh_learnability: Float[Array, "layer kept"]
    predicted_learnability: Float[Array, "layer kept"]
    trace: Float[Array, "layer kept"]
    eigenvalues: Float[Array, "layer direction"]
    full_accuracy: Float[Array, ""]
    train_accuracy: Float[Array, ""]
    train_error: Float[Array, ""]


@experiment
def pruned_pooled_classifier(
    system: PooledClassifier,
    key: PRNGKeyArray,
    *,
    steps: int = 500,
    learning_rate: float = 0.02,
) -> PrunedPooled:
    r"""Test accuracy of a trained classifier when one of its convolutions is projected on the
    leading directions of its latent kernel.

    With $\phi$ the activations of a layer that the next layer sees (after pooling) and
    $\sum_{\mu a} \phi_a(x_\mu) \phi_a(x_\mu)^T = U\, \mathrm{diag}(\mathrm{eigenvalues})\, U^T$
    over all training images and pixels, pruning to rank k replaces

    $$ \phi \rightarrow U_k U_k^T\, \phi $$

    without retraining. Beside it stands the Gaussian process that reads the same directions, with
    the kernel $\langle \phi_a(x)^T U_k U_k^T \phi_a(x') \rangle / C$, the mean over pixels, and the
    `temperature`; for the last layer $\phi$ is averaged over pixels first, as the network's
    read-out does. With z all kept directions at all pixels and $u_i$, $\lambda_i$ the eigenvectors
    and eigenvalues of $E z z^T$, theory says that n images that have not trained the network teach
    this process the share

    $$ \frac{1}{E y^2} \sum_i \frac{(E\, (u_i \cdot z)\, y)^2}{\lambda_i + \kappa}, \qquad
       n = \frac{T}{\kappa} + \sum_i \frac{\lambda_i}{\lambda_i + \kappa} $$

    of the labels, with averages over the test images; the squares are corrected for the finite
    number of images. Training is that of `pooled_layers`.

    Args:
        steps: number of steps of Adam. Default 500.
        learning_rate: initial learning rate. Default 0.02.

    Source: Seroussi, Naveh, Ringel (2023); Canatar, Bordelon, Pehlevan (2021) for the share that is
    learned.

    >>> import jax
    >>> x = np.random.default_rng(0).normal(size=(3, 4, 4, 1))
    >>> data = PooledClassifier(x, np.eye(3), x, np.eye(3), channels=8)
    >>> pruned_pooled_classifier(data, jax.random.key(0), steps=5).accuracy.shape
    (4, 6)
    """
    draw_key, random_key = jax.random.split(key)
    start = drawn_layers(system, draw_key)
    end, error = trained_layers(system, start, steps, learning_rate)
    channels = system.size("channels")
    ranks = (*(k for k in RANKS if k < channels), channels)
    found = [_pruned(system, end, number, ranks, random_key) for number in range(CONVOLUTIONS)]
    return PrunedPooled(
        rank=jnp.asarray(ranks, float),
        **jax.tree.map(lambda *parts: jnp.stack(parts), *found),
        full_accuracy=accuracy_of(system, end, system.test_inputs, system.test_targets),
        train_accuracy=accuracy_of(system, end, system.inputs, system.targets),
        train_error=error,
    )


def _up_to(
    layers: PooledWeights, number: int, x: Array
) -> Float[Array, "example row column channel"]:
    """What the layer above layer `number` sees."""
    x = jnp.asarray(x, jnp.float32)
    for below in range(number + 1):
        x = passed_on(below, jax.nn.relu(convolved(below, layers.filters[below], x)))
    return x


@eqx.filter_jit
def _pruned(
    system: PooledClassifier,
    layers: PooledWeights,
    number: int,
    ranks: tuple[int, ...],
    key: PRNGKeyArray,
) -> dict[str, Array]:
    train, test = (_up_to(layers, number, x) for x in (system.inputs, system.test_inputs))
    channels = train.shape[-1]
    flat = train.reshape(-1, channels)
    values, vectors = jnp.linalg.eigh((flat.T @ flat / flat.shape[0]).astype(float))
    values, vectors = values[::-1], vectors[:, ::-1].astype(jnp.float32)
    draws = jax.random.normal(jax.random.fold_in(key, number), (channels, channels), jnp.float32)
    outgoing = (
        layers.readout
        if number == CONVOLUTIONS - 1
        else jnp.swapaxes(layers.filters[number + 1].reshape(WINDOW**2, channels, -1), 0, 1)
    )
    sizes = jnp.sum(outgoing.reshape(channels, -1) ** 2, axis=1)
    labels = jnp.argmax(system.test_targets, axis=1)
    masks = (jnp.arange(channels) < jnp.asarray(ranks)[:, None]).astype(jnp.float32)

    def accuracies(basis: Array) -> Float[Array, "kept"]:
        def at(mask: Array) -> Array:
            x = test @ (basis * mask) @ basis.T
            for above in range(number + 1, CONVOLUTIONS):
                x = passed_on(above, jax.nn.relu(convolved(above, layers.filters[above], x)))
            f = read(layers, x, jnp.asarray(system.chi, jnp.float32))
            return jnp.mean(jnp.argmax(f, axis=1) == labels)

        return jax.lax.map(at, masks)

    if number == CONVOLUTIONS - 1:
        train, test = (part.mean(axis=(1, 2), keepdims=True) for part in (train, test))
    kernel_accuracy, learnability, fresh, predicted = each_rank(
        (train @ vectors, system.targets),
        (test @ vectors, system.test_targets),
        masks,
        (train.shape[1] * train.shape[2] * channels) ** -0.5,
        system.temperature,
    )
    return {
        "accuracy": accuracies(vectors),
        "random_accuracy": accuracies(jnp.linalg.qr(draws)[0]),
        "magnitude_accuracy": accuracies(jnp.eye(channels)[:, jnp.argsort(-sizes)]),
        "kernel_accuracy": kernel_accuracy,
        "learnability": learnability,
        "fresh_learnability": fresh,
        "predicted_learnability": predicted,
        "trace": jnp.cumsum(values)[jnp.asarray(ranks) - 1] / jnp.sum(values),
        "eigenvalues": values / jnp.sum(values),
    }
