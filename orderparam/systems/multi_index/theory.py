"""Exponents and staircase of a target, and exit times of a neuron under SGD."""

from collections.abc import Callable
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.needs import iteration
from orderparam.core.verb import theory
from orderparam.gaussian.rules import half_line_rule, hermite_rule
from orderparam.gaussian.target import Target
from orderparam.solve.anderson import anderson_correction, truncated_weights
from orderparam.solve.flow import flow
from orderparam.systems.multi_index.exponents import exponents
from orderparam.systems.multi_index.label import LabelMoments
from orderparam.systems.multi_index.model import (
    ORDERS,
    Climb,
    ExitTime,
    Hardness,
    LearnedTarget,
    OverlapPath,
    SphericalSGD,
    WeakLearnability,
    read,
)
from orderparam.systems.multi_index.second_moment import normalised
from orderparam.systems.multi_index.staircases import (
    NOTHING,
    information,
    label_moments,
    lowest_stair,
    moments_given,
    split,
)

# ------------------------------------------------------------------------------------------------
# The exponents of a target as a Result, and the optimal estimate, which finds the directions of the
# target stair by stair.

_FIRST = 0.05  # initial overlap of directions whose threshold has just been passed
_LEARNED = 1e-6  # 1 - overlap below which directions count as known
_UNCERTAIN = 5e-4  # relative change of precisions below the accuracy of the sampling
# number of steps that Anderson's method combines, and largest length of its step in units of the
# last step of the iteration
_MEMORY, _LONGEST = 3, 10.0


@theory(differentiable=False)
def hardness(system: WeakLearnability) -> Hardness:
    r"""Information, leap and generative exponents of a target, and its weak recovery threshold.

    With $c_a = E[g\, h_{a_1}(z_1) \cdots h_{a_r}(z_r)]$ and $\zeta_a(y) = E[h_a(z) | y]$,

    $$ \text{information} = \min\{|a| \ge 1 : c_a \ne 0\} , \qquad
       \text{generative} = \min\{|a| \ge 1 : \zeta_a \not\equiv 0\} ; $$

    the leaps are the highest such degrees on the way to all directions, given the directions found
    before. The threshold is that of a first direction, see
    `orderparam.systems.multi_index.threshold`. The exponents are computed when the program is
    compiled.

    Accuracy: exact for polynomials and for kinks on coordinate planes; otherwise to the tolerances
    of `exponents`.

    Source: Ben Arous, Gheissari, Jagannath (2021); Abbe, Boix-Adsera, Misiakiewicz (2023); Damian
    et al. (2024); Damian, Lee, Bruna (2025); Troiani et al. (2024).

    >>> found = hardness(WeakLearnability("z1*z2"))
    >>> float(found.information), float(found.generative), round(float(found.threshold), 5)
    (2.0, 2.0, 0.59375)
    """
    found = exponents(system.target)

    def number(x: float | None) -> Array:
        return jnp.asarray(np.inf if x is None else float(x))

    return Hardness(
        information=number(found.information),
        leap=number(found.leap),
        generative=number(found.generative),
        generative_leap=number(found.generative_leap),
        degree=number(found.degree),
        threshold=number(found.threshold),
        hermite_power=jnp.asarray(np.square(found.hermite[1 : ORDERS + 1])),
        converged=jnp.asarray(True),
    )


