"""Experiments on storage by binary couplings."""

from collections.abc import Iterable, Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from orderparam.core.needs import at_most
from orderparam.core.result import Result, with_errors
from orderparam.core.verb import experiment
from orderparam.systems.storage_capacity.experiment import fraction, mean
from orderparam.systems.storage_capacity.model import BinaryPatterns

# Binary couplings for random patterns, found by enumeration and by simulated annealing.

_LARGEST = 30  # largest number N of couplings whose 2^N configurations are enumerated
_CHUNK = 20  # couplings that vary within one block of the enumeration


class Enumerated(Result):
    """Number of binary couplings that store a sample.

    Fields:
        success_fraction, success_fraction_error: share of samples with a solution, and its standard
            error.
        entropy, entropy_error: mean of (1/N) ln(number of solutions) over the samples that have a
            solution, and its standard error. Near the capacity this mean exceeds the typical
            entropy; it is NaN if no sample has a solution.
    """

    success_fraction: Float[Array, ""]
    success_fraction_error: Float[Array, ""]
    entropy: Float[Array, ""]
    entropy_error: Float[Array, ""]


class StorageLimit(Result):
    """Largest load that binary couplings can store.

    Fields:
        capacity, capacity_error: mean largest p/N such that the first p patterns of a random
            sequence can be stored, and its standard error.
    """

    capacity: Float[Array, ""]
    capacity_error: Float[Array, ""]


class AnnealedPatterns(Result):
    """Result of simulated annealing of binary couplings.

    Fields:
        success_fraction, success_fraction_error: share of samples for which a solution was found,
            and its standard error.
        sweeps, sweeps_error: mean number of sweeps until the solution was found, over these
            samples, and its standard error.
        error_fraction, error_fraction_error: mean smallest share of patterns that were not stored,
            and its standard error.
    """

    success_fraction: Float[Array, ""]
    success_fraction_error: Float[Array, ""]
    sweeps: Float[Array, ""]
    sweeps_error: Float[Array, ""]
    error_fraction: Float[Array, ""]
    error_fraction_error: Float[Array, ""]


FEW = {"input_dim": at_most(_LARGEST, why="all 2^N couplings are tried")}


def some_binary_patterns(system: BinaryPatterns, **_: object) -> None:
    if round(float(system.load) * system.size("input_dim")) < 1:
        raise ValueError(
            f"BinaryPatterns.load = {float(system.load):g}: is less than one pattern of "
            f"{system.size('input_dim')}"
        )


@experiment(check=some_binary_patterns, needs=FEW)
def enumerated_solutions(
    system: BinaryPatterns, key: PRNGKeyArray, *, samples: int = 20
) -> Enumerated:
    """Share of samples that binary couplings can store, and the number of solutions, by enumeration
    of all couplings.

    Args:
        samples: number of independent samples in one run.

    Raises:
        ValueError: for more than 30 inputs, or less than one pattern.

    Cost: $2^N$ configurations of the couplings for each sample, which take about a second at N = 25
    and half a minute at N = 30.

    Source: derived here, by enumeration; the limit of large N is that of Krauth, Mézard (1989).

    >>> import jax
    >>> found = enumerated_solutions(BinaryPatterns(input_dim=11), jax.random.key(0), samples=10)
    >>> bool(abs(found.entropy - 0.3) < 0.15)
    True
    """
    rng, n = np.random.default_rng(np.asarray(jax.random.key_data(key))), system.size("input_dim")
    p = round(float(system.load) * n)
    counts = np.array(
        [
            _survivors(n, largest_distance(system), [rng.integers(2**n) for _ in range(p)])[-1]
            for _ in range(samples)
        ]
    )
    logs = np.where(counts > 0, np.log(np.maximum(counts, 1)) / n, np.nan)
    return Enumerated(**with_errors(success_fraction=fraction(counts > 0), entropy=mean(logs)))


@experiment(check=some_binary_patterns, needs=FEW)
def storage_limit(system: BinaryPatterns, key: PRNGKeyArray, *, samples: int = 20) -> StorageLimit:
    """Largest load that binary couplings can store, found by adding patterns until no couplings
    store all of them.

    All $2^N$ configurations of the couplings are followed, so that the result is exact. The
    system's load is not used, except that it must amount to at least one pattern.

    Args:
        samples: number of independent sequences of patterns in one run.

    Raises:
        ValueError: for more than 30 inputs, or less than one pattern.

    Cost: that of `enumerated_solutions`.

    Source: derived here, by enumeration; the definition is that of Gardner, Derrida (1989).

    >>> import jax
    >>> found = storage_limit(BinaryPatterns(input_dim=9), jax.random.key(0), samples=10)
    >>> bool(abs(found.capacity - 0.8) < 0.3)
    True
    """
    rng, n = np.random.default_rng(np.asarray(jax.random.key_data(key))), system.size("input_dim")

    def limit() -> float:
        patterns: list[int] = []
        while True:  # patterns are drawn in blocks, because the number needed is unknown
            patterns += [int(rng.integers(2**n)) for _ in range(2 * n)]
            counts = _survivors(n, largest_distance(system), patterns)
            if counts[-1] == 0:
                return float(np.argmin(counts > 0) - 1) / n

    limits = np.array([limit() for _ in range(samples)])
    return StorageLimit(**with_errors(capacity=mean(limits)))


