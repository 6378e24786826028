"""Binary couplings for random patterns: all of them tried, and simulated annealing."""

from collections.abc import Iterable, Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.systems.storage_capacity.binary.model import BinaryPatterns
from orderparam.systems.storage_capacity.fractions import fraction, mean

_LARGEST = 30  # couplings that are tried in all ways
_CHUNK = 20  # of them vary at a time


class Enumerated(Result):
    """success_fraction: share of samples with a solution; entropy: mean (1/N) ln of the number of solutions over these (NaN where
    there are none, and larger than over all samples)."""

    success_fraction: Float[Array, ""]
    success_fraction_error: Float[Array, ""]
    entropy: Float[Array, ""]
    entropy_error: Float[Array, ""]


class StorageLimit(Result):
    """capacity: mean largest p/N such that the first p of a sequence of random patterns can be stored."""

    capacity: Float[Array, ""]
    capacity_error: Float[Array, ""]


class AnnealedPatterns(Result):
    """success_fraction: share of samples for which a solution was found; sweeps: mean number until it was; error_fraction: mean
    smallest share of patterns that were not stored."""

    success_fraction: Float[Array, ""]
    success_fraction_error: Float[Array, ""]
    sweeps: Float[Array, ""]
    sweeps_error: Float[Array, ""]
    error_fraction: Float[Array, ""]
    error_fraction_error: Float[Array, ""]


def _few(system: BinaryPatterns, **_: object) -> None:
    if system.size("input_dim") > _LARGEST:
        n = system.size("input_dim")
        raise ValueError(f"BinaryPatterns.input_dim = {n}: must be at most {_LARGEST} (all 2^N couplings are tried)")
    _some_patterns(system)


def _some_patterns(system: BinaryPatterns, **_: object) -> None:
    if round(float(system.load) * system.size("input_dim")) < 1:
        raise ValueError(f"BinaryPatterns.load = {float(system.load):g}: is less than one pattern of {system.size('input_dim')}")


@experiment(check=_few)
def enumerated_solutions(system: BinaryPatterns, key: PRNGKeyArray, *, samples: int = 20) -> Enumerated:
    """Exactly: all couplings that store the patterns are counted. N = 25 takes a second a sample, N = 30 half a minute."""
    rng, n = np.random.default_rng(np.asarray(jax.random.key_data(key))), system.size("input_dim")
    p = round(float(system.load) * n)
    counts = np.array([_survivors(n, _most_unlike(system), [rng.integers(2**n) for _ in range(p)])[-1] for _ in range(samples)])
    logs = np.where(counts > 0, np.log(np.maximum(counts, 1)) / n, np.nan)
    return Enumerated(*map(jnp.asarray, (*fraction(counts > 0), *mean(logs))))


@experiment(check=_few)
def storage_limit(system: BinaryPatterns, key: PRNGKeyArray, *, samples: int = 20) -> StorageLimit:
    """Exactly: patterns are added one by one until no couplings are left, whatever `load` is."""
    rng, n = np.random.default_rng(np.asarray(jax.random.key_data(key))), system.size("input_dim")

    def limit() -> float:
        patterns: list[int] = []
        while True:  # in portions, as it is not known how many are needed
            patterns += [int(rng.integers(2**n)) for _ in range(2 * n)]
            counts = _survivors(n, _most_unlike(system), patterns)
            if counts[-1] == 0:
                return float(np.argmin(counts > 0) - 1) / n

    return StorageLimit(*map(jnp.asarray, mean(np.array([limit() for _ in range(samples)]))))


@experiment(check=_some_patterns)
def annealed_search(
    system: BinaryPatterns,
    key: PRNGKeyArray,
    *,
    samples: int = 16,
    sweeps: int = 500,
    hot: float = 1.0,
    cold: float = 0.05,
) -> AnnealedPatterns:
    """Single couplings are turned by Metropolis' rule at temperatures that fall from `hot` to `cold` geometrically, the energy
    being sum max(0, kappa - y J.x/sqrt N) (Horner 1992 for the number of errors). It stops finding them before there are none.
    """
    n = system.size("input_dim")
    p = round(float(system.load) * n)
    pattern_key, run_key = jax.random.split(key)
    patterns = jax.random.rademacher(pattern_key, (n, samples, p), float) / np.sqrt(n)
    solved, errors = _anneal(patterns, system.margin, run_key, jnp.asarray(hot), jnp.asarray(cold), sweeps)
    needed = np.asarray(solved, float)
    found = needed <= sweeps
    return AnnealedPatterns(
        *map(jnp.asarray, (*fraction(found), *mean(np.where(found, needed, np.nan)), *mean(np.asarray(errors, float) / p)))
    )


def _most_unlike(system: BinaryPatterns) -> int:
    """The largest number of couplings that differ from a pattern that is stored: J.x = N - 2 of them."""
    n = system.size("input_dim")
    return int(np.floor((n - float(system.margin) * np.sqrt(n)) / 2 + 1e-9))


def _survivors(n: int, most_unlike: int, patterns: Iterable[int]) -> np.ndarray:
    """How many of all couplings, as the bits of a word, store the first 0, 1, 2, ... patterns."""
    patterns = list(patterns)
    counts = np.zeros(len(patterns) + 1, np.int64)
    for words in _chunks(n):
        for k, pattern in enumerate(patterns):
            counts[k] += len(words)
            if not len(words):
                break
            words = words[np.bitwise_count(words ^ np.uint32(pattern)) <= most_unlike]
        counts[-1] += len(words)
    return counts


def _chunks(n: int) -> Iterator[np.ndarray]:
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
    """The sweep after which all patterns were first stored (sweeps + 1: never), and the fewest that were not."""
    n, samples, _ = patterns.shape

    def cost(fields: Array) -> Array:
        return jnp.sum(jnp.maximum(margin - fields, 0.0), axis=-1)

    def errors(fields: Array) -> Array:
        return jnp.sum(fields < margin - 1e-9, axis=-1)

    def turn(state: tuple[Array, Array, Array], xs: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array, Array], Array]:
        fields, energy, temperature = state
        coupling, pattern, chance = xs
        new = fields - 2 * coupling[:, None] * pattern
        rise = cost(new) - energy
        taken = chance < jnp.exp(-rise / temperature)
        state = jnp.where(taken[:, None], new, fields), jnp.where(taken, energy + rise, energy), temperature
        return state, jnp.where(taken, -coupling, coupling)

    def sweep(state: tuple[Array, Array, Array], xs: tuple[Array, Array]) -> tuple[tuple[Array, Array, Array], None]:
        couplings, fields, best = state
        key, step = xs
        temperature = hot * (cold / hot) ** (step / max(sweeps - 1, 1))
        chances = jax.random.uniform(key, (n, samples))
        (fields, _, _), couplings = jax.lax.scan(turn, (fields, cost(fields), temperature), (couplings, patterns, chances))
        now = jnp.stack([errors(fields), jnp.full(samples, step + 1, jnp.int64)])
        return (couplings, fields, jnp.where(now[0] < best[0], now, best)), None

    start_key, run_key = jax.random.split(key)
    couplings = jax.random.rademacher(start_key, (n, samples), float)
    fields = jnp.einsum("ns,nsp->sp", couplings, patterns)
    best = jnp.stack([errors(fields), jnp.zeros(samples, jnp.int64)])
    steps = jax.random.split(run_key, sweeps), jnp.arange(sweeps)
    (_, _, (fewest, when)), _ = jax.lax.scan(sweep, (couplings, fields, best), steps)
    return jnp.where(fewest == 0, when, sweeps + 1), fewest
