"""A layer: one definition that is both a map on activations (finite width) and a map on covariances
(infinite width)."""

from typing import Any

from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.system import Record
from orderparam.kernels.covariance import Covariance

Shape = tuple[int, ...]


class Layer(Record):
    """One step of an architecture. Its random parameters are always drawn with unit variance
    (whitened, u ~ N(0, 1)) and multiplied by `multipliers`, so that the prior is standard normal in
    every scaling.

    Shapes leave out the examples: (channels,) for vectors, (*grid, channels) for signals and
    images.
    """

    def output_shape(self, input_shape: Shape) -> Shape:
        """Shape of one example after the layer. Raises `ValueError` when the layer cannot act on
        `input_shape`."""
        raise NotImplementedError

    def draw(self, key: PRNGKeyArray, input_shape: Shape) -> Any:
        """Whitened parameters: a pytree of standard normals (an empty one for a layer without
        weights)."""
        return ()

    def multipliers(self, parameters: Any) -> Any:
        """Prior standard deviations, in the structure of the parameters: weight = multiplier *
        u."""
        return ()

    def __call__(
        self, weights: Any, x: Float[Array, "example *input"]
    ) -> Float[Array, "example *output"]:
        """The layer's output for weights in their physical units (multipliers already applied)."""
        raise NotImplementedError

    def covariance(self, covariance: Covariance, pixel_pairs: bool) -> Covariance:
        """The infinite-width limit of the layer. `pixel_pairs`: True if the following layers need
        the covariance between pixels."""
        raise NotImplementedError

    def needs_pixel_pairs(self, after: bool) -> bool:
        """True if the layer's input must contain the covariance between pixels, given in `after` if
        its output must."""
        return after

    def centred(self, before: bool) -> bool:
        """True if the output averages to zero over weights that no other branch shares; `before`:
        True if the input does."""
        return before


def grid_of(layer: Layer, shape: Shape) -> Shape:
    """The pixel grid of an example of shape (*grid, channels). Raises `ValueError` when there is
    none."""
    if len(shape) < 2:
        raise ValueError(
            f"{type(layer).__name__} needs a grid of pixels: inputs of shape (examples, *grid, "
            "channels)"
        )
    return tuple(shape[:-1])


def open_width(layer: Layer, name: str) -> int:
    """A width as an integer. Raises `ValueError` when it is not fixed."""
    width = getattr(layer, name)
    if width is None:
        raise ValueError(
            f"{type(layer).__name__}.{name} = None: a finite network needs a number (None is the "
            "infinite-width limit)"
        )
    return int(width)
