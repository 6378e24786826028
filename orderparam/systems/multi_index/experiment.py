"""Experiments on random samples: Hermite powers of a target, and message passing that finds its
directions stair by stair. Experiments on a parity with a hint are in `hinted_parity`, and runs of
SGD in `sgd_experiment`.
"""

import ast
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.channels.outlier import best_weight, leading_vector
from orderparam.channels.passing import FIRST, Messages, Passed, passing
from orderparam.core.needs import iteration
from orderparam.core.verb import experiment
from orderparam.gaussian.tail import log_cdf
from orderparam.systems.multi_index.model import (
    ORDERS,
    STAIRS,
    Climb,
    HermitePower,
    LearnedTarget,
    WeakLearnability,
    hermite_values,
    read,
)

# ------------------------------------------------------------------------------------------------
# Hermite powers of a target, measured on random samples, and message passing on its stairs.

LEAST = 1e-12  # smallest variance of a field; a field of smaller variance counts as known
# variance added to the variance of z1: in the runs in which examples may still change their
# preimages, and in the last run
_SOFT, _HARD = 1e-3, 1e-6
_ROUNDING = 1e-12
_SIGNS = np.array(list(itertools.product((1.0, -1.0), repeat=3)))  # signs of the three fields


@experiment
def measured_hermite_power(system: WeakLearnability, key: PRNGKeyArray) -> HermitePower:
    r"""Unbiased estimates of the Hermite powers of a target from random inputs.

    $$ \sum_{|a| = k} \overline{y\, h_a(z)}^{(1)}\; \overline{y\, h_a(z)}^{(2)} $$

    is a sum of products of two averages, one over each half of the samples; its mean is $\sum
    c_a^2$.

    Source: Abbe, Boix-Adsera, Misiakiewicz (2023) for the coefficients; the estimate is derived
    here.

    >>> run = measured_hermite_power(WeakLearnability("z1*z2", samples=20000), jax.random.key(0))
    >>> run.hermite_power.shape, bool(abs(run.hermite_power[1] - 1) < 0.1)
    ((4,), True)
    """
    g = read(system.target)
    z = np.asarray(jax.random.normal(key, (2, system.samples // 2, g.dimension)))
    features = np.ones((2, 1, z.shape[1]))
    degrees = np.zeros(1, int)
    for i in range(g.dimension):
        h = np.moveaxis(hermite_values(ORDERS + 1, z[..., i]), 0, 1)
        features = (features[:, :, None] * h[:, None]).reshape(2, -1, z.shape[1])
        degrees = np.add.outer(degrees, np.arange(ORDERS + 1)).ravel()
        features, degrees = features[:, degrees <= ORDERS], degrees[degrees <= ORDERS]
    means = np.mean(features * g(z)[:, None], axis=-1)
    return HermitePower(
        hermite_power=jnp.asarray(
            [np.sum((means[0] * means[1])[degrees == k]) for k in range(1, ORDERS + 1)]
        )
    )


def _two_stairs(system: LearnedTarget, **options: Any) -> None:
    if not isinstance(system.target, str) or ast.dump(ast.parse(system.target)) != ast.dump(
        ast.parse(STAIRS)
    ):
        raise ValueError(f"LearnedTarget.target = {system.target!r}: must be {STAIRS!r} here")


@experiment(check=_two_stairs, needs=iteration("damping", "max_steps", "tolerance"))
def climbed_staircase(
    system: LearnedTarget,
    key: PRNGKeyArray,
    *,
    damping: float = 0.3,
    max_steps: int = 600,
    tolerance: float = 1e-4,
) -> Climb:
    r"""Overlaps that message passing reaches, stair by stair, on random examples of $z_1^2 +
    \mathrm{sign}(z_1 z_2 z_3)$.

    Message passing first runs for the first direction alone, from a random estimate. It then runs
    for all three directions, starting from the estimate of the first direction and from small
    estimates of the two others along eigenvectors,

    $$ \omega = X a - v g' , \qquad g = \partial_\omega \ln P(y | \omega, v) , \qquad
       a \leftarrow \frac{A a + X^T g}{1 + A} , \qquad v = \frac{1}{1 + A} . $$

    The algorithm commutes with rotations, so that the directions are the first three axes. Four
    values of $z_1$ are possible for each label. Labels without noise determine $z_1$ so well that
    an example that has chosen a wrong one of these values would never change it. Therefore the
    variance of $z_1$ is kept above 1e-3, and above 1e-6 in a last run.

    Args:
        damping: fraction of the previous state that is kept in each step, from 0 to below 1; 0.3 by
            default.
        max_steps: largest number of iterations of each run; 600 by default.
        tolerance: root mean square change at which a run ends; 1e-4 by default.

    Raises:
        ValueError: for any other target, for less than one sample, and for a damping outside of [0,
        1).

    Accuracy: overlaps of single runs scatter by 0.1 at d = 500. `converged` is False if d is too
    small (see `passing.Passed`).

    Source: Aubin et al. (2018) for the equations; Troiani et al. (2024) for the target.

    >>> run = climbed_staircase(LearnedTarget(0.5, input_dim=50), jax.random.key(0), max_steps=20)
    >>> run.overlap.shape
    (3,)
    """
    d, n = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if n < 1:
        raise ValueError(
            f"LearnedTarget.sample_ratio = {float(system.sample_ratio):g}: leaves no sample at "
            f"input_dim = {d}"
        )
    draw_key, start_key = jax.random.split(key)
    x = jax.random.normal(draw_key, (n, d))
    labels, matrix = x[:, 0] ** 2 + jnp.sign(jnp.prod(x[:, :3], axis=1)), x / jnp.sqrt(d)

    def passed(start: Messages, added: float) -> Passed:
        data = (labels, jnp.asarray(added))
        return passing(
            _square_and_sign,
            data,
            matrix,
            start,
            jnp.asarray(damping),
            jnp.asarray(tolerance),
            max_steps,
        )

    start = FIRST * jax.random.normal(start_key, (d, 3)).at[:, 1:].set(0.0)
    first = passed(Messages.first(start, n), _SOFT)
    share = _preimages(first.fields, first.messages.variance, (labels, _SOFT)).share
    others = first_pair(matrix, 2 / np.pi * share @ (_SIGNS[:, 1] * _SIGNS[:, 2]))
    start = jnp.concatenate([first.messages.estimate[:, :1], others], axis=1)
    found = passed(passed(Messages.first(start, n), _SOFT).messages, _HARD)
    overlaps = np.asarray(found.messages.estimate[:3]) / np.sqrt(d)
    # Estimates that have decayed to zero contain only rounding errors.
    overlaps = np.where(np.abs(overlaps) > _ROUNDING, overlaps, 0.0)
    return Climb(
        overlap=jnp.asarray([abs(overlaps[0, 0]), *matched(overlaps[1:, 1:])]),
        next_threshold=jnp.asarray(jnp.nan),
        converged=found.converged,
        residual=found.residual,
    )


class _Preimages(NamedTuple):
    """The eight choices of the signs of the three fields, given y = z1^2 + sign(z1 z2 z3) and
    omega. Each choice determines z1.

    Fields:
        share: probabilities of the choices.
        pull: (z1 - omega1) / v1.
        slope: d ln P(signs of z2 and z3 | omega) / d omega.
        variance: v, including the variance that is added to v1.
    """

    share: Float[Array, "sample choice"]
    pull: Float[Array, "sample choice"]
    slope: Float[Array, "sample choice 2"]
    variance: Float[Array, "3"]


def _preimages(
    omega: Float[Array, "sample 3"], v: Float[Array, "3"], data: tuple[Array, Array | float]
) -> _Preimages:
    """Preimages of the labels; `data` is (labels, variance that is added to v1)."""
    labels, added = data
    square = labels[:, None] - np.prod(_SIGNS, axis=1)
    root = jnp.sqrt(jnp.where(square > 0, square, 1.0))
    v = jnp.maximum(v.at[0].add(added), LEAST)
    pull = jnp.asarray(_SIGNS[:, 0] * root - omega[:, :1]) / v[0]
    margin = (omega / jnp.sqrt(v))[:, None, 1:]
    chances = log_cdf(_SIGNS[:, 1:] * margin)
    height = -v[0] * pull**2 / 2 - jnp.log(root) + jnp.sum(chances, axis=-1)
    share = jax.nn.softmax(jnp.where(square > 0, height, -jnp.inf), axis=-1)
    slope = jnp.exp(-(margin**2) / 2 - chances) / jnp.sqrt(2 * np.pi * v[1:])
    return _Preimages(share, pull, slope * _SIGNS[:, 1:], v)


def _square_and_sign(
    omega: Float[Array, "sample 3"], v: Float[Array, "3"], data: tuple[Array, Array]
) -> tuple[Float[Array, "sample 3"], Float[Array, "sample 3"]]:
    """Function g = d ln P(y | omega, v) / d omega for labels z1^2 + sign(z1 z2 z3), and its
    derivatives dg_k / d omega_k."""
    share, pull, slope, variance = _preimages(omega, v, data)
    first, others = jnp.sum(share * pull, axis=1), jnp.sum(share[..., None] * slope, axis=1)
    of_first = jnp.sum(share * (pull - first[:, None]) ** 2, axis=1) - 1 / variance[0]
    of_others = -others * (others + omega[:, 1:] / variance[1:])
    return jnp.concatenate([first[:, None], others], axis=1), jnp.concatenate(
        [of_first[:, None], of_others], axis=1
    )


# ------------------------------------------------------------------------------------------------
# Initial states of message passing for pairs of directions, and the assignment of estimates to
# directions.


def matched(overlaps: Float[np.ndarray, "direction direction"]) -> Float[np.ndarray, "direction"]:
    """Absolute overlap of each direction with the estimate that is assigned to it, for the best
    assignment of estimates to directions.
    """
    size, units = np.abs(overlaps), np.arange(len(overlaps))
    return max((size[units, list(order)] for order in itertools.permutations(units)), key=np.sum)


def pair_of_eigenvectors(
    matrix: Float[Array, "sample input"], correlation: Float[Array, "sample"]
) -> tuple[Float[np.ndarray, "2"], Float[np.ndarray, "2 input"]]:
    """Leading eigenvalues and eigenvectors for two directions about which each example reveals only
    E[z2 z3 | y] = correlation.

    The matrices are sum T x x^T with the best T for (w2 + w3)/sqrt(2) and for (w2 - w3)/sqrt(2).
    """
    found = [leading_vector(matrix, best_weight(1 + sign * correlation)) for sign in (1, -1)]
    return np.stack([value for value, _ in found]), np.stack([vector for _, vector in found])


def first_pair(
    matrix: Float[Array, "sample input"], correlation: Float[Array, "sample"]
) -> Float[Array, "input 2"]:
    """Small estimates of both directions along `pair_of_eigenvectors`.

    From random starts both may become estimates of the sum of the directions. `passing` cannot
    leave this state, because it assumes that the two estimates have no overlap with one another.
    """
    values, vectors = pair_of_eigenvectors(matrix, correlation)
    total, difference = np.where(np.isfinite(values)[:, None], vectors, np.nan) * np.sqrt(
        matrix.shape[1] / 2
    )
    return FIRST * jnp.asarray(np.stack([total + difference, total - difference], axis=1))
