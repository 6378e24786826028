"""The volume of the couplings that store random patterns, measured by a population of walkers."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.needs import at_least
from orderparam.core.result import Result, with_errors
from orderparam.core.verb import experiment
from orderparam.systems.storage_capacity.experiment import (
    CONVEX,
    drawn_patterns,
    mean,
    some_patterns,
)
from orderparam.systems.storage_capacity.model import SphericalPatterns

_FEWEST = 0.2  # smallest share of the walkers that survives a step


class MeasuredVolume(Result):
    """Volume of the couplings that store patterns.

    Fields:
        entropy, entropy_error: 1/N times the logarithm of the fraction of the sphere that the
            solutions fill, averaged over the samples, and its standard error.
        overlap, overlap_error: mean overlap of two walkers at the end, J.J'/(|J||J'|), and its
            standard error.
        drift, drift_error: mean change of the overlap in the second half of the last moves, and its
            standard error over samples. The drift is negative while copies of one walker have not
            separated.
        converged: whether the drift is within four standard errors of zero, or below 0.01.
    """

    entropy: Float[Array, ""]
    entropy_error: Float[Array, ""]
    overlap: Float[Array, ""]
    overlap_error: Float[Array, ""]
    drift: Float[Array, ""]
    drift_error: Float[Array, ""]
    converged: Bool[Array, ""]


_ENOUGH = CONVEX | {"samples": at_least(2), "walkers": at_least(2), "moves": at_least(1)}


@experiment(check=some_patterns, needs=_ENOUGH)
def measured_volume(
    system: SphericalPatterns,
    key: PRNGKeyArray,
    *,
    samples: int = 10,
    walkers: int = 200,
    moves: int = 100,
) -> MeasuredVolume:
    r"""Volume and overlap of the couplings that store random patterns, by splitting.

    Walkers start uniformly on the sphere, and the patterns are added one after another. The
    fraction $f_\mu$ of walkers that store pattern $\mu$ survives, and copies of survivors replace
    the others. Then each walker moves along random great circles: on each circle it is redrawn
    uniformly from the arc that stores all patterns added so far. If fewer than a fifth of the
    walkers store a pattern, its margin is raised in steps, each of which a fifth survives. The
    volume is the product of all fractions. After the last pattern the walkers make as many moves
    again as for all patterns together, so that copies separate. Volume and overlap become exact as
    the numbers of walkers and moves grow.

    Args:
        samples: number of independent samples in one run.
        walkers: number of walkers for each sample.
        moves: number of great circles of each walker after each pattern.

    Raises:
        ValueError: for a negative margin, less than one pattern, or less than 2 samples, 2 walkers
            or one move.

    Source: derived here, from splitting (Kahn, Harris 1951) and hit-and-run (Smith 1984).

    >>> import jax
    >>> found = measured_volume(SphericalPatterns(0.5, input_dim=10), jax.random.key(0))
    >>> bool(abs(found.entropy + 0.36) < 0.06)
    True
    """
    patterns = jnp.asarray(np.stack(list(drawn_patterns(system, key, samples))))
    keys = jax.random.split(jax.random.fold_in(key, 1), samples)
    entropy, halfway, overlap = map(
        np.asarray, _split(keys, patterns, jnp.asarray(system.margin), walkers, moves)
    )
    drift, error = mean(overlap - halfway)
    settled = abs(drift) < max(4 * error, 0.01)
    return MeasuredVolume(
        **with_errors(entropy=mean(entropy), overlap=mean(overlap), drift=(drift, error)),
        converged=jnp.asarray(settled),
    )


@partial(jax.jit, static_argnames=("walkers", "moves"))
def _split(
    keys: PRNGKeyArray,
    patterns: Float[Array, "sample p n"],
    margin: Float[Array, ""],
    walkers: int,
    moves: int,
) -> tuple[Float[Array, "sample"], Float[Array, "sample"], Float[Array, "sample"]]:
    """Entropy, overlap of two walkers halfway through the last moves, and their overlap at the
    end."""

    def one(keys_and_patterns: tuple[Array, Array]) -> tuple[Array, Array, Array]:
        return _split_one(*keys_and_patterns, margin, walkers, moves)

    return lax.map(one, (keys, patterns))


def _split_one(
    key: PRNGKeyArray,
    patterns: Float[Array, "p n"],
    margin: Float[Array, ""],
    walkers: int,
    moves: int,
) -> tuple[Array, Array, Array]:
    p, n = patterns.shape
    first, last = jax.random.split(key)
    couplings = _on_sphere(jax.random.normal(first, (walkers, n)))
    order = jnp.arange(p)

    def climb(state: tuple, number: Array) -> tuple:
        """Raise the margin that pattern `number` must reach, up to `margin` if enough walkers reach
        it."""
        couplings, _, log_volume, key = state
        key, choose, move = jax.random.split(key, 3)
        stability = couplings @ patterns[number]
        level = jnp.minimum(margin, jnp.quantile(stability, 1 - _FEWEST))
        stored = stability >= level
        survivor = jax.random.categorical(
            choose, jnp.where(stored, 0.0, -jnp.inf), shape=(walkers,)
        )
        # the survivors stay as they are, the others are replaced by copies
        parent = jnp.where(stored, jnp.arange(walkers), survivor)
        asked = jnp.where(order < number, margin, level)
        moved = _moved(move, couplings[parent], patterns, asked, order <= number, moves)
        return moved, level, log_volume + jnp.log(jnp.mean(stored)), key

    def add(state: tuple, number: Array) -> tuple[tuple, None]:
        couplings, log_volume, key = state
        couplings, _, log_volume, key = lax.while_loop(
            lambda state: state[1] < margin,
            lambda state: climb(state, number),
            (couplings, -jnp.inf * jnp.ones(()), log_volume, key),
        )
        return (couplings, log_volume, key), None

    def settle(couplings: Array, key: Array) -> tuple[Array, Array]:
        half = max(1, moves * p // 2)
        moved = _moved(key, couplings, patterns, jnp.full(p, margin), order < p, half)
        total = jnp.sum(moved, axis=0)
        return moved, (total @ total - walkers) / (walkers * (walkers - 1))

    (couplings, log_volume, last), _ = lax.scan(add, (couplings, jnp.zeros(()), last), order)
    _, (halfway, overlap) = lax.scan(settle, couplings, jax.random.split(last))
    return log_volume / n, halfway, overlap


def _on_sphere(vectors: Float[Array, "walker n"]) -> Float[Array, "walker n"]:
    return vectors / jnp.linalg.norm(vectors, axis=1, keepdims=True)


def _moved(
    key: PRNGKeyArray,
    couplings: Float[Array, "walker n"],
    patterns: Float[Array, "p n"],
    margins: Float[Array, "p"],
    imposed: Bool[Array, "p"],
    moves: int,
) -> Float[Array, "walker n"]:
    """Each walker after `moves` moves along great circles.

    On the circle J cos t + v sin t the stability of a pattern is R cos(t - c), so that it is stored
    for |t - c| <= arccos(margin/R). The set of solutions is convex, so that all patterns are stored
    on a single arc around t = 0.
    """

    def move(couplings: Array, key: PRNGKeyArray) -> tuple[Array, None]:
        direction, place = jax.random.split(key)
        across = jax.random.normal(direction, couplings.shape)
        across -= jnp.sum(across * couplings, axis=1, keepdims=True) * couplings
        across = _on_sphere(across)
        ahead, aside = couplings @ patterns.T, across @ patterns.T
        centre = jnp.arctan2(aside, ahead)
        half = jnp.arccos(jnp.clip(margins / jnp.hypot(ahead, aside), -1.0, 1.0))
        low = jnp.max(jnp.where(imposed, centre - half, -jnp.pi), axis=1)
        high = jnp.min(jnp.where(imposed, centre + half, jnp.pi), axis=1)
        uniform = jax.random.uniform(place, low.shape)
        # rounding can put a walker just beyond its arc
        low, high = jnp.minimum(low, 0.0), jnp.maximum(high, 0.0)
        angle = (low + (high - low) * uniform)[:, None]
        return _on_sphere(couplings * jnp.cos(angle) + across * jnp.sin(angle)), None

    return lax.scan(move, couplings, jax.random.split(key, moves))[0]
