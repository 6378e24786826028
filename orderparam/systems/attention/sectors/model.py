"""Regression on sequences with a kernel that is invariant under permutations of tokens: the
system."""

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter, structure
from orderparam.networks import (
    Architecture,
    Attention,
    Dense,
    Flatten,
    GlobalAveragePool,
    Serial,
    Sum,
)

Sector = Literal["symmetric", "standard"]
Sequences = Float[Array, "sequence token channel"]


class SequenceRegression(System):
    r"""A linear function of sequences that a sum of attention and a linear read-out of the tokens
    learns.

    Tokens are independent, $x_t \sim N(0, 1_d)$. The model is the sum of heads with tied queries,
    whose mean over tokens is read out, and of a linear read-out of all tokens. With infinitely many
    heads it is a Gaussian process with the kernel

    $$ k(X, Y) = a\, T\, \bar a_X^T \frac{X Y^T}d \bar a_Y + \frac bT \sum_t \frac{x_t \cdot y_t}d ,
       \qquad \bar a_X = \frac1T \sum_t \mathrm{softmax}\Big( \frac cd X X^T \Big)_{t\, \cdot} $$

    which does not change when the tokens of both sequences are permuted in the same way. Its
    eigenfunctions therefore belong to representations of the permutation group. Linear functions
    contain two of them: the sum of tokens (symmetric, dimension 1) and their differences (standard,
    dimension T - 1). The target is $y = \sum_t x_{t1}/\sqrt T$ or $y = (x_{11} - x_{21})/\sqrt 2$,
    of mean square 1. `ridge` is added to the Gram matrix.

    Source: the sectors of Lavie, Gur-Ari, Ringel (2024); this kernel is chosen here.

    >>> layer = SequenceRegression(n_train=20).architecture(finite=False)
    >>> layer.kernel([[[1.0] * 8] * 6]).nngp.shape
    (1, 1)
    """

    n_train: float = parameter("training sequences n", above=0)
    ridge: float = parameter("ridge added to the Gram matrix", above=0, default=0.05)
    scale: float = parameter("c, what logits are multiplied by", minimum=0, default=2.0)
    attention_share: float = parameter("a, weight of the attention", above=0, default=1.0)
    token_share: float = parameter("b, weight of the read-out of the tokens", above=0, default=1.0)
    heads: int = parameter("number of heads of a finite layer", minimum=1, integer=True, default=16)
    width_per_head: int = parameter(
        "entries of a query of a finite layer, over H", minimum=1, integer=True, default=4
    )
    tokens: int = structure("number T of tokens", minimum=2, default=6)
    input_dim: int = structure("dimension d of a token", minimum=2, default=8)
    target: Sector = structure("the sector of the target", default="symmetric")

    def architecture(self, finite: bool = True) -> Architecture:
        """The model as a network: the mean over tokens of heads, plus a read-out of all tokens.

        Args:
            finite: False leaves the widths open, for the kernel of infinite widths.
        """
        heads = Attention(
            self.size("heads") if finite else None,
            1 if finite else None,
            self.size("heads") * self.size("width_per_head") if finite else None,
            scale=self.scale,
            weight_variance=self.attention_share * self.tokens,
            tied=True,
        )
        tokens = Dense(1, weight_variance=self.token_share)
        branches = Sum((Serial((heads, GlobalAveragePool())), Serial((Flatten(), tokens))))
        return Architecture(Serial((branches,)))

    def labels(self, sequences: Sequences) -> Float[Array, "sequence"]:
        """The target y of each sequence."""
        first = sequences[..., 0]
        if self.target == "symmetric":
            return jnp.sum(first, axis=-1) / jnp.sqrt(self.tokens)
        return (first[..., 0] - first[..., 1]) / jnp.sqrt(2)


def attended(system: SequenceRegression, x: Sequences) -> Float[Array, "sequence channel"]:
    """The features psi = sqrt(T a/d) a_X^T X of the attention in the kernel."""
    logits = system.scale / system.input_dim * x @ jnp.swapaxes(x, 1, 2)
    mean = jnp.mean(jax.nn.softmax(logits, axis=-1), axis=1)
    size = jnp.sqrt(system.tokens * system.attention_share / system.input_dim)
    return size * jnp.einsum("nt,ntc->nc", mean, x)


def sequence_features(system: SequenceRegression, x: Sequences) -> Float[Array, "sequence feature"]:
    """Features whose scalar product is the kernel: psi, and all tokens times sqrt(b/(T d))."""
    alone = jnp.sqrt(system.token_share / (system.tokens * system.input_dim))
    return jnp.concatenate([attended(system, x), alone * x.reshape(len(x), -1)], axis=1)
