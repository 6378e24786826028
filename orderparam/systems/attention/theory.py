"""Theory of attention as an index model: recovery of a vector from sequences, and the two states of
a layer that may learn positions or contents.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.points import normal_points
from orderparam.solve.root import decreasing_root
from orderparam.solve.secant import secant_fixed_point
from orderparam.systems.attention.model import (
    Branch,
    Pairs,
    SeenSequence,
    TiedAttention,
    attention_cost,
    own_attention,
    target_attention,
)

Scalar = Float[Array, ""]


class RecoveredVector(Result):
    """Overlap of the best algorithm with a vector that is observed through attention, and
    thresholds.

    Fields:
        overlap: q = w.a/d, the overlap of the posterior mean a with the vector; also |a|^2/d.
        weak_threshold: sequences over dimension n/d above which the overlap is not 0.
        full_threshold: sequences over dimension n/d above which the overlap is 1.
        residual: error of the equations.
        converged: whether the equations were solved.
    """

    overlap: Scalar
    weak_threshold: Scalar
    full_threshold: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


class AttentionState(Result):
    """One state of a layer of tied attention.

    Fields:
        self_overlap: q = s^2 |w|^2/d.
        teacher_overlap: theta = s^2 w.w*/d, overlap with the teacher of the contents.
        positional_overlap: m = 1.w/d, overlap with the direction of the positions.
        cavity_variance: V, response of the field of a new sequence when it is added to training.
        free_energy: the training objective over d, alpha E (s^2/2)|Y - S|^2 + lambda q/(2 s^2); the
            state with the lower value is the global minimum.
        test_error: s^2 E|Y - S|^2, the limit of |y - y^|^2/d on new sequences.
        residual: largest relative change in one more iteration.
        converged: whether the residual is below 1e-7.
    """

    self_overlap: Scalar
    teacher_overlap: Scalar
    positional_overlap: Scalar
    cavity_variance: Scalar
    free_energy: Scalar
    test_error: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


# ------------------------------------------------------------------------------------------------
# A vector that is observed through attention.

# The integrand has its poles at k = i and beyond: the error of the trapezoidal rule is
# exp(-2 pi/h).
_STEP, _END = 0.125, 25.0
_WAVES = np.arange(0.0, _END + _STEP, _STEP)
_WEIGHTS = _STEP * np.where(_WAVES == 0, 0.5, 1.0) / np.cosh(np.pi * _WAVES / 2)
# range of -ln(1 - q) that is searched: above it the overlap is 1 within rounding
_FIRST, _LAST = 1e-9, 32.0


@theory
def recovered_vector(system: SeenSequence) -> RecoveredVector:
    r"""Overlap that Bayes-optimal message passing reaches from overlap 0, by state evolution.

    The sign of h is one bit. Given a field $\omega$ of variance $q$, its posterior mean is $\tanh(h
    \cdot \omega/(1 - q))$. All averages but one can be done in closed form, and state evolution
    $q/(1 - q) = \alpha\, E|g|^2$ becomes $\alpha = \alpha(q)$ with

    $$ \alpha(q) = \frac{q}{L \left[ 1 - (1 - q)^{L/2} S(q) \right]} , \qquad
       S(q) = \int_0^\infty \frac{dk}{\cosh(\pi k/2)} \left( 1 + q k^2 \right)^{-(L + 2)/2} . $$

    Message passing leads from $q = 0$ to the smallest root. The overlap leaves 0 at $\alpha(0) =
    1/(L (L + 1))$, `weak_threshold`, and reaches 1 at the largest value of $\alpha(q)$,
    `full_threshold`. For $L \ge 2$ this value is $\alpha(1) = 1/L$, and the overlap reaches 1
    continuously: there is no hard phase. For $L = 1$ the largest value is 1.1285, at an overlap
    between 0 and 1, while $q = 1$ is stable from $\alpha = 1$ on.

    Returns:
        The limit of large dimension.

    Accuracy: 1e-10 relative in $\alpha$. For a single token the slope of the overlap diverges at
    `full_threshold`, so that the overlap is less accurate there.

    Source: the model of Troiani et al. (2025) with one layer; thresholds and integral derived here.

    >>> found = recovered_vector(SeenSequence(sample_ratio=0.3, tokens=2))
    >>> round(float(found.overlap), 6), round(float(found.weak_threshold), 6)
    (0.268011, 0.166667)
    """
    tokens, ratio = system.tokens, system.sample_ratio

    # only for a single token the largest value of alpha(q) lies below q = 1
    single = tokens < 2
    lower, upper = jnp.asarray(0.1), jnp.asarray(_LAST)
    highest = decreasing_root(_log_ratio_slope, lower, upper, jnp.where(single, tokens, 1.0))
    top = jnp.where(single, highest.value, _LAST)
    weak = jnp.asarray(1 / (tokens * (tokens + 1)))
    full = jnp.where(single, _ratio(highest.value, 1.0), 1 / tokens)
    partial = (ratio > weak) & (ratio < full)
    solved = jnp.where(partial, ratio, (weak + full) / 2)

    def excess(depth: Scalar, args: tuple) -> Scalar:
        ratio, tokens = args
        return jnp.log(ratio / _ratio(depth, tokens))

    root = decreasing_root(excess, jnp.asarray(_FIRST), top, (solved, tokens))
    overlap = jnp.where(partial, -jnp.expm1(-root.value), jnp.where(ratio < full, 0.0, 1.0))
    residual = jnp.where(partial, root.residual, 0.0)
    return RecoveredVector(
        overlap=overlap,
        weak_threshold=weak,
        full_threshold=full,
        residual=residual,
        converged=root.converged | ~partial,
    )


def _ratio(depth: Scalar, tokens: Any) -> Scalar:
    """The sample ratio alpha(q) at q = 1 - exp(-depth)."""
    overlap = -jnp.expm1(-depth)
    integrand = (1 + overlap * _WAVES**2) ** (-(tokens + 2) / 2)
    # 1 - (1 - q)^(L/2) S(q), computed without cancellation at small q, where S(0) = 1
    missing = jnp.sum(_WEIGHTS * -jnp.expm1(jnp.log(integrand)))
    unknown = jnp.exp(-depth * tokens / 2)
    return overlap / (tokens * (-jnp.expm1(-depth * tokens / 2) + unknown * missing))


def _log_ratio_slope(depth: Scalar, tokens: Any) -> Scalar:
    """The derivative d ln alpha(q) / d depth, times exp(depth/2), which keeps it of order one."""
    return jnp.exp(depth / 2) * jax.grad(lambda at: jnp.log(_ratio(at, tokens)))(depth)


# ------------------------------------------------------------------------------------------------
# Positions or contents.


@theory(differentiable=False)
def attention_state(
    system: TiedAttention, *, branch: Branch = "semantic", log2_points: int = 14
) -> AttentionState:
    r"""Order parameters of the positional or the semantic minimum of a trained layer of tied
    attention.

    Let $\xi, \eta$ be standard normal in two dimensions, $\omega = \sqrt q\, \xi + (m, -m)$, $t =
    \theta \xi/\sqrt q + \sqrt{s^2 - \theta^2/q}\, \eta$, and Y the matrix of targets at t. After
    training the fields are $h = \mathrm{argmin}\, |h - \omega|^2/(2V) + \frac{s^2}2 |Y - S(h)|^2$.
    With $g = (h - \omega)/V$

    $$ \hat m = \alpha E (g_1 - g_2), \quad \hat q = \alpha E |g|^2, \quad \hat\theta = \frac{\alpha
       E\, g \cdot \eta}{\sqrt{s^2 - \theta^2/q}}, \quad \hat V = -\frac{\alpha E\, g \cdot
       \xi}{\sqrt q} + \frac{\theta \hat\theta}{q}, $$

    $$ D = \lambda + s^2 \hat V, \quad V = \frac{s^2}D, \quad m = \frac{\hat m}D, \quad \theta =
       \frac{s^4 \hat\theta}D, \quad q = \frac{s^2 (s^2 \hat q + \hat m^2 + s^4
       \hat\theta^2)}{D^2} . $$

    The positional branch has $\theta = 0$ and the semantic branch $m = 0$, exactly. Where their
    values of `free_energy` cross, the global minimum changes; both remain minima.

    Args:
        branch: "positional" (theta = 0) or "semantic" (m = 0).
        log2_points: logarithm to the base 2 of the number of points of the Gaussian average; each
            is used with its mirror image.

    Returns:
        The replica-symmetric state. Where the semantic branch does not exist, the iteration does
        not converge or `teacher_overlap` falls to the accuracy of the average.

    Accuracy: that of the average; for given points the solution is accurate to 1e-5. With the 2^15
    default points the semantic branch is accurate to 0.2 % from `sample_ratio` 1.5 on; near 1 its
    overlap changes by 2 to 3 % from one set of points to another. At `sample_ratio` 2 the
    positional branch is accurate to 1 % in `self_overlap` and `cavity_variance` and to 0.3 % in
    `free_energy` and `test_error`. The fields h minimise a cost that is not convex and has several
    minima for some points. Replica symmetry is then not stable, so that the state is an
    approximation.

    Source: Cui, Behrens, Krzakala, Zdeborova (2024), the equations of their result for two tokens.

    >>> found = attention_state(TiedAttention(sample_ratio=2.0), log2_points=10)
    >>> bool(found.converged), round(float(found.teacher_overlap), 2)
    (True, 0.16)
    """
    points = jnp.asarray(normal_points(4, log2_points))
    positional = branch == "positional"
    spread, ridge = system.token_spread, system.ridge

    def evaluated(logs: Array) -> tuple[Array, Scalar, Scalar]:
        """The result of one iteration, and the free energy and the test error at its starting
        point."""
        size, learned, variance = jnp.exp(logs)
        position, content = (learned, 0.0) if positional else (0.0, learned)
        noise, other = points[:, :2], points[:, 2:]
        rest = jnp.sqrt(spread**2 - content**2 / size)
        mean = jnp.sqrt(size) * noise + position * jnp.array([1.0, -1.0])
        teacher = content / jnp.sqrt(size) * noise + rest * other
        wanted = target_attention(system, teacher)
        fields = nearest_fields(system, mean, variance, wanted, teacher)
        pull = (fields - mean) / variance
        total = system.sample_ratio * jnp.mean(jnp.sum(pull**2, axis=1))
        along: Any = 0.0
        if not positional:
            along = system.sample_ratio * jnp.mean(jnp.sum(pull * other, axis=1)) / rest
        shift = system.sample_ratio * jnp.mean(pull[:, 0] - pull[:, 1]) if positional else 0.0
        response = -system.sample_ratio * jnp.mean(jnp.sum(pull * noise, axis=1)) / jnp.sqrt(size)
        stiffness = ridge + spread**2 * (response + content * along / size)
        square = spread**2 * (spread**2 * total + shift**2 + spread**4 * along**2)
        found = shift if positional else spread**4 * along
        new = jnp.stack([square / stiffness**2, found / stiffness, spread**2 / stiffness])
        trained = jnp.mean(attention_cost(system, wanted, own_attention(fields)))
        energy = system.sample_ratio * trained + ridge * size / (2 * spread**2)
        error = 2 * jnp.mean(attention_cost(system, wanted, own_attention(mean)))
        return jnp.log(new), energy, error

    strength = 0.45 * spread
    first = (strength**2, strength) if positional else (2 * strength**2, strength * spread)
    start = jnp.stack([*first, 0.12 / ridge])
    # The first step is 0.3 of the change; with larger steps the positional branch oscillates.
    solved = secant_fixed_point(
        lambda logs, _: evaluated(logs)[0],
        jnp.log(start),
        damping=0.7,
        tolerance=1e-7,
        max_steps=100,
        sequential=True,
    )
    size, learned, variance = jnp.exp(solved.value)
    _, energy, error = evaluated(solved.value)
    nothing = jnp.zeros_like(learned)
    content, position = (nothing, learned) if positional else (learned, nothing)
    return AttentionState(
        self_overlap=size,
        teacher_overlap=content,
        positional_overlap=position,
        cavity_variance=variance,
        free_energy=energy,
        test_error=error,
        residual=solved.residual,
        converged=solved.converged,
    )


# ------------------------------------------------------------------------------------------------
# The fields of a trained layer of tied attention: the minimum of the cost of one sequence.

_STEPS = 14  # Newton steps; after 12 the error is 1e-9 (see the tests)
_LEAST = 0.1  # smallest curvature of a Newton step, in units of 1/V


class _Local(NamedTuple):
    """A cost of two unknowns with its gradient and Hessian.

    Fields:
        value: cost.
        slope: gradient.
        curvature: Hessian: the two diagonal entries, and the off-diagonal one.
    """

    value: Float[Array, "*batch"]
    slope: Pairs
    curvature: Float[Array, "*batch 3"]


def nearest_fields(
    system: TiedAttention,
    mean: Float[Array, "point 2"],
    variance: Float[Array, ""],
    wanted: Float[Array, "point 2"],
    teacher: Float[Array, "point 2"],
) -> Float[Array, "point 2"]:
    r"""The fields h that minimise $|h - \omega|^2/(2V) + \frac{s^2}2 |Y - S(h)|^2$, for each point.

    The cost of attention does not change under $h \to -h$, and the sum has several minima. Newton
    steps start from 0 and from both signs of the fields of the target, and the lowest minimum is
    kept. The Hessian of the two unknowns is in closed form: tens of thousands of points take
    milliseconds.
    """
    starts = jnp.stack([jnp.zeros_like(mean), teacher, -teacher])

    def step(_: int, state: tuple) -> tuple:
        trial, best, lowest, direction, scale = state
        here = _local(system, trial, mean, variance, wanted)
        accepted = here.value <= lowest
        best = jnp.where(accepted[..., None], trial, best)
        lowest = jnp.where(accepted, here.value, lowest)
        direction = jnp.where(accepted[..., None], _newton(here, _LEAST / variance), direction)
        scale = jnp.where(accepted, 1.0, scale / 4)
        return best + scale[..., None] * direction, best, lowest, direction, scale

    size = starts.shape[:-1]
    initial = (starts, starts, jnp.full(size, jnp.inf), jnp.zeros_like(starts), jnp.ones(size))
    _, ends, reached, _, _ = jax.lax.fori_loop(0, _STEPS, step, initial)
    chosen = jnp.argmin(reached, axis=0)
    return jnp.take_along_axis(ends, chosen[None, :, None], axis=0)[0]


def _local(system: TiedAttention, h: Array, mean: Array, variance: Array, wanted: Array) -> _Local:
    given = own_attention(h)
    value = jnp.sum((h - mean) ** 2, axis=-1) / (2 * variance)
    value += attention_cost(system, wanted, given)
    # S_11 = sigmoid(h1 (h1 - h2)), S_22 = sigmoid(h2 (h2 - h1))
    error, flat = given - wanted, given * (1 - given)
    scale = 2 * system.token_spread**2
    first = scale * error * flat
    second = scale * (flat**2 + error * flat * (1 - 2 * given))
    # derivative of an exponent with respect to its own field; with respect to the other it is -h
    own = 2 * h - h[..., ::-1]
    slope = (h - mean) / variance + first * own - (first * h)[..., ::-1]
    diagonal = 1 / variance + second * own**2 + 2 * first + (second * h**2)[..., ::-1]
    mixed = -jnp.sum(second * own * h + first, axis=-1)
    return _Local(value, slope, jnp.concatenate([diagonal, mixed[..., None]], axis=-1))


def _newton(here: _Local, least: Array) -> Pairs:
    """Newton's step with the absolute values of the two eigenvalues, each at least `least`."""
    first, last, mixed = (here.curvature[..., place] for place in range(3))
    middle, half = (first + last) / 2, (first - last) / 2
    radius = jnp.hypot(half, mixed)
    low, high = (1 / jnp.maximum(jnp.abs(middle + sign * radius), least) for sign in (-1, 1))
    # f(H) = (f+ + f-)/2 + (f+ - f-)/(2 r) (H - middle), f = 1/|eigenvalue|
    even, odd = (high + low) / 2, (high - low) / jnp.maximum(2 * radius, 1e-300)
    one, two = here.slope[..., 0], here.slope[..., 1]
    return -jnp.stack(
        [
            (even + odd * half) * one + odd * mixed * two,
            odd * mixed * one + (even - odd * half) * two,
        ],
        axis=-1,
    )
