"""The patches of a signal or an image that the units of a convolutional layer see: any mask, stride and zero padding."""

import itertools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Sides = int | tuple[int, ...]


def sides(name: str, value: Any, rank: int, minimum: int) -> tuple[int, ...]:
    """One integer for every axis, or the same for all. Raises `ValueError` naming what does not fit."""
    values = (value,) * rank if isinstance(value, int | np.integer) and not isinstance(value, bool) else value
    fits = isinstance(values, tuple) and len(values) == rank
    if not fits or not all(isinstance(v, int | np.integer) and not isinstance(v, bool) and v >= minimum for v in values):
        raise ValueError(f"{name} = {value!r}: must be an integer >= {minimum}, or a tuple of {rank}, one for each axis")
    return tuple(int(v) for v in values)


def patch_grid(shape: tuple[int, ...], mask: Sides, stride: Sides, padding: Sides) -> tuple[int, ...]:
    """Shape of the grid of patches of one example of shape (*grid, channel). Raises `ValueError` for what does not fit.

    Axis by axis 1 + floor((side + 2 padding - mask) / stride), as everywhere in deep learning.
    """
    rank = len(shape) - 1
    if rank < 1:
        raise ValueError(f"inputs of shape {shape}: must be (*grid, channel), such as (8, 8, 1) for an image")
    masks, strides, paddings = sides("mask", mask, rank, 1), sides("stride", stride, rank, 1), sides("padding", padding, rank, 0)
    for side, m, p in zip(shape, masks, paddings):
        if m > side + 2 * p:
            raise ValueError(f"mask = {mask!r}: must be at most {side + 2 * p}, the side of the input with its padding")
    return tuple(1 + (side + 2 * p - m) // s for side, m, s, p in zip(shape, masks, strides, paddings))


def patches(
    inputs: Float[Array, "example *input"], mask: Sides, stride: Sides, padding: Sides
) -> Float[Array, "example patch pixel"]:
    """x_i, i = 1..patches in row-major order; the pixels of a patch run over (*mask, channel). Outside the image x = 0."""
    shape = inputs.shape[1:]
    rank = len(shape) - 1
    grid = patch_grid(shape, mask, stride, padding)
    masks, strides, paddings = sides("mask", mask, rank, 1), sides("stride", stride, rank, 1), sides("padding", padding, rank, 0)
    padded = jnp.pad(inputs, [(0, 0), *((p, p) for p in paddings), (0, 0)])
    extent = padded.shape[1:-1]
    rows = []
    for corner in itertools.product(*(range(0, n * s, s) for n, s in zip(grid, strides))):
        pixels = np.meshgrid(*(np.arange(c, c + m) for c, m in zip(corner, masks)), indexing="ij")
        rows.append(np.ravel_multi_index([axis.ravel() for axis in pixels], extent))
    flat = padded.reshape(inputs.shape[0], math.prod(extent), shape[-1])
    return flat[:, np.stack(rows)].reshape(inputs.shape[0], len(rows), -1)
