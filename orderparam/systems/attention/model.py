"""Attention whose queries and keys are one vector: the systems.

A layer of dot-product attention with tied low-rank weights depends on its tokens only through a few
numbers, the products of the tokens with the weights. It is a multi-index model whose examples are
sequences.
"""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter


class SeenSequence(System):
    r"""A vector that is to be recovered from the attention matrices that it produces on sequences.

    The vector is $w \sim N(0, 1_d)$. Each of the $n = \alpha d$ examples is a sequence of L tokens
    $x_l \sim N(0, 1_d)$ with the matrix of attention

    $$ y = \mathrm{softmax}(h h^T), \qquad h_l = x_l \cdot w/\sqrt d , $$

    where the softmax is taken row by row. For $L \ge 2$ the matrix determines $h h^T$, and
    therefore h up to one sign. For a single token the softmax is 1; the label is then taken to be
    $h^2$ itself, which is phase retrieval.
    """

    sample_ratio: float = parameter("sequences over dimension, n/d", above=0)
    tokens: int = parameter(
        "tokens L of a sequence", minimum=1, maximum=100, integer=True, default=2
    )
    input_dim: int = parameter(
        "dimension d of a token, of an experiment", minimum=10, integer=True, default=1000
    )


class TiedAttention(System):
    r"""A layer of dot-product attention that can learn from the positions or from the contents of
    tokens.

    A sequence has two tokens $x_l = \pm 1_d/\sqrt d + s z_l$, $z_l \sim N(0, 1_d)$. Their means are
    the same in all sequences and encode the positions. The targets mix the noise $s z$ of the
    tokens by a matrix that depends on their positions and on their contents,

    $$ y = \left[ (1 - \omega)\, \mathrm{softmax}(t t^T) + \omega A \right] s z , \qquad
       t_l = \frac{s z_l \cdot w_*}{\sqrt d}, \quad |w_*|^2 = d, \quad
       A = \begin{pmatrix} a & 1 - a \\ 1 - a & a \end{pmatrix}, $$

    where the softmax is taken by rows. The layer $\hat y = \mathrm{softmax}(h h^T) x$, $h_l = x_l
    \cdot w/\sqrt d$, is trained on $n = \alpha d$ sequences to a minimum of

    $$ \sum_\mu \frac{|y - \hat y|^2}{2 d} + \frac\lambda2 |w|^2 . $$

    Conventions: order parameters are $q = s^2 |w|^2/d$, $\theta = s^2 w \cdot w_*/d$ and
    $m = 1_d \cdot w/d$. The reflection $w \to -w$ changes nothing; the signs of the order
    parameters are those of the start.
    """

    sample_ratio: float = parameter("training sequences over dimension, n/d", above=0)
    positional_share: float = parameter(
        "omega, weight of the positional part of the targets", minimum=0, maximum=1, default=0.3
    )
    token_spread: float = parameter("s, standard deviation of tokens", above=0, default=0.5)
    own_weight: float = parameter(
        "a, what the positional part gives to a token itself", minimum=0, maximum=1, default=0.6
    )
    ridge: float = parameter("ridge lambda", above=0, default=0.01)
    input_dim: int = parameter(
        "dimension d of a token, of an experiment", minimum=10, integer=True, default=400
    )


Branch = Literal["positional", "semantic"]
Pairs = Float[Array, "*batch 2"]


def own_attention(fields: Pairs) -> Pairs:
    """The diagonal of softmax(h h^T) for two tokens. It is the attention of each token to itself
    and determines the whole matrix."""
    first, second = fields[..., 0], fields[..., 1]
    difference = first - second
    exponents = jnp.stack([first * difference, -second * difference], axis=-1)
    return 0.5 * (1 + jnp.tanh(exponents / 2))


def target_attention(system: TiedAttention, fields: Pairs) -> Pairs:
    """The diagonal of the mixing matrix of the targets, from the fields t."""
    share = system.positional_share
    return (1 - share) * own_attention(fields) + share * system.own_weight


def attention_cost(system: TiedAttention, wanted: Pairs, given: Pairs) -> Float[Array, "*batch"]:
    """(s^2/2) |Y - S|^2 over all four entries: the loss of one sequence in the limit of large d."""
    return system.token_spread**2 * jnp.sum((wanted - given) ** 2, axis=-1)
