"""Layers that turn pixels into vectors: average pooling, global average pooling, flattening.

average pooling    K_ab <- (1/s^2) sum_{delta, delta'} K_{a + delta, b + delta'}
global average     K <- (1/n^2) sum_{a, b} K_ab
flatten            K <- (1/n) sum_a K_aa
                   no trace of the covariance between pixels (Novak et al. 2019, section 3.2)
"""

import math

from jaxtyping import Array, Float

from orderparam.core.system import structure
from orderparam.kernels.covariance import Covariance, Moments
from orderparam.kernels.window import Padding, Window
from orderparam.networks.layer import Layer, Shape, grid_of


class AveragePool(Layer):
    """The mean over a window of pixels, channel by channel.

    strides: None means the size of the window, so that the windows tile the grid. padding: see
    `Window`. Raises `ValueError` for values out of range, and for inputs without a grid or smaller
    than the window.
    """

    window: int | tuple[int, ...] = structure("pixels along every dimension", minimum=1)
    strides: int | tuple[int, ...] | None = structure(
        "pixels to the next window; None: its size", minimum=1, default=None
    )
    padding: Padding = structure("what lies beyond the edge", default="valid")

    @property
    def patch(self) -> Window:
        """The window as seen from one output pixel."""
        return Window(
            self.window, self.window if self.strides is None else self.strides, self.padding
        )

    def output_shape(self, input_shape: Shape) -> Shape:
        return (*self.patch.output_grid(grid_of(self, input_shape)), input_shape[-1])

    def __call__(
        self, weights: tuple[()], x: Float[Array, "example *grid channel"]
    ) -> Float[Array, "example *out channel"]:
        return self.patch.mean(x, x.shape[1:-1], 1)

    def covariance(self, covariance: Covariance, pixel_pairs: bool) -> Covariance:
        grid, patch = grid_of(self, (*covariance.grid, 0)), self.patch
        dims = len(grid)

        def pool(values: Float[Array, "..."]) -> Float[Array, "..."]:
            over_b = patch.mean(values, grid, values.ndim - dims)
            return patch.mean(over_b, grid, values.ndim - 2 * dims)

        pooled = covariance.map(
            lambda m: Moments(pool(m.nngp), pool(m.ntk)), grid=patch.output_grid(grid)
        )
        return pooled if pixel_pairs else pooled.equal_pixels()

    def needs_pixel_pairs(self, after: bool) -> bool:
        return True


class GlobalAveragePool(Layer):
    """The mean over all pixels, channel by channel: (*grid, channels) -> (channels,)."""

    def output_shape(self, input_shape: Shape) -> Shape:
        grid_of(self, input_shape)
        return input_shape[-1:]

    def __call__(
        self, weights: tuple[()], x: Float[Array, "example *grid channel"]
    ) -> Float[Array, "example channel"]:
        return x.mean(axis=tuple(range(1, x.ndim - 1)))

    def covariance(self, covariance: Covariance, pixel_pairs: bool) -> Covariance:
        dims = len(grid_of(self, (*covariance.grid, 0)))

        def pool(values: Float[Array, "..."]) -> Float[Array, "..."]:
            return values.mean(axis=tuple(range(values.ndim - 2 * dims, values.ndim)))

        return covariance.map(
            lambda m: Moments(pool(m.nngp), pool(m.ntk)), grid=(), pixel_pairs=False
        )

    def needs_pixel_pairs(self, after: bool) -> bool:
        return True


class Flatten(Layer):
    """All pixels and channels in one vector: (*grid, channels) -> (pixels * channels,). A Dense
    layer has to follow."""

    def output_shape(self, input_shape: Shape) -> Shape:
        return (math.prod(input_shape),)

    def __call__(
        self, weights: tuple[()], x: Float[Array, "example *grid channel"]
    ) -> Float[Array, "example feature"]:
        return x.reshape(x.shape[0], -1)

    def covariance(self, covariance: Covariance, pixel_pairs: bool) -> Covariance:
        same_pixel = covariance.equal_pixels()
        dims, pixels = len(covariance.grid), math.prod(covariance.grid)

        def mean(values: Float[Array, "..."]) -> Float[Array, "..."]:
            return values.mean(axis=tuple(range(values.ndim - dims, values.ndim)))

        channels = None if covariance.channels is None else covariance.channels * pixels
        # The entries of the vector are not identically distributed, so no nonlinearity may follow
        # directly.
        return same_pixel.map(
            lambda m: Moments(mean(m.nngp), mean(m.ntk)), grid=(), channels=channels, gaussian=False
        )

    def needs_pixel_pairs(self, after: bool) -> bool:
        return False
