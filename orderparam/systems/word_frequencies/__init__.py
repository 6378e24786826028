"""Frequencies of words: the law of Zipf and Mandelbrot, how its fits depend on the window of ranks
and on the method, and how a vocabulary grows.

    import jax
    from orderparam.data.text import documentation, numbered_words
    from orderparam.systems.word_frequencies import ReadText, fitted_text

    text = numbered_words(documentation(("pydoc_data",)))
    fitted_text(ReadText(text.words, text.ends), jax.random.key(0)).exponent
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.word_frequencies.experiment import (
        drawn_vocabulary,
        fitted,
        fitted_text,
        read_vocabulary,
        refitted_law,
    )
    from orderparam.systems.word_frequencies.model import RankLaw, ReadText
    from orderparam.systems.word_frequencies.theory import (
        RankFit,
        Vocabulary,
        expected_vocabulary,
        shuffled_vocabulary,
        true_law,
    )

LABELS = {
    "distinct": ("different words", ""),
    "once": ("words met once", ""),
    "exponent": ("exponent of the law", "a"),
    "offset": ("offset of the law", "b"),
    "divergence": ("divergence of counts from the law", ""),
    "drawn": ("words drawn", "N"),
    "share": ("share of the words that is read", ""),
    "window": ("ranks fitted", ""),
}

__all__ = exported(globals())
