"""Bayes-optimal learning of an extensive-width teacher: overlaps, error, effective width, and every rival solution."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.systems.extensive_width.model import Teacher
from orderparam.systems.extensive_width.theory.state import BayesOptimal, Problem, describe, solve_between, stop, with_arrays

_COARSE = 256  # levels at which the free entropy is scanned, from the first learned feature to the last
_BEYOND = 48  # and beyond the last one
_WITH_KINKS = 256  # teachers up to this width are scanned at every kink too
_RIVALS = 4  # local maxima looked at closely
_FINALISTS = 2  # and at full accuracy
_POINTS = 17  # levels in one step of a zoom, which narrows the window eight times
_ENUMERATED = 2048
_BETWEEN = 8  # levels looked at between two kinks


def bayes_optimal(teacher: Teacher) -> BayesOptimal:
    """The Bayes-optimal state: of all solutions of the self-consistent equations the one of largest free entropy.

    The error is accurate to 1e-8, for any decreasing or given read-outs and any noise; a million features take well under a
    second and grids over numbers are vmapped. Derivatives with respect to noise, samples, decay and read-outs are those of
    the implicit function theorem, on the branch that is selected. Between neighbouring solutions, one feature more or less,
    the larger free entropy decides exactly; between distant ones (collective transitions) to about 1e-6 of the number of
    learned features.

    Raises `ValueError` for activations with a quadratic component (use `quadratic_bayes_optimal`).
    """
    return _bayes_optimal(with_arrays(teacher))


@eqx.filter_jit
def _bayes_optimal(teacher: Teacher) -> BayesOptimal:
    problem = Problem.of(teacher)
    low, high, learned = _highest(stop(problem))
    return describe(problem, solve_between(problem, low, high, learned))


def informed_state(teacher: Teacher) -> BayesOptimal:
    """The state in which a sampler started at the teacher stays: every feature in its informed, perhaps metastable, maximum.

    A feature is lost only below its spinodal; the level is the highest solution. It coincides with `bayes_optimal` where all is
    learned, and it is the upper branch of the hysteresis. The uninformed branch is q = 0 for ever: at information exponent
    >= 3 the unlearned state never loses its stability.
    """
    return _informed_state(with_arrays(teacher))


@eqx.filter_jit
def _informed_state(teacher: Teacher) -> BayesOptimal:
    problem = Problem.of(teacher, informed=True)
    low, high, learned = _last(stop(problem))
    return describe(problem, solve_between(problem, low, high, learned))


def _scan(problem: Problem) -> tuple[Float[Array, "level"], Float[Array, "level"], Float[Array, "level"]]:
    """Levels from the first kink on, with sum W and sum M there. None of it depends on the noise or on the number of samples."""
    kinks = problem.kinks
    present = problem.features.log_power > -1e3
    first, last = kinks[0], jnp.max(jnp.where(present, kinks, -jnp.inf))
    coarse = first + (last - first) * jnp.linspace(0.0, 1.0, _COARSE)
    beyond = last + 45.0 * jnp.linspace(0.0, 1.0, _BEYOND + 1)[1:] ** 2
    levels = [coarse, beyond]
    if problem.features.count <= _WITH_KINKS:
        clipped = jnp.minimum(kinks, last)
        levels += [clipped, (clipped[1:] + clipped[:-1]) / 2]
    level = jnp.sort(jnp.concatenate(levels))
    w, m = jax.vmap(lambda level: problem.totals(level, problem.learned(level)))(level)
    return level, w, m


def _ends(problem: Problem, level: Float[Array, "level"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Levels below and above every solution and every scanned level."""
    low, high = problem.bounds
    return jnp.minimum(low, level[0]) - 0.01, jnp.maximum(high, level[-1]) + 0.01


