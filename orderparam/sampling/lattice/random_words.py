"""Random words from a few operations each, without a state: SplitMix64 as a function of the word's
number.

Steele, Lea, Flood 2014 (OOPSLA, 453), with the mixing function of Stafford (variant 13). Word k is
mixed from k times an odd constant, all 2^64 of them different; a run starts at a random k, and two
runs of 2^40 words overlap with probability 2^-23.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray, UInt64

BITS = 24  # number of binary digits of a probability in `random_bits`

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)

Words = UInt64[Array, "*shape"]
Counter = UInt64[Array, ""]


def first_word(key: PRNGKeyArray) -> Counter:
    """The number of a run's first word."""
    return jax.random.bits(key, (), jnp.uint64)


def random_words(start: Counter, size: int) -> tuple[Counter, Words]:
    """An array of words of 64 random bits, and the number of the next word."""
    words = (start + jnp.arange(size, dtype=jnp.uint64)) * _STEP
    for shift, factor in _FACTORS:
        words = (words ^ (words >> shift)) * factor
    return start + np.uint64(size), words ^ (words >> np.uint64(31))


def binary_digits(probability: Float[Array, ""]) -> UInt64[Array, "digit"]:
    """The binary digits of a probability, the last first: a word of ones for the digit one, and
    zero for the digit zero. The probability is at most 1 - 2^-24."""
    level = jnp.clip(jnp.round(probability * 2.0**BITS), 0, 2.0**BITS - 1).astype(jnp.uint64)
    return jnp.uint64(0) - ((level >> jnp.arange(BITS, dtype=jnp.uint64)) & 1)


def below(words: Words, probability: Float[Array, "*#shape"]) -> Bool[Array, "*shape"]:
    """True with this probability, to 2^-53, for each word."""
    return (words >> np.uint64(11)).astype(jnp.float64) < probability * 2.0**53


def random_bits(start: Counter, size: int, digits: UInt64[Array, "digit"]) -> tuple[Counter, Words]:
    """An array of words whose bits are independent and one with the probability given by these
    digits.

    From the last digit to the first: with a one the bits are joined by `or` with fresh random ones,
    with a zero by `and`.
    """
    found = jnp.zeros(size, jnp.uint64)
    for digit in range(BITS):
        start, fresh = random_words(start, size)
        found = (found & (fresh | digits[digit])) | (fresh & digits[digit])
    return start, found
