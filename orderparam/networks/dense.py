"""Fully connected layers and elementwise nonlinearities."""

from jaxtyping import Array, Float

from orderparam.core.system import parameter, part
from orderparam.gaussian.activations import Activation, activation
from orderparam.kernels.covariance import Covariance
from orderparam.kernels.nngp import affine, nonlinear
from orderparam.networks.affine import Affine, Weights
from orderparam.networks.layer import Layer, Shape, open_width


class Dense(Affine):
    """z_i = sum_j W_ij x_j + b_i with W_ij ~ N(0, weight_variance / fan_in) and b_i ~ N(0,
    bias_variance).

    width: number of outputs; None leaves it open, so that only the infinitely wide network exists.
    Raises `ValueError` for a variance below zero (see `Affine`) or a width that is not a positive
    integer.
    """

    width: int | None = parameter("number of outputs; None: open", above=0, integer=True)

    def output_shape(self, input_shape: Shape) -> Shape:
        if len(input_shape) != 1:
            raise ValueError(
                f"Dense acts on vectors, not on examples of shape {input_shape}: put Flatten "
                "before it"
            )
        return (open_width(self, "width"),)

    def weight_shape(self, input_shape: Shape) -> Shape:
        return (*self.output_shape(input_shape), *input_shape)

    def __call__(
        self, weights: Weights, x: Float[Array, "example input"]
    ) -> Float[Array, "example output"]:
        z = x @ weights.weight.T
        return z if weights.bias is None else z + weights.bias

    def covariance(self, covariance: Covariance, pixel_pairs: bool) -> Covariance:
        if covariance.grid:
            raise ValueError(
                f"Dense acts on vectors, not on a grid of {covariance.grid} pixels: put Flatten "
                "before it"
            )
        return affine(covariance, self.weight_variance, self.bias_variance, self.width)


class Nonlinearity(Layer):
    """x -> phi(x), entry by entry. `activation`: an `Activation`, its name such as "erf", or a
    Python function."""

    activation: Activation = part("the function phi", convert=activation)

    def output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    def __call__(
        self, weights: tuple[()], x: Float[Array, "example *shape"]
    ) -> Float[Array, "example *shape"]:
        return self.activation(x)

    def covariance(self, covariance: Covariance, pixel_pairs: bool) -> Covariance:
        return nonlinear(covariance, self.activation)

    def centred(self, before: bool) -> bool:
        return False