@theory(traced=False, needs=iteration("max_steps"))
def grand_staircase(system: LearnedTarget, *, max_steps: int = 200) -> Climb:
    r"""Overlaps with the directions of a target that the best algorithm reaches, stair by stair.

    A direction is found when its threshold, given the overlaps of the directions before, is below
    $n/d = \alpha$. The overlaps $Q$ then grow to the fixed point

    $$ Q = \hat Q (1 + \hat Q)^{-1} , \qquad \hat Q = \alpha (1 - Q)^{-1/2}\,
       E\big[ E[t | y, \omega]\, E[t | y, \omega]^T \big] (1 - Q)^{-1/2} , $$

    where an estimate of overlap $Q$ determines the part $\omega \sim N(0, Q)$ of the fields $z =
    \omega + \sqrt{1 - Q}\, t$. This is the state that message passing reaches from $Q = 0$.
    Overlaps between known and unknown directions are assumed to stay zero, which holds where a
    change of sign of the unknown directions leaves y unchanged.

    Args:
        max_steps: largest number of iterations on a stair; 200 by default. If they are not enough,
            as near a threshold, the last overlaps are returned and `converged` is False.

    Accuracy: averages are sampled, which is equivalent to an error of a few parts in a thousand in
    n/d, and of 1 % where overlaps are below 0.1.

    Cost: a few seconds.

    Source: Troiani, Dandi, Defilippis, Zdeborová, Loureiro, Krzakala (2024).

    >>> climb = grand_staircase(LearnedTarget(0.3, "z1**2 + sign(z1*z2*z3)"))
    >>> np.round(climb.overlap, 3), round(float(climb.next_threshold), 1)
    (Array([0., 0., 0.], dtype=float64), 0.6)
    """
    g, first = _normalised_with_moments(system.target)
    alpha, size = float(system.sample_ratio), g.dimension
    overlap, residual, following = np.zeros((size, size)), 0.0, np.inf
    rest = np.eye(size)
    while len(rest):
        stair = lowest_stair(moments_given(g, overlap, rest) if np.any(overlap) else first, rest)
        following = np.inf if stair is None else stair.threshold
        if stair is None or following >= alpha:
            break
        overlap, change = _risen(
            g, alpha, overlap + _FIRST * stair.directions.T @ stair.directions, max_steps
        )
        residual, following = max(residual, change), np.inf
        rest = split(overlap)[1]
    shown = np.diagonal(overlap)
    return Climb(
        overlap=jnp.asarray(np.where(shown > 1 - NOTHING, 1.0, shown)),
        next_threshold=jnp.asarray(following),
        converged=jnp.asarray(residual < _UNCERTAIN),
        residual=jnp.asarray(residual),
    )


@lru_cache(maxsize=32)
def _normalised_with_moments(target: str | Target) -> tuple[Target, LabelMoments]:
    """The target at spread 1 and its label moments, which are the same at every ratio."""
    g, _ = normalised(read(target))
    return g, label_moments(g, 3)


def _risen(
    g: Target, alpha: float, overlap: np.ndarray, max_steps: int
) -> tuple[np.ndarray, float]:
    """The fixed point in the span of the known directions that is reached from an overlap, and the
    last change of ln qh.

    Anderson's method combines the last `_MEMORY` steps. Its step is at most ten times as long as a
    step of the iteration, because a longer one might lead to another fixed point. Directions count
    as known as soon as their precision exceeds 1 / `_LEARNED`.
    """
    least, most = np.log(2 * NOTHING), -np.log(_LEARNED)
    partly, fresh, change = split(overlap)[0], True, 0.0
    heights: list[np.ndarray] = []
    steps: list[np.ndarray] = []
    for _ in range(max_steps):
        if not len(partly):
            return overlap, 0.0
        if fresh:
            share = partly @ overlap @ partly.T
            learned = overlap - partly.T @ share @ partly
            height = _of(share, lambda x: np.log(x / (1 - x)))
            heights, steps, fresh = [], [], False
        precision = alpha * information(g, overlap, partly)
        step = (
            _of(precision, lambda x: np.clip(np.log(np.maximum(x, NOTHING)), least, most)) - height
        )
        change = float(np.max(np.abs(step)))
        if change < _UNCERTAIN:
            break
        heights, steps = [*heights[-_MEMORY:], height], [*steps[-_MEMORY:], step]
        height = _of(
            height + _anderson(np.stack(heights), np.stack(steps)), lambda x: np.maximum(x, least)
        )
        overlap = (
            learned
            + partly.T
            @ _of(height, lambda x: np.where(x < most, 1 / (1 + np.exp(-x)), 1.0))
            @ partly
        )
        if np.linalg.eigvalsh(height)[-1] >= most:
            partly, fresh = split(overlap)[0], True
    return overlap, change


