"""Random patterns stored by real couplings (linear programming, perceptron learning) and by binary
ones (counting, annealing).
"""

import itertools
import math
from collections.abc import Iterable, Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.losses.margin import shortest_vector
from orderparam.systems.storage_capacity.model import BinaryPatterns, SphericalPatterns

# ------------------------------------------------------------------------------------------------
# A share of samples with its error.


def fraction(successes: np.ndarray) -> tuple[float, float]:
    """The share of successes, and its standard error with half a success and half a failure added:
    never zero.
    """
    count, total = float(np.sum(successes)), len(successes)
    smoothed = (count + 0.5) / (total + 1)
    return count / total, float(np.sqrt(smoothed * (1 - smoothed) / total))


def mean(values: np.ndarray) -> tuple[float, float]:
    """The mean of what is known and its standard error; NaN of fewer than two."""
    known = values[np.isfinite(values)]
    if len(known) < 2:
        return float(known[0]) if len(known) else np.nan, np.nan
    return float(np.mean(known)), float(np.std(known, ddof=1) / np.sqrt(len(known)))


# ------------------------------------------------------------------------------------------------
# Random patterns stored by a perceptron with real couplings: linear programming, perceptron learning, the largest margin.

_CORNERS = 1_000_000
_TIGHT = 1e-6  # a pattern this near to its demand is one of those that hold the couplings


class Separability(Result):
    """success_fraction: share of samples that can be stored, with its standard error."""

    success_fraction: Float[Array, ""]
    success_fraction_error: Float[Array, ""]


class LearnedPatterns(Result):
    """success_fraction: share of samples stored within the sweeps allowed; sweeps: mean number that
    those needed.
    """

    success_fraction: Float[Array, ""]
    success_fraction_error: Float[Array, ""]
    sweeps: Float[Array, ""]
    sweeps_error: Float[Array, ""]


class MeasuredMargin(Result):
    """margin: mean largest stability of the samples that can be stored (NaN where none can),
    success_fraction: share of samples whose largest stability reaches the system's margin;
    condition: largest relative violation of the conditions of Karush, Kuhn and Tucker; converged:
    it is below 1e-6."""

    margin: Float[Array, ""]
    margin_error: Float[Array, ""]
    success_fraction: Float[Array, ""]
    success_fraction_error: Float[Array, ""]
    condition: Float[Array, ""]
    converged: Bool[Array, ""]


class FewestErrors(Result):
    """error_fraction: mean smallest share of patterns on the wrong side."""

    error_fraction: Float[Array, ""]
    error_fraction_error: Float[Array, ""]


def _without_margin(system: SphericalPatterns, **_: object) -> None:
    if system.margin != 0:
        raise ValueError(
            f"SphericalPatterns.margin = {float(system.margin):g}: must be 0 (take `maximal_margin` for a margin)"
        )
    _some_patterns(system)


def _enumerable(system: SphericalPatterns, **_: object) -> None:
    _without_margin(system)
    n = system.size("input_dim")
    corners = math.comb(round(float(system.load) * n), n - 1)
    if corners > _CORNERS:
        raise ValueError(
            f"SphericalPatterns.load = {float(system.load):g} with {n} inputs has {corners} corners: at most {_CORNERS}"
        )


def _convex(system: SphericalPatterns, **_: object) -> None:
    if system.margin < 0:
        raise ValueError(
            f"SphericalPatterns.margin = {float(system.margin):g}: must be >= 0 (below the problem is not convex)"
        )
    _some_patterns(system)


def _some_patterns(system: SphericalPatterns) -> None:
    if round(float(system.load) * system.size("input_dim")) < 1:
        raise ValueError(
            f"SphericalPatterns.load = {float(system.load):g}: is less than one pattern of {system.size('input_dim')}"
        )


@experiment(check=_without_margin)
def separability(
    system: SphericalPatterns, key: PRNGKeyArray, *, samples: int = 50
) -> Separability:
    """Whether couplings with y J.x >= 1 for all patterns exist, by linear programming (HiGHS)."""

    def separable(patterns: np.ndarray) -> bool:
        demand = -np.ones(len(patterns))
        found = scipy.optimize.linprog(
            np.zeros(patterns.shape[1]), -patterns, demand, bounds=(None, None), method="highs"
        )
        return found.status == 0

    stored = np.array([separable(patterns) for patterns in _samples(system, key, samples)])
    return Separability(*map(jnp.asarray, fraction(stored)))


