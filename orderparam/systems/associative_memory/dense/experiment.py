"""Simulations of dense associative memories, whose spins are updated one after another."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int8, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.systems.associative_memory.dense.model import DenseMemory, ExponentialMemory

_LIMIT = 2**26  # most entries of all patterns together, one byte each


class DenseRecall(Result):
    """Recall in one network, averaged over trials. Each trial recalls one pattern.

    Fields:
        flip_probability: fraction of the spins of a stored pattern that flip in one parallel step
            from the pattern itself.
        overlap: overlap (1/N) sum xi s of the last state with the pattern.
        success: fraction of the trials that end at the pattern, with at most 1 % of the spins
            wrong.
        converged: whether every trial reached a fixed point within the given number of sweeps.
    """

    flip_probability: Float[Array, ""]
    overlap: Float[Array, ""]
    success: Float[Array, ""]
    converged: Bool[Array, ""]


def _count(system: DenseMemory | ExponentialMemory) -> int:
    """Number P of patterns, at most e^60, which is far more than `_affordable` accepts."""
    load, n = float(system.load), float(system.spins)
    logarithm = (
        load * n
        if isinstance(system, ExponentialMemory)
        else np.log(load) + (system.degree - 1) * np.log(n)
    )
    return max(1, round(float(np.exp(min(logarithm, 60.0)))))


def _affordable(system: DenseMemory | ExponentialMemory, **_: object) -> None:
    if _count(system) * float(system.spins) > _LIMIT:
        raise ValueError(
            f"{type(system).__name__}.load = {float(system.load):g}: {_count(system):.3g} patterns "
            f"of {float(system.spins):g} spins; must be at most {_LIMIT:.3g} entries"
        )


@experiment(check=_affordable)
def dense_recall(
    system: DenseMemory | ExponentialMemory,
    key: PRNGKeyArray,
    *,
    trials: int = 10,
    sweeps: int = 20,
) -> DenseRecall:
    r"""Recall of stored patterns in one dense or exponential memory, started at the overlap
    `start`.

    The spins are updated one after another; each takes the sign of lower energy,

    $$ s_i \leftarrow \mathrm{sign} \sum_\mu \xi_i^\mu \big[ F(x_i^\mu + 1) - F(x_i^\mu - 1)
          \big], \qquad
       x_i^\mu = \sum_{j \ne i} \xi_j^\mu s_j $$

    with $F(x) = x^n$ (n = `degree`) or $F(x) = e^x$, until no spin changes. The number P of
    patterns is `load` N^(n-1), or exp(`load` N), rounded and at least 1.

    Args:
        trials: number of patterns that are tried, at most P.
        sweeps: largest number of updates of every spin.

    Raises:
        ValueError: for more than 2^26 entries of all patterns.

    Cost: P operations for each update of one spin.

    Source: Krotov, Hopfield (2016); Demircigil et al. (2017).

    >>> import jax
    >>> found = dense_recall(DenseMemory(0.01, spins=50), jax.random.key(0), trials=4)
    >>> float(found.overlap) > 0.9, bool(found.converged)
    (True, True)
    """
    n, patterns = system.size("spins"), _count(system)
    degree = 0 if isinstance(system, ExponentialMemory) else system.degree
    # The patterns are padded with empty ones, so that similar loads share one compiled program.
    held = 4 ** math.ceil(math.log(patterns, 4))
    return _dense_recall(
        system.start, jnp.asarray(patterns), key, n, held, degree, min(trials, patterns), sweeps
    )


def energy_difference(
    overlaps: Float[Array, "... pattern"], degree: int, axis: int = -1
) -> Float[Array, "... pattern"]:
    """Difference F(x + 1) - F(x - 1), up to a positive factor. F(x) is x^degree, or exp(x) if
    `degree` is 0.

    Args:
        overlaps: overlaps x of all patterns with the state, without the spin that is updated.
        degree: degree of the energy; 0 stands for the exponential.
        axis: axis of the patterns. The exponential is taken relative to the largest overlap along
            it.
    """
    if degree:
        return (overlaps + 1) ** degree - (overlaps - 1) ** degree
    return jnp.exp(overlaps - jnp.max(overlaps, axis=axis, keepdims=True))


@partial(jax.jit, static_argnames=("n", "held", "degree", "trials", "sweeps"))
def _dense_recall(
    start: Float[Array, ""],
    patterns: Array,
    key: PRNGKeyArray,
    n: int,
    held: int,
    degree: int,
    trials: int,
    sweeps: int,
) -> DenseRecall:
    for_patterns, for_start = jax.random.split(key)
    bits = jax.random.bits(for_patterns, (n, held), jnp.uint8) & 1
    stored: Int8[Array, "site pattern"] = jnp.where(
        jnp.arange(held) < patterns, 2 * bits.astype(jnp.int8) - 1, 0
    )

    def site(
        state: tuple[Array, Array], row: tuple[Array, Array]
    ) -> tuple[tuple[Array, Array], Array]:
        overlaps, changed = state
        entries, spin = row
        entries = entries.astype(jnp.float32)
        # x_i of every pattern: the overlap without spin i, whose two values are compared.
        others = overlaps - entries * spin
        field = jnp.sum(entries * energy_difference(others, degree))
        new = jnp.where(field == 0, spin, jnp.sign(field))
        return (others + entries * new, changed | (new != spin)), new

    def trial(inputs: tuple[Array, PRNGKeyArray]) -> Array:
        index, key = inputs
        pattern = stored[:, index].astype(jnp.float32)
        overlaps = stored.T.astype(jnp.float32) @ pattern

        def turned(row: tuple[Array, Array]) -> Array:
            return site((overlaps, jnp.asarray(False)), row)[1] != row[1]

        flipped = jnp.mean(jax.lax.map(turned, (stored, pattern)))
        rank = jnp.argsort(jax.random.uniform(key, (n,)))
        spins = jnp.where(rank < jnp.round((1 - start) / 2 * n), -pattern, pattern)

        def sweep(state: tuple) -> tuple:
            spins, overlaps, _, count = state
            (overlaps, changed), spins = jax.lax.scan(
                site, (overlaps, jnp.asarray(False)), (stored, spins)
            )
            return spins, overlaps, changed, count + 1

        begin = (spins, stored.T.astype(jnp.float32) @ spins, jnp.asarray(True), jnp.asarray(0))
        spins, _, changed, _ = jax.lax.while_loop(
            lambda state: state[2] & (state[3] < sweeps), sweep, begin
        )
        overlap = jnp.mean(spins * pattern)
        return jnp.stack([flipped, overlap, overlap >= 0.98, ~changed]).astype(float)

    found = jax.lax.map(trial, (jnp.arange(trials), jax.random.split(for_start, trials)))
    flipped, overlap, success, rest = jnp.mean(found, axis=0)
    return DenseRecall(
        flip_probability=flipped, overlap=overlap, success=success, converged=rest == 1
    )
