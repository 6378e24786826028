"""Multi-head attention on sequences of tokens, and transformers made of it."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.system import parameter, structure
from orderparam.gaussian.activations import Activation
from orderparam.kernels.attention import Normaliser, attention
from orderparam.kernels.covariance import Covariance
from orderparam.networks.architecture import Architecture, Scaling
from orderparam.networks.composition import Serial, Sum
from orderparam.networks.convolution import Convolution
from orderparam.networks.dense import Dense, Nonlinearity
from orderparam.networks.layer import Layer, Shape, grid_of, open_width
from orderparam.networks.options import mean_field_scale
from orderparam.networks.pooling import GlobalAveragePool


class HeadWeights(eqx.Module):
    """Weights of all heads of a layer of attention.

    query: what a token asks for. key: what it offers; None where queries equal keys. value: what is
    passed on.
    """

    query: Float[Array, "head key channel"]
    key: Float[Array, "head key channel"] | None
    value: Float[Array, "head output channel"]


class Attention(Layer):
    r"""Multi-head attention on examples of shape (tokens, channels): the output at token a is

    $$ z_a = \frac1{\sqrt H} \sum_h \sum_b A^h_{ab} V_h x_b, \qquad
       A^h = \mathrm{softmax}(s\, G^h), \qquad G^h_{ab} = \frac{q_a \cdot k_b}{\sqrt m} $$

    with $q_a = Q_h x_a$, $k_b = K_h x_b$, entries of Q and K of variance 1/d and of V of variance
    `weight_variance`/d, d the number of input channels, and the softmax by rows. The matrix that
    projects the heads together is part of V, which changes no covariance.

    heads: number H. channels: of the output. key_width: number m. Each of them may be None, so that
    only the limit of infinitely many heads and infinitely wide queries exists. scale: s.
    normaliser: "softmax", or "identity" for linear attention A = s G. tied: queries equal keys and
    G = q q^T/m, whose limit does not fluctuate. log2_points: of the averages over logits of three
    and more tokens (see `normal_points`); two tokens have a product rule of 48^2 nodes.

    Raises `ValueError` for values out of range and for inputs that are not (tokens, channels).

    The kernel is exact for "identity" and for tied queries, to 1e-8 for two tokens with logits of
    standard deviation up to 2, and to a few parts in a thousand for more tokens at the default
    points.

    Source: Hron, Bahri, Sohl-Dickstein, Novak (2020).
    """

    heads: int | None = parameter("number of heads; None: infinitely many", above=0, integer=True)
    channels: int | None = parameter("number of output channels; None: open", above=0, integer=True)
    key_width: int | None = parameter(
        "entries of a query and of a key; None: infinitely many",
        above=0,
        integer=True,
        default=None,
    )
    scale: float = parameter("what logits are multiplied by", default=1.0, kw_only=True)
    weight_variance: float = parameter(
        "variance of a value weight, times fan_in", minimum=0, default=1.0, kw_only=True
    )
    normaliser: Normaliser = structure(
        "softmax by rows, or linear attention", default="softmax", kw_only=True
    )
    tied: bool = structure("whether queries equal keys", default=False, kw_only=True)
    log2_points: int = structure(
        "logarithm to the base 2 of the points of an average over logits",
        minimum=1,
        default=12,
        kw_only=True,
    )

    def output_shape(self, input_shape: Shape) -> Shape:
        grid = grid_of(self, input_shape)
        if len(grid) != 1:
            raise ValueError(
                f"Attention acts on examples of shape (tokens, channels), not {input_shape}"
            )
        return (*grid, open_width(self, "channels"))

    def draw(self, key: PRNGKeyArray, input_shape: Shape) -> HeadWeights:
        *_, outputs = self.output_shape(input_shape)
        heads, width = open_width(self, "heads"), open_width(self, "key_width")
        query_key, key_key, value_key = jax.random.split(key, 3)
        shape = (heads, width, input_shape[-1])
        return HeadWeights(
            jax.random.normal(query_key, shape),
            None if self.tied else jax.random.normal(key_key, shape),
            jax.random.normal(value_key, (heads, outputs, input_shape[-1])),
        )

    def multipliers(self, parameters: HeadWeights) -> HeadWeights:
        heads, _, fan_in = parameters.value.shape
        return HeadWeights(
            jnp.sqrt(1 / fan_in),
            None if self.tied else jnp.sqrt(1 / fan_in),
            jnp.sqrt(self.weight_variance / (fan_in * heads)),
        )

    def mixing(
        self, weights: HeadWeights, x: Float[Array, "example token channel"]
    ) -> Float[Array, "example head token token"]:
        """The matrices A of all heads."""
        query = jnp.einsum("ntc,hmc->nhtm", x, weights.query)
        key = query if weights.key is None else jnp.einsum("ntc,hmc->nhtm", x, weights.key)
        width = query.shape[-1]
        logits = self.scale * query @ jnp.swapaxes(key, -1, -2)
        logits = logits / (width if self.tied else math.sqrt(width))
        return jax.nn.softmax(logits, axis=-1) if self.normaliser == "softmax" else logits

    def __call__(
        self, weights: HeadWeights, x: Float[Array, "example token channel"]
    ) -> Float[Array, "example token output"]:
        mixed = self.mixing(weights, x) @ x[:, None]
        return jnp.einsum("nhtc,hoc->nto", mixed, weights.value)

    def covariance(self, covariance: Covariance, pixel_pairs: bool) -> Covariance:
        return attention(
            covariance,
            self.normaliser,
            self.tied,
            self.scale,
            self.weight_variance,
            self.channels,
            pixel_pairs,
            self.log2_points,
        )

    def needs_pixel_pairs(self, after: bool) -> bool:
        return True

    def centred(self, before: bool) -> bool:
        return True


def transformer(
    depth: int,
    heads: int | None,
    channels: int | None,
    key_width: int | None = None,
    activation: Activation | str = "relu",
    *,
    scale: float = 1.0,
    normaliser: Normaliser = "softmax",
    tied: bool = False,
    weight_variance: float = 1.0,
    scaling: Scaling = "ntk",
    chi: Any = None,
    log2_points: int = 12,
) -> Architecture:
    """A transformer: tokens are embedded, pass `depth` blocks x + attention(x), x + W phi(V x), and
    their average is read out.

    Args:
        depth: number of blocks, at least 0.
        heads, channels, key_width: widths, see `Attention`; each may be None for the infinite-width
            limit. All layers have the same number of channels.
        activation: phi between the two layers that act on single tokens.
        scale, normaliser, tied, log2_points: see `Attention`.
        weight_variance: variance of all weights, times their fan-in.
        scaling, chi: see `Architecture`. By default chi is the number of channels in "mean_field"
            scaling.

    Raises:
        ValueError: for a negative depth, and for values that the layers refuse.
    """
    if depth < 0:
        raise ValueError(f"depth = {depth}: must be at least 0")
    variance = {"weight_variance": weight_variance}
    layers: list[Layer] = [Convolution(channels, 1, **variance)]
    for _ in range(depth):
        heads_layer = Attention(
            heads,
            channels,
            key_width,
            scale=scale,
            normaliser=normaliser,
            tied=tied,
            log2_points=log2_points,
            **variance,
        )
        single = (
            Convolution(channels, 1, **variance),
            Nonlinearity(activation),
            Convolution(channels, 1, **variance),
        )
        layers += [Sum((Serial(()), heads_layer)), Sum((Serial(()), Serial(single)))]
    layers += [GlobalAveragePool(), Dense(1, **variance)]
    return Architecture(Serial(tuple(layers)), scaling, mean_field_scale(chi, scaling, channels))
