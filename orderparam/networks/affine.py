"""The common base of all layers with weights: Gaussian weights with variance weight_variance /
fan_in, and biases."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.system import parameter
from orderparam.networks.layer import Layer, Shape


class Weights(eqx.Module):
    """Weights and, if the layer has them, biases. The axis of output channels comes first in
    both."""

    weight: Float[Array, "output *input"]
    bias: Float[Array, "output *grid"] | None


class Affine(Layer):
    """z = W x + b, with W ~ N(0, weight_variance / fan_in) and b ~ N(0, bias_variance), all
    independent.

    bias_variance: None means that there are no biases (0.0 means biases that start at zero).
    Raises `ValueError` for a variance below zero.
    """

    weight_variance: float = parameter(
        "variance of a weight, times fan_in", minimum=0, default=1.0, kw_only=True
    )
    bias_variance: float | None = parameter(
        "variance of a bias; None: no biases", minimum=0, default=None, kw_only=True
    )

    def weight_shape(self, input_shape: Shape) -> Shape:
        """(output channels, ..., *what one output sees): the shape of the weights."""
        raise NotImplementedError

    def bias_shape(self, input_shape: Shape) -> Shape:
        """(output channels, ...): the shape of the biases."""
        return self.weight_shape(input_shape)[:1]

    def fan_in(self, weight_shape: Shape) -> int:
        """Number of weights that one output sums over."""
        return math.prod(weight_shape[1:])

    def draw(self, key: PRNGKeyArray, input_shape: Shape) -> Weights:
        weight_key, bias_key = jax.random.split(key)
        bias = (
            None
            if self.bias_variance is None
            else jax.random.normal(bias_key, self.bias_shape(input_shape))
        )
        return Weights(jax.random.normal(weight_key, self.weight_shape(input_shape)), bias)

    def multipliers(self, parameters: Weights) -> Weights:
        fan_in = self.fan_in(parameters.weight.shape)
        bias = None if self.bias_variance is None else jnp.sqrt(self.bias_variance)
        return Weights(jnp.sqrt(self.weight_variance / fan_in), bias)

    def centred(self, before: bool) -> bool:
        return True
