"""Experiments of deep linear networks in time: networks whose weights are trained on whitened
data."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.systems.deep_linear.model import DeepModes, LinearModes, LinearNetwork
from orderparam.systems.deep_linear.theory import ModePath, times

Weights = tuple[Float[Array, "output input"], ...]
# Runge-Kutta step times the fastest rate; errors stay below 1e-6 until a mode is learned
STEP = 0.1


class DeepLayerPath(Result):
    """The modes of one deep linear network along its training.

    Fields:
        time: times of the records, the last is `duration`.
        output: u_k . W_L ... W_1 v_k for every mode.
        loss: |Sigma - W_L ... W_1|^2/2, including the elements between different modes.
    """

    time: Float[Array, "record"]
    output: Float[Array, "record mode"]
    loss: Float[Array, "record"]


class LinearNetworkPath(Result):
    """One linear network along its training.

    Fields:
        time: times of the records, the last is `duration`.
        product: product W_2 W_1 of the layers.
        loss: |Sigma - W_2 W_1|^2/2.
    """

    time: Float[Array, "record"]
    product: Float[Array, "record output input"]
    loss: Float[Array, "record"]


@experiment
def trained_modes(system: LinearModes, key: PRNGKeyArray) -> ModePath:
    r"""Modes of one linear network with wide random layers, trained on drawn whitened data.

    There are as many inputs and outputs as modes. The singular vectors of the target, the inputs
    and the weights are drawn: entries of $W_1$ have variance a/N and those of $W_2$ variance b/N,
    with a + b = `kernel_start`. All weights follow gradient flow on the data, in Runge-Kutta steps.

    Raises:
        ValueError: for a `start_output` other than 0, which random layers cannot have.

    Source: the experiment of Saxe, McClelland, Ganguli (2014), from wide random layers.

    >>> import jax
    >>> system = LinearModes([2.0, 1.0], 0.5, 2.0, width=16, records=4)
    >>> trained_modes(system, jax.random.key(0)).output.shape
    (4, 2)
    """
    if float(system.start_output) != 0:
        raise ValueError(
            f"start_output = {float(system.start_output):g}: must be 0 for random layers; raise "
            "`kernel_start` instead"
        )
    size, width = len(system.strengths), system.size("width")
    share = jnp.asarray(system.readout_share)
    frame_key, data_key, first_key, readout_key = jax.random.split(key, 4)
    left, right = _frames(frame_key, size)
    scale = system.kernel_start / width
    start = (
        jnp.sqrt((1 - share) * scale) * jax.random.normal(first_key, (width, size)),
        jnp.sqrt(share * scale) * jax.random.normal(readout_key, (size, width)),
    )
    target = (left * system.strengths) @ right.T
    fastest = math.hypot(float(system.kernel_start), 2 * float(np.max(system.strengths)))
    paths = _train(
        start, target, data_key, system.duration, system.records, _parts(system, fastest)
    )
    kernel = jnp.sum((paths[0] @ right) ** 2, axis=1) + jnp.sum((left.T @ paths[1]) ** 2, axis=2)
    product = paths[1] @ paths[0]
    return ModePath(
        time=times(system),
        output=_modes(product, left, right),
        kernel=kernel,
        loss=_losses(target, product),
    )


@experiment
def trained_layers(system: DeepModes, key: PRNGKeyArray) -> DeepLayerPath:
    r"""Modes of one deep linear network that starts along the modes of its target, up to noise.

    The layers at the start are $W_l = R_l a R_{l-1}^T$ with random rotations R and $a^L$ =
    `start_output`; $R_L$ and $R_0$ are the singular vectors of the target. To every entry a
    Gaussian of standard deviation `misalignment` $a/\sqrt d$ is added, where d is the number of
    modes. All weights follow gradient flow on drawn whitened data.

    Source: the experiment of Saxe, McClelland, Ganguli (2014).

    >>> import jax
    >>> system = DeepModes([2.0, 1.0], 0.1, 2.0, misalignment=0.1, depth=3, records=4)
    >>> trained_layers(system, jax.random.key(0)).output.shape
    (4, 2)
    """
    size, depth = len(system.strengths), system.depth
    frame_key, data_key, turn_key, noise_key = jax.random.split(key, 4)
    left, right = _frames(frame_key, size)
    turns = [right]
    turns += [_rotation(each, size) for each in jax.random.split(turn_key, depth - 1)]
    turns += [left]
    entry = system.start_output ** (1 / depth)
    noises = jax.random.normal(noise_key, (depth, size, size)) * system.misalignment / size**0.5
    start = tuple(
        entry * (after @ before.T + noise)
        for before, after, noise in zip(turns[:-1], turns[1:], noises, strict=True)
    )
    target = (left * system.strengths) @ right.T
    strongest = max(float(np.max(system.strengths)), float(system.start_output))
    fastest = depth * strongest ** (2 - 2 / depth)
    paths = _train(
        start, target, data_key, system.duration, system.records, _parts(system, fastest)
    )
    product = _product(paths)
    return DeepLayerPath(
        time=times(system), output=_modes(product, left, right), loss=_losses(target, product)
    )


@experiment
def trained_linear_network(system: LinearNetwork, key: PRNGKeyArray) -> LinearNetworkPath:
    r"""Product of the layers of one linear network with given weights at the start, trained on
    drawn whitened data.

    Source: the experiment of Braun et al. (2022).

    >>> import jax
    >>> import numpy as np
    >>> start = np.eye(2)
    >>> system = LinearNetwork(3 * start, start, start, 1.0, records=4)
    >>> trained_linear_network(system, jax.random.key(0)).product.shape
    (4, 2, 2)
    """
    start = (system.first, system.readout)
    kernel = sum(float(np.linalg.norm(np.asarray(layer), 2)) ** 2 for layer in start)
    fastest = math.hypot(kernel, 2 * float(np.linalg.norm(np.asarray(system.target), 2)))
    paths = _train(
        start, system.target, key, system.duration, system.records, _parts(system, fastest)
    )
    product = _product(paths)
    return LinearNetworkPath(
        time=times(system), product=product, loss=_losses(system.target, product)
    )


def _parts(system: LinearModes | DeepModes | LinearNetwork, fastest: float) -> int:
    """Number of steps between records that the fastest rate requires."""
    return max(1, math.ceil(float(system.duration) / system.records * fastest / STEP))


def _rotation(key: PRNGKeyArray, size: int) -> Array:
    return jax.random.orthogonal(key, size)


def _frames(key: PRNGKeyArray, size: int) -> tuple[Array, Array]:
    """Left and right singular vectors of the target."""
    left, right = jax.random.split(key)
    return _rotation(left, size), _rotation(right, size)


def _modes(product: Array, left: Array, right: Array) -> Array:
    return jnp.einsum("ok,toi,ik->tk", left, product, right)


def _losses(target: Array, product: Array) -> Array:
    return jnp.sum((target - product) ** 2, axis=(1, 2)) / 2


def _product(layers: Weights) -> Array:
    """The product W_L ... W_1 of the layers at every record."""
    product = layers[0]
    for layer in layers[1:]:
        product = layer @ product
    return product


@eqx.filter_jit
def _train(
    start: Weights, target: Array, key: PRNGKeyArray, duration: Any, records: int, parts: int
) -> Weights:
    """The weights of all layers at all records (record, output, input)."""
    inputs = target.shape[1]
    drawn = jax.random.normal(key, (4 * inputs, inputs))
    x = jnp.linalg.qr(drawn)[0] * jnp.sqrt(len(drawn))  # x^T x / n = 1
    y = x @ target.T

    def loss(layers: Weights) -> Array:
        hidden = x
        for layer in layers:
            hidden = hidden @ layer.T
        return jnp.sum((y - hidden) ** 2) / (2 * len(x))

    step = duration / records / parts

    def moved(layers: Weights, by: Any, slope: Weights) -> Weights:
        return jax.tree.map(lambda layer, g: layer - by * g, layers, slope)

    def advance(layers: Weights, _: None) -> tuple[Weights, None]:
        first = jax.grad(loss)(layers)
        second = jax.grad(loss)(moved(layers, step / 2, first))
        third = jax.grad(loss)(moved(layers, step / 2, second))
        fourth = jax.grad(loss)(moved(layers, step, third))
        slope = jax.tree.map(
            lambda a, b, c, d: (a + 2 * b + 2 * c + d) / 6, first, second, third, fourth
        )
        return moved(layers, step, slope), None

    def record(layers: Weights, _: None) -> tuple[Weights, Weights]:
        layers, _ = jax.lax.scan(advance, layers, length=parts)
        return layers, layers

    return jax.lax.scan(record, start, length=records)[1]
