"""The smallest fraction of errors: of binary couplings by enumeration, and of real couplings by
integer programming."""

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from orderparam.core.result import Result, with_errors
from orderparam.core.verb import experiment
from orderparam.systems.storage_capacity.binary_experiment import (
    FEW,
    all_couplings,
    largest_distance,
    some_binary_patterns,
)
from orderparam.systems.storage_capacity.experiment import (
    WITHOUT_MARGIN,
    FewestErrors,
    drawn_patterns,
    mean,
    some_patterns,
)
from orderparam.systems.storage_capacity.model import BinaryPatterns, SphericalPatterns


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

    Cost: $2^N$ configurations of the couplings for each pattern of each sample, which take a fifth
    of a second for a sample of 76 patterns at N = 19.

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
    """Smallest number of patterns that are not stored, over all configurations of the couplings
    (the bits of a word)."""
    best = len(patterns)
    for words in all_couplings(n):
        wrong = np.zeros(len(words), np.uint16)
        for pattern in patterns:
            wrong += np.bitwise_count(words ^ np.uint32(pattern)) > most_unlike
        best = min(best, int(wrong.min()))
    return best


# ------------------------------------------------------------------------------------------------
# The fewest errors of real couplings, by integer programming over conflicts.

# A conflict is a set of at most N + 1 patterns that no couplings store together. By Gordan's
# theorem either some couplings store all patterns, or a sum of the patterns with weights that are
# positive or zero vanishes. These weights form a polytope, and the patterns whose weight is
# positive at a corner of it are a conflict. At least one pattern of each conflict is wrong, so that
# the smallest set of patterns that meets all conflicts found so far gives a lower bound. If the
# patterns outside of this set have no conflict, the bound is the answer; otherwise their conflicts
# are added. Davies and Bacchus (2011) solve satisfiability problems in this way; its use for the
# perceptron is derived here.

_PRESENT = 1e-9


@experiment(check=some_patterns, needs=WITHOUT_MARGIN)
def fewest_errors_by_programming(
    system: SphericalPatterns, key: PRNGKeyArray, *, samples: int = 10
) -> FewestErrors:
    r"""Exact smallest fraction of patterns on the wrong side, over all real couplings, by integer
    programming.

    $$ \min \sum_\mu z_\mu, \qquad \sum_{\mu \in C} z_\mu \ge 1 \text{ for every conflict } C,
       \qquad z_\mu \in \{0, 1\} $$

    where a conflict is a set of patterns that no couplings store together. Conflicts are added
    until the patterns with z = 0 can be stored together.

    Args:
        samples: number of independent samples in one run.

    Raises:
        ValueError: for a margin, or less than one pattern.

    Cost: some seconds for a sample of 44 patterns at N = 11; it grows rapidly with the number of
        errors.

    Source: derived here; the limit of large N is that of Gardner, Derrida (1988).

    >>> import jax
    >>> four = SphericalPatterns(4.0, input_dim=3)
    >>> found = fewest_errors_by_programming(four, jax.random.key(0), samples=5)
    >>> bool(0 < found.error_fraction < 0.5)
    True
    """
    rng = np.random.default_rng(np.asarray(jax.random.key_data(jax.random.fold_in(key, 1))))
    shares = [
        programmed_errors(patterns, rng) / len(patterns)
        for patterns in drawn_patterns(system, key, samples)
    ]
    return FewestErrors(**with_errors(error_fraction=mean(np.array(shares))))


def programmed_errors(
    patterns: Float[np.ndarray, "pattern input"], rng: np.random.Generator
) -> int:
    """The smallest number of patterns y x with w . y x <= 0, over all couplings w."""
    conflicts: list[Int[np.ndarray, member]] = []
    while True:
        wrong = _smallest_hitting(conflicts, len(patterns))
        rest, before = np.flatnonzero(~wrong), len(conflicts)
        while (found := _conflict(patterns[rest], rng)) is not None:
            conflicts.append(rest[found])
            rest = np.delete(rest, found)
        if len(conflicts) == before:
            return int(wrong.sum())


def _conflict(
    patterns: Float[np.ndarray, "pattern input"], rng: np.random.Generator
) -> Int[np.ndarray, "member"] | None:
    """Patterns that no couplings store together, or None if some couplings store all patterns."""
    count, dim = patterns.shape
    if count == 0:
        return None
    found = linprog(
        rng.uniform(size=count),
        A_eq=np.vstack([patterns.T, np.ones(count)]),
        b_eq=np.append(np.zeros(dim), 1.0),
        method="highs-ds",  # ends in a corner
    )
    if found.status not in (0, 2):
        raise RuntimeError(f"linear programming failed: {found.message}")
    return None if found.status == 2 else np.flatnonzero(found.x > _PRESENT)


def _smallest_hitting(
    conflicts: list[Int[np.ndarray, "member"]], count: int
) -> Bool[np.ndarray, "pattern"]:
    """The smallest set of patterns that has a member of every conflict."""
    if not conflicts:
        return np.zeros(count, bool)
    members = np.zeros((len(conflicts), count))
    for row, conflict in zip(members, conflicts, strict=True):
        row[conflict] = 1
    found = milp(
        np.ones(count),
        constraints=LinearConstraint(members, lb=1),
        integrality=np.ones(count),
        bounds=Bounds(0, 1),
    )
    if found.status != 0:
        raise RuntimeError(f"integer programming failed: {found.message}")
    return found.x > 0.5
