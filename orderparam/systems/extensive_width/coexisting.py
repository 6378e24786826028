"""All solutions of the equations of an extensive-width teacher, by enumeration.

The solutions are the zeros of a function F of the level. F is smooth between two kinks and falls at
each kink. Its evaluation in all intervals costs the square of the number of features. On the
learned branch W falls with the level, so that the values of F at two levels bound F between them.
These bounds rule out almost all intervals between kinks, many of them at once. The others are
examined closely.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.extensive_width.model import Teacher
from orderparam.systems.extensive_width.state import (
    BayesOptimal,
    LevelEquation,
    describe,
    solve_between,
)

_ENUMERATED = 2048
_BEYOND = 64  # levels above the last kink
_TOGETHER = 32  # neighbouring intervals that are ruled out at once
_BETWEEN = 8  # levels examined between two kinks
_BLOCK, _BLOCKS = 32, 64  # levels that are evaluated together, and blocks of one call
_SOLVED = 8  # solutions of one call
_RISE = 1.01  # margin on the steepest rise of W, which is found on a grid


class CoexistingStates(Result):
    """All solutions of the self-consistent equations at one number of samples, the Bayes-optimal
    one first.

    Fields:
        overlap: q_i of every feature, as in `BayesOptimal`.
        error: error of the posterior mean, as in `BayesOptimal`.
        effective_width: number of learned features.
        free_entropy: Psi (see `bayes_optimal`), in decreasing order.
        stable: whether the solution is a local maximum of Psi; the other solutions are minima
            between two maxima.
        converged: whether the residual is below 1e-8.
    """

    overlap: Float[Array, "solution feature"]
    error: Float[Array, "solution"]
    effective_width: Float[Array, "solution"]
    free_entropy: Float[Array, "solution"]
    stable: Bool[Array, "solution"]
    converged: Bool[Array, "solution"]


@theory(traced=False)
def all_solutions(teacher: Teacher) -> CoexistingStates:
    """All solutions of the self-consistent equations, by enumeration of the intervals between
    learning thresholds.

    The equations are those of `bayes_optimal`. The number of solutions is a result, so that this
    theory cannot be traced by JAX.

    Raises:
        ValueError: for more than 2048 features, or an activation with a quadratic component.

    Accuracy: 1e-8 in the errors.

    Source: derived here, from Nguyen, Barbier (2026).

    >>> from orderparam.systems.extensive_width import HierarchicalTeacher
    >>> found = all_solutions(HierarchicalTeacher(200, 4, decay=1.0, noise=0.1, n_train=40_000))
    >>> found.stable.tolist()
    [True]
    """
    if (width := teacher.readout.shape[0]) > _ENUMERATED:
        raise ValueError(f"width = {width}: must be <= {_ENUMERATED} to enumerate all solutions")
    problem, landmarks = _prepared(teacher)
    scan = _Scan(problem, *(np.asarray(part) for part in landmarks))
    windows = scan.sign_changes()
    found = _solved(problem, windows)
    stable = windows.rising
    order = np.argsort(np.where(stable, -found.free_entropy, np.inf), kind="stable")
    return CoexistingStates(
        overlap=jnp.asarray(found.overlap[order]),
        error=jnp.asarray(found.error[order]),
        effective_width=jnp.asarray(found.effective_width[order]),
        free_entropy=jnp.asarray(found.free_entropy[order]),
        stable=jnp.asarray(stable[order]),
        converged=jnp.asarray(found.converged[order]),
    )


class _Windows(NamedTuple):
    """Intervals of levels in which F changes sign, the number of learned features there, and
    whether F rises."""

    low: np.ndarray
    high: np.ndarray
    learned: np.ndarray
    rising: np.ndarray


class _Landmarks(NamedTuple):
    """Levels and bounds of a problem that the scan needs.

    kinks: levels at which a feature is learned, infinite for features of no strength. ends: levels
    beyond which there is no solution. unlearned: for each number of learned features, the noise
    plus the contribution of all other features to F, in units of Lambda. rise: steepest rise of W
    with the level on the learned branch. gap: W of a feature just above its threshold, and just
    below it.
    """

    kinks: Float[Array, "feature"]
    ends: Float[Array, "2"]
    unlearned: Float[Array, "{feature}+1"]
    rise: Float[Array, ""]
    gap: Float[Array, "2"]


@eqx.filter_jit
def _prepared(teacher: Teacher) -> tuple[LevelEquation, _Landmarks]:
    problem = LevelEquation.of(teacher)
    low, high = problem.bounds
    start = problem.segments.threshold
    levels = start + jnp.linspace(0.0, 50.0, 4096)
    w = problem.channel.state(levels, problem.segments).unexplained
    rise = jnp.maximum(jnp.max(jnp.diff(w) / jnp.diff(levels)), 0.0)
    return problem, _Landmarks(
        jnp.where(problem.features.present, problem.kinks, jnp.inf),
        jnp.stack([low - 1e-3, high + 1e-3]),
        problem.noise + problem.channel.total * problem.features.tail,
        _RISE * rise,
        jnp.stack([w[0], jnp.exp(start) * problem.channel.total]),
    )


class _Scan:
    """The search for the intervals in which F changes sign."""

    def __init__(
        self,
        problem: LevelEquation,
        kinks: np.ndarray,
        ends: np.ndarray,
        unlearned: np.ndarray,
        rise: np.ndarray,
        gap: np.ndarray,
    ) -> None:
        self.problem, self.unlearned, self.rise, self.gap = problem, unlearned, rise, gap
        self.kinks = np.sort(kinks[np.isfinite(kinks)])
        levels = (ends, self.kinks, np.linspace(self.kinks[-1], ends[1], _BEYOND))
        self.anchors = np.unique(np.clip(np.concatenate(levels), *ends))

    def excess(self, level: np.ndarray, learned: np.ndarray) -> np.ndarray:
        """F at each level with a number of learned features."""
        size, found = _BLOCK * _BLOCKS, []
        for first in range(0, len(level), size):
            part = slice(first, min(first + size, len(level)))
            count = part.stop - part.start
            padded = [np.resize(values[part], size) for values in (level, learned)]
            blocks = -(-count // _BLOCK)
            found.append(np.asarray(_excess(self.problem, *padded, blocks))[:count])
        return np.concatenate(found) if found else np.zeros(0)

    def possible(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """True if F can be zero between two levels, judged from its values just inside them."""
        fewest = np.searchsorted(self.kinks, low, side="right")
        most = np.searchsorted(self.kinks, high, side="left")
        above, below = np.split(
            self.excess(np.concatenate([low, high]), np.concatenate([fewest, most])), 2
        )
        grown = np.exp(high) - np.exp(low)
        rises = self.rise * (high - low) * most
        largest = above + grown * self.unlearned[fewest] + rises
        # A feature that is learned between the two levels contributes at least this before it is
        # learned.
        before = self.gap[1] * np.exp(low - high)
        least = below - grown * self.unlearned[most] - rises
        least -= (most - fewest) * np.maximum(self.gap[0] - before, 0.0)
        return (least <= 0) & (largest >= 0)

    def sign_changes(self) -> _Windows:
        """All intervals in which F changes sign, in increasing order."""
        last = len(self.anchors) - 1
        first = np.arange(0, last, _TOGETHER)
        ends = np.minimum(first + _TOGETHER, last)
        kept = self.possible(self.anchors[first], self.anchors[ends])
        inside = [np.arange(a, b) for a, b in zip(first[kept], ends[kept])]
        small = np.concatenate(inside) if inside else np.zeros(0, int)
        small = small[self.possible(self.anchors[small], self.anchors[small + 1])]
        low, high = self.anchors[small], self.anchors[small + 1]
        parts = np.linspace(0.0, 1.0, _BETWEEN + 1)
        level = low[:, None] + (high - low)[:, None] * parts
        level[:, -1] = high
        # The middle of an interval decides what is learned in it; its lower end may be a kink,
        # where rounding decides.
        learned = np.searchsorted(self.kinks, (low + high) / 2)
        value = self.excess(level.ravel(), np.repeat(learned, _BETWEEN + 1)).reshape(level.shape)
        above, below = value[:, :-1], value[:, 1:]
        rising, falling = (above < 0) & (below >= 0), (above > 0) & (below <= 0)
        row, column = np.nonzero(rising | falling)
        return _Windows(
            level[row, column], level[row, column + 1], learned[row], rising[row, column]
        )


@jax.jit
def _excess(problem: LevelEquation, level: Array, learned: Array, blocks: Array) -> Array:
    """F at the levels of the first `blocks` blocks; F in the other blocks is not computed."""

    def block(number: Array, found: Array) -> Array:
        here = (
            jax.lax.dynamic_slice_in_dim(part, number * _BLOCK, _BLOCK) for part in (level, learned)
        )
        values = jax.vmap(problem.excess)(*here)
        return jax.lax.dynamic_update_slice_in_dim(found, values, number * _BLOCK, 0)

    return jax.lax.fori_loop(0, blocks, block, jnp.zeros(level.shape))


def _solved(problem: LevelEquation, windows: _Windows) -> Any:
    """The states at the zeros of F in all windows, as NumPy arrays."""
    count, found = len(windows.low), []
    for first in range(0, count, _SOLVED):
        padded = [np.resize(part[first : first + _SOLVED], _SOLVED) for part in windows]
        found.append(_solve_some(problem, *padded, min(_SOLVED, count - first)))
    states = [jax.tree.map(np.asarray, part) for part in found]
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:count], *states)


@jax.jit
def _solve_some(
    problem: LevelEquation, low: Array, high: Array, learned: Array, rising: Array, count: Array
) -> BayesOptimal:
    """The states in the first `count` windows; those in the other windows are not computed."""

    def one(number: Array) -> BayesOptimal:
        window = (part[number] for part in (low, high, learned, rising))
        return describe(problem, solve_between(problem, *window))

    shapes = jax.eval_shape(one, jnp.zeros((), int))
    blank = jax.tree.map(lambda part: jnp.zeros((_SOLVED, *part.shape), part.dtype), shapes)

    def put(number: Array, found: BayesOptimal) -> BayesOptimal:
        return jax.tree.map(lambda all, own: all.at[number].set(own), found, one(number))

    return jax.lax.fori_loop(0, count, put, blank)
