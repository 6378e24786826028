"""The patches of a signal or an image that the units of a convolutional layer see: any mask, stride and zero padding."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.fields import Refused
from orderparam.kernels.window import Window

Sides = int | tuple[int, ...]


def sides(name: str, value: Sides, rank: int) -> tuple[int, ...]:
    """One integer for every axis. Raises `ValueError` naming a tuple of another length."""
    values = (value,) * rank if isinstance(value, int) else value
    if len(values) != rank:
        raise Refused(f"{name} = {value!r}: must be an integer, or a tuple of {rank}, one for each axis")
    return values


def patch_grid(shape: tuple[int, ...], mask: Sides, stride: Sides, padding: Sides) -> tuple[int, ...]:
    """Shape of the grid of patches of one example of shape (*grid, channel). Raises `ValueError` for what does not fit.

    Axis by axis 1 + floor((side + 2 padding - mask) / stride), as everywhere in deep learning.
    """
    rank = len(shape) - 1
    if rank < 1:
        raise Refused(f"inputs of shape {shape}: must be (*grid, channel), such as (8, 8, 1) for an image")
    masks, strides, paddings = sides("mask", mask, rank), sides("stride", stride, rank), sides("padding", padding, rank)
    padded = tuple(side + 2 * p for side, p in zip(shape, paddings))
    for side, m in zip(padded, masks):
        if m > side:
            raise Refused(f"mask = {mask!r}: must be at most {side}, the side of the input with its padding")
    return Window(masks, strides, "valid").output_grid(padded)


def pad(inputs: Float[Array, "example *input"], padding: Sides) -> Float[Array, "example *padded"]:
    """The inputs with `padding` zeros on every side of their grid."""
    paddings = sides("padding", padding, inputs.ndim - 2)
    return jnp.pad(inputs, [(0, 0), *((p, p) for p in paddings), (0, 0)])


def patches(
    inputs: Float[Array, "example *input"], mask: Sides, stride: Sides, padding: Sides
) -> Float[Array, "example patch pixel"]:
    """x_i, i = 1..patches in row-major order; the pixels of a patch run over (*mask, channel). Outside the image x = 0."""
    grid = patch_grid(inputs.shape[1:], mask, stride, padding)
    padded = pad(inputs, padding)
    window = Window(sides("mask", mask, len(grid)), sides("stride", stride, len(grid)), "valid")
    seen = jnp.stack(list(window.shifted(padded, padded.shape[1:-1], 1)), axis=-2)
    return seen.reshape(inputs.shape[0], math.prod(grid), -1)
