"""Layers in sequence, and sums of branches."""

from typing import Any

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.kernels.covariance import Covariance
from orderparam.networks.layer import Layer, Shape


class Serial(Layer):
    """Layers one after the other. `Serial(())` is the identity."""

    layers: tuple[Layer, ...]

    def __check_init__(self) -> None:
        for layer in self.layers:
            if not isinstance(layer, Layer):
                raise ValueError(
                    f"Serial.layers contains {layer!r}: must be layers (Dense, Nonlinearity, ...)"
                )

    def output_shape(self, input_shape: Shape) -> Shape:
        for layer in self.layers:
            input_shape = layer.output_shape(input_shape)
        return input_shape

    def draw(self, key: PRNGKeyArray, input_shape: Shape) -> tuple[Any, ...]:
        parameters = []
        for layer, layer_key in zip(self.layers, jax.random.split(key, max(len(self.layers), 1))):
            parameters.append(layer.draw(layer_key, input_shape))
            input_shape = layer.output_shape(input_shape)
        return tuple(parameters)

    def multipliers(self, parameters: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(layer.multipliers(own) for layer, own in zip(self.layers, parameters))

    def __call__(
        self, weights: tuple[Any, ...], x: Float[Array, "example *input"]
    ) -> Float[Array, "example *output"]:
        for layer, own in zip(self.layers, weights):
            x = layer(own, x)
        return x

    def covariance(self, covariance: Covariance, pixel_pairs: bool) -> Covariance:
        needs = [pixel_pairs]
        for layer in reversed(self.layers):
            needs.append(layer.needs_pixel_pairs(needs[-1]))
        for layer, after in zip(self.layers, reversed(needs[:-1])):
            covariance = layer.covariance(covariance, after)
        return covariance

    def needs_pixel_pairs(self, after: bool) -> bool:
        for layer in reversed(self.layers):
            after = layer.needs_pixel_pairs(after)
        return after

    def centred(self, before: bool) -> bool:
        for layer in self.layers:
            before = layer.centred(before)
        return before


class Sum(Layer):
    """The sum of branches that see the same input: `Sum((Serial(()), body))` is a residual block x
    + body(x).

    The covariances of the branches add up, because their weights are independent and all but at
    most one of them average to zero over their own weights, that is, end in a layer with weights
    (and no nonlinearity after it). Raises `ValueError` when that does not hold, or when the
    branches' outputs have different shapes.
    """

    branches: tuple[Layer, ...]

    def __check_init__(self) -> None:
        if not self.branches or any(not isinstance(branch, Layer) for branch in self.branches):
            raise ValueError(f"Sum.branches = {self.branches!r}: must be one or more layers")
        if sum(not branch.centred(False) for branch in self.branches) > 1:
            raise ValueError(
                "Sum: all branches but one must end in a layer with weights, or their covariances "
                "do not add up"
            )

    def output_shape(self, input_shape: Shape) -> Shape:
        shapes = {branch.output_shape(input_shape) for branch in self.branches}
        if len(shapes) > 1:
            raise ValueError(
                f"Sum: the branches give examples of different shapes {sorted(shapes)}"
            )
        return shapes.pop()

    def draw(self, key: PRNGKeyArray, input_shape: Shape) -> tuple[Any, ...]:
        keys = jax.random.split(key, len(self.branches))
        return tuple(branch.draw(own, input_shape) for branch, own in zip(self.branches, keys))

    def multipliers(self, parameters: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(branch.multipliers(own) for branch, own in zip(self.branches, parameters))

    def __call__(
        self, weights: tuple[Any, ...], x: Float[Array, "example *input"]
    ) -> Float[Array, "example *output"]:
        total, *others = (branch(own, x) for branch, own in zip(self.branches, weights))
        for other in others:
            total = total + other
        return total

    def covariance(self, covariance: Covariance, pixel_pairs: bool) -> Covariance:
        total, *others = (branch.covariance(covariance, pixel_pairs) for branch in self.branches)
        # one branch may have needed pairs of pixels, which the others then contain too
        if not pixel_pairs:
            total, others = total.equal_pixels(), [other.equal_pixels() for other in others]
        for other in others:
            total = total + other
        return total

    def needs_pixel_pairs(self, after: bool) -> bool:
        return any(branch.needs_pixel_pairs(after) for branch in self.branches)

    def centred(self, before: bool) -> bool:
        return all(branch.centred(before) for branch in self.branches)
