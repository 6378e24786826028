"""Trained convolutional classifiers, layer by layer: how Gaussian their pre-activations are, how
far their kernels are from those of infinitely many channels.

Given the activations below, the pre-activations of a layer of the prior are independent draws of
N(0, Q), one for each channel, with

    Q_(mu a),(nu b) = (c / (9 C_below)) sum over the two windows of phi phi'

between pixel a of image mu and pixel b of image nu, and c = 1 in the first layer and 2 in the
others. This is the layer-wise prediction of infinite width, with the layer's own trained input. A
network at the start obeys it exactly, up to the scatter of C channels; training turns the filters.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.systems.kernel_adaptation.pooled.model import (
    PooledClassifier,
    PooledWeights,
    convolved,
    drawn_layers,
    output,
    passed_on,
    trained_layers,
    windows,
)

BINS, REACH = 31, 4.0
FITTED = 0.3  # share of the squared error at which a network has fitted its training set
RANDOM = 64  # random directions over examples and pixels


class LayerLaws(eqx.Module):
    """Measures of one network, one entry for each convolution; see `PooledLayers`."""

    label_variance: Float[Array, "layer"]
    random_variance: Float[Array, "layer"]
    label_kurtosis: Float[Array, "layer"]
    random_kurtosis: Float[Array, "layer"]
    kernel_distance: Float[Array, "layer"]
    density: Float[Array, "layer bin"]


class PooledLayers(Result):
    """The convolutions of one trained classifier, against Gaussian pre-activations of the variance
    that infinitely many channels would have on the layer's own input.

    Pre-activations are taken along unit vectors over examples and pixels: the targets of each class
    ("label", the same at all pixels) and 64 random ones. Everything is measured on the training
    set. "Before" is the same network before training.

    Fields:
        label_variance: variance over channels along the labels over the layer-wise prediction; 1 in
            the mean of untrained networks.
        random_variance: the same along random directions.
        label_kurtosis: excess kurtosis over channels along the labels, from unbiased cumulants.
        random_kurtosis: the same along random directions.
        kernel_distance: |H - Q| / |Q| (Frobenius norm over pairs of examples) of the layer's kernel
            H, the mean over channels and pixels, and its layer-wise prediction Q.
        label_variance_before: `label_variance` before training.
        random_variance_before: `random_variance` before training.
        label_kurtosis_before: `label_kurtosis` before training.
        random_kurtosis_before: `random_kurtosis` before training.
        kernel_distance_before: `kernel_distance` before training, the scatter of C channels.
        bin_centre: centres of bins of equal width over (-4, 4).
        density: density along the labels, over the predicted standard deviation, in these bins.
        density_before: the same before training.
        moved: |change of the filters| / |filters at the start| of each layer.
        test_accuracy: fraction of the test set classified correctly.
        train_accuracy: the same of the training set.
        train_error: squared error on the training set over that of the start.
        converged: whether `train_error` is below 0.3.
    """

    label_variance: Float[Array, "layer"]
    random_variance: Float[Array, "layer"]
    label_kurtosis: Float[Array, "layer"]
    random_kurtosis: Float[Array, "layer"]
    kernel_distance: Float[Array, "layer"]
    label_variance_before: Float[Array, "layer"]
    random_variance_before: Float[Array, "layer"]
    label_kurtosis_before: Float[Array, "layer"]
    random_kurtosis_before: Float[Array, "layer"]
    kernel_distance_before: Float[Array, "layer"]
    bin_centre: Float[Array, "bin"]
    density: Float[Array, "layer bin"]
    density_before: Float[Array, "layer bin"]
    moved: Float[Array, "layer"]
    test_accuracy: Float[Array, ""]
    train_accuracy: Float[Array, ""]
    train_error: Float[Array, ""]
    converged: Bool[Array, ""]


@experiment
def pooled_layers(
    system: PooledClassifier,
    key: PRNGKeyArray,
    *,
    steps: int = 500,
    learning_rate: float = 0.02,
) -> PooledLayers:
    r"""Laws of the pre-activations and kernels of all convolutions of one trained classifier.

    Given the activations $\phi$ below, infinitely many channels have Gaussian pre-activations with
    the covariance

    $$ Q_{(\mu a)(\nu b)} = \frac{2}{9 C} \sum_{c, \delta} \phi_{c, a + \delta}(x_\mu)\,
       \phi_{c, b + \delta}(x_\nu) $$

    (without the factor 2 in the first layer). Adam minimises $|f - y|^2 \chi / (2T)$ plus weight
    decay towards the start on the whole training set, in single precision, with a learning rate
    that falls to zero as a cosine; the read-out starts at zero.

    Args:
        steps: number of steps of Adam. Default 500.
        learning_rate: initial learning rate. Default 0.02.

    Source: Seroussi, Naveh, Ringel (2023).

    >>> import jax
    >>> x = np.random.default_rng(0).normal(size=(3, 4, 4, 1))
    >>> data = PooledClassifier(x, np.eye(3), x, np.eye(3), channels=8)
    >>> pooled_layers(data, jax.random.key(0), steps=5).label_variance.shape
    (4,)
    """
    draw_key, random_key = jax.random.split(key)
    start = drawn_layers(system, draw_key)
    end, error = trained_layers(system, start, steps, learning_rate)
    before, after = (_laws(system, layers, random_key) for layers in (start, end))
    names = [field for field in LayerLaws.__dataclass_fields__]
    edges = jnp.linspace(-REACH, REACH, BINS + 1)
    return PooledLayers(
        **{name: getattr(after, name) for name in names},
        **{f"{name}_before": getattr(before, name) for name in names},
        bin_centre=(edges[1:] + edges[:-1]) / 2,
        moved=jnp.stack(
            [
                (jnp.linalg.norm(b - a) / jnp.linalg.norm(a)).astype(float)
                for a, b in zip(start.filters, end.filters)
            ]
        ),
        test_accuracy=accuracy_of(system, end, system.test_inputs, system.test_targets),
        train_accuracy=accuracy_of(system, end, system.inputs, system.targets),
        train_error=error,
        converged=error < FITTED,
    )


def accuracy_of(
    system: PooledClassifier, layers: PooledWeights, x: Array, y: Array
) -> Float[Array, ""]:
    """The fraction of images that the network classifies correctly."""
    f = output(layers, jnp.asarray(x, jnp.float32), jnp.asarray(system.chi, jnp.float32))
    return jnp.mean(jnp.argmax(f, axis=1) == jnp.argmax(y, axis=1))


@eqx.filter_jit
def _laws(system: PooledClassifier, layers: PooledWeights, key: PRNGKeyArray) -> LayerLaws:
    x = jnp.asarray(system.inputs, jnp.float32)
    classes = jnp.asarray(system.targets / jnp.linalg.norm(system.targets, axis=0), jnp.float32)
    edges = jnp.linspace(-REACH, REACH, BINS + 1)
    found = []
    for number, filters in enumerate(layers.filters):
        h = convolved(number, filters, x)
        below = windows(x) * (1.0 if number == 0 else jnp.sqrt(2.0).astype(jnp.float32))
        examples, pixels, _ = below.shape
        draws = jax.random.normal(
            jax.random.fold_in(key, number), (RANDOM, examples * pixels), jnp.float32
        )
        random = draws / jnp.linalg.norm(draws, axis=1, keepdims=True)
        seen = (
            jnp.einsum("npf,nc->cf", below, classes) / jnp.sqrt(pixels),
            random @ below.reshape(examples * pixels, -1),
        )
        # (direction, channel), over the standard deviation of the layer-wise prediction
        labels, others = (
            (one @ filters / jnp.linalg.norm(one, axis=1, keepdims=True)).astype(float)
            for one in seen
        )
        flat = (part.reshape(examples, -1) for part in (h, below))
        learned, predicted = (one @ one.T / pixels for one in flat)
        learned /= h.shape[-1]
        found.append(
            LayerLaws(
                label_variance=jnp.mean(labels**2),
                random_variance=jnp.mean(others**2),
                label_kurtosis=excess_kurtosis(labels),
                random_kurtosis=excess_kurtosis(others),
                kernel_distance=(
                    jnp.linalg.norm(learned - predicted) / jnp.linalg.norm(predicted)
                ).astype(float),
                density=jnp.histogram(labels.ravel(), edges)[0]
                / (labels.size * (edges[1] - edges[0])),
            )
        )
        x = passed_on(number, jax.nn.relu(h))
    return jax.tree.map(lambda *parts: jnp.stack(parts), *found)


def excess_kurtosis(values: Float[Array, "direction channel"]) -> Float[Array, ""]:
    """Mean fourth cumulant over the mean squared variance of the directions, each estimated without
    bias from the channels."""
    n = values.shape[1]
    central = values - jnp.mean(values, axis=1, keepdims=True)
    second, fourth = (jnp.mean(central**power, axis=1) for power in (2, 4))
    scale = n**2 / ((n - 1) * (n - 2) * (n - 3))
    cumulant = scale * ((n + 1) * fourth - 3 * (n - 1) * second**2)
    squared = ((n * second / (n - 1)) ** 2 - cumulant / n) * (n - 1) / (n + 1)
    return jnp.mean(cumulant) / jnp.mean(squared)
