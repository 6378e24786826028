"""Block spins: Swendsen-Wang sampling on the square lattice, majorities of two by two spins, and
the measured couplings between the majorities.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int8, PRNGKeyArray

from orderparam.core.result import Result, with_errors
from orderparam.core.verb import experiment
from orderparam.sampling import estimate
from orderparam.sampling.jackknife import blocked_jackknife, jackknife
from orderparam.sampling.lattice.clusters import (
    Spins,
    cluster_labels,
    random_bonds,
    swendsen_wang_flip,
)
from orderparam.sampling.lattice.labels import cluster_sizes
from orderparam.sampling.lattice.random_words import Counter, first_word, random_words
from orderparam.systems.renormalization.magnet.model import SpinBlocks

# pairs of neighbours, pairs across the diagonal of a square, the four spins of a square
_OPERATORS = 3
_FIELDS = 5  # each of the three sums around a site is -4, -2, 0, 2 or 4
_NEWTON = 12


class MeasuredBlocks(Result):
    """Couplings between block spins after 0, 1, ... levels of blocks, and moments of the
    magnetisation of the original spins.

    The couplings maximise the conditional probability of every spin given the others
    (pseudo-likelihood; Besag 1975). Errors are standard errors: a jackknife over replicas for the
    couplings.

    Fields:
        neighbour_coupling: K_1 of neighbours.
        neighbour_coupling_error: its standard error.
        diagonal_coupling: K_2 across the diagonal of a square.
        diagonal_coupling_error: its standard error.
        square_coupling: K_3 of the four spins of a square.
        square_coupling_error: its standard error.
        thermal_exponent: y_t = 1/nu, from the linear response of the last level to the level before
            it.
        thermal_exponent_error: its standard error.
        absolute_magnetisation: <|m|> per site.
        absolute_magnetisation_error: its standard error.
        squared_magnetisation: <m^2>, by the improved estimator of clusters.
        squared_magnetisation_error: its standard error.
        converged: whether R-hat < 1.05 and there are at least 100 effective samples of |m|.
    """

    neighbour_coupling: Float[Array, "block_level"]
    neighbour_coupling_error: Float[Array, "block_level"]
    diagonal_coupling: Float[Array, "block_level"]
    diagonal_coupling_error: Float[Array, "block_level"]
    square_coupling: Float[Array, "block_level"]
    square_coupling_error: Float[Array, "block_level"]
    thermal_exponent: Float[Array, ""]
    thermal_exponent_error: Float[Array, ""]
    absolute_magnetisation: Float[Array, ""]
    absolute_magnetisation_error: Float[Array, ""]
    squared_magnetisation: Float[Array, ""]
    squared_magnetisation_error: Float[Array, ""]
    converged: Bool[Array, ""]


class _Run(NamedTuple):
    """What is recorded in a run.

    Fields:
        counts: histogram of the sign of a spin and of the values of the three sums around it.
        sums: sums of the operators after each sweep.
        absolute: |m| after each sweep.
        squared: m^2 after each sweep, by the improved estimator.
    """

    counts: Float[Array, "replica level table"]
    sums: Float[Array, "replica sweep level operator"]
    absolute: Float[Array, "replica sweep"]
    squared: Float[Array, "replica sweep"]


@experiment
def block_spins(
    system: SpinBlocks,
    key: PRNGKeyArray,
    *,
    replicas: int = 16,
    warmup: int = 50,
    sweeps: int = 300,
) -> MeasuredBlocks:
    r"""Couplings of an Ising magnet after each level of block spins, and its thermal exponent.

    Spins are sampled at `temperature` by Swendsen-Wang sweeps that start with all spins up. Each
    level replaces every block of two by two spins by the sign of its majority, or by a random sign
    in case of a tie. The couplings of every level maximise the pseudo-likelihood

    $$ \sum_i \ln \frac{1}{1 + e^{-2 s_i \sum_a K_a S_{a,i}}} , $$

    with $S_{a,i}$ the sum over the neighbours of spin i ($a = 1$), over its diagonal neighbours ($a
    = 2$), and over the products of the three other spins of each square that contains it ($a = 3$).
    With $S_a$ and $S'_a$ the sums before and after the last level, the exponent is the largest
    eigenvalue of the linearised flow,

    $$ y_t = \log_2 \Lambda_{\max} , \qquad
       \Lambda = \langle S' S'^T \rangle_c^{-1} \langle S' S^T \rangle_c . $$

    Args:
        replicas: number of independent magnets, at least 2; 16 by default.
        warmup: sweeps before anything is recorded; 50 by default.
        sweeps: recorded sweeps, at least 8; 300 by default.

    Cost: proportional to `length`^2 * `replicas` * (`warmup` + `sweeps`).

    Source: Swendsen (1979) for the exponent; Besag (1975) for the couplings; Swendsen, Wang (1987)
    for the sweeps.

    >>> run = block_spins(SpinBlocks(2.27, 8, 1), jax.random.key(0), replicas=2, warmup=5, sweeps=8)
    >>> run.neighbour_coupling.shape
    (2,)
    """
    run = _run(system.temperature, key, system.length, system.levels, replicas, warmup, sweeps)
    value, error = _couplings(run.counts)
    thermal, thermal_error = _thermal(run.sums[:, :, -2:])
    absolute, squared = estimate(run.absolute), estimate(run.squared)
    neighbour, diagonal, square = zip(value.T, error.T)
    return MeasuredBlocks(
        **with_errors(
            neighbour_coupling=neighbour,
            diagonal_coupling=diagonal,
            square_coupling=square,
            thermal_exponent=(thermal, thermal_error),
            absolute_magnetisation=(absolute.mean, absolute.standard_error),
            squared_magnetisation=(squared.mean, squared.standard_error),
        ),
        converged=absolute.reliable | absolute.constant,
    )


@partial(jax.jit, static_argnames=("length", "levels", "replicas", "warmup", "sweeps"))
def _run(
    temperature: Float[Array, ""],
    key: PRNGKeyArray,
    length: int,
    levels: int,
    replicas: int,
    warmup: int,
    sweeps: int,
) -> _Run:
    def turned(spins: Spins, words: Counter) -> tuple[Spins, Counter, Array]:
        words, bonds = random_bonds(words, spins, temperature)
        labels = cluster_labels(bonds)
        sizes = cluster_sizes(labels)
        words, spins = swendsen_wang_flip(words, labels, sizes, jnp.zeros(()))
        return spins, words, jnp.sum((sizes.reshape(replicas, -1) / length**2) ** 2, axis=1)

    def sweep(carry: Any, _: None) -> tuple[Any, tuple]:
        spins, words, counts = carry
        spins, words, squared = turned(spins, words)
        tables, sums, blocks = [], [], spins
        for level in range(levels + 1):
            if level:
                blocks, words = majority(blocks, words)
            around = sums_around(blocks)
            tables.append(_table(blocks, around))
            sums.append(_operators(blocks, around))
        absolute = jnp.abs(jnp.mean(spins.astype(float), axis=(1, 2)))
        return (spins, words, counts + jnp.stack(tables, 1)), (
            jnp.stack(sums, 1),
            absolute,
            squared,
        )

    spins, words = jnp.ones((replicas, length, length), jnp.int8), first_word(key)
    spins, words = jax.lax.fori_loop(0, warmup, lambda _, now: turned(*now)[:2], (spins, words))
    counts = jnp.zeros((replicas, levels + 1, 2 * _FIELDS**_OPERATORS))
    last, (sums, absolute, squared) = jax.lax.scan(sweep, (spins, words, counts), length=sweeps)
    return _Run(last[2], jnp.moveaxis(sums, 0, 1), absolute.T, squared.T)


def majority(spins: Spins, words: Counter) -> tuple[Int8[Array, "replica row column"], Counter]:
    """Majorities of blocks of two by two spins, with a random sign in case of a tie, and the
    advanced counter of random words.
    """
    replicas, length, _ = spins.shape
    total = jnp.sum(
        spins.reshape(replicas, length // 2, 2, length // 2, 2), axis=(2, 4), dtype=jnp.int32
    )
    words, drawn = random_words(words, total.size)
    coin = jnp.where((drawn >> np.uint64(63)).reshape(total.shape) > 0, 1, -1)
    return jnp.where(total == 0, coin, jnp.sign(total)).astype(jnp.int8), words


def sums_around(spins: Spins) -> Float[Array, "operator replica row column"]:
    """Sums that couple to each spin: over its neighbours, over its diagonal neighbours, and over
    the products of the three other spins of each square to which it belongs.
    """
    right, left, down, up = (jnp.roll(spins, step, axis) for axis in (2, 1) for step in (-1, 1))
    corners = {(a, b): jnp.roll(spins, (a, b), (1, 2)) for a in (-1, 1) for b in (-1, 1)}
    vertical, horizontal = {-1: down, 1: up}, {-1: right, 1: left}
    squares = sum(vertical[a] * horizontal[b] * corner for (a, b), corner in corners.items())
    return jnp.stack([right + left + down + up, sum(corners.values()), squares])


def _operators(
    spins: Spins, around: Float[Array, "operator replica row column"]
) -> Float[Array, "replica operator"]:
    """Sums over pairs and squares, each counted once."""
    share = jnp.array([2.0, 2.0, 4.0])
    return jnp.sum((spins * around).astype(float), axis=(2, 3)).T / share


def _table(
    spins: Spins, around: Float[Array, "operator replica row column"]
) -> Float[Array, "replica table"]:
    """Histogram of each replica's spins by sign and by the values of the three sums around them."""
    digits = (around.astype(jnp.int32) + 4) // 2
    place = (
        ((spins.astype(jnp.int32) + 1) // 2 * _FIELDS + digits[0]) * _FIELDS**2
        + digits[1] * _FIELDS
        + digits[2]
    )
    flat, size = place.reshape(len(spins), -1), 2 * _FIELDS**_OPERATORS
    return jax.vmap(lambda row: jnp.zeros(size).at[row].add(1.0))(flat)


_SIGN, *_SUMS = np.stack(
    np.meshgrid([-1, 1], *3 * [np.arange(-4.0, 5.0, 2.0)], indexing="ij")
).reshape(4, -1)
_FEATURES = 2 * _SIGN * np.stack(_SUMS)  # P(s | around) = 1/(1 + exp(-K . features))


@jax.jit
def _couplings(
    counts: Float[Array, "replica level table"],
) -> tuple[Float[Array, "level operator"], Float[Array, "level operator"]]:
    """Couplings of each level with their standard errors, by a jackknife over replicas."""

    def fitted(table: Float[Array, "table"]) -> Float[Array, "operator"]:
        """Logistic regression of a spin on the sums around it, by Newton's method from zero
        couplings (the likelihood is concave).
        """
        weight = table / jnp.sum(table)

        def step(_: int, couplings: Float[Array, "operator"]) -> Float[Array, "operator"]:
            surprise = jax.nn.sigmoid(-couplings @ _FEATURES)
            slope = _FEATURES @ (weight * surprise)
            curvature = (_FEATURES * (weight * surprise * (1 - surprise))) @ _FEATURES.T
            return couplings + jnp.linalg.solve(curvature + 1e-12 * jnp.eye(_OPERATORS), slope)

        return jax.lax.fori_loop(0, _NEWTON, step, jnp.zeros(_OPERATORS))

    return jax.vmap(partial(jackknife, fitted), in_axes=1)(counts)


@jax.jit
def _thermal(
    sums: Float[Array, "replica sweep 2 operator"],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """y_t = log2 of the largest eigenvalue of dK'/dK = <S' S'>_c^-1 <S' S>_c, with S' after the
    block, and its standard error.
    """
    sums = sums - jnp.mean(sums, axis=(0, 1))
    before, after = sums[:, :, 0], sums[:, :, 1]
    pairs = after[..., :, None] * jnp.concatenate([after, before], -1)[..., None, :]
    moments = jnp.concatenate([after, before, pairs.reshape(*pairs.shape[:2], -1)], axis=-1)

    def exponent(means: Float[Array, "moment"]) -> Float[Array, "1"]:
        both, products = (
            means[: 2 * _OPERATORS],
            means[2 * _OPERATORS :].reshape(_OPERATORS, 2 * _OPERATORS),
        )
        connected = products - both[:_OPERATORS, None] * both
        response = jnp.linalg.solve(connected[:, :_OPERATORS], connected[:, _OPERATORS:])

        def power(_: int, state: tuple) -> tuple:
            vector = response @ state[0]
            size = jnp.linalg.norm(vector)
            return vector / size, size

        return jnp.log(jax.lax.fori_loop(0, 60, power, (jnp.ones(_OPERATORS), jnp.ones(())))[1])[
            None
        ] / jnp.log(2.0)

    value, error = blocked_jackknife(exponent, moments)
    return value[0], error[0]
