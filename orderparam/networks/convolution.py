"""Convolutional and locally connected layers, on signals (one grid dimension), images (two) or
volumes.

Examples have shape (*grid, channels). At infinite width, with a pixel a of x and a pixel b of x'
(Novak et al. 2019, eq. 7):

    convolution          K_ab <- bias_variance
                                 + weight_variance (1/s) sum_delta K_{a + delta, b + delta}
    locally connected    the same for a = b, and 0 for a != b, where no weight is shared
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.system import parameter, structure
from orderparam.kernels.covariance import Covariance
from orderparam.kernels.nngp import affine
from orderparam.kernels.window import Padding, Window
from orderparam.networks.affine import Affine, Weights
from orderparam.networks.layer import Shape, grid_of, open_width

_LARGEST_UNFOLDED = 2**23  # values in the copied windows: 64 MiB in double precision


class _OverPatches(Affine):
    """A layer whose output pixels each see one window of the input, with or without shared weights.

    channels: number of output channels; None leaves the number open, so that only the infinitely
    wide network exists. window, strides, padding: see `orderparam.kernels.window.Window`.
    Variances: see `Affine`. Raises `ValueError` for values out of range, and for inputs without a
    grid or smaller than the window.
    """

    channels: int | None = parameter("number of output channels; None: open", above=0, integer=True)
    window: int | tuple[int, ...] = structure("pixels along every dimension", minimum=1)
    strides: int | tuple[int, ...] = structure(
        "pixels from one window to the next", minimum=1, default=1
    )
    padding: Padding = structure("what lies beyond the edge", default="same")

    @property
    def patch(self) -> Window:
        """The window as seen from one output pixel."""
        return Window(self.window, self.strides, self.padding)

    def output_shape(self, input_shape: Shape) -> Shape:
        grid = grid_of(self, input_shape)
        return (*self.patch.output_grid(grid), open_width(self, "channels"))


class Convolution(_OverPatches):
    """z_{c a} = sum_{delta, c'} W_{c delta c'} x_{c', a + delta} + b_c: the same filter at every
    pixel.

    W ~ N(0, weight_variance / (window pixels * input channels)), of shape (channels, *window, input
    channels); b ~ N(0, bias_variance). channels: a number, or None for the infinitely wide network
    only. window, strides, padding: see `orderparam.kernels.window.Window`. Raises `ValueError` for
    values out of range, and for inputs without a grid or smaller than the window.

    The windows of up to 2^23 input values are copied side by side and multiplied with the filters
    as one matrix, which on processors is 14 to 75 times as fast as a convolution in the compiled
    loops of samplers and of training; larger inputs are convolved without copies.
    """

    def weight_shape(self, input_shape: Shape) -> Shape:
        *grid, channels = input_shape
        return (self.output_shape(input_shape)[-1], *self.patch.sizes(tuple(grid)), channels)

    def __call__(
        self, weights: Weights, x: Float[Array, "example *grid input"]
    ) -> Float[Array, "example *out output"]:
        grid, weight = x.shape[1:-1], weights.weight
        padded = self.patch.padded(x, grid, 1)
        pixels = math.prod(self.patch.output_grid(grid))
        if len(x) * pixels * math.prod(weight.shape[1:]) <= _LARGEST_UNFOLDED:
            patches = jnp.concatenate(list(self.patch.shifted(padded, grid, 1)), axis=-1)
            z = patches @ weight.reshape(len(weight), -1).T
        else:
            dims = "abcd"[: len(grid)]
            layout = (f"N{dims}C", f"O{dims}I", f"N{dims}C")
            strides = self.patch.all_strides(grid)
            z = jax.lax.conv_general_dilated(
                padded, weight, strides, "VALID", dimension_numbers=layout
            )
        return z if weights.bias is None else z + weights.bias

    def covariance(self, covariance: Covariance, pixel_pairs: bool) -> Covariance:
        return _over_patches(self, covariance)


class UnsharedConvolution(_OverPatches):
    """z_{c a} = sum_{delta, c'} W_{c a delta c'} x_{c', a + delta} + b_{c a}: with a separate
    filter and bias at every output pixel.

    Fields and errors as for `Convolution`; weights have shape (channels, *output grid, window
    pixels, input channels).
    """

    def weight_shape(self, input_shape: Shape) -> Shape:
        grid, channels = grid_of(self, input_shape), input_shape[-1]
        return (*self.bias_shape(input_shape), self.patch.pixels(grid), channels)

    def bias_shape(self, input_shape: Shape) -> Shape:
        *grid, channels = self.output_shape(input_shape)
        return (channels, *grid)

    def fan_in(self, weight_shape: Shape) -> int:
        return math.prod(weight_shape[-2:])

    def __call__(
        self, weights: Weights, x: Float[Array, "example *grid input"]
    ) -> Float[Array, "example *out output"]:
        grid = x.shape[1:-1]
        patches = jnp.stack(
            list(self.patch.shifted(self.patch.padded(x, grid, 1), grid, 1)), axis=-2
        )
        dims = "abcd"[: len(grid)]
        z = jnp.einsum(f"n{dims}si,o{dims}si->n{dims}o", patches, weights.weight)
        return z if weights.bias is None else z + jnp.moveaxis(weights.bias, 0, -1)

    def covariance(self, covariance: Covariance, pixel_pairs: bool) -> Covariance:
        same_pixel = _over_patches(self, covariance.equal_pixels())
        return same_pixel.independent_pixels() if pixel_pairs else same_pixel

    def needs_pixel_pairs(self, after: bool) -> bool:
        return False


def _over_patches(layer: _OverPatches, covariance: Covariance) -> Covariance:
    grid, patch = covariance.grid, layer.patch
    output_grid = patch.output_grid(grid_of(layer, (*grid, 0)))
    return affine(
        covariance,
        layer.weight_variance,
        layer.bias_variance,
        layer.channels,
        average=lambda values: patch.mean(values, grid, *covariance.pixel_axes(values)),
        patch=patch.pixels(grid),
        grid=output_grid,
    )