@experiment(check=_without_margin)
def perceptron_learning(
    system: SphericalPatterns, key: PRNGKeyArray, *, samples: int = 50, max_sweeps: int = 1000
) -> LearnedPatterns:
    """Patterns in turn, each added to the couplings where it is not stored (Rosenblatt 1962), until
    all are.
    """
    needed = np.asarray(
        _sweeps_needed(jnp.asarray(np.stack(list(_samples(system, key, samples)))), max_sweeps),
        float,
    )
    stored = needed <= max_sweeps
    return LearnedPatterns(
        *map(jnp.asarray, (*fraction(stored), *mean(np.where(stored, needed, np.nan))))
    )


@experiment(check=_convex)
def maximal_margin(
    system: SphericalPatterns, key: PRNGKeyArray, *, samples: int = 10
) -> MeasuredMargin:
    """The couplings of largest stability by an active set, exactly; see
    `losses.margin.shortest_vector`.
    """
    found = [_largest_margin(patterns) for patterns in _samples(system, key, samples)]
    margins, conditions = (np.array(column) for column in zip(*found))
    worst = float(np.nanmax(np.append(conditions, 0.0)))
    reached = np.nan_to_num(margins, nan=-np.inf) >= float(system.margin)
    return MeasuredMargin(
        *map(jnp.asarray, (*mean(margins), *fraction(reached), worst, worst < 1e-6))
    )


@experiment(check=_enumerable)
def fewest_errors(
    system: SphericalPatterns, key: PRNGKeyArray, *, samples: int = 10
) -> FewestErrors:
    """Exactly: among the couplings that leave the fewest patterns on the wrong side there are some
    next to a corner, where N - 1 patterns have stability zero and can be put on either side. All
    C(p, N - 1) corners are tried; at most a million."""
    shares = np.array(
        [_fewest_errors(patterns) / len(patterns) for patterns in _samples(system, key, samples)]
    )
    return FewestErrors(*map(jnp.asarray, mean(shares)))


def _samples(
    system: SphericalPatterns, key: PRNGKeyArray, samples: int
) -> Iterator[Float[np.ndarray, "p n"]]:
    """The patterns y x of each sample."""
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    n, bias = system.size("input_dim"), float(system.bias)
    p = round(float(system.load) * n)
    for _ in range(samples):
        labels = np.where(rng.uniform(size=(p, 1)) < (1 + bias) / 2, 1.0, -1.0)
        yield labels * (bias + np.sqrt(1 - bias**2) * rng.standard_normal((p, n)))


def _largest_margin(patterns: np.ndarray) -> tuple[float, float]:
    """The largest stability and the violation of its conditions; NaN for patterns that cannot be
    stored.
    """
    w, stored = shortest_vector(patterns, np.ones(len(patterns)))
    if not stored:
        return np.nan, np.nan
    surplus = patterns @ w - 1
    held = patterns[surplus < _TIGHT]
    _, rest = scipy.optimize.nnls(held.T, w)  # w is a sum of these with positive weights
    return float(1 / np.linalg.norm(w)), float(max(rest / np.linalg.norm(w), -np.min(surplus), 0.0))


def _fewest_errors(patterns: np.ndarray) -> int:
    p, n = patterns.shape
    if p < n:
        return 0
    corners = np.array(list(itertools.combinations(range(p), n - 1)))
    # sets length and sign
    last = np.broadcast_to(np.random.default_rng(0).standard_normal(n), (len(corners), 1, n))
    target = np.append(np.zeros(n - 1), 1.0)
    w = np.linalg.solve(
        np.concatenate([patterns[corners], last], axis=1),
        np.broadcast_to(target[:, None], (len(corners), n, 1)),
    )
    # none of those at the corner
    wrong = np.sum(w[..., 0] @ patterns.T < -_TIGHT * np.linalg.norm(w, axis=1), axis=1)
    return int(min(np.min(wrong), np.min(p - (n - 1) - wrong)))


