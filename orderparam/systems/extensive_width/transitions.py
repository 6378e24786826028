"""The staircase: the number of samples at which each feature is learned, and the window in which
the learned and the unlearned state coexist.

With N = n/d the free entropy is Psi = N (level - ln N + 1) + c(level), c = sum_i M - Lambda Delta,
so that its maximum over the level is a Legendre transform. The Bayes-optimal states at all N
together are the concave envelope of c, and every chord that bridges a gap of the envelope is a
transition at N = minus its slope. A chord over one kink means that one feature is learned; a chord
over many kinks is a collective first-order transition. Derived for this package, not in the cited
paper (Nguyen and Barbier 2026).
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.registry import tool
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian import activation as find_activation
from orderparam.gaussian.numerical import Numerical
from orderparam.systems.extensive_width.model import Teacher, WeightedTeacher
from orderparam.systems.extensive_width.state import RESIDUAL, BayesOptimal, LevelEquation
from orderparam.systems.extensive_width.theory import bayes_optimal

_WIDEST = 2048
_BETWEEN = 12  # levels between two kinks
_SPACING = 0.005  # largest spacing of levels between the first and the last kink
_FINE = 64  # factor by which intervals are divided around the touching points


class Windows(Result):
    """Windows in which the states with and without feature j coexist, given that the j-1 stronger
    features are learned and no weaker feature is.

    Features are in decreasing order of v^2. `begin` and `end` are infinite for features with v^2
    below e^-80 of the largest.

    Fields:
        begin: number of samples above which the state with feature j learned exists (on its
            Bayes-optimal branch).
        end: number of samples below which the channel of feature j prefers the state without it;
            `end` - `begin` is d lambda_sigma g(q_sigma) for every feature.
        overlap: q_sigma, the overlap with which a feature appears.
    """

    begin: Float[Array, "feature"]
    end: Float[Array, "feature"]
    overlap: Float[Array, ""]


class Staircase(Result):
    """All transitions of the Bayes-optimal state, in increasing order of the number of samples.

    Fields:
        n_train: number of samples at the transition.
        width_before: effective width before the transition.
        width_after: effective width after the transition; it exceeds width_before by more than 1 in
            a collective transition.
        error_before: error before the transition.
        error_after: error after the transition.
        residual: relative inaccuracy of the common tangent.
        converged: whether every residual is below 1e-8 and the transitions are in increasing order;
            False if the read-outs span so many orders of magnitude that rounding hides some of the
            transitions.
    """

    n_train: Float[Array, "transition"]
    width_before: Float[Array, "transition"]
    width_after: Float[Array, "transition"]
    error_before: Float[Array, "transition"]
    error_after: Float[Array, "transition"]
    residual: Float[Array, "transition"]
    converged: Bool[Array, ""]


@theory
def coexistence_windows(teacher: Teacher) -> Windows:
    r"""Numbers of samples between which the states with and without each feature coexist.

    $$ n = d \Big( \Lambda_j \Delta + \sum_i W(\Lambda_j v_i^2) \Big), \qquad
       \Lambda_j = \lambda_\sigma / v_j^2 $$

    with feature j learned (`begin`) and unlearned (`end`), $W(\lambda) = \lambda (g(1) -
    g(m(\lambda)))$, and the other symbols as in `bayes_optimal`; $\lambda_\sigma$ is the signal at
    which a feature is learned. For homogeneous read-outs no feature is learned alone and the
    windows have no meaning: see `collective_transition`.

    Raises:
        ValueError: for an activation with a quadratic component.

    Accuracy: 1e-9.

    Source: derived here, from Nguyen, Barbier (2026).

    >>> from orderparam.systems.extensive_width import HierarchicalTeacher
    >>> found = coexistence_windows(HierarchicalTeacher(200, 4, decay=1.0, noise=0.1))
    >>> np.asarray(found.begin[:2]).round(2).tolist(), round(float(found.overlap), 6)
    ([986.94, 2952.72], 0.750827)
    """
    problem = LevelEquation.of(teacher)
    number = jnp.arange(problem.features.count)

    def samples(level: Array, learned: Array) -> Array:
        return (problem.excess(level, learned) + problem.samples) * teacher.input_dim

    def window(at: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        level, j, present = at
        learned, unlearned = samples(level, j + 1), samples(level, j)
        return jnp.where(present, learned, jnp.inf), jnp.where(present, unlearned, jnp.inf)

    begin, end = jax.lax.map(
        window, (problem.kinks, number, problem.features.present), batch_size=64
    )
    return Windows(
        begin=begin,
        end=end,
        overlap=problem.channel.overlap(problem.segments.threshold, problem.segments),
    )


@theory(traced=False)
def staircase(teacher: Teacher) -> Staircase:
    """All transitions of the Bayes-optimal state from n = 0 to infinity.

    The transitions are the chords of the concave envelope of c (see the head of this module),
    refined to common tangents by Newton's method. `n_train` of the teacher is not used. The number
    of transitions is a result, so that this theory cannot be traced by JAX.

    Raises:
        ValueError: for more than 2048 features, or an activation with a quadratic component.

    Accuracy: 1e-10 in `n_train`.

    Source: derived here, from Nguyen, Barbier (2026).

    >>> from orderparam.systems.extensive_width import HierarchicalTeacher
    >>> found = staircase(HierarchicalTeacher(200, 3, decay=1.0, noise=0.1))
    >>> np.asarray(found.n_train).round(2).tolist(), found.width_after.tolist()
    ([991.6, 2817.34, 5481.15], [1.0, 2.0, 3.0])
    """
    count = teacher.readout.shape[0]
    if count > _WIDEST:
        raise ValueError(f"width = {count}: must be <= {_WIDEST} for its whole staircase")
    problem = LevelEquation.of(teacher)
    level = _levels(problem)
    concave = _concave(problem, level)
    hull = _upper_hull(level, concave)
    gaps = np.diff(level, prepend=level[0], append=level[-1])
    around = np.linspace(-1.0, 1.0, 2 * _FINE + 1)[:, None] * np.maximum(gaps[hull], gaps[hull + 1])
    level = np.unique(np.concatenate([level[hull], (level[hull] + around).ravel()]))
    concave = _concave(problem, level)
    hull = _upper_hull(level, concave)
    learned = np.asarray(jax.vmap(problem.learned)(jnp.asarray(level)))
    left, right = hull[:-1], hull[1:]
    # Touching points of a transition are on different branches; where the envelope is smooth,
    # neighbours are on the same.
    # A chord that changes the number of learned features is a transition.
    bridge = learned[left] < learned[right]
    left, right = left[bridge], right[bridge]
    ends = (level[left], level[right], learned[left], learned[right])
    return _polish(problem, teacher.input_dim, *(jnp.asarray(part) for part in ends))


def _levels(problem: LevelEquation) -> np.ndarray:
    """Levels at all kinks, between them, and beyond."""
    kinks = np.asarray(problem.kinks)[np.asarray(problem.features.present)]
    first, last = kinks[0], kinks[-1]
    parts = np.linspace(0.0, 1.0, _BETWEEN + 1)[:-1]
    between = kinks[:-1, None] + np.diff(kinks)[:, None] * parts
    uniform = np.linspace(first, last, int((last - first) / _SPACING) + 1)
    outside = [first - np.geomspace(0.001, 6.0, 2000), last + np.geomspace(0.001, 12.0, 4000)]
    return np.unique(np.concatenate([between.ravel(), kinks, uniform, *outside]))


@eqx.filter_jit
def _c(problem: LevelEquation, level: Float[Array, "level"]) -> Float[Array, "level"]:
    def c(level: Array) -> Array:
        return problem.totals(level, problem.learned(level))[1] - jnp.exp(level) * problem.noise

    return jax.lax.map(c, level, batch_size=256)


def _concave(problem: LevelEquation, level: np.ndarray) -> np.ndarray:
    """The function c at the given levels, padded so that few different numbers of levels are
    compiled."""
    padded = np.resize(level, 2 ** math.ceil(math.log2(len(level))))
    return np.asarray(_c(problem, jnp.asarray(padded)))[: len(level)]


def _upper_hull(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Indices of the upper convex hull of points sorted by x (Andrew 1979); equal x are kept
    once."""
    hull: list[int] = []
    for i in range(len(x)):
        if hull and x[i] == x[hull[-1]]:
            continue
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) > (y[i] - y[a]) * (x[b] - x[a]):
                break
            hull.pop()
        hull.append(i)
    return np.asarray(hull)


