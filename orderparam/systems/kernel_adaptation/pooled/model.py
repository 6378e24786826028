"""A convolutional classifier of five layers with pooling, in the manner of VGG: its system, its
forward pass and its training.

    h_l = sqrt(2/(9 C_(l-1))) W_l * phi_(l-1),    l = 1..4, filters of 3 x 3 pixels, zero beyond,
    phi_l = relu(h_l), averaged over blocks of 2 x 2 pixels after layers 1 and 2,
    f = sqrt(1/(chi C)) A <phi_4>, the mean over all pixels,

with all weights N(0, 1) at the prior and C channels in every layer.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.fields import parameter
from orderparam.core.system import System
from orderparam.data.images import coarse, image_task

CONVOLUTIONS = 4
POOLED = (0, 1)  # layers after which blocks of 2 x 2 pixels are averaged
WINDOW = 3


class PooledClassifier(System):
    r"""A classifier of images with four convolutions, pooling and a read-out, on given examples
    with one-hot targets.

    $$ h_l = \sqrt{\tfrac{2}{9 C_{l-1}}}\, W_l * \phi(h_{l-1}), \qquad
       f = \tfrac{1}{\sqrt{\chi C}}\, A\, \langle \phi(h_4) \rangle $$

    with relu units, C = `channels` in every layer, filters of 3 x 3 pixels, blocks of 2 x 2 pixels
    averaged after the first two layers, and the mean over pixels before the read-out. All weights
    are N(0, 1) at the prior, and the temperature is `temperature` / $\chi$, so that infinitely
    wide networks are the same for all `chi`.

    Raises:
        ValueError: unless images are square with a side that is a multiple of 4, and of one shape
            for training and test; for fewer than 4 channels, of which no kurtosis is known; and for
            a class without training examples.

    Source: Seroussi, Naveh, Ringel (2023); Simonyan, Zisserman (2015).

    >>> x, y = np.ones((3, 4, 4, 1)), np.eye(3)
    >>> PooledClassifier(x, y, x, y, channels=8).inputs.shape
    (3, 4, 4, 1)
    """

    inputs: Float[Array, "train *image"] = parameter("training images (train, side, side, colour)")
    targets: Float[Array, "train class"] = parameter("their one-hot targets")
    test_inputs: Float[Array, "test *image"] = parameter("test images")
    test_targets: Float[Array, "test class"] = parameter("their one-hot targets")
    channels: float = parameter("channels C of each layer", minimum=4, integer=True, default=16)
    chi: float = parameter(
        "strength of adaptation: read-out variance 1/chi, temperature T/chi", above=0, default=1.0
    )
    temperature: float = parameter("temperature T in the standard scaling", above=0, default=0.01)

    def __check_init__(self) -> None:
        shape = self.inputs.shape
        if len(shape) != 4 or shape[1] != shape[2] or shape[1] % 4:
            raise ValueError(
                f"PooledClassifier.inputs has shape {shape}: must be (train, side, side, colour) "
                "with a side that is a multiple of 4"
            )
        if self.test_inputs.shape[1:] != shape[1:]:
            raise ValueError(
                f"PooledClassifier.test_inputs has images of shape {self.test_inputs.shape[1:]}: "
                f"must be {shape[1:]}, that of the training images"
            )
        traced = isinstance(self.targets, jax.core.Tracer)
        if not traced and not np.all(np.any(self.targets, axis=0)):
            raise ValueError("PooledClassifier.targets has a class without training examples")


class PooledWeights(NamedTuple):
    """Weights in units of the prior."""

    filters: tuple[Float[Array, "fan_in channel"], ...]
    readout: Float[Array, "channel class"]


def small_images(n_train: int, n_test: int) -> tuple[np.ndarray, ...]:
    """CIFAR-10 averaged to 8 x 8 pixels, centred and normalised, with one-hot targets of mean zero:
    training and test, the same in every call."""
    x, y = image_task("cifar10", "one-hot-zero-mean", n_train + n_test)
    images = coarse(x)
    return images[:n_train], y[:n_train], images[n_train:], y[n_train:]


def windows(x: Float[Array, "example row column channel"]) -> Float[Array, "example pixel fan_in"]:
    """The inputs of a filter at every pixel, divided by the square root of their number."""
    examples, side, _, channels = x.shape
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    seen = [padded[:, i : i + side, j : j + side] for i in range(WINDOW) for j in range(WINDOW)]
    stacked = jnp.concatenate(seen, axis=-1).reshape(examples, side * side, -1)
    return stacked / np.sqrt(WINDOW**2 * channels)


def convolved(
    number: int, filters: Float[Array, "fan_in channel"], x: Float[Array, "example row column _"]
) -> Float[Array, "example pixel channel"]:
    """Pre-activations of a layer; the factor sqrt(2) of relu units from the second layer on."""
    return (1.0 if number == 0 else np.sqrt(2.0)) * windows(x) @ filters


def passed_on(
    number: int, phi: Float[Array, "example pixel channel"]
) -> Float[Array, "example row column channel"]:
    """The inputs of the next layer: the activations of a layer, averaged where it is pooled."""
    side = round(phi.shape[1] ** 0.5)
    image = phi.reshape(phi.shape[0], side, side, -1)
    if number not in POOLED:
        return image
    return image.reshape(phi.shape[0], side // 2, 2, side // 2, 2, -1).mean(axis=(2, 4))


def output(
    layers: PooledWeights, x: Float[Array, "example *image"], chi: float | Array
) -> Float[Array, "example class"]:
    """The output f of the network."""
    for number, filters in enumerate(layers.filters):
        x = passed_on(number, jax.nn.relu(convolved(number, filters, x)))
    return read(layers, x, chi)


def read(
    layers: PooledWeights, last: Float[Array, "example row column channel"], chi: float | Array
) -> Float[Array, "example class"]:
    """The output f from the activations of the last layer."""
    return last.mean(axis=(1, 2)) @ layers.readout / jnp.sqrt(chi * last.shape[-1])


def drawn_layers(system: PooledClassifier, key: PRNGKeyArray) -> PooledWeights:
    """Weights of the prior in single precision, with a read-out of zero."""
    channels, colours = system.size("channels"), system.inputs.shape[-1]
    fans = [WINDOW**2 * below for below in (colours, *[channels] * (CONVOLUTIONS - 1))]
    keys = jax.random.split(key, CONVOLUTIONS)
    return PooledWeights(
        tuple(jax.random.normal(own, (fan, channels), jnp.float32) for own, fan in zip(keys, fans)),
        jnp.zeros((channels, system.targets.shape[1]), jnp.float32),
    )


@eqx.filter_jit
def trained_layers(
    system: PooledClassifier, start: PooledWeights, steps: int, rate: float
) -> tuple[PooledWeights, Float[Array, ""]]:
    """The weights after `steps` of Adam on |f - y|^2 chi / (2T) plus weight decay towards the
    start, and the squared error on the training set over that of the start.

    Weights that no example determines keep their random values, as they do at the equilibrium of
    noisy training.
    """
    single = (system.inputs, system.targets, system.chi, system.temperature)
    x, y, chi, temperature = (jnp.asarray(numbers, jnp.float32) for numbers in single)
    optimiser = optax.adam(optax.cosine_decay_schedule(rate, steps))

    def energy(layers: PooledWeights) -> Array:
        moved = jax.tree.map(lambda b, a: jnp.sum((b - a) ** 2) / 2, layers, start)
        misfit = jnp.sum((output(layers, x, chi) - y) ** 2)
        return misfit * chi / (2 * temperature) + sum(jax.tree.leaves(moved))

    def body(
        carry: tuple[PooledWeights, optax.OptState], _: None
    ) -> tuple[tuple[PooledWeights, optax.OptState], None]:
        layers, state = carry
        updates, state = optimiser.update(jax.grad(energy)(layers), state)
        return (optax.apply_updates(layers, updates), state), None

    (end, _), _ = jax.lax.scan(body, (start, optimiser.init(start)), length=steps)
    error = jnp.sum((output(end, x, chi) - y) ** 2) / jnp.sum(y**2)
    return end, error.astype(float)
