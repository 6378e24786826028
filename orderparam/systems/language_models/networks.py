"""The two families of networks: their weights at the start of training, and their logits."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from orderparam.systems.language_models.model import BLOCKS, HEAD, Family, Scaling

Weights = Mapping[str, Array]
BASE = 16  # the width at which both parametrisations are the same


class Part(NamedTuple):
    """One array of weights: its shape, the standard deviation of its entries at the start, and
    whether both its rows and its columns, or the inputs of the read-out, grow with the width."""

    shape: tuple[int, ...]
    spread: float
    wide: bool


def parts(family: Family, width: int, symbols: int, context: int) -> dict[str, Part]:
    """Arrays of weights of a network. At the start entries have the variance 1/(number of inputs),
    and the read-out is zero."""

    def matrix(inputs: int, outputs: int, *, blocks: int = 0, depth: int = 1) -> Part:
        shape = (blocks, inputs, outputs) if blocks else (inputs, outputs)
        return Part(shape, (inputs * depth) ** -0.5, True)

    both = {
        "embedding": Part((symbols, width), 1.0, False),
        "read-out": Part((width, symbols), 0.0, True),
        "read-out bias": Part((symbols,), 0.0, False),
    }
    if family == "lstm":
        return both | {
            "input": matrix(width, 4 * width),
            "recurrent": matrix(width, 4 * width),
            "bias": Part((4 * width,), 0.0, False),
        }
    return both | {
        "positions": Part((context, width), 1.0, False),
        "attention": matrix(width, 3 * width, blocks=BLOCKS),
        "mixing": matrix(width, width, blocks=BLOCKS, depth=2 * BLOCKS),
        "hidden": matrix(width, 4 * width, blocks=BLOCKS),
        "back": matrix(4 * width, width, blocks=BLOCKS, depth=2 * BLOCKS),
    }


def spreads(layout: Mapping[str, Part]) -> Float[np.ndarray, "weight"]:
    """The standard deviation of each weight at the start."""
    return _of_each(layout, [part.spread for part in layout.values()])


def rates(layout: Mapping[str, Part], scaling: Scaling, width: int) -> Float[np.ndarray, "weight"]:
    """The factor of the learning rate of each weight."""
    wide = BASE / width if scaling == "mean-field" else 1.0
    return _of_each(layout, [wide if part.wide else 1.0 for part in layout.values()])


def arrays(layout: Mapping[str, Part], weights: Float[Array, "weight"]) -> Weights:
    """Arrays of weights by name, cut out of one vector that contains all weights."""
    ends = np.cumsum([math.prod(part.shape) for part in layout.values()])
    pieces = jnp.split(weights, ends[:-1])
    return {name: piece.reshape(layout[name].shape) for name, piece in zip(layout, pieces)}


def _of_each(layout: Mapping[str, Part], values: list[float]) -> np.ndarray:
    sizes = [math.prod(part.shape) for part in layout.values()]
    return np.repeat(np.asarray(values, np.float32), sizes)


def logits(
    family: Family, weights: Weights, read: Int[Array, "window position"]
) -> Float[Array, "window position symbol"]:
    """The logarithms of the probabilities of the next byte at each position, up to a constant."""
    values = weights["embedding"][read]
    if family == "lstm":
        values = _recurrent(weights, values)
    else:
        values = values + weights["positions"]
        blocks = {name: weights[name] for name in ("attention", "mixing", "hidden", "back")}
        values = _normalised(jax.lax.scan(_block, values, blocks)[0])
    return values @ weights["read-out"] + weights["read-out bias"]


def _normalised(values: Array) -> Array:
    return values * jax.lax.rsqrt(jnp.mean(values**2, -1, keepdims=True) + 1e-6)


def _block(values: Array, block: Weights) -> tuple[Array, None]:
    """Values after one block of a transformer: causal attention with heads of `HEAD` units, and a
    hidden layer."""
    windows, length, width = values.shape
    split = (windows, length, 3, width // HEAD, HEAD)
    read = (_normalised(values) @ block["attention"]).reshape(split)
    scores = jnp.einsum("wqhi,wkhi->whqk", read[:, :, 0], read[:, :, 1]) / HEAD**0.5
    past = jnp.tril(jnp.ones((length, length), bool))
    attention = jax.nn.softmax(jnp.where(past, scores, -jnp.inf))
    mixed = jnp.einsum("whqk,wkhi->wqhi", attention, read[:, :, 2])
    values = values + mixed.reshape(values.shape) @ block["mixing"]
    hidden = jax.nn.relu(_normalised(values) @ block["hidden"])
    return values + hidden @ block["back"], None


def _recurrent(weights: Weights, values: Array) -> Array:
    """The outputs of the cells at all positions."""
    entering = jnp.moveaxis(values @ weights["input"] + weights["bias"], 1, 0)

    def step(state: tuple[Array, Array], into: Array) -> tuple[tuple[Array, Array], Array]:
        cell, output = state
        gates = into + output @ weights["recurrent"]
        enter, forget, leave, new = jnp.split(gates, 4, -1)
        # a forget gate that is open at the start keeps gradients from vanishing along the sequence
        cell = jax.nn.sigmoid(forget + 1) * cell + jax.nn.sigmoid(enter) * jnp.tanh(new)
        output = jax.nn.sigmoid(leave) * jnp.tanh(cell)
        return (cell, output), output

    nothing = jnp.zeros_like(values[:, 0])
    return jnp.moveaxis(jax.lax.scan(step, (nothing, nothing), entering)[1], 0, 1)
