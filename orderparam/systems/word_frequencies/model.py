"""The systems of word frequencies: a law over ranks, and a text of documents."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from orderparam.core.system import System, parameter, structure

Method = Literal["likelihood", "squares"]
Basis = Literal["counts", "law"]


class RankLaw(System):
    r"""Words drawn independently from the law of Zipf and Mandelbrot over R types,

    $$ p_r = \frac{(r + b)^{-a}}{\sum_{s=1}^R (s + b)^{-a}} , \qquad r = 1 \dots R . $$

    Source: Mandelbrot (1953).

    >>> [round(float(p), 4) for p in RankLaw(types=3, exponent=1.0, offset=0.0).probabilities]
    [0.5455, 0.2727, 0.1818]
    """

    exponent: float = parameter("a, exponent of the law", above=0, default=1.05)
    offset: float = parameter("b, ranks by which the law is shifted", above=-1, default=2.7)
    drawn: float = parameter("words N that are drawn", minimum=1, default=100_000)
    types: int = structure("types R of words", minimum=2, default=20_000)

    @property
    def probabilities(self) -> Float[Array, "rank"]:
        """The probabilities p_r, from the most frequent type on."""
        weights = (jnp.arange(1, self.types + 1) + self.offset) ** -self.exponent
        return weights / weights.sum()


class ReadText(System):
    """A text of N words in documents, of which the first words are read.

    Words are numbers, with 0 for the most frequent one. `share` is the fraction of the text that is
    read.

    `orderparam.data.text.numbered_words` makes the two arrays from a corpus.

    >>> float(ReadText([0, 1, 0, 2], [2, 4], share=0.5).read)
    2.0
    """

    words: Num[Array, "word"] = parameter("numbers of the words in reading order", minimum=0)
    ends: Num[Array, "document"] = parameter("where each document ends", above=0)
    share: float = parameter("part of the words that is read", above=0, maximum=1, default=0.1)
    window: float = parameter("ranks to which a law is fitted", minimum=3, default=1000)

    def __check_init__(self) -> None:
        traced = isinstance(self.ends, jax.core.Tracer)
        if not traced and np.asarray(self.ends)[-1] != len(self.words):
            raise ValueError(
                f"{type(self).__name__}.ends ends at {self.ends[-1]}: must end at the number of "
                f"words, {len(self.words)}"
            )

    @property
    def read(self) -> Float[Array, ""]:
        """Number of words that are read."""
        return jnp.round(self.share * len(self.words))