def _highest(problem: Problem) -> tuple[Float[Array, ""], Float[Array, ""], Array]:
    """Bracket of the solution of largest free entropy: a scan for its local maxima, a zoom into the highest few."""
    rough = problem.rough
    scanned, _, m = _scan(rough)
    lowest, highest = _ends(problem, scanned)
    # With nothing learned the solution is the lower bound itself.
    nothing = jnp.minimum(problem.bounds[0], scanned[0])
    level = jnp.concatenate([jnp.stack([lowest, nothing]), scanned, highest[None]])
    edges = jax.vmap(rough.psi)(jnp.stack([lowest, nothing, highest]))
    psi = jnp.concatenate([edges[:2], problem.free_entropy(scanned, m), edges[2:]])
    peak = (psi[1:-1] >= psi[:-2]) & (psi[1:-1] > psi[2:])
    _, where = jax.lax.top_k(jnp.where(peak, psi[1:-1], -jnp.inf), _RIVALS)

    low, high, _, value = jax.vmap(lambda low, high: _zoom(rough, low, high, 1))(level[where], level[where + 2])
    _, finalists = jax.lax.top_k(value, _FINALISTS)
    low, high, best, value = jax.vmap(lambda low, high: _zoom(problem, low, high, 2))(low[finalists], high[finalists])
    winner = jnp.argmax(value)
    # Down to windows narrower than the distance of two kinks, which is about 1 / (number of features).
    steps = max(1, math.ceil(math.log(10 * problem.features.count / 512, 8)))
    low, high, best, _ = _zoom(problem, low[winner], high[winner], steps)
    return _best_neighbour(problem, *_around(problem, best, low, high))


def _best_neighbour(problem: Problem, low: Array, high: Array, learned: Array) -> tuple[Array, Array, Array]:
    """The given bracket, or that of a solution with one or two features more or less, whichever has the largest free entropy.

    A zoom may settle on the wrong side of a kink; here the free entropies are those of the solutions themselves.
    """
    kinks = jnp.concatenate([jnp.array([-jnp.inf]), problem.kinks, jnp.array([jnp.inf])])
    lowest, highest = problem.bounds
    candidates = jnp.clip(learned + jnp.array([0, -2, -1, 1, 2]), 0, problem.features.count)
    lows = jnp.maximum(lowest - 1e-3, kinks[candidates]).at[0].set(low)
    highs = jnp.minimum(highest + 1e-3, kinks[candidates + 1]).at[0].set(high)
    excess = jax.vmap(problem.excess)
    exists = (excess(lows, candidates) < 0) & (excess(highs, candidates) > 0) & (lows < highs)

    def psi(low: Array, high: Array, learned: Array) -> Array:
        level = solve_between(problem, low, high, learned).level
        return problem.free_entropy(level, problem.totals(level, learned)[1])

    values = jnp.where(exists.at[0].set(True), jax.vmap(psi)(lows, highs, candidates), -jnp.inf)
    best = jnp.argmax(values)
    return lows[best], highs[best], candidates[best]


def _zoom(problem: Problem, low: Array, high: Array, steps: int) -> tuple[Array, Array, Array, Array]:
    """The window around the largest free entropy in [low, high], its middle, and the value there."""

    def step(window: tuple[Array, Array, Array, Array], _: None) -> tuple[tuple[Array, Array, Array, Array], None]:
        level = jnp.linspace(window[0], window[1], _POINTS)
        psi = jax.vmap(problem.psi)(level)
        best = jnp.clip(jnp.argmax(psi), 1, _POINTS - 2)
        return (level[best - 1], level[best + 1], level[best], psi[best]), None

    return jax.lax.scan(step, (low, high, low, low), None, length=steps)[0]


def _around(
    problem: Problem, inside: Float[Array, ""], low: Float[Array, ""], high: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""], Array]:
    """The part of [low, high] between the kinks next to a level in it, widened to those kinks where F does not change sign."""
    bottom, top, learned = problem.bracket(inside)
    low, high = jnp.maximum(low, bottom), jnp.minimum(high, top)
    low = jnp.where(problem.excess(low, learned) < 0, low, bottom)
    high = jnp.where(problem.excess(high, learned) > 0, high, top)
    return low, high, learned


