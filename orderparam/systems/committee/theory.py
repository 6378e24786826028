"""State evolution of the Bayes-optimal committee: the K x K overlap Q of weights and estimates,

    Qh = alpha E_{w ~ N(0, Q)} sum_y (grad Z_y)(grad Z_y)^T / Z_y,  V = 1 - Q;    Q = E <w><w>^T, observed at precision Qh,

exact as d grows at fixed K: Aubin, Maillard, Barbier, Krzakala, Macris, Zdeborová 2018 (arXiv:1806.05451). Q is symmetric under
exchange of the units, Q = q_s P + q_d (1 - P) with P = 11^T/K: the estimates of all units are the same where q_d = 0, and each
knows its own where q_d > 0 (specialisation).
"""

import itertools
import math
from collections import Counter
from functools import cache
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp, xlogy
from jaxtyping import Array, Bool, Float
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import qmc

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.fixed_point import fixed_point
from orderparam.systems.committee.channel import evidence, label_counts
from orderparam.systems.committee.model import Committee

Scalar = Float[Array, ""]
Rule = tuple[np.ndarray, np.ndarray]  # nodes and weights

_STEP = {1: (0.1, 0.01), 2: (0.25, 0.08), 3: (0.5, 0.25)}  # of fields, for what is smooth and for what has kinks
_REPLICATES, _POINTS, _MORE = 4, 512, 8
_LEAST_WEIGHT, _LEAST_EVIDENCE = 1e-17, 1e-13
_NEARLY = 0.999  # overlap of an informed start
_STEPS = (1e-3, 2e-3, 4e-3)  # of q_d, towards its limit at zero


class Modes(NamedTuple):
    """Eigenvalues of a matrix that is symmetric under exchange of the units: along 1, and across."""

    same: Scalar
    apart: Scalar


class TeacherCommittee(Result):
    """overlap: Q_11, of a unit's weights with their estimate; cross_overlap: Q_12, with that of another unit (0 for one unit).

    error: mean square error of a weight, 1 - Q_11. classification_error: P(the likeliest label is not y) on a new input.
    """

    overlap: Scalar
    cross_overlap: Scalar
    error: Scalar
    classification_error: Scalar
    converged: Bool[Array, ""]


class OptimalCommittee(TeacherCommittee):
    """free_entropy: (1/d) ln P(y | x) at this solution; -K ln 2 where binary weights are known. overlap_error: standard error of
    the overlap, 0 for K <= 3, where averages are quadratures. residual: of the fixed point. steps: iterations."""

    free_entropy: Scalar
    overlap_error: Scalar
    residual: Scalar
    steps: Scalar


class Specialisation(Result):
    """sample_ratio: n/d above which the units come apart. overlap: Q_11 there."""

    sample_ratio: Scalar
    overlap: Scalar


class InformationTransition(Result):
    """Of binary weights. information: n/d from which they are determined, NaN where the units come apart before that; from there
    on known weights have the largest free entropy, while message passing follows the other state. apart: specialisation."""

    information: Scalar
    apart: Scalar


@theory(differentiable=False)
def state_evolution(
    system: Committee,
    *,
    start: Literal["uninformed", "symmetric", "informed"] = "uninformed",
    max_steps: int = 3000,
    tolerance: float = 1e-10,
) -> OptimalCommittee:
    """The solution reached from next to Q = 0 (what message passing reaches), from estimates that are the same for all units
    (q_d = 0 throughout), or from the weights themselves. For K > 3 four sets of points are solved one by one, and averaged.

    classification_error is accurate to 1e-4.
    """
    first = {"uninformed": (0.05, 0.01), "symmetric": (0.05, 0.0), "informed": (_NEARLY, _NEARLY)}[start]

    def solved(points: Rule, fine: Rule) -> tuple[Scalar, ...]:
        def update(q: Modes, system: Committee) -> Modes:
            return _weights(system, _labels(system, q, points)[0], points)[0]

        found = fixed_point(update, Modes(*map(jnp.asarray, first)), system, tolerance=tolerance, max_steps=max_steps)
        precision, log_evidence, _ = _labels(system, found.value, points)
        wrong = _labels(system, found.value, fine)[2]
        q, log_partition = _weights(system, precision, points)
        free = log_partition - _trace(system, q, precision) / 2 + system.sample_ratio * log_evidence
        own, cross = _entries(system, q)
        return own, cross, wrong, free, found.residual, found.converged.astype(float), found.steps.astype(float)

    parts = [solved(*points) for points in zip(field_rule(system.hidden), field_rule(system.hidden, kinks=True))]
    own, cross, wrong, free, residual, converged, steps = (jnp.stack(part) for part in zip(*parts))
    return OptimalCommittee(
        overlap=jnp.mean(own),
        cross_overlap=jnp.mean(cross),
        error=1 - jnp.mean(own),
        classification_error=jnp.mean(wrong),
        converged=jnp.min(converged) > 0,
        free_entropy=jnp.mean(free),
        overlap_error=jnp.std(own) / math.sqrt(max(len(parts) - 1, 1)),
        residual=jnp.max(residual),
        steps=jnp.max(steps),
    )


