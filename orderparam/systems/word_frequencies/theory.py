"""Theory of word frequencies: expected vocabularies of a law of ranks and of a text whose words are
shuffled."""

import jax.numpy as jnp
from jax.scipy.special import gammaln
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.word_frequencies.model import RankLaw, ReadText

Scalar = Float[Array, ""]


class Vocabulary(Result):
    """Numbers of types (different words) among the words that were read.

    Fields:
        distinct: number of types that occurred.
        once: number of types that occurred exactly once.
    """

    distinct: Scalar
    once: Scalar


class RankFit(Result):
    """The law of Zipf and Mandelbrot that is fitted to the counts of words.

    Fields:
        exponent: exponent a of the law.
        offset: offset b of the ranks.
        divergence: sum over the window of f ln(f/p), with the shares f of the counts.
        residual: largest entry of the gradient at the end of the fit.
        converged: whether the minimum was found.
    """

    exponent: Scalar
    offset: Scalar
    divergence: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


@theory
def expected_vocabulary(system: RankLaw) -> Vocabulary:
    r"""Expected numbers of types among N words drawn from a law of ranks.

    $$ E\, \mathrm{distinct} = \sum_r [1 - (1 - p_r)^N], \qquad
       E\, \mathrm{once} = \sum_r N p_r (1 - p_r)^{N - 1} $$

    As long as N is small compared with the number of types, both grow as $N^{1/a}$ for a > 1, which
    is the law of Heaps.

    Source: Heaps (1978) for the growth; the sums are elementary.

    >>> round(float(expected_vocabulary(RankLaw(drawn=100_000)).distinct), 1)
    13136.5
    """
    p, n = system.probabilities, system.drawn
    absent = jnp.exp(n * jnp.log1p(-p))
    once = n * p * jnp.exp((n - 1) * jnp.log1p(-p))
    return Vocabulary(
        distinct=jnp.sum(-jnp.expm1(n * jnp.log1p(-p))),
        once=jnp.sum(jnp.where(absent < 1, once, 0)),
    )


@theory
def true_law(system: RankLaw) -> RankFit:
    """The law from which the words are drawn, which a fit would find with infinitely many words.

    Source: Mandelbrot (1953).

    >>> float(true_law(RankLaw(offset=2.0)).offset)
    2.0
    """
    nothing = jnp.zeros(())
    return RankFit(
        exponent=jnp.asarray(system.exponent),
        offset=jnp.asarray(system.offset),
        divergence=nothing,
        residual=nothing,
        converged=jnp.asarray(True),
    )


@theory
def shuffled_vocabulary(system: ReadText) -> Vocabulary:
    r"""Expected numbers of types among the first m of N words when all words are shuffled.

    With $n_i$ the count of type i in the whole text,

    $$ E\, \mathrm{distinct} = \sum_i \left[ 1 - \binom{N - n_i}{m} \Big/ \binom Nm \right] , \qquad
       E\, \mathrm{once} = \sum_i n_i \binom{N - n_i}{m - 1} \Big/ \binom Nm . $$

    Accuracy: exact up to the rounding of logarithms of factorials, 1e-9 relative for a million
    words.

    Source: derived here.

    >>> found = shuffled_vocabulary(ReadText([0, 1, 0, 2], [2, 4], share=0.5))
    >>> round(float(found.distinct), 6)  # of six pairs one has one type
    1.833333
    """
    counts = jnp.bincount(system.words.astype(int), length=len(system.words))
    total, read = float(len(system.words)), system.read
    present = counts > 0

    def log_choose(n: Array, k: Array) -> Array:
        fits = (k <= n) & (n >= 0) & (k >= 0)
        n, k = jnp.where(fits, n, 0.0), jnp.where(fits, k, 0.0)
        value = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        return jnp.where(fits, value, -jnp.inf)

    whole = log_choose(jnp.asarray(total), read)
    absent = jnp.exp(log_choose(total - counts, read) - whole)
    once = counts * jnp.exp(log_choose(total - counts, read - 1) - whole)
    return Vocabulary(distinct=jnp.sum(jnp.where(present, 1 - absent, 0)), once=jnp.sum(once))
