"""Random attention with many heads, before any training: the systems."""

from jaxtyping import Array, Float

from orderparam.core.system import System, parameter, structure
from orderparam.kernels.attention import Normaliser
from orderparam.networks import Architecture, GlobalAveragePool, Serial
from orderparam.networks.attention import Attention, transformer


class RandomHeads(System):
    r"""One layer of attention with H random heads, whose mean over the T tokens is the output.


    $$ f(X) = \frac1{\sqrt H} \sum_h \bar A_h \cdot X v_h/\sqrt d, \qquad
       \bar A_{h,b} = \frac1T \sum_a A^h_{ab}, \qquad
       A^h = \mathrm{softmax}\Big( \frac{s}{\sqrt m}\, Q_h K_h^T \Big) $$

    with queries and keys $Q_h = X W/\sqrt d$ of m entries, standard normal weights W and $v_h$, and
    the softmax by rows; linear attention has $A = s\, Q K^T/\sqrt m$.

    Source: Hron, Bahri, Sohl-Dickstein, Novak (2020).

    >>> RandomHeads([[[1.0, 0.0], [0.0, 1.0]]], heads=2).sequences.shape
    (1, 2, 2)
    """

    sequences: Float[Array, "sequence token channel"] = parameter("sequences X of tokens")
    heads: int = parameter("number H of heads", minimum=1, integer=True, default=8)
    key_width: int = parameter("entries m of a query", minimum=1, integer=True, default=64)
    scale: float = parameter("s, what logits are multiplied by", default=1.0)
    normaliser: Normaliser = structure("softmax by rows, or linear attention", default="softmax")
    log2_points: int = structure(
        "logarithm to the base 2 of the points of an average over logits", minimum=1, default=12
    )

    def architecture(self, finite: bool = True) -> Architecture:
        """The layer and the mean over tokens.

        Args:
            finite: False leaves the widths open, for the limit of infinite widths.
        """
        layer = Attention(
            self.size("heads") if finite else None,
            1 if finite else None,
            self.size("key_width") if finite else None,
            scale=self.scale,
            normaliser=self.normaliser,
            log2_points=self.log2_points,
        )
        return Architecture(Serial((layer, GlobalAveragePool())))


class RandomTransformer(System):
    r"""A random transformer whose widths are all proportional to its number of heads.

    Tokens are embedded by random weights; each of `depth` blocks adds attention and a network of
    one hidden layer that acts on single tokens, $x \leftarrow x + \mathrm{attention}(x)$ and $x
    \leftarrow x + W \varphi(V x)$; the mean over tokens is read out. With H `heads`, queries, keys
    and tokens have H times `width_per_head` entries, so that all corrections of finite size are in
    powers of 1/H.

    Source: Hron, Bahri, Sohl-Dickstein, Novak (2020).

    >>> RandomTransformer([[[1.0, 0.0], [0.0, 1.0]]], heads=2).sequences.shape
    (1, 2, 2)
    """

    sequences: Float[Array, "sequence token channel"] = parameter("sequences X of tokens")
    heads: int = parameter("number H of heads", minimum=1, integer=True, default=8)
    width_per_head: int = parameter(
        "entries of a token, a query and a key, over H", minimum=1, integer=True, default=4
    )
    scale: float = parameter("s, what logits are multiplied by", default=1.0)
    depth: int = structure("number of blocks", minimum=0, default=1)
    normaliser: Normaliser = structure("softmax by rows, or linear attention", default="softmax")
    log2_points: int = structure(
        "logarithm to the base 2 of the points of an average over logits", minimum=1, default=12
    )

    def architecture(self, finite: bool = True) -> Architecture:
        """The transformer.

        Args:
            finite: False leaves the widths open, for the limit of infinite widths.
        """
        heads = self.size("heads") if finite else None
        width = self.size("heads") * self.size("width_per_head") if finite else None
        return transformer(
            self.depth,
            heads,
            width,
            width,
            scale=self.scale,
            normaliser=self.normaliser,
            log2_points=self.log2_points,
        )
