"""Experiments on storage by real couplings: linear programming, the largest margin, and the fewest
errors by enumeration.
"""

import itertools
import math
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.needs import at_least, equal
from orderparam.core.result import Result, with_errors
from orderparam.core.verb import experiment
from orderparam.losses.margin import shortest_vector
from orderparam.systems.storage_capacity.model import SphericalPatterns

# ------------------------------------------------------------------------------------------------
# Averages over samples and their standard errors, which all experiments of this topic use.


def fraction(successes: np.ndarray) -> tuple[float, float]:
    """Share of successes and its standard error. The standard error is computed with half a success
    and half a failure added, so that it never vanishes.
    """
    count, total = float(np.sum(successes)), len(successes)
    smoothed = (count + 0.5) / (total + 1)
    return count / total, float(np.sqrt(smoothed * (1 - smoothed) / total))


def mean(values: np.ndarray) -> tuple[float, float]:
    """Mean of the finite values and its standard error; the error is NaN for fewer than two
    values.
    """
    finite = values[np.isfinite(values)]
    if len(finite) < 2:
        return float(finite[0]) if len(finite) else np.nan, np.nan
    return float(np.mean(finite)), float(np.std(finite, ddof=1) / np.sqrt(len(finite)))


# ------------------------------------------------------------------------------------------------
# Random patterns stored by a perceptron with real couplings, found by linear programming and with
# the largest margin.

_CORNERS = 1_000_000
_TIGHT = 1e-6  # a pattern this close to its constraint counts as a support vector


class Separability(Result):
    """Share of samples that can be stored.

    Fields:
        success_fraction, success_fraction_error: the share and its standard error.
    """

    success_fraction: Float[Array, ""]
    success_fraction_error: Float[Array, ""]


class MeasuredMargin(Result):
    """Largest stabilities of samples.

    Fields:
        margin, margin_error: mean largest stability of the samples that can be stored, and its
            standard error; NaN where no sample can.
        success_fraction, success_fraction_error: share of samples whose largest stability reaches
            the system's margin, and its standard error.
        condition: largest relative violation of the conditions of Karush, Kuhn and Tucker.
        converged: whether `condition` is below 1e-6.
    """

    margin: Float[Array, ""]
    margin_error: Float[Array, ""]
    success_fraction: Float[Array, ""]
    success_fraction_error: Float[Array, ""]
    condition: Float[Array, ""]
    converged: Bool[Array, ""]


class FewestErrors(Result):
    """Smallest fraction of patterns on the wrong side.

    Fields:
        error_fraction, error_fraction_error: mean over samples of the smallest share of patterns on
            the wrong side, and its standard error.
    """

    error_fraction: Float[Array, ""]
    error_fraction_error: Float[Array, ""]


WITHOUT_MARGIN = {"margin": equal(0, why="`maximal_margin` is for a margin")}


def _enumerable(system: SphericalPatterns, **_: object) -> None:
    some_patterns(system)
    n = system.size("input_dim")
    corners = math.comb(round(float(system.load) * n), n - 1)
    if corners > _CORNERS:
        raise ValueError(
            f"SphericalPatterns.load = {float(system.load):g} with {n} inputs has {corners} "
            f"corners: at most {_CORNERS}"
        )


CONVEX = {"margin": at_least(0, why="below the problem is not convex")}


def some_patterns(system: SphericalPatterns, **_: object) -> None:
    if round(float(system.load) * system.size("input_dim")) < 1:
        raise ValueError(
            f"SphericalPatterns.load = {float(system.load):g}: is less than one pattern of "
            f"{system.size('input_dim')}"
        )


@experiment(check=some_patterns, needs=WITHOUT_MARGIN)
def separability(
    system: SphericalPatterns, key: PRNGKeyArray, *, samples: int = 50
) -> Separability:
    r"""Share of samples of random patterns that can be stored without a margin, by linear
    programming.

    A sample can be stored if there are couplings J with $y^\mu J \cdot x^\mu \ge 1$ for all
    patterns. The linear-programming solver HiGHS decides whether they exist. The number of patterns
    is `load` * `input_dim`, rounded.

    Args:
        samples: number of independent samples in one run.

    Raises:
        ValueError: for a margin, or less than one pattern.

    Source: Cover (1965), for the probability that is measured.

    >>> import jax
    >>> found = separability(SphericalPatterns(1.5, input_dim=20), jax.random.key(0), samples=20)
    >>> bool(abs(found.success_fraction - 0.97) < 0.15)
    True
    """

    def separable(patterns: np.ndarray) -> bool:
        demand = -np.ones(len(patterns))
        found = scipy.optimize.linprog(
            np.zeros(patterns.shape[1]), -patterns, demand, bounds=(None, None), method="highs"
        )
        return found.status == 0

    stored = np.array([separable(patterns) for patterns in drawn_patterns(system, key, samples)])
    return Separability(**with_errors(success_fraction=fraction(stored)))