@experiment(check=some_binary_patterns)
def annealed_search(
    system: BinaryPatterns,
    key: PRNGKeyArray,
    *,
    samples: int = 16,
    sweeps: int = 500,
    hot: float = 1.0,
    cold: float = 0.05,
) -> AnnealedPatterns:
    r"""Share of samples for which simulated annealing finds binary couplings that store all
    patterns.

    Single couplings are flipped by Metropolis' rule with the energy

    $$ E = \sum_\mu \max\Big( 0,\, \kappa - y^\mu \frac{J \cdot x^\mu}{\sqrt N} \Big) $$

    and $\kappa$ = `margin`, at temperatures that fall geometrically from `hot` to `cold`. The
    search fails at loads at which solutions still exist.

    Args:
        samples: number of independent samples in one run.
        sweeps: number of sweeps through all couplings.
        hot: temperature of the first sweep.
        cold: temperature of the last sweep.

    Raises:
        ValueError: for less than one pattern.

    Source: Horner (1992), who takes the number of errors as the energy.

    >>> import jax
    >>> system = BinaryPatterns(load=0.2, input_dim=21)
    >>> found = annealed_search(system, jax.random.key(0), samples=4, sweeps=100)
    >>> bool(found.success_fraction > 0.5)
    True
    """
    n = system.size("input_dim")
    p = round(float(system.load) * n)
    pattern_key, run_key = jax.random.split(key)
    patterns = jax.random.rademacher(pattern_key, (n, samples, p), float) / np.sqrt(n)
    solved, errors = _anneal(
        patterns, system.margin, run_key, jnp.asarray(hot), jnp.asarray(cold), sweeps
    )
    needed = np.asarray(solved, float)
    found = needed <= sweeps
    return AnnealedPatterns(
        **with_errors(
            success_fraction=fraction(found),
            sweeps=mean(np.where(found, needed, np.nan)),
            error_fraction=mean(np.asarray(errors, float) / p),
        )
    )


def largest_distance(system: BinaryPatterns) -> int:
    """Largest number n of couplings that may have the opposite sign of the inputs of a stored
    pattern, where J.x = N - 2 n."""
    n = system.size("input_dim")
    return int(np.floor((n - float(system.margin) * np.sqrt(n)) / 2 + 1e-9))


def _survivors(n: int, most_unlike: int, patterns: Iterable[int]) -> np.ndarray:
    """Number of configurations of the couplings (the bits of a word) that store the first 0, 1, 2,
    ... patterns."""
    patterns = list(patterns)
    counts = np.zeros(len(patterns) + 1, np.int64)
    for words in all_couplings(n):
        for k, pattern in enumerate(patterns):
            counts[k] += len(words)
            if not len(words):
                break
            words = words[np.bitwise_count(words ^ np.uint32(pattern)) <= most_unlike]
        counts[-1] += len(words)
    return counts


def all_couplings(n: int) -> Iterator[np.ndarray]:
    low = np.arange(2 ** min(n, _CHUNK), dtype=np.uint32)
    for high in range(2 ** max(n - _CHUNK, 0)):
        yield low + np.uint32(high << _CHUNK)


@partial(jax.jit, static_argnames=("sweeps",))
def _anneal(
    patterns: Float[Array, "n sample p"],
    margin: Float[Array, ""],
    key: PRNGKeyArray,
    hot: Float[Array, ""],
    cold: Float[Array, ""],
    sweeps: int,
) -> tuple[Int[Array, "sample"], Int[Array, "sample"]]:
    """Index of the sweep after which all patterns of a sample were stored for the first time
    (sweeps + 1 if they never were), and the smallest number of patterns that were not stored.
    """
    n, samples, _ = patterns.shape

    def cost(fields: Array) -> Array:
        return jnp.sum(jnp.maximum(margin - fields, 0.0), axis=-1)

    def errors(fields: Array) -> Array:
        return jnp.sum(fields < margin - 1e-9, axis=-1)

    def turn(
        state: tuple[Array, Array, Array], xs: tuple[Array, Array, Array]
    ) -> tuple[tuple[Array, Array, Array], Array]:
        fields, energy, temperature = state
        coupling, pattern, chance = xs
        new = fields - 2 * coupling[:, None] * pattern
        rise = cost(new) - energy
        taken = chance < jnp.exp(-rise / temperature)
        state = (
            jnp.where(taken[:, None], new, fields),
            jnp.where(taken, energy + rise, energy),
            temperature,
        )
        return state, jnp.where(taken, -coupling, coupling)

    def sweep(
        state: tuple[Array, Array, Array], xs: tuple[Array, Array]
    ) -> tuple[tuple[Array, Array, Array], None]:
        couplings, fields, best = state
        key, step = xs
        temperature = hot * (cold / hot) ** (step / max(sweeps - 1, 1))
        chances = jax.random.uniform(key, (n, samples))
        (fields, _, _), couplings = jax.lax.scan(
            turn, (fields, cost(fields), temperature), (couplings, patterns, chances)
        )
        now = jnp.stack([errors(fields), jnp.full(samples, step + 1, jnp.int64)])
        return (couplings, fields, jnp.where(now[0] < best[0], now, best)), None

    start_key, run_key = jax.random.split(key)
    couplings = jax.random.rademacher(start_key, (n, samples), float)
    fields = jnp.einsum("ns,nsp->sp", couplings, patterns)
    best = jnp.stack([errors(fields), jnp.zeros(samples, jnp.int64)])
    steps = jax.random.split(run_key, sweeps), jnp.arange(sweeps)
    (_, _, (fewest, when)), _ = jax.lax.scan(sweep, (couplings, fields, best), steps)
    return jnp.where(fewest == 0, when, sweeps + 1), fewest