def _several(system: Committee, **options: object) -> None:
    if system.hidden < 2:
        raise ValueError("Committee.hidden = 1: one unit has nothing to come apart from; must be at least 2")


@theory(traced=False, check=_several)
def specialisation(system: Committee) -> Specialisation:
    """Where the state with q_d = 0 becomes unstable: alpha (di_d/dq_d)(dq_d/dqh_d) = 1, i the right-hand side of Qh at alpha = 1.

    Along the curve alpha(qh_s) of these states, without iteration; to 1e-7 for K <= 3. The sample ratio is not used. A parity of
    signs tells nothing about Q = 0, and all of Q comes at once.
    """

    def gain(precision: float) -> tuple[float, float, float]:
        """At alpha = 1, alpha, and Q_11."""
        rates, ratios, overlaps = zip(*(_gain(system, jnp.asarray(precision), points) for points in field_rule(system.hidden)))
        return float(np.mean(rates)), float(np.mean(ratios)), float(np.mean(overlaps))

    if system.rule == "parity":
        rate, _, overlap = gain(0.0)
        return Specialisation(jnp.asarray(1 / rate), jnp.asarray(overlap))
    grid = np.geomspace(0.02, 50.0, 24)
    rates = [ratio * rate for rate, ratio, _ in map(gain, grid)]
    after = next((i for i, rate in enumerate(rates) if rate > 1), None)
    if not after:
        return Specialisation(jnp.asarray(np.inf), jnp.asarray(np.nan))
    place = brentq(lambda x: gain(x)[0] * gain(x)[1] - 1, grid[after - 1], grid[after], xtol=1e-9)
    _, ratio, overlap = gain(place)
    return Specialisation(jnp.asarray(ratio), jnp.asarray(overlap))


def _binary(system: Committee, **options: object) -> None:
    if system.weights != "binary":
        raise ValueError("Committee.weights: Gaussian weights are never known exactly; must be binary")
    _several(system)


@theory(traced=False, check=_binary)
def information_transition(system: Committee) -> InformationTransition:
    """Where the free entropy of the state with equal units (q_d = 0), which is the first one, falls to -K ln 2, that of known
    weights; by bracketing up to specialisation, to 1e-6. The sample ratio is not used."""
    known = -system.hidden * math.log(2)

    def above(ratio: float) -> float:
        return float(state_evolution(system.with_(sample_ratio=ratio), start="symmetric").free_entropy) - known

    apart = float(specialisation(system).sample_ratio)
    if not np.isfinite(apart) or above(apart) > 0:
        return InformationTransition(jnp.asarray(np.nan), jnp.asarray(apart))
    return InformationTransition(jnp.asarray(brentq(above, 0.1 * apart, apart, xtol=1e-6)), jnp.asarray(apart))


@cache
def field_rule(hidden: int, kinks: bool = False) -> list[Rule]:
    """Sets of nodes (node, hidden) and weights of K standard normal variables for functions that neither exchanges of the units
    nor a change of all signs affect: equal steps for K <= 3, beyond four sets of scrambled Sobol points."""
    if hidden > max(_STEP):
        count = _POINTS * (_MORE if kinks else 1)
        engines = (qmc.Sobol(hidden, seed=seed) for seed in range(_REPLICATES))
        return [(ndtri(np.clip(e.random(count), 1e-12, 1 - 1e-12)), np.full(count, 1 / count)) for e in engines]
    step = _STEP[hidden][kinks]
    half = int(9.0 / step)
    x = step * np.arange(-half, half + 1)
    w = step * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    places, weights = [], []
    for chosen in itertools.combinations_with_replacement(range(len(x)), hidden):
        mirrored = tuple(sorted(len(x) - 1 - i for i in chosen))
        copies = math.factorial(hidden) / math.prod(math.factorial(n) for n in Counter(chosen).values())
        weight = copies * float(np.prod(w[list(chosen)])) * (1 if chosen == mirrored else 2)
        if chosen <= mirrored and weight > _LEAST_WEIGHT:
            places.append(x[list(chosen)])
            weights.append(weight)
    return [(np.array(places), np.array(weights))]


