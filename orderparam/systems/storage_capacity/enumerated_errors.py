"""The smallest fraction of errors of binary couplings, found by enumerating all of them."""

import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result, with_errors
from orderparam.core.verb import experiment
from orderparam.systems.storage_capacity.binary_experiment import (
    FEW,
    all_couplings,
    largest_distance,
    some_binary_patterns,
)
from orderparam.systems.storage_capacity.experiment import mean
from orderparam.systems.storage_capacity.model import BinaryPatterns


class FewestBinaryErrors(Result):
    """Smallest fraction of patterns that binary couplings do not store.

    Fields:
        error_fraction, error_fraction_error: mean over samples of the smallest share of patterns
            that are not stored, and its standard error.
    """

    error_fraction: Float[Array, ""]
    error_fraction_error: Float[Array, ""]


@experiment(check=some_binary_patterns, needs=FEW)
def fewest_binary_errors(
    system: BinaryPatterns, key: PRNGKeyArray, *, samples: int = 16
) -> FewestBinaryErrors:
    r"""Smallest fraction of patterns that are not stored, over all binary couplings.

    Args:
        samples: number of independent samples in one run.

    Raises:
        ValueError: for more than 30 inputs, or less than one pattern.

    Cost: $2^N$ couplings for each pattern of each sample: a fifth of a second for a sample of 76
        patterns at N = 19.

    Source: derived here, by enumeration; the limit of large N is that of Krauth, Mézard (1989).

    >>> import jax
    >>> found = fewest_binary_errors(BinaryPatterns(2.0, input_dim=9), jax.random.key(0))
    >>> bool(0.05 < found.error_fraction < 0.35)
    True
    """
    rng, n = np.random.default_rng(np.asarray(jax.random.key_data(key))), system.size("input_dim")
    p = round(float(system.load) * n)
    fewest = [
        _fewest(n, largest_distance(system), rng.integers(2**n, size=p)) for _ in range(samples)
    ]
    return FewestBinaryErrors(**with_errors(error_fraction=mean(np.array(fewest) / p)))


def _fewest(n: int, most_unlike: int, patterns: np.ndarray) -> int:
    """Smallest number of patterns that are not stored, over all couplings (the bits of a word)."""
    best = len(patterns)
    for words in all_couplings(n):
        wrong = np.zeros(len(words), np.uint16)
        for pattern in patterns:
            wrong += np.bitwise_count(words ^ np.uint32(pattern)) > most_unlike
        best = min(best, int(wrong.min()))
    return best
