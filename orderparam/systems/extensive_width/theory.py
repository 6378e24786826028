"""Bayes-optimal learning of an extensive-width teacher."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.extensive_width.channel import channel
from orderparam.systems.extensive_width.model import Teacher, WeightedTeacher, WidthLimitedStudent
from orderparam.systems.extensive_width.state import (
    BayesOptimal,
    LevelEquation,
    describe,
    solve_between,
    stop,
)

# ------------------------------------------------------------------------------------------------
# The search for a solution: brackets of the one with the largest free entropy, and of the one at
# the highest level.

_UNIFORM = 64  # levels of the scan between the first and the last learned feature,
# levels of the scan between two kinks, equidistant in the number of learned features,
_QUANTILES = 256
_BEYOND = 32  # and levels with everything learned
_RIVALS = 12  # local maxima that are examined closely
_CELLS = 8  # cells of one step of a zoom, in level and in the number of learned features
_NUMBERS = 9  # numbers of learned features that are examined in the window of a local maximum,
_SHORTLIST = 24  # the most promising of which are examined again,
_FINALISTS = 4  # and the best of these are solved
_NEWTON = 3


def _scanned(problem: LevelEquation) -> Float[Array, "level"]:
    """The levels of the scan, from the first kink on. They depend neither on the noise nor on the
    number of samples."""
    kinks = problem.kinks
    present = jnp.sum(problem.features.log_power > -1e3)
    first, last = kinks[0], kinks[present - 1]
    uniform = first + (last - first) * jnp.linspace(0.0, 1.0, _UNIFORM)
    beyond = last + 45.0 * jnp.linspace(0.0, 1.0, _BEYOND + 1)[1:] ** 2
    between = _between_kinks(
        problem, jnp.zeros(()), present, min(_QUANTILES, problem.features.count)
    )
    return jnp.sort(jnp.concatenate([uniform, between, beyond]))


def _between_kinks(
    problem: LevelEquation, first: Array, last: Array, count: int
) -> Float[Array, "level"]:
    """Levels midway between neighbouring kinks, for numbers of learned features spread evenly over
    first .. last."""
    learned = jnp.round(jnp.linspace(first, last, count)).astype(int)
    learned = jnp.clip(learned, 1, jnp.sum(problem.features.log_power > -1e3) - 1)
    return (problem.kinks[learned - 1] + problem.kinks[learned]) / 2


def _neighbours(
    level: Float[Array, "level"], at: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The next lower and the next higher level of each of the sorted levels, some of which may be
    equal."""
    below, above = (
        jnp.searchsorted(level, at, side="left") - 1,
        jnp.searchsorted(level, at, side="right"),
    )
    return level[jnp.maximum(below, 0)], level[jnp.minimum(above, len(level) - 1)]