def _entries(system: Committee, q: Modes) -> tuple[Scalar, Scalar]:
    """Diagonal and off-diagonal entry."""
    cross = (q.same - q.apart) / system.hidden
    return cross + q.apart, jnp.where(system.hidden > 1, cross, 0.0)


def _trace(system: Committee, one: Modes, other: Modes) -> Scalar:
    return one.same * other.same + (system.hidden - 1) * one.apart * other.apart


def _modes(matrix_sum: Scalar, trace: Scalar, hidden: int) -> Modes:
    same = matrix_sum / hidden
    return Modes(same, (trace - same) / max(hidden - 1, 1))


def _spread(x: Array, root: Modes) -> Array:
    """Standard normal x (..., hidden) with the covariance whose modes have the given roots."""
    mean = jnp.mean(x, axis=-1, keepdims=True)
    return root.apart * (x - mean) + root.same * mean


def _labels(system: Committee, q: Modes, points: Rule) -> tuple[Modes, Scalar, Scalar]:
    """Qh; E sum_y Z ln Z; and the probability that the likeliest label is wrong."""
    x, weight = points
    q = Modes(*(jnp.clip(part, 0.0, 1 - 1e-9) for part in q))
    if system.hidden == 1:
        q = Modes(q.same, q.same)
    fields = _spread(jnp.asarray(x), Modes(*(jnp.sqrt(jnp.maximum(part, 1e-30)) for part in q)))
    value, gradient = evidence(fields, 1 - q.apart, (q.same - q.apart) / system.hidden, label_counts(system.hidden, system.rule))
    seen = value > _LEAST_EVIDENCE
    inverse = jnp.where(seen, 1 / jnp.where(seen, value, 1.0), 0.0)
    total = jnp.einsum("n,ny,ny->", weight, inverse, jnp.sum(gradient, axis=-1) ** 2)
    trace = jnp.einsum("n,ny,nyk->", weight, inverse, gradient**2)
    precision = Modes(*(system.sample_ratio * part for part in _modes(total, trace, system.hidden)))
    kept, share = jnp.where(seen, value, 0.0), jnp.asarray(weight)
    return precision, share @ jnp.sum(xlogy(kept, kept), axis=-1), 1 - share @ jnp.max(value, axis=-1)


def _weights(system: Committee, precision: Modes, points: Rule) -> tuple[Modes, Scalar]:
    """Q, and E ln of the partition function of a weight of every unit."""
    hidden = system.hidden
    if system.weights == "gaussian":
        q = Modes(*(part / (1 + part) for part in precision))
        logs = Modes(*(part - jnp.log1p(part) for part in precision))
        return q, (logs.same + (hidden - 1) * logs.apart) / 2
    x, weight = points
    states = jnp.asarray(list(itertools.product((-1.0, 1.0), repeat=hidden)))
    pulls = _spread(states, precision)
    noise = _spread(jnp.asarray(x), Modes(*(jnp.sqrt(jnp.maximum(part, 1e-30)) for part in precision)))
    b = pulls[:, None] + noise  # (true state, node, hidden)
    height = jnp.einsum("tnk,sk->tns", b, states) - jnp.sum(states * pulls, axis=-1) / 2
    mean = jnp.einsum("tns,sk->tnk", jax.nn.softmax(height, axis=-1), states)
    total, trace = (jnp.mean(part @ weight) for part in (jnp.sum(mean, axis=-1) ** 2, jnp.sum(mean**2, axis=-1)))
    free = jnp.mean(logsumexp(height, axis=-1) @ weight) - hidden * math.log(2)
    return _modes(total, trace, hidden), free


@jax.jit
def _gain(system: Committee, precision: Scalar, points: Rule) -> tuple[Scalar, Scalar, Scalar]:
    """At qh_s = precision and q_d = 0: the product of both slopes at alpha = 1, alpha, and Q_11."""
    system = system.with_(sample_ratio=1.0)
    zero = jnp.zeros(())
    q = _weights(system, Modes(precision, zero), points)[0]
    same = jnp.where(precision > 0, q.same, 0.0)
    ratio = precision / _labels(system, Modes(same, zero), points)[0].same
    labels = [_labels(system, Modes(same, jnp.asarray(e)), points)[0].apart / e for e in _STEPS]
    weights = [_weights(system, Modes(precision, jnp.asarray(e)), points)[0].apart / e for e in _STEPS]
    return _limit(labels) * _limit(weights), ratio, _entries(system, Modes(same, zero))[0]


def _limit(values: list[Scalar]) -> Scalar:
    """At zero, of the parabola through values at one, two and four steps."""
    one, two, four = values
    return (8 * one - 6 * two + four) / 3