@partial(jax.jit, static_argnames=("max_sweeps",))
def _sweeps_needed(patterns: Float[Array, "sample p n"], max_sweeps: int) -> Int[Array, "sample"]:
    """Sweeps until all patterns are stored; max_sweeps + 1 where they are not by then."""

    def learn(patterns: Array) -> Array:
        def one(w: Array, pattern: Array) -> tuple[Array, None]:
            return w + jnp.where(pattern @ w <= 0, pattern, 0.0), None

        def sweep(state: tuple[Array, Array]) -> tuple[Array, Array]:
            w, count = state
            return jax.lax.scan(one, w, patterns)[0], count + 1

        def unfinished(state: tuple[Array, Array]) -> Array:
            w, count = state
            return jnp.any(patterns @ w <= 0) & (count <= max_sweeps)

        return jax.lax.while_loop(
            unfinished, sweep, (jnp.zeros(patterns.shape[1]), jnp.asarray(0))
        )[1]

    return jax.vmap(learn)(patterns)


# ------------------------------------------------------------------------------------------------
# Binary couplings for random patterns: all of them tried, and simulated annealing.

_LARGEST = 30  # couplings that are tried in all ways
_CHUNK = 20  # of them vary at a time


class Enumerated(Result):
    """success_fraction: share of samples with a solution; entropy: mean (1/N) ln of the number of
    solutions over these (NaN where there are none, and larger than over all samples)."""

    success_fraction: Float[Array, ""]
    success_fraction_error: Float[Array, ""]
    entropy: Float[Array, ""]
    entropy_error: Float[Array, ""]


class StorageLimit(Result):
    """capacity: mean largest p/N such that the first p of a sequence of random patterns can be
    stored.
    """

    capacity: Float[Array, ""]
    capacity_error: Float[Array, ""]


class AnnealedPatterns(Result):
    """success_fraction: share of samples for which a solution was found; sweeps: mean number until
    it was; error_fraction: mean smallest share of patterns that were not stored."""

    success_fraction: Float[Array, ""]
    success_fraction_error: Float[Array, ""]
    sweeps: Float[Array, ""]
    sweeps_error: Float[Array, ""]
    error_fraction: Float[Array, ""]
    error_fraction_error: Float[Array, ""]


def _few(system: BinaryPatterns, **_: object) -> None:
    if system.size("input_dim") > _LARGEST:
        n = system.size("input_dim")
        raise ValueError(
            f"BinaryPatterns.input_dim = {n}: must be at most {_LARGEST} (all 2^N couplings are tried)"
        )
    _some_binary_patterns(system)


def _some_binary_patterns(system: BinaryPatterns, **_: object) -> None:
    if round(float(system.load) * system.size("input_dim")) < 1:
        raise ValueError(
            f"BinaryPatterns.load = {float(system.load):g}: is less than one pattern of {system.size('input_dim')}"
        )


@experiment(check=_few)
def enumerated_solutions(
    system: BinaryPatterns, key: PRNGKeyArray, *, samples: int = 20
) -> Enumerated:
    """Exactly: all couplings that store the patterns are counted. N = 25 takes a second a sample, N
    = 30 half a minute.
    """
    rng, n = np.random.default_rng(np.asarray(jax.random.key_data(key))), system.size("input_dim")
    p = round(float(system.load) * n)
    counts = np.array(
        [
            _survivors(n, _most_unlike(system), [rng.integers(2**n) for _ in range(p)])[-1]
            for _ in range(samples)
        ]
    )
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


@experiment(check=_some_binary_patterns)
def annealed_search(
    system: BinaryPatterns,
    key: PRNGKeyArray,
    *,
    samples: int = 16,
    sweeps: int = 500,
    hot: float = 1.0,
    cold: float = 0.05,
) -> AnnealedPatterns:
    """Single couplings are turned by Metropolis' rule at temperatures that fall from `hot` to
    `cold` geometrically, the energy being sum max(0, kappa - y J.x/sqrt N) (Horner 1992 for the
    number of errors). It stops finding them before there are none.
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
        *map(
            jnp.asarray,
            (
                *fraction(found),
                *mean(np.where(found, needed, np.nan)),
                *mean(np.asarray(errors, float) / p),
            ),
        )
    )


def _most_unlike(system: BinaryPatterns) -> int:
    """The largest number of couplings that differ from a pattern that is stored: J.x = N - 2 of
    them.
    """
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
    """The sweep after which all patterns were first stored (sweeps + 1: never), and the fewest that
    were not.
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
