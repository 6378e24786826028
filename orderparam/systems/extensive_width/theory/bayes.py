"""Bayes-optimal learning of an extensive-width teacher: overlaps, error, effective width, and every rival solution."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.extensive_width.model import Teacher
from orderparam.systems.extensive_width.theory.search import highest, last
from orderparam.systems.extensive_width.theory.state import BayesOptimal, LevelEquation, describe, solve_between, stop

_ENUMERATED = 2048
_BETWEEN = 8  # levels looked at between two kinks


@theory
def bayes_optimal(teacher: Teacher) -> BayesOptimal:
    """The Bayes-optimal state: of all solutions of the self-consistent equations the one of largest free entropy.

    The error is accurate to 1e-8, for any decreasing or given read-outs and any noise; a million features take well under a
    second and grids over numbers are vmapped. Derivatives with respect to noise, samples, decay and read-outs are those of
    the implicit function theorem, on the branch that is selected. Solutions are found by a scan of the free entropy, whose
    highest maxima are resolved down to single features; the free entropies compared at the end are those of the solutions
    themselves, and of those with a feature more or less. The twelve highest maxima of the scan are looked at closely; of more
    that tie, or above 1024 features, where the scan is accurate to 1e-3, one that close to the best can be missed.

    Raises `ValueError` for activations with a quadratic component (use `quadratic_bayes_optimal`).
    """
    problem = LevelEquation.of(teacher)
    low, high, learned = highest(stop(problem))
    return describe(problem, solve_between(problem, low, high, learned))


@theory
def informed_state(teacher: Teacher) -> BayesOptimal:
    """The state in which a sampler started at the teacher stays: every feature in its informed, perhaps metastable, maximum.

    A feature is lost only below its spinodal; the level is the highest solution. It coincides with `bayes_optimal` where all is
    learned, and it is the upper branch of the hysteresis. The uninformed branch is q = 0 for ever: at information exponent
    >= 3 the unlearned state never loses its stability.
    """
    problem = LevelEquation.of(teacher, informed=True)
    low, high, learned = last(stop(problem))
    return describe(problem, solve_between(problem, low, high, learned))


class CoexistingStates(Result):
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


@theory(traced=False)
def all_solutions(teacher: Teacher) -> CoexistingStates:
    """Every solution, by enumeration of the intervals between learning thresholds. Not traceable: their number is a result.

    Raises `ValueError` for more than 2048 features.
    """
    if teacher.readout.shape[0] > _ENUMERATED:
        raise ValueError(f"width = {teacher.readout.shape[0]}: must be <= {_ENUMERATED} to enumerate all solutions")
    problem = LevelEquation.of(teacher)
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
    return CoexistingStates(found.overlap, found.error, found.effective_width, found.free_entropy, stable[order], found.converged)


@eqx.filter_jit
def _fine_scan(problem: LevelEquation) -> tuple[Array, Array, Array, Array]:
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
def _solve_all(problem: LevelEquation, low: Array, high: Array, learned: Array, rising: Array) -> BayesOptimal:
    def one(window: tuple[Array, Array, Array, Array]) -> BayesOptimal:
        return describe(problem, solve_between(problem, *window))

    return jax.lax.map(one, (low, high, learned, rising))
