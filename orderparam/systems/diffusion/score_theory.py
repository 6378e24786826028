"""Theory of a score on random features, averaged over data and features in the limit of large
dimension."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.contour import NODES, WEIGHTS
from orderparam.solve.root import decreasing_root
from orderparam.solve.solved import Solved
from orderparam.systems.diffusion.score_model import FeatureScore, Powers
from orderparam.systems.diffusion.score_resolvent import (
    Resolvent,
    largest_bound,
    linear_trace,
    quadratic_trace,
    resolvent,
)

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
    turns the resolvent of the ridge into $f(U) = (1 - e^{-(U + r) \tau})/(U + r)$, and

    $$ L_\mathrm{train} = 1 - \frac{D \mu^2}{d} \mathrm{tr}\, S (2 f - f U f) , \qquad
       L_\mathrm{test} = 1 - \frac{D \mu^2}{d} \mathrm{tr}\, S (2 f - f U' f) , $$

    with $U' = \mu^2 S + s^2 + v^2$ for new examples. On the Talbot contour
    $f(U) = \sum_j (w_j/z_j) (U + r + z_j/\tau)^{-1}$, and the products of two resolvents have the
    deterministic equivalents of the page on diffusion models.

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
    along = jax.lax.map(lambda time: _sums(powers, ridge, time), times, batch_size=8)
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
    left, grown = w / z, w / training_time  # of f, and of its derivative exp(-(U + r) tau)

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