@experiment(check=some_patterns, needs=CONVEX)
def maximal_margin(
    system: SphericalPatterns, key: PRNGKeyArray, *, samples: int = 10
) -> MeasuredMargin:
    r"""Largest stability of random patterns, exactly.

    The couplings are the shortest J with $y^\mu J \cdot x^\mu \ge 1$ for all patterns, found by an
    active set (`orderparam.losses.margin.shortest_vector`), and the largest stability is 1/|J|.

    Args:
        samples: number of independent samples in one run.

    Raises:
        ValueError: for a negative margin, for which the problem is not convex, or less than one
            pattern.

    Accuracy: `condition` is the largest violation of the optimality conditions.

    Source: Krauth, Mézard (1987), for the largest stability; the active set is derived here.

    >>> import jax
    >>> found = maximal_margin(SphericalPatterns(0.5, input_dim=20), jax.random.key(0), samples=5)
    >>> bool(found.margin > 0.5), bool(found.converged)
    (True, True)
    """
    found = [_largest_margin(patterns) for patterns in drawn_patterns(system, key, samples)]
    margins, conditions = (np.array(column) for column in zip(*found))
    worst = float(np.nanmax(np.append(conditions, 0.0)))
    reached = np.nan_to_num(margins, nan=-np.inf) >= float(system.margin)
    return MeasuredMargin(
        **with_errors(margin=mean(margins), success_fraction=fraction(reached)),
        condition=jnp.asarray(worst),
        converged=jnp.asarray(worst < 1e-6),
    )


@experiment(check=_enumerable, needs=WITHOUT_MARGIN)
def fewest_errors(
    system: SphericalPatterns, key: PRNGKeyArray, *, samples: int = 10
) -> FewestErrors:
    r"""Exact smallest fraction of patterns on the wrong side, over all real couplings.

    Some couplings with the fewest wrong patterns lie next to a corner of the arrangement of
    patterns. At a corner N - 1 patterns have stability zero, and a small step puts each of them on
    either side. All $\binom{p}{N - 1}$ corners are tried.

    Args:
        samples: number of independent samples in one run.

    Raises:
        ValueError: for a margin, less than one pattern, or more than a million corners.

    Cost: one linear system of N equations for each corner.

    Source: derived here, by enumeration; the limit of large N is that of Gardner, Derrida (1988).

    >>> import jax
    >>> found = fewest_errors(SphericalPatterns(4.0, input_dim=3), jax.random.key(0), samples=5)
    >>> bool(0 < found.error_fraction < 0.5)
    True
    """
    shares = np.array(
        [
            _fewest_errors(patterns) / len(patterns)
            for patterns in drawn_patterns(system, key, samples)
        ]
    )
    return FewestErrors(**with_errors(error_fraction=mean(shares)))


def drawn_patterns(
    system: SphericalPatterns, key: PRNGKeyArray, samples: int
) -> Iterator[Float[np.ndarray, "p n"]]:
    """The patterns of each sample, multiplied by their outputs: y x."""
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    n, bias = system.size("input_dim"), float(system.bias)
    p = round(float(system.load) * n)
    for _ in range(samples):
        labels = np.where(rng.uniform(size=(p, 1)) < (1 + bias) / 2, 1.0, -1.0)
        yield labels * (bias + np.sqrt(1 - bias**2) * rng.standard_normal((p, n)))


def _largest_margin(patterns: np.ndarray) -> tuple[float, float]:
    """Largest stability and the violation of its optimality conditions; NaN for patterns that
    cannot be stored.
    """
    w, stored = shortest_vector(patterns, np.ones(len(patterns)))
    if not stored:
        return np.nan, np.nan
    surplus = patterns @ w - 1
    held = patterns[surplus < _TIGHT]
    # At the optimum w is a sum of its support vectors with positive weights (Karush, Kuhn, Tucker).
    _, rest = scipy.optimize.nnls(held.T, w)
    return float(1 / np.linalg.norm(w)), float(max(rest / np.linalg.norm(w), -np.min(surplus), 0.0))


def _fewest_errors(patterns: np.ndarray) -> int:
    p, n = patterns.shape
    if p < n:
        return 0
    corners = np.array(list(itertools.combinations(range(p), n - 1)))
    # One more random equation fixes the length and the sign of w.
    last = np.broadcast_to(np.random.default_rng(0).standard_normal(n), (len(corners), 1, n))
    target = np.append(np.zeros(n - 1), 1.0)
    w = np.linalg.solve(
        np.concatenate([patterns[corners], last], axis=1),
        np.broadcast_to(target[:, None], (len(corners), n, 1)),
    )
    # The N - 1 patterns at the corner do not count as wrong: a small step puts each of them on its
    # correct side.
    wrong = np.sum(w[..., 0] @ patterns.T < -_TIGHT * np.linalg.norm(w, axis=1), axis=1)
    return int(min(np.min(wrong), np.min(p - (n - 1) - wrong)))
