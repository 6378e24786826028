"""Theory of a score on random features, averaged over data and features in the limit of large
dimension.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Complex, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.contour import NODES, WEIGHTS
from orderparam.solve.root import decreasing_root
from orderparam.solve.solved import Solved
from orderparam.systems.diffusion.score_model import FeatureScore, Powers

Scalar = Float[Array, ""]


class ScoreLosses(Result):
    """Losses of a learned score; the loss is 1 for a vanishing score and 1 - D for the exact score.

    Fields:
        train_loss: loss at noisy training examples, averaged over the noise, without the ridge.
        test_loss: loss at noisy new examples.
        residual: largest relative error of the equations for e.
        converged: whether all of them were solved.
    """

    train_loss: Scalar
    test_loss: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


class ScoreTimes(Result):
    """The two times of the training of a score.

    Fields:
        best_time: training time of the smallest test loss, at which the score generalises best.
        memorisation_time: training time at which the gap between test and training loss is half of
            its final value.
        waiting: memorisation_time / best_time.
        best_loss: test loss at the best time.
        end_loss: test loss at infinite training time.
        end_train_loss: training loss at infinite training time.
        residual: largest residual of the equations.
        converged: whether all of them were solved.
    """

    best_time: Scalar
    memorisation_time: Scalar
    waiting: Scalar
    best_loss: Scalar
    end_loss: Scalar
    end_train_loss: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


@theory
def score_losses(system: FeatureScore) -> ScoreLosses:
    r"""Training and test loss of a random-feature score after a time of gradient flow.

    With $U$ the features' second moments, averaged over the noise, and $S = W W^T$, gradient flow
    replaces the resolvent $(U + r)^{-1}$ by $f(U) = (1 - e^{-(U + r) \tau})/(U + r)$, and

    $$ L_\mathrm{train} = 1 - \frac{D \mu^2}{d} \mathrm{tr}\, S (2 f - f U f) , \qquad
       L_\mathrm{test} = 1 - \frac{D \mu^2}{d} \mathrm{tr}\, S (2 f - f U' f) , $$

    with $U' = \mu^2 S + s^2 + v^2$ for new examples. On the Talbot contour
    $f(U) = \sum_j (w_j/z_j) (U + r + z_j/\tau)^{-1}$, where $z_j$ and $w_j$ are its nodes and
    weights. The page on diffusion models gives the deterministic equivalents of products of two
    resolvents.

    Returns:
        Losses in the limit of many dimensions at fixed n/d and p/d.

    Accuracy: 1e-9 absolute.

    Source: the model of Bonnaire, Urfin, Biroli, Mezard (2025) and George, Veiga, Macris (2025);
    the equations at all times are derived here.

    >>> found = score_losses(FeatureScore(2.0, 4.0, 0.1, ridge=0.01))
    >>> round(float(found.train_loss), 6), round(float(found.test_loss), 6)
    (0.627598, 1.211951)
    """
    powers = system.powers
    sums = _sums(powers, system.ridge, system.training_time)
    train, test = _losses(powers, sums)
    return ScoreLosses(
        train_loss=train,
        test_loss=test,
        residual=sums.residual,
        converged=sums.residual < 1e-10,
    )


@theory
def score_times(system: FeatureScore) -> ScoreTimes:
    r"""Training times at which a random-feature score generalises and memorises.

    The best time is the minimum of the test loss of `score_losses` over $\ln \tau$. The gap between
    test and training loss grows to its final value, which follows from the resolvents at the ridge
    itself; at the memorisation time it has half of this value. `training_time` is not used.

    Returns:
        Times in the limit of large dimension. If `waiting` is large, the gap is small at the best
        time: this is implicit regularisation by the dynamics.

    Accuracy: 1e-8 for losses and the memorisation time, 1e-5 for the best time, because the minimum
    is flat.

    Source: Bonnaire, Urfin, Biroli, Mezard (2025); computed here for any n/d and p/d.

    >>> found = score_times(FeatureScore(4.0, 8.0, 0.1))
    >>> bool(found.waiting > 20), bool(found.converged)
    (True, True)
    """
    powers = system.powers
    ridge = system.ridge

    def gap(sums: _Sums) -> Scalar:
        """The gap of the losses divided by D mu^2."""
        return sums.new - sums.old

    low = jnp.log(1e-3 / (largest_bound(powers) + powers.rest + system.ridge))
    high = jnp.log(1e2 / (powers.rest + system.ridge))
    # the test loss may have several minima: take the lowest point of a scan, and the root of the
    # slope next to it
    grid = jax.lax.stop_gradient(jnp.linspace(low, high, 64))
    times = jnp.append(jnp.exp(grid), jnp.inf)
    # 65 = 5 * 13: what remained of another division would be compiled a second time
    along = jax.lax.map(lambda time: _sums(powers, ridge, time), times, batch_size=13)
    end = jax.tree.map(lambda values: values[-1], along)
    end_train, end_test = _losses(powers, end)
    lowest = jnp.argmin(_losses(powers, along)[1][:-1])
    ends = grid[jnp.maximum(lowest - 1, 0)], grid[jnp.minimum(lowest + 1, 63)]

    def falling(log_time: Scalar, args: Any) -> Scalar:
        """The function whose root is the best time, or the time of half the gap."""
        powers, ridge, last, half = args
        sums = _sums(powers, ridge, jnp.exp(log_time))
        return jnp.where(half, 0.5 - gap(sums) / last, -sums.slope)

    def root(half: Array, low: Scalar, high: Scalar) -> Solved:
        return decreasing_root(falling, low, high, (powers, ridge, gap(end), half))

    lows, highs = jnp.stack([ends[0], low]), jnp.stack([ends[1], high])
    found = jax.vmap(root)(jnp.array([False, True]), lows, highs)
    at_best = _sums(powers, ridge, jnp.exp(found.value[0]))
    return ScoreTimes(
        best_time=jnp.exp(found.value[0]),
        memorisation_time=jnp.exp(found.value[1]),
        waiting=jnp.exp(found.value[1] - found.value[0]),
        best_loss=_losses(powers, at_best)[1],
        end_loss=end_test,
        end_train_loss=end_train,
        residual=jnp.maximum(jnp.max(found.residual), end.residual),
        converged=jnp.all(found.converged) & (end.residual < 1e-10),
    )


class _Sums(NamedTuple):
    """Traces over S and one or two functions of U, at one training time."""

    once: Scalar  # (1/d) tr S f
    old: Scalar  # (1/d) tr S f U f
    new: Scalar  # (1/d) tr S f U' f
    slope: Scalar  # derivative of the test loss with respect to ln tau
    residual: Scalar


def _sums(powers: Powers, ridge: Any, training_time: Any) -> _Sums:
    z, w = jnp.asarray(NODES), jnp.asarray(WEIGHTS)
    at = z / training_time + ridge
    found, residual = resolvent(powers, at)
    mirrored = Resolvent(*(jnp.conj(values) for values in found))
    left, grown = w / z, w / training_time  # weights of f and of exp(-(U + r) tau)

    def pairs(flat: Any, slope: Any) -> tuple[Array, Array]:
        # the second node of a pair runs over both halves of the contour
        own = quadratic_trace(powers, found, found, flat, slope)
        return own, quadratic_trace(powers, found, mirrored, flat, slope)

    def summed(first: Array, own: Array, other: Array) -> Scalar:
        return jnp.real(first @ (own @ left + other @ jnp.conj(left))) / 2

    trace = linear_trace(powers, found)
    once, speed = jnp.real(left @ trace), jnp.real(grown @ trace)
    new = pairs(powers.example + powers.rest, powers.linear)
    # Q_i U Q_j = (Q_i + Q_j)/2 - (l_i + l_j)/2 Q_i Q_j
    plain, crossed = pairs(1.0, 0.0)
    mean, mixed = (at[:, None] + at) / 2, (at[:, None] + jnp.conj(at)) / 2
    old = once - summed(left, plain * mean, crossed * mixed)
    scale = -2 * powers.noise * powers.linear * training_time
    slope = scale * (speed - summed(grown, *new))
    return _Sums(once, old, summed(left, *new), slope, residual)


def _losses(powers: Powers, sums: _Sums) -> tuple[Scalar, Scalar]:
    """Training and test loss."""
    scale = powers.noise * powers.linear
    return 1 - scale * (2 * sums.once - sums.old), 1 - scale * (2 * sums.once - sums.new)


# ------------------------------------------------------------------------------------------------
# The resolvent of the features of a diffusion model, averaged over features and data.
#
# At the time t of the diffusion the mean over the noise of the features' second moments is
#
#     U = M^T M/n + D mu^2 S + v^2,    S = W W^T/d,    M_{nu i} = m(W_i x_nu / sqrt d),
#
# and with S kept its resolvent Q = (U + ridge)^{-1} has the deterministic equivalent
#
#     Q = (A0 + A1 S)^{-1},   A1 = D mu^2 + a^2 mu^2/(1+e),   A0 = v^2 + s^2/(1+e) + ridge,
#     e = (1/n) tr C Q,       C = a^2 mu^2 S + s^2 .
#
# Here mu^2 is the linear power of the activation, s^2 the part of its nonlinear power that remains
# after the average over the noise, and v^2 the remaining part. All traces over S, whose law is that
# of Marchenko and Pastur, are rational in the root m = (1/p) tr (S + y)^{-1} at y = A0/A1.

Nodes = Complex[Array, "node"]

# Steps of the path from an infinite ridge, where e = 0, to the given ridge.
_PATH, _CORRECTIONS, _POLISH = 100, 2, 8
_NEAREST = 1e-4  # end of that path, relative to the ridge


class Resolvent(NamedTuple):
    """The deterministic equivalent at each ridge: e, A1, m, and 1/(1 + psi m) with psi = p/d."""

    example: Nodes
    slope: Nodes
    trace: Nodes
    damping: Nodes


def _equivalent(powers: Powers, ridge: Array, example: Array) -> Resolvent:
    """All quantities of the equivalent at a given e."""
    psi = powers.feature_ratio
    slope = powers.linear * (powers.noise + powers.kept / (1 + example))
    y = (powers.rest + powers.example / (1 + example) + ridge) / slope
    # psi y m^2 + (y + 1 - psi) m = 1; take the root whose branch cut is the support of S
    linear = y + 1 - psi
    root = jnp.sqrt(y + (1 + jnp.sqrt(psi)) ** 2) * jnp.sqrt(y + (1 - jnp.sqrt(psi)) ** 2)
    same = jnp.real(linear * jnp.conj(root)) >= 0
    safe_y, safe_sum = jnp.where(same, 1.0, y), jnp.where(same, linear + root, 1.0)
    trace = jnp.where(same, 2 / safe_sum, (root - linear) / (2 * psi * safe_y))
    return Resolvent(example, slope, trace, 1 / (1 + psi * trace))


def excess(powers: Powers, ridge: Any, example: Any) -> tuple[Array, Array]:
    """The difference e - (1/n) tr C Q at a given e, and its derivative."""
    found = _equivalent(powers, ridge, example)
    ratio = powers.feature_ratio / powers.sample_ratio / found.slope
    linear = powers.kept * powers.linear
    filled = linear * found.damping + powers.example
    value = example - ratio * found.trace * filled
    # dm/dy = -<1/(S + y)^2>, and the derivative of <S/(S + y)> is damping^2 times dm/dy
    square = 1 / (1 / found.trace**2 - powers.feature_ratio * found.damping**2)
    y = 1 / found.trace - found.damping
    fall = -1 / (1 + example) ** 2
    y_slope = fall * (powers.example - y * linear) / found.slope
    slope = found.trace * filled * fall * linear / found.slope
    return value, 1 + ratio * (
        slope + square * (linear * found.damping**2 + powers.example) * y_slope
    )


def resolvent(
    powers: Powers, ridge: Nodes, direction: Nodes | None = None
) -> tuple[Resolvent, Scalar]:
    """The equivalent at complex ridges, and the largest relative residual of its equation.

    At a large ridge e = 0. From there the ridge is reduced geometrically along a straight line,
    with Newton steps at each point. `direction` is the unit vector of this line, by default that of
    the ridge.
    """

    def newton(powers: Powers, ridge: Array, example: Array) -> tuple[Array, Array]:
        value, slope = excess(powers, ridge, example)
        return value, example - value / slope

    frozen, fixed = jax.lax.stop_gradient((powers, ridge))
    size = jnp.abs(fixed)
    if direction is None:
        direction = jnp.where(size > 0, fixed / jnp.where(size > 0, size, 1.0), 1.0)
    far = jnp.log(1e3 * (frozen.rest + largest_bound(frozen)))
    near = jnp.log(_NEAREST * jnp.maximum(size, 1e-2 * frozen.rest) + 1e-290)

    def down(example: Array, share: Array) -> tuple[Array, None]:
        offset = jnp.exp(near + jnp.maximum(far - near, 0.0) * share)
        at = fixed + direction * jnp.where(share < 0, 0.0, offset)
        return newton(frozen, at, example)[1], None

    path = np.repeat(np.linspace(1.0, 0.0, _PATH), _CORRECTIONS)
    shares = jnp.asarray(np.append(path, -np.ones(_POLISH)))
    example, _ = jax.lax.scan(down, jnp.zeros_like(fixed), shares)
    value, _ = newton(frozen, fixed, example)
    residual = jnp.max(jnp.abs(value) / (1e-3 + jnp.abs(example)))
    # Two more Newton steps are differentiated: the first makes first derivatives exact, the second
    # makes second derivatives exact.
    for _ in range(2):
        example = newton(powers, ridge, example)[1]
    return _equivalent(powers, ridge, example), residual


def largest_bound(powers: Powers) -> Scalar:
    """A bound on the largest eigenvalue of U - v^2."""
    psi, ratio = powers.feature_ratio, powers.sample_ratio
    weights = powers.linear * (1 + jnp.sqrt(psi)) ** 2
    linear = jnp.sqrt(powers.kept * weights) * (1 + 1 / jnp.sqrt(ratio))
    rest = jnp.sqrt(powers.example) * (1 + jnp.sqrt(psi / ratio))
    return (linear + rest) ** 2 + powers.noise * weights


def linear_trace(powers: Powers, at: Resolvent) -> Nodes:
    """The trace (1/d) tr S Q."""
    return powers.feature_ratio * at.trace * at.damping / at.slope


def quadratic_trace(
    powers: Powers, one: Resolvent, two: Resolvent, flat: Any, slope: Any
) -> Complex[Array, "node node"]:
    r"""The traces (1/d) tr S Q_i B Q_j for B = flat + slope S and all pairs of ridges.

    The equivalent of Q B Q is Q B Q + Q C Q g(B)/(1 - g(C)) with g(B) = (1/n) tr(C Q B Q)/((1 +
    e_i)(1 + e_j)), with the equivalents of Q on the right.
    """
    psi = powers.feature_ratio
    m, other = one.trace[:, None], two.trace
    damped = one.damping[:, None] * two.damping
    # <S^k/((S + y_i)(S + y_j))> for k = 0, 1, 2, without cancellation
    plain = 1 / (1 / (m * other) - psi * damped)
    first = plain * damped
    second = first * (one.damping[:, None] + two.damping + psi - 1)
    scale = psi / (one.slope[:, None] * two.slope)
    c_flat, c_slope = powers.example, powers.kept * powers.linear

    def feedback(flat: Any, slope: Any) -> Array:
        cross = c_flat * flat * plain + (c_flat * slope + c_slope * flat) * first
        total = scale * (cross + c_slope * slope * second) / powers.sample_ratio
        return total / ((1 + one.example[:, None]) * (1 + two.example))

    own = flat * first + slope * second
    through = c_flat * first + c_slope * second
    return scale * (own + through * feedback(flat, slope) / (1 - feedback(c_flat, c_slope)))
