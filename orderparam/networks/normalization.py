"""Layer normalisation."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.system import parameter
from orderparam.kernels.covariance import Covariance
from orderparam.kernels.nngp import normalised
from orderparam.networks.layer import Layer, Shape


class LayerNorm(Layer):
    """x -> (x - mean) / sqrt(variance + epsilon), with mean and variance over the channels of each
    example and pixel (Ba et al. 2016).

    At infinite width the channels of a layer with weights have mean zero and variance K_aa(x, x),
    so that K_ab(x, x') <- K_ab(x, x') / sqrt((K_aa(x, x) + epsilon) (K_bb(x', x') + epsilon)), and
    Theta likewise. It must follow a layer with weights. There are no trained gains and offsets.
    Raises `ValueError` for epsilon below zero.
    """

    epsilon: float = parameter("added to the variance", minimum=0, default=1e-12)

    def output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    def __call__(
        self, weights: tuple[()], x: Float[Array, "example *shape"]
    ) -> Float[Array, "example *shape"]:
        centred = x - x.mean(axis=-1, keepdims=True)
        return centred / jnp.sqrt((centred**2).mean(axis=-1, keepdims=True) + self.epsilon)

    def covariance(self, covariance: Covariance, pixel_pairs: bool) -> Covariance:
        return normalised(covariance, self.epsilon)
