"""Experiments on word frequencies: words that are drawn from a law, and words of a text."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.solve.minimum import lbfgs_minimum
from orderparam.systems.word_frequencies.model import Basis, Method, RankLaw, ReadText
from orderparam.systems.word_frequencies.theory import RankFit, Vocabulary


@experiment
def drawn_vocabulary(system: RankLaw, key: PRNGKeyArray) -> Vocabulary:
    """Numbers of types (different words) among words drawn from a law of ranks.

    Source: derived here.

    >>> import jax
    >>> bool(drawn_vocabulary(RankLaw(drawn=1000), jax.random.key(0)).distinct > 400)
    True
    """
    return _vocabulary(_drawn(system, key))


@experiment
def refitted_law(
    system: RankLaw,
    key: PRNGKeyArray,
    *,
    method: Method = "likelihood",
    least: int = 10,
    ranks: Basis = "counts",
    cut: Basis = "counts",
) -> RankFit:
    """The law fitted to drawn words; by default types are ranked, and selected for the fit, by
    their counts.

    A type that is drawn often by chance moves up in rank and may enter the fit, which distorts the
    tail. As controls, the ranks and the selection can follow the law, which is unknown for a real
    text.

    Args:
        method: "likelihood" or "squares", see `fitted`.
        least: the number of ranks that are fitted is the number of types with this count or a
            larger one.
        ranks: "counts" ranks the types by their counts, "law" by their probabilities.
        cut: "counts" compares `least` with the counts, "law" compares it with the means of the
            counts.

    Source: derived here.

    >>> import jax
    >>> found = refitted_law(RankLaw(types=300, drawn=1e5), jax.random.key(0))
    >>> bool(abs(found.exponent - 1.05) < 0.1)
    True
    """
    counts = _drawn(system, key)
    compared = counts if cut == "counts" else system.drawn * system.probabilities
    largest = jnp.sum(compared >= least).astype(float)
    if ranks == "counts":
        counts = jnp.sort(counts)[::-1]
    return _fit(counts, largest, method)


@experiment
def read_vocabulary(system: ReadText, key: PRNGKeyArray) -> Vocabulary:
    """Numbers of types among the first words of a text whose documents are put in a random order.

    Source: derived here.

    >>> import jax
    >>> float(
    ...     read_vocabulary(ReadText([0, 1, 0, 2], [2, 4], share=0.5), jax.random.key(0)).distinct
    ... )
    2.0
    """
    read = int(system.read)
    return _vocabulary(_counts(system, _shuffled(system, key)[:read]))


@experiment
def fitted_text(system: ReadText, key: PRNGKeyArray, *, method: Method = "likelihood") -> RankFit:
    """The law fitted to the `window` most frequent words of a text whose documents are resampled.

    As many documents as the text has are drawn with replacement (bootstrap), so that the scatter
    over keys is the standard error of the fit.

    Args:
        method: "likelihood" or "squares", see `fitted`.

    Source: derived here.

    >>> import jax
    >>> text = ReadText([0] * 9 + [1] * 5 + [2] * 3 + [3, 3, 4], [20], window=5)
    >>> bool(fitted_text(text, jax.random.key(0)).exponent > 0)
    True
    """
    documents = _documents(system)
    chosen = np.asarray(jax.random.randint(key, (len(documents),), 0, len(documents)))
    read = np.concatenate([documents[one] for one in chosen])
    counts = jnp.sort(_counts(system, read))[::-1].astype(float)
    return _fit(counts, jnp.asarray(system.window, float), method)


@eqx.filter_jit
def _fit(counts: Array, window: Array, method: Method) -> RankFit:
    return RankFit(**fitted(counts, window, method)._asdict())


def _drawn(system: RankLaw, key: PRNGKeyArray) -> Float[Array, "rank"]:
    """Counts of all types, drawn from a multinomial distribution by NumPy in one pass over the
    types."""
    seed = np.asarray(jax.random.bits(key, (2,))).tolist()
    p = np.asarray(system.probabilities)
    return jnp.asarray(
        np.random.default_rng(seed).multinomial(system.size("drawn"), p / p.sum()), dtype=float
    )


def _counts(system: ReadText, words: np.ndarray) -> Float[Array, "type"]:
    types = int(np.max(system.words)) + 1
    return jnp.asarray(np.bincount(words, minlength=types), dtype=float)


def _documents(system: ReadText) -> list[np.ndarray]:
    words, ends = (np.asarray(one).astype(int) for one in (system.words, system.ends))
    return np.split(words, ends[:-1])


def _shuffled(system: ReadText, key: PRNGKeyArray) -> np.ndarray:
    """The words with the documents in a random order."""
    documents = _documents(system)
    order = np.asarray(jax.random.permutation(key, len(documents)))
    return np.concatenate([documents[one] for one in order])


def _vocabulary(counts: Array) -> Vocabulary:
    return Vocabulary(
        distinct=jnp.sum(counts > 0).astype(float), once=jnp.sum(counts == 1).astype(float)
    )


# ------------------------------------------------------------------------------------------------
# Fit of the law of Zipf and Mandelbrot to the counts of words, within a window of ranks.

Scalar = Float[Array, ""]


class FittedLaw(NamedTuple):
    """A fitted law: exponent a, offset b, divergence of the counts from it, and convergence of the
    fit."""

    exponent: Scalar
    offset: Scalar
    divergence: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


def fitted(counts: Float[Array, "rank"], window: Scalar, method: Method) -> FittedLaw:
    r"""The law $(r + b)^{-a}$ on the ranks 1 to `window` that fits `counts` best.

    Let f be the shares of the counts in the window. The method "likelihood" minimises the
    divergence $\sum_r f_r \ln(f_r/p_r)$. The method "squares" minimises the mean square of $\ln f_r
    - \ln p_r$ over the ranks with a count, up to a free additive constant and with the weight 1/r,
    so that every octave of ranks has the same weight. For both methods `divergence` is the
    divergence at the fitted law.
    """
    ranks = jnp.arange(1, len(counts) + 1, dtype=float)
    counted = counts > 0
    inside = (ranks <= window) & (counted | (method == "likelihood"))
    share = jnp.where(inside, counts, 0.0)
    share = share / share.sum()
    logs = jnp.log(jnp.where(inside & counted, share, 1.0))
    even = jnp.where(inside, 1 / ranks, 0.0)
    even = even / even.sum()

    def log_law(unknown: Array) -> Array:
        # b = exp(u) - 1 > -1
        slopes = -unknown[0] * jnp.log(ranks + jnp.expm1(unknown[1]))
        norm = jax.scipy.special.logsumexp(jnp.where(inside, slopes, -jnp.inf))
        return jnp.where(inside, slopes - norm, 0.0)

    def divergence(unknown: Array) -> Scalar:
        return jnp.sum(share * (logs - log_law(unknown)))

    def squares(unknown: Array) -> Scalar:
        differences = logs - log_law(unknown)
        return jnp.sum(even * (differences - jnp.sum(even * differences)) ** 2)

    function = divergence if method == "likelihood" else squares
    found = lbfgs_minimum(function, jnp.array([1.0, 1.0]), tolerance=1e-8, max_steps=300)
    exponent, shift = found.value
    return FittedLaw(
        exponent, jnp.expm1(shift), divergence(found.value), found.residual, found.converged
    )
