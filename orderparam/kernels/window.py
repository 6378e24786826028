"""The window through which one output pixel sees a grid of input pixels: its size, its strides and
its padding at the edges."""

import itertools
import math
from collections.abc import Iterator
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.system import Record, structure

Grid = tuple[int, ...]
Padding = Literal["same", "circular", "valid"]


class Window(Record):
    """Output pixel a sees the input pixels a * strides + delta, for every offset delta of the
    window.

    size, strides: one integer for all dimensions of the grid, or one for each. padding: "same"
    surrounds the grid with zeros and "circular" repeats it, both giving ceil(pixels / stride)
    output pixels per dimension; "valid" uses only windows inside the grid. Sums over a window are
    always divided by its full size, zeros included.

    Raises `ValueError` for sizes or strides below one and for an unknown padding.
    """

    size: int | tuple[int, ...] = structure("pixels along every dimension", minimum=1)
    strides: int | tuple[int, ...] = structure(
        "pixels from one window to the next", minimum=1, default=1
    )
    padding: Padding = structure("what lies beyond the edge", default="same")

    def sizes(self, grid: Grid) -> Grid:
        """Size of the window along every dimension of the grid."""
        return _each("window", self.size, grid)

    def all_strides(self, grid: Grid) -> Grid:
        """Stride along every dimension of the grid."""
        return _each("strides", self.strides, grid)

    def pixels(self, grid: Grid) -> int:
        """Number of pixels in the window."""
        return math.prod(self.sizes(grid))

    def output_grid(self, grid: Grid) -> Grid:
        """Shape of the grid of output pixels. Raises `ValueError` for a window that does not fit
        into the grid."""
        sizes, strides = self.sizes(grid), self.all_strides(grid)
        if self.padding != "valid":
            return tuple(-(-n // stride) for n, stride in zip(grid, strides))
        if any(size > n for n, size in zip(grid, sizes)):
            raise ValueError(
                f"window {sizes} does not fit into a grid of {grid} pixels with 'valid' padding"
            )
        return tuple((n - size) // stride + 1 for n, size, stride in zip(grid, sizes, strides))

    def padded(self, values: Float[Array, "..."], grid: Grid, axis: int) -> Float[Array, "..."]:
        """`values` with the pixels beyond the edges added, along the axes of the grid, of which the
        first is `axis`."""
        widths = [(0, 0)] * values.ndim
        if self.padding == "valid":
            return values
        sizes, strides, outputs = self.sizes(grid), self.all_strides(grid), self.output_grid(grid)
        for i, (n, size, stride, out) in enumerate(zip(grid, sizes, strides, outputs)):
            total = max((out - 1) * stride + size - n, 0)
            widths[axis + i] = (total // 2, total - total // 2)
        return jnp.pad(values, widths, mode="wrap" if self.padding == "circular" else "constant")

    def shifted(
        self, padded: Float[Array, "..."], grid: Grid, *axes: int
    ) -> Iterator[Float[Array, "..."]]:
        """The padded values that the output pixels see at every offset of the window.

        axes: first axis of each grid in `padded`; a covariance between pixels has two, which are
        shifted together.
        """
        outputs, strides = self.output_grid(grid), self.all_strides(grid)
        for offset in itertools.product(*(range(size) for size in self.sizes(grid))):
            start, stop, step = [0] * padded.ndim, list(padded.shape), [1] * padded.ndim
            for axis in axes:
                for i, (first, out, stride) in enumerate(zip(offset, outputs, strides)):
                    start[axis + i], stop[axis + i] = first, first + (out - 1) * stride + 1
                    step[axis + i] = stride
            yield jax.lax.slice(padded, start, stop, step)

    def mean(self, values: Float[Array, "..."], grid: Grid, *axes: int) -> Float[Array, "..."]:
        """Mean over the window, all grids of `axes` shifted together: (1/s) sum_delta S_{a + delta,
        b + delta}."""
        padded = values
        for axis in axes:
            padded = self.padded(padded, grid, axis)
        total, *others = self.shifted(padded, grid, *axes)
        for other in others:
            total = total + other
        return total / self.pixels(grid)


def _each(name: str, value: int | tuple[int, ...], grid: Grid) -> Grid:
    if isinstance(value, int):
        return (value,) * len(grid)
    if len(value) != len(grid):
        raise ValueError(
            f"{name} = {value}: has {len(value)} entries for a grid of {len(grid)} dimensions "
            f"{grid}"
        )
    return value