def _last(problem: Problem) -> tuple[Float[Array, ""], Float[Array, ""], Array]:
    """Bracket of the solution of highest level: the last interval between two kinks in which F rises through zero."""
    scanned, _, _ = _scan(problem)
    lowest, highest = _ends(problem, scanned)
    level = jnp.concatenate([lowest[None], scanned, highest[None]])

    # F just above and just below each scanned level: they differ at a kink.
    learned = jax.vmap(problem.learned)(level)
    above = jax.vmap(problem.excess)(level, learned)
    below = jax.vmap(problem.excess)(level[1:], learned[:-1])
    rises = (above[:-1] < 0) & (below >= 0)
    where = jnp.max(jnp.where(rises, jnp.arange(len(rises)), 0))
    return _around(problem, (level[where] + level[where + 1]) / 2, level[where], level[where + 1])


class Solutions(Result):
    """All solutions of the self-consistent equations at one number of samples, the Bayes-optimal one first.

    free_entropy: Psi (see `BayesOptimal`), in decreasing order. stable: local maximum of Psi; the others are minima between two
    of them. Other fields: as in `BayesOptimal`.
    """

    overlap: Float[Array, "solution feature"]
    error: Float[Array, "solution"]
    effective_width: Float[Array, "solution"]
    free_entropy: Float[Array, "solution"]
    stable: Bool[Array, "solution"]
    converged: Bool[Array, "solution"]


def all_solutions(teacher: Teacher) -> Solutions:
    """Every solution, by enumeration of the intervals between learning thresholds. Not traceable: their number is a result.

    Raises `ValueError` for more than 2048 features.
    """
    teacher = with_arrays(teacher)
    if teacher.readout.shape[0] > _ENUMERATED:
        raise ValueError(f"width = {teacher.readout.shape[0]}: must be <= {_ENUMERATED} to enumerate all solutions")
    problem = eqx.filter_jit(Problem.of)(teacher)
    level, learned, above, below = (np.asarray(part) for part in _fine_scan(problem))
    rising, falling = (above < 0) & (below >= 0), (above > 0) & (below <= 0)
    where = np.flatnonzero(rising | falling)
    count = len(where)
    padded = np.resize(where, max(8, 2 ** math.ceil(math.log2(count))))  # few different sizes, few compilations
    windows = (level[padded], level[padded + 1], learned[padded], rising[padded])
    solved = _solve_all(problem, *(jnp.asarray(part) for part in windows))
    found, stable = jax.tree.map(lambda part: part[:count], (solved, jnp.asarray(rising[padded])))
    order = jnp.argsort(jnp.where(stable, -found.free_entropy, jnp.inf))
    found = jax.tree.map(lambda part: part[order], found)
    return Solutions(
        found.overlap, found.error, found.effective_width, found.free_entropy, stable[order], found.converged
    )


@eqx.filter_jit
def _fine_scan(problem: Problem) -> tuple[Array, Array, Array, Array]:
    """Levels at and between all kinks; for each interval the number learned, F at its lower and at its upper end."""
    kinks = jnp.where(problem.features.log_power > -1e3, problem.kinks, problem.kinks[0])
    low, high = problem.bounds
    ends = jnp.stack([low - 1e-3, high + 1e-3])
    last = jnp.max(kinks)
    anchor = jnp.sort(jnp.clip(jnp.concatenate([ends, kinks, jnp.linspace(last, high, 64)]), *ends))
    parts = jnp.linspace(0.0, 1.0, _BETWEEN + 1)[:-1]
    level = jnp.concatenate([(anchor[:-1, None] + (anchor[1:] - anchor[:-1])[:, None] * parts).ravel(), anchor[-1:]])
    # The middle of an interval decides what is learned in it; its lower end may be a kink, where rounding decides.
    learned = jax.vmap(problem.learned)((level[1:] + level[:-1]) / 2)

    def ends_of(ends: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        return problem.excess(ends[0], ends[2]), problem.excess(ends[1], ends[2])

    above, below = jax.lax.map(ends_of, (level[:-1], level[1:], learned), batch_size=256)
    real = level[1:] > level[:-1]
    return level, learned, jnp.where(real, above, 0.0), jnp.where(real, below, 0.0)


@eqx.filter_jit
def _solve_all(problem: Problem, low: Array, high: Array, learned: Array, rising: Array) -> BayesOptimal:
    def one(window: tuple[Array, Array, Array, Array]) -> BayesOptimal:
        return describe(problem, solve_between(problem, *window))

    return jax.lax.map(one, (low, high, learned, rising))