def _ends(
    problem: LevelEquation, level: Float[Array, "level"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Levels below and above every solution and every scanned level."""
    low, high = problem.bounds
    return jnp.minimum(low, level[0]) - 0.01, jnp.maximum(high, level[-1]) + 0.01


def highest(problem: LevelEquation) -> tuple[Float[Array, ""], Float[Array, ""], Array]:
    """Bracket of the solution of largest free entropy, from a scan for its local maxima and a
    refinement of the highest few."""
    rough = problem.rough
    scanned = _scanned(problem)
    m = jax.vmap(lambda level: rough.totals(level, rough.learned(level))[1])(scanned)
    lowest, highest = _ends(problem, scanned)
    # With nothing learned the solution is the lower bound itself.
    nothing = jnp.minimum(problem.bounds[0], scanned[0])
    level = jnp.concatenate([jnp.stack([lowest, nothing]), scanned, highest[None]])
    edges = jax.vmap(rough.psi)(jnp.stack([lowest, nothing, highest]))
    psi = jnp.concatenate([edges[:2], problem.free_entropy(scanned, m), edges[2:]])
    peak = (psi[1:-1] >= psi[:-2]) & (psi[1:-1] > psi[2:])
    _, where = jax.lax.top_k(jnp.where(peak, psi[1:-1], -jnp.inf), _RIVALS)

    low, high = jax.vmap(lambda at: _neighbours(level, at))(level[1 + where])
    # Zoom until a window contains few kinks; the windows of the scan contain 2 / _QUANTILES of all.
    steps = math.ceil(
        math.log(max(1.0, 2 * problem.features.count / _QUANTILES / (_NUMBERS - 1)), _CELLS / 2)
    )
    low, high = jax.vmap(lambda low, high: _zoom(problem, low, high, steps))(low, high)
    candidates = jax.vmap(lambda low, high: _candidates(problem, low, high))(low, high)
    real = jnp.where(peak[where][:, None], candidates.promise, -jnp.inf)
    every = jax.tree.map(jnp.ravel, candidates._replace(promise=real))
    shortlist = jax.vmap(lambda candidate: _second_look(problem, candidate))(
        _most_promising(every, _SHORTLIST)
    )
    finalists = _most_promising(shortlist, _FINALISTS)
    solved = jax.vmap(lambda candidate: _solved(problem, candidate))(finalists)
    best = jax.tree.map(lambda part: part[jnp.argmax(solved[0])], finalists)
    # Also try one feature more and one less: their maxima may lie between two levels of the scan.
    beside = jax.vmap(lambda number: _solved(problem, _with_number(problem, best, number)))(
        best.number + jnp.arange(-1, 2)
    )
    solved = jax.tree.map(lambda first, second: jnp.concatenate([first, second]), solved, beside)
    _, low, high, learned = (each[jnp.argmax(solved[0])] for each in solved)
    return low, high, learned


class _Candidate(NamedTuple):
    """A number of learned features, a level near its solution, F and its slope there, and an
    estimate of the free entropy at the solution.

    low, high: the window in which the solution is sought.
    """

    promise: Array
    number: Array
    level: Array
    excess: Array
    slope: Array
    low: Array
    high: Array


def _most_promising(candidates: _Candidate, count: int) -> _Candidate:
    _, best = jax.lax.top_k(candidates.promise, count)
    return jax.tree.map(lambda part: part[best], candidates)


def _look(problem: LevelEquation, candidate: _Candidate) -> _Candidate:
    """The candidate with F at its level and the free entropy after one more Newton step with the
    given slope."""
    w, m = problem.totals(candidate.level, candidate.number)
    excess = jnp.exp(candidate.level) * problem.noise + w - problem.samples
    step = _step(problem, candidate._replace(excess=excess))
    gain = -excess * step - jnp.maximum(candidate.slope, 0.0) * step**2 / 2
    return candidate._replace(
        promise=problem.free_entropy(candidate.level, m) + gain, excess=excess
    )


def _step(problem: LevelEquation, candidate: _Candidate) -> Array:
    slope = jnp.where(candidate.slope > 0, candidate.slope, jnp.inf)
    return (
        jnp.clip(candidate.level - candidate.excess / slope, *problem.between(candidate.number))
        - candidate.level
    )


def _second_look(problem: LevelEquation, first: _Candidate) -> _Candidate:
    """The candidate after the Newton step, with the slope of the secant."""
    step = _step(problem, first)
    second = _look(problem, first._replace(level=first.level + step))
    secant = jnp.where(
        step == 0, first.slope, (second.excess - first.excess) / jnp.where(step == 0, 1.0, step)
    )
    found = _look(problem, second._replace(slope=secant))
    return found._replace(promise=jnp.where(jnp.isfinite(first.promise), found.promise, -jnp.inf))


def _candidates(problem: LevelEquation, low: Array, high: Array) -> _Candidate:
    """Candidates for the numbers of learned features in a window, each at the middle of its
    interval; the slope is that at the middle of the window."""
    number = jnp.round(jnp.linspace(problem.learned(low), problem.learned(high), _NUMBERS)).astype(
        int
    )
    new = jnp.concatenate([jnp.array([True]), number[1:] > number[:-1]])
    bottom, top = problem.between(number)
    level = (jnp.maximum(bottom, low) + jnp.minimum(top, high)) / 2
    at = _NUMBERS // 2
    slope = jax.jvp(lambda level: problem.excess(level, number[at]), (level[at],), (jnp.ones(()),))[
        1
    ]

    def one(number: Array, level: Array) -> _Candidate:
        return _look(
            problem, _Candidate(jnp.zeros(()), number, level, jnp.zeros(()), slope, low, high)
        )

    found = jax.vmap(one)(number, level)
    return found._replace(promise=jnp.where(new, found.promise, -jnp.inf))


def _solved(problem: LevelEquation, candidate: _Candidate) -> tuple[Array, Array, Array, Array]:
    """The free entropy of a solution, and a bracket of it."""
    low, high, learned = _around(problem, candidate.number, candidate.low, candidate.high)

    def newton(_: int, level: Array) -> Array:
        value, slope = jax.jvp(
            lambda level: problem.excess(level, learned), (level,), (jnp.ones(()),)
        )
        return jnp.clip(jnp.where(slope > 0, level - value / slope, level), low, high)

    level = jax.lax.fori_loop(0, _NEWTON, newton, jnp.clip(candidate.level, low, high))
    exists = (problem.excess(low, learned) < 0) & (problem.excess(high, learned) > 0) & (low < high)
    value = problem.free_entropy(level, problem.totals(level, learned)[1])
    return jnp.where(exists, value, -jnp.inf), low, high, learned


def _with_number(problem: LevelEquation, candidate: _Candidate, number: Array) -> _Candidate:
    """A candidate with another number of learned features, and the window of levels that belongs to
    it."""
    number = jnp.clip(number, 0, problem.features.count)
    low, high = problem.between(number)
    return candidate._replace(number=number, low=low, high=high)


def _zoom(problem: LevelEquation, low: Array, high: Array, steps: int) -> tuple[Array, Array]:
    """A narrow window around the largest free entropy in [low, high]."""

    def step(window: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        low, high = window
        between = _between_kinks(problem, problem.learned(low), problem.learned(high), _CELLS + 1)
        level = jnp.sort(
            jnp.concatenate([jnp.linspace(low, high, _CELLS + 1), jnp.clip(between, low, high)])
        )
        return _neighbours(level, level[jnp.argmax(jax.vmap(problem.psi)(level))]), None

    return jax.lax.scan(step, (low, high), None, length=steps)[0]


def _around(
    problem: LevelEquation, number: Array, low: Float[Array, ""], high: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""], Array]:
    """The part of [low, high] between the kinks of a number of features. An end at which F does not
    have the sign that a bracket needs is moved to the kink."""
    bottom, top = problem.between(number)
    low, high = jnp.clip(low, bottom, top), jnp.clip(high, bottom, top)
    low = jnp.where(problem.excess(low, number) < 0, low, bottom)
    high = jnp.where(problem.excess(high, number) > 0, high, top)
    return low, high, number


_ABOVE = 1e-12  # from a level to one just above it; levels are logarithms


def last(problem: LevelEquation) -> tuple[Float[Array, ""], Float[Array, ""], Array]:
    """Bracket of the solution of highest level, which is the last interval between two kinks in
    which F rises through zero."""
    scanned = _scanned(problem)
    lowest, highest = _ends(problem, scanned)
    level = jnp.concatenate([lowest[None], scanned, highest[None]])
    if problem.features.count <= _QUANTILES:  # every kink, and every interval between two
        level = jnp.sort(jnp.concatenate([level, jnp.minimum(problem.kinks, scanned[-1])]))

    # F just above and just below each scanned level: they differ at a kink. At the kink itself
    # rounding would decide whether its feature is learned.
    learned = jax.vmap(problem.learned)(level + _ABOVE)
    above = jax.vmap(problem.excess)(level, learned)
    below = jax.vmap(problem.excess)(level[1:], learned[:-1])
    rises = (above[:-1] < 0) & (below >= 0)
    where = jnp.max(jnp.where(rises, jnp.arange(len(rises)), 0))
    low, high = level[where], level[where + 1]
    return _around(problem, problem.learned((low + high) / 2), low, high)


# ------------------------------------------------------------------------------------------------
# Bayes-optimal learning of an extensive-width teacher: overlaps, error, effective width.


@theory
def bayes_optimal(teacher: Teacher) -> BayesOptimal:
    r"""Bayes-optimal state of the learner: of all solutions of the self-consistent equations, the
    one of largest free entropy.

    $$ q_i = m\Big( \frac{n\, v_i^2}{d\, (\Delta + \mathrm{error})} \Big), \qquad
       \mathrm{error} = \sum_i v_i^2 \big( g(1) - g(q_i) \big) $$

    with $v_i$ the read-outs, $\Delta$ the `noise`, n = `n_train`, d = `input_dim`, $g(q) = E\,
    \sigma(z) \sigma(z')$ at the correlation q of z and z' without its constant and linear parts,
    and $m(\lambda)$ the q that maximises $\lambda g(q) + q + \ln(1 - q)$, which jumps away from 0
    at a threshold. `overlap` is q. With $\Lambda = n / (d (\Delta + \mathrm{error}))$ the free
    entropy is

    $$ \Psi = \frac nd \Big( \ln \frac{\Lambda d}{n} + 1 \Big) - \Lambda \Delta
       + \sum_i \max_q \big[ -\Lambda v_i^2 (g(1) - g(q)) + q + \ln(1 - q) \big] $$

    Raises:
        ValueError: for an activation with a quadratic component (use `quadratic_bayes_optimal`).

    Accuracy: 1e-8 in the error. Derivatives are those of the implicit function theorem on the
    branch that is selected. The twelve highest maxima of a scan of the free entropy are examined
    closely; if more than twelve are equally high, or above 1024 features, where the scan is
    accurate to 1e-3, a maximum whose free entropy is that close to the largest one can be missed.

    Cost: well under a second for a million features, after compilation.

    Source: Nguyen, Barbier (2026), eq. 35; the free entropy in one variable and the selection are
    derived here.

    >>> from orderparam.systems.extensive_width import HierarchicalTeacher
    >>> state = bayes_optimal(HierarchicalTeacher(200, 20, decay=1.0, noise=0.1, n_train=40_000))
    >>> float(state.effective_width), round(float(state.error), 6)
    (7.0, 0.009629)
    """
    problem = LevelEquation.of(teacher)
    # The search decides on the branch without derivatives; the solution on it has them.
    low, high, learned = highest(stop(problem))
    return describe(problem, solve_between(problem, low, high, learned))


@theory
def informed_state(teacher: Teacher) -> BayesOptimal:
    r"""Metastable state in which a sampler that starts at the teacher remains: every feature is in
    its local maximum of largest overlap.

    The equations are those of `bayes_optimal`, with $m(\lambda)$ the local maximum of largest q, so
    that a feature is lost only below its spinodal; of all solutions the one of the highest level is
    taken. The state coincides with `bayes_optimal` where all features are learned, and is the upper
    branch of the hysteresis. The lower branch is q = 0 for every n: at information exponent >= 3
    the unlearned state never loses its stability.

    Raises:
        ValueError: for an activation with a quadratic component.

    Accuracy: 1e-8 in the error.

    Source: derived here, from Nguyen, Barbier (2026).

    >>> from orderparam.systems.extensive_width import HierarchicalTeacher
    >>> state = informed_state(HierarchicalTeacher(200, 20, decay=1.0, noise=0.1, n_train=40_000))
    >>> float(state.effective_width), round(float(state.error), 6)
    (8.0, 0.009409)
    """
    problem = LevelEquation.of(teacher, informed=True)
    low, high, learned = last(stop(problem))
    return describe(problem, solve_between(problem, low, high, learned))


# ------------------------------------------------------------------------------------------------
# The smallest error of a student of limited width, from which the model-size law and the optimal
# size of a compressed model follow.
#
# Features that are not represented act as extra Gaussian label noise of variance g(1) sum_{i > p}
# v_i^2 (information exponent >= 3), so that the student obeys the same equations on the p strongest
# features. Its error is exactly flat for p >= k_c. Reconstructed for this package from the
# effective-model statement of Nguyen and Barbier 2026.


class Compressed(Result):
    """The Bayes-optimal state of a student of a given width.

    Fields:
        overlap: overlap of every feature of the teacher; zero for features that are not
            represented.
        error: error of the student's posterior mean against the whole teacher; no factor 1/2, label
            noise not included.
        one_sample_error: error of a single posterior sample in which only the learned features are
            kept.
        effective_width: number of learned features.
        residual: as in `BayesOptimal`.
        converged: whether the residual is below 1e-8.
    """

    overlap: Float[Array, "feature"]
    error: Float[Array, ""]
    one_sample_error: Float[Array, ""]
    effective_width: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def effective_teacher(student: WidthLimitedStudent) -> WeightedTeacher:
    """The effective teacher of a student of limited width: the strongest `width` features, with the
    other features as noise.
    """
    teacher = student.teacher
    v = teacher.readout
    rank = jnp.arange(v.shape[0]) if teacher.decreasing else jnp.argsort(jnp.argsort(-(v**2)))
    kept = rank < student.width
    # A feature that is not represented is Gaussian noise of variance g(1) v_i^2 to the student.
    left_out = channel(teacher.activation).total * jnp.sum(jnp.where(kept, 0.0, v**2))
    noise: Any = teacher.noise + left_out
    return WeightedTeacher(
        teacher.input_dim, jnp.where(kept, v, 0.0), noise, teacher.n_train, teacher.activation
    )


@theory
def compressed(student: WidthLimitedStudent) -> Compressed:
    r"""Smallest error of a student of limited width p against the whole teacher.

    $$ \mathrm{error}_p = g(1) \sum_{i > p} v_i^2
       + \sum_{i \le p} v_i^2 \big( g(1) - g(q_i) \big) $$

    with the overlaps $q_i$ of `bayes_optimal` at the noise $\Delta + g(1) \sum_{i > p} v_i^2$ and p
    = `width`. For p << k_c and decay > 1/2 this is the model-size law $g(1)\, p^{1 - 2\beta} /
    ((2\beta - 1) \zeta(2\beta))$.

    Raises:
        ValueError: for an activation with a quadratic component.

    Accuracy: 1e-8.

    Source: derived here, from the effective model of Nguyen, Barbier (2026).

    >>> from orderparam.systems.extensive_width import HierarchicalTeacher
    >>> teacher = HierarchicalTeacher(200, 20, decay=1.0, noise=0.1, n_train=40_000)
    >>> round(float(compressed(WidthLimitedStudent(teacher, width=2)).error), 6)
    0.023614
    """
    teacher: Teacher = student.teacher
    seen = effective_teacher(student)
    state = bayes_optimal(seen)
    left_out = seen.noise - teacher.noise
    total = channel(teacher.activation).total
    # A single sample doubles the error of the learned features; it does not contain the unlearned
    # ones.
    unlearned = total * jnp.sum(jnp.where(state.overlap > 0, 0.0, seen.readout**2))
    return Compressed(
        overlap=state.overlap,
        error=state.error + left_out,
        one_sample_error=2 * (state.error - unlearned) + unlearned + left_out,
        effective_width=state.effective_width,
        residual=state.residual,
        converged=state.converged,
    )
