"""Random patterns stored by a perceptron with real couplings: linear programming, perceptron learning, the largest margin."""

import itertools
import math
from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.losses.margin import shortest_vector
from orderparam.systems.storage_capacity.fractions import fraction, mean
from orderparam.systems.storage_capacity.spherical.model import SphericalPatterns

_CORNERS = 1_000_000
_TIGHT = 1e-6  # a pattern this near to its demand is one of those that hold the couplings


class Separability(Result):
    """success_fraction: share of samples that can be stored, with its standard error."""

    success_fraction: Float[Array, ""]
    success_fraction_error: Float[Array, ""]


class LearnedPatterns(Result):
    """success_fraction: share of samples stored within the sweeps allowed; sweeps: mean number that those needed."""

    success_fraction: Float[Array, ""]
    success_fraction_error: Float[Array, ""]
    sweeps: Float[Array, ""]
    sweeps_error: Float[Array, ""]


class MeasuredMargin(Result):
    """margin: mean largest stability of the samples that can be stored (NaN where none can), success_fraction: share of samples
    whose largest stability reaches the system's margin; condition: largest relative violation of the conditions of Karush, Kuhn
    and Tucker; converged: it is below 1e-6."""

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
        raise ValueError(f"SphericalPatterns.margin = {float(system.margin):g}: must be 0 (take `maximal_margin` for a margin)")
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
        raise ValueError(f"SphericalPatterns.margin = {float(system.margin):g}: must be >= 0 (below the problem is not convex)")
    _some_patterns(system)


def _some_patterns(system: SphericalPatterns) -> None:
    if round(float(system.load) * system.size("input_dim")) < 1:
        raise ValueError(
            f"SphericalPatterns.load = {float(system.load):g}: is less than one pattern of {system.size('input_dim')}"
        )


@experiment(check=_without_margin)
def separability(system: SphericalPatterns, key: PRNGKeyArray, *, samples: int = 50) -> Separability:
    """Whether couplings with y J.x >= 1 for all patterns exist, by linear programming (HiGHS)."""

    def separable(patterns: np.ndarray) -> bool:
        demand = -np.ones(len(patterns))
        found = scipy.optimize.linprog(np.zeros(patterns.shape[1]), -patterns, demand, bounds=(None, None), method="highs")
        return found.status == 0

    stored = np.array([separable(patterns) for patterns in _samples(system, key, samples)])
    return Separability(*map(jnp.asarray, fraction(stored)))


@experiment(check=_without_margin)
def perceptron_learning(
    system: SphericalPatterns, key: PRNGKeyArray, *, samples: int = 50, max_sweeps: int = 1000
) -> LearnedPatterns:
    """Patterns in turn, each added to the couplings where it is not stored (Rosenblatt 1962), until all are."""
    needed = np.asarray(_sweeps_needed(jnp.asarray(np.stack(list(_samples(system, key, samples)))), max_sweeps), float)
    stored = needed <= max_sweeps
    return LearnedPatterns(*map(jnp.asarray, (*fraction(stored), *mean(np.where(stored, needed, np.nan)))))


@experiment(check=_convex)
def maximal_margin(system: SphericalPatterns, key: PRNGKeyArray, *, samples: int = 10) -> MeasuredMargin:
    """The couplings of largest stability by an active set, exactly; see `losses.margin.shortest_vector`."""
    found = [_largest_margin(patterns) for patterns in _samples(system, key, samples)]
    margins, conditions = (np.array(column) for column in zip(*found))
    worst = float(np.nanmax(np.append(conditions, 0.0)))
    reached = np.nan_to_num(margins, nan=-np.inf) >= float(system.margin)
    return MeasuredMargin(*map(jnp.asarray, (*mean(margins), *fraction(reached), worst, worst < 1e-6)))


@experiment(check=_enumerable)
def fewest_errors(system: SphericalPatterns, key: PRNGKeyArray, *, samples: int = 10) -> FewestErrors:
    """Exactly: among the couplings that leave the fewest patterns on the wrong side there are some next to a corner, where N - 1
    patterns have stability zero and can be put on either side. All C(p, N - 1) corners are tried; at most a million."""
    shares = np.array([_fewest_errors(patterns) / len(patterns) for patterns in _samples(system, key, samples)])
    return FewestErrors(*map(jnp.asarray, mean(shares)))


def _samples(system: SphericalPatterns, key: PRNGKeyArray, samples: int) -> Iterator[Float[np.ndarray, "p n"]]:
    """The patterns y x of each sample."""
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    n, bias = system.size("input_dim"), float(system.bias)
    p = round(float(system.load) * n)
    for _ in range(samples):
        labels = np.where(rng.uniform(size=(p, 1)) < (1 + bias) / 2, 1.0, -1.0)
        yield labels * (bias + np.sqrt(1 - bias**2) * rng.standard_normal((p, n)))


def _largest_margin(patterns: np.ndarray) -> tuple[float, float]:
    """The largest stability and the violation of its conditions; NaN for patterns that cannot be stored."""
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
    last = np.broadcast_to(np.random.default_rng(0).standard_normal(n), (len(corners), 1, n))  # sets length and sign
    target = np.append(np.zeros(n - 1), 1.0)
    w = np.linalg.solve(np.concatenate([patterns[corners], last], axis=1), np.broadcast_to(target[:, None], (len(corners), n, 1)))
    wrong = np.sum(w[..., 0] @ patterns.T < -_TIGHT * np.linalg.norm(w, axis=1), axis=1)  # none of those at the corner
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

        return jax.lax.while_loop(unfinished, sweep, (jnp.zeros(patterns.shape[1]), jnp.asarray(0)))[1]

    return jax.vmap(learn)(patterns)