@eqx.filter_jit
def _polish(
    problem: LevelEquation,
    input_dim: Array | float,
    low: Array,
    high: Array,
    before: Array,
    after: Array,
) -> Staircase:
    """Common tangents of c on two branches, by Newton steps: c'(a) = c'(b) = (c(b) - c(a)) / (b -
    a) = -N."""

    def c(level: Array, learned: Array) -> Array:
        return problem.totals(level, learned)[1] - jnp.exp(level) * problem.noise

    def slope(level: Array, learned: Array) -> Array:
        return -(problem.totals(level, learned)[0] + jnp.exp(level) * problem.noise)

    def one(start: tuple[Array, Array, Array, Array]) -> tuple[Array, ...]:
        a, b, before, after = start

        def miss(ends: Array) -> Array:
            chord = (c(ends[1], after) - c(ends[0], before)) / (ends[1] - ends[0])
            return jnp.stack([slope(ends[0], before) - chord, slope(ends[1], after) - chord])

        def step(ends: Array, _: None) -> tuple[Array, None]:
            return ends - jnp.linalg.solve(jax.jacfwd(miss)(ends), miss(ends)), None

        ends, _ = jax.lax.scan(step, jnp.stack([a, b]), None, length=8)
        n = -slope(ends[0], before)
        errors = [n * jnp.exp(-end) - problem.noise for end in ends]
        return n * input_dim, errors[0], errors[1], jnp.max(jnp.abs(miss(ends))) / n

    n, error_before, error_after, residual = jax.lax.map(
        one, (low, high, before, after), batch_size=64
    )
    converged = jnp.all(residual < RESIDUAL) & jnp.all(jnp.diff(n) > 0)
    return Staircase(
        n_train=n,
        width_before=before.astype(float),
        width_after=after.astype(float),
        error_before=error_before,
        error_after=error_after,
        residual=residual,
        converged=converged,
    )


# ------------------------------------------------------------------------------------------------
# The units of a user's two-layer network that a given number of examples identifies.


@tool
def predict_identified_units(
    readouts: Float[np.ndarray, "unit"],
    gain: float,
    input_dim: int,
    n_train: int,
    noise: float,
    activation: str,
) -> BayesOptimal:
    r"""The Bayes-optimal state of a learner of $\sum_i v_i \phi(c\, w_i \cdot x/\sqrt d)$, with one
    gain c for all units.

    Args:
        readouts: v of the network.
        gain: Gain c, the standard deviation of the pre-activations for inputs N(0, 1).
        input_dim: Input dimension d.
        n_train: Number of examples.
        noise: Variance of the labels that the network leaves unexplained.
        activation: Name of $\phi$.

    Raises:
        ValueError: for activations with a quadratic component, as in `bayes_optimal`.

    Source: Nguyen, Barbier (2026), by `bayes_optimal`.
    """
    phi = find_activation(activation)
    scaled = Numerical(lambda z: phi(gain * z), f"{activation} of {gain:.3g} z", phi.kinks)
    teacher = WeightedTeacher(input_dim, np.asarray(readouts, float), noise, n_train, scaled)
    return bayes_optimal(teacher)