def _anderson(values: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Step of Anderson's method from the last of successive values, given the steps of the
    iteration at these values.
    """
    slopes, moves = (np.diff(x.reshape(len(x), -1), axis=0) for x in (steps, values))
    last = steps[-1].ravel()
    step = last - anderson_correction(moves, slopes, last, truncated_weights)
    # a step against the direction of the iteration is rejected, because it shows that no fixed
    # point is near
    if step @ last <= 0:
        step = last
    longest = _LONGEST * float(np.linalg.norm(last))
    return step.reshape(steps.shape[1:]) * min(
        1.0, longest / max(float(np.linalg.norm(step)), 1e-300)
    )


def _of(matrix: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Function of a symmetric matrix, applied to its eigenvalues."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * function(values)) @ vectors.T


# ------------------------------------------------------------------------------------------------
# The flow of the overlaps, and the mean time in which their diffusion leaves the neighbourhood of
# zero.
#
# With e the error signal, rate the learning rate per sample and t = n / d,
#
#     dm/dt = rate E[e (z* - lambda m)] - rate^2 / 2 m E[e^2]  (Ben Arous et al. 2021)
#
# where z* are the hidden fields and lambda = w.x. For one index and small m the first term is rate
# sum_k k c_k(g) c_k(sigma) m^(k-1): the smallest k in it is the information exponent.

_NODES = {1: 48, 2: 14, 3: 7, 4: 4}  # Gauss nodes on each half line of every field
_NOISE_NODES = 5
_GRID = 1201  # points of the first-passage problem
_QUANTILES = 64  # starts over which its solution is averaged
# largest number of steps of the solver; explicit steps that need more are limited by stability
_STEPS = 10_000


def _fields(
    system: SphericalSGD, overlap: Float[Array, "index"]
) -> tuple[Array, Array, Array, Array]:
    """Nodes z*, lambda and y of a quadrature over the hidden fields, the independent part of lambda
    and the label noise, with their weights.
    """
    count = system.teacher.dimension
    z, w = half_line_rule(_NODES[count])
    xi, v = hermite_rule(_NOISE_NODES)
    grids = np.meshgrid(*[z] * (count + 1), xi, indexing="ij")
    weights = np.prod(np.meshgrid(*[w] * (count + 1), v, indexing="ij"), axis=0).ravel()
    stars = np.stack([part.ravel() for part in grids[:count]], axis=-1)
    free, noise = grids[count].ravel(), grids[count + 1].ravel()
    outside = jnp.sqrt(jnp.maximum(1 - jnp.sum(overlap**2), 0.0))
    label = system.teacher(jnp.asarray(stars)) + jnp.sqrt(system.noise) * noise
    return (
        jnp.asarray(stars),
        jnp.asarray(stars) @ overlap + outside * free,
        label,
        jnp.asarray(weights),
    )


def drift_and_spread(
    system: SphericalSGD, overlap: Float[Array, "index"]
) -> tuple[Float[Array, "index"], Float[Array, "index index"]]:
    """Drift dm/dt of the overlaps, and d times the covariance of m that one unit of time n/d adds,
    rate^2 E[e^2 (z* - lambda m)(z* - lambda m)^T].

    Averages are tensor quadratures with rules that allow the target a kink on coordinate planes;
    the student is taken to be smooth. They are exact to rounding for polynomials and, for one
    index, accurate to about 1e-6 for erf and tanh students. With `repetition` above 1 the error
    signal sharpens the student, which costs digits (4e-5 at 3).
    """
    stars, field, label, weights = _fields(system, overlap)
    error = system.error_signal(field, label, 1.0)
    pull = error[:, None] * (stars - field[:, None] * overlap)
    rate = system.rate
    drift = rate * weights @ pull - rate**2 / 2 * overlap * (weights @ error**2)
    return drift, rate**2 * (pull * weights[:, None]).T @ pull


@theory
def overlap_flow(system: SphericalSGD, *, stiff: bool = False) -> OverlapPath:
    r"""Overlaps of a neuron under one-pass SGD, in the limit of large input dimension.

    $$ \frac{dm}{dt} = \gamma E[e\, (z_* - \lambda m)] - \frac{\gamma^2}{2} m\, E[e^2] , \qquad
       \lambda = w \cdot x , \qquad t = n/d , $$

    with hidden fields $z_*$, the error signal $e$ and the learning rate $\gamma$ of one sample. It
    starts from `first_overlap`, or from the median first overlap $0.6745/\sqrt d$ when that is 0.
    For one index and small $m$ the first term is $\gamma \sum_k k\, c_k(g) c_k(\sigma) m^{k-1}$,
    whose smallest $k$ is the information exponent.

    Args:
        stiff: whether implicit steps are taken (False by default). They are needed for a strong
            `repetition`: $E[e^2]$ grows with the 18th power of the field for Hermite 2, so that
            noise may erase the overlap within 1e-6 of a sample per dimension. Explicit steps are
            then so short that 10^4 of them do not reach the end, and `converged` is False.

    Accuracy: the differential equation is solved to 1e-8, with averages as in `drift_and_spread`.

    Source: Ben Arous, Gheissari, Jagannath (2021).

    >>> path = overlap_flow(SphericalSGD(first_overlap=0.1, horizon=100.0, records=2))
    >>> np.round(path.norm, 4)
    Array([0.1019, 0.8898], dtype=float64)
    """
    count = system.teacher.dimension
    typical = 0.6744897501960817 / jnp.sqrt(jnp.asarray(system.input_dim, jnp.float64))
    first = jnp.where(jnp.asarray(system.first_overlap) > 0, system.first_overlap, typical)
    times = system.steps() * system.batch_size / system.input_dim

    def field(overlap: Array, system: SphericalSGD) -> Array:
        return drift_and_spread(system, overlap)[0]

    path = flow(
        field,
        jnp.full(count, first),
        times,
        system,
        stiff=stiff,
        rtol=1e-8,
        atol=1e-10,
        max_steps=_STEPS,
    )
    return OverlapPath(
        sample_ratio=times,
        overlap=path.value,
        norm=jnp.linalg.norm(path.value, axis=-1),
        converged=path.converged,
    )


def _one_index(system: SphericalSGD) -> None:
    if system.teacher.dimension != 1:
        raise ValueError(
            f"SphericalSGD.target = {system.target!r}: exit_time is for one hidden index; follow "
            "`overlap_flow`"
        )


@theory(check=_one_index)
def exit_time(system: SphericalSGD) -> ExitTime:
    r"""Mean number of samples until |m| reaches `exit_overlap`, for one hidden direction.

    At finite $d$ the overlap diffuses, $dm = \mu\, dt + \sqrt{D/d}\, dB$ with $\mu$, $D$ of
    `drift_and_spread`. The mean time $T(m)$ from $m$ solves

    $$ \frac{D}{2d} T'' + \mu T' = -1 , \qquad T = 0 \text{ at } |m| = \text{exit\_overlap} , $$

    and is averaged over the first overlaps $m \sim N(0, 1/d)$ (their absolute value for `start`
    "positive"). Escapes by noise, where the drift is too weak or of the wrong sign, are included.
    `converged` is true if the time is below the horizon.

    Raises:
        ValueError: for targets of several directions.

    Accuracy: exact in the limit of large d, to 1e-4 because of the grid. Single steps must be
    small: for degree 3 at small d measured times are longer.

    Source: derived here; the drift is that of Ben Arous, Gheissari, Jagannath (2021).

    >>> found = exit_time(SphericalSGD(input_dim=256, learning_rate=0.1))
    >>> round(float(found.exit_samples), 1)
    3753.2
    """
    dim = jnp.asarray(system.input_dim, jnp.float64)
    # The grid in m is evenly spaced in asinh(m sqrt(d)): it is fine on the scale 1/sqrt(d) of the
    # first overlaps, and logarithmic above this scale.
    reach = jnp.arcsinh(system.exit_overlap * jnp.sqrt(dim))
    s = jnp.linspace(-1.0, 1.0, _GRID) * reach
    m = jnp.sinh(s) / jnp.sqrt(dim)
    drift, spread = jax.lax.map(lambda x: drift_and_spread(system, x[None]), m, batch_size=64)
    drift, spread = drift[:, 0], spread[:, 0, 0] / (2 * dim)
    # In s: T' = T_s / m_s, T'' = T_ss / m_s^2 - T_s m_ss / m_s^3.
    slope, bend = jnp.cosh(s) / jnp.sqrt(dim), m
    second = spread / slope**2
    first = drift / slope - spread * bend / slope**3
    step = s[1] - s[0]
    inner = (second[1:-1], first[1:-1])
    lower = inner[0] / step**2 - inner[1] / (2 * step)
    upper = inner[0] / step**2 + inner[1] / (2 * step)
    solution = jax.lax.linalg.tridiagonal_solve(
        lower.at[0].set(0.0),
        -2 * inner[0] / step**2,
        upper.at[-1].set(0.0),
        -jnp.ones((_GRID - 2, 1)),
    )
    times = jnp.pad(solution[:, 0], 1)
    quantiles = jax.scipy.special.ndtri((jnp.arange(_QUANTILES) + 0.5) / _QUANTILES) / jnp.sqrt(dim)
    starts = jnp.abs(quantiles) if system.start == "positive" else quantiles
    starts = jnp.where(jnp.asarray(system.first_overlap) > 0, system.first_overlap, starts)
    mean = jnp.mean(jnp.interp(jnp.arcsinh(starts * jnp.sqrt(dim)), s, times))
    return ExitTime(
        exit_samples=mean * dim,
        exit_steps=mean * dim / system.batch_size,
        converged=(mean > 0) & (mean < system.horizon),
    )
