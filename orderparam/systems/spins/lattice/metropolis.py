"""Metropolis updates of a whole sublattice at a time: sites of one colour of the checkerboard are independent given the other."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int8, PRNGKeyArray, UInt32

from orderparam.systems.spins.measurement import Series

# The two colours are stored apart, with half as many columns: site (x, j) of colour c is in column 2 j + (sum x + c) % 2.
Half = Int8[Array, "replica *half"]


@partial(jax.jit, static_argnames=("shape", "replicas", "warmup", "sweeps"))
def metropolis_series(
    temperature: Float[Array, ""],
    field: Float[Array, ""],
    key: PRNGKeyArray,
    shape: tuple[int, ...],
    replicas: int,
    warmup: int,
    sweeps: int,
) -> Series:
    """Series of independent replicas that start with all spins up. All lengths must be even."""
    half, n = (*shape[:-1], shape[-1] // 2), int(np.prod(shape))
    odd = np.sum(np.indices(half)[:-1], axis=0) % 2 == 1  # rows whose first site has colour 1
    levels = _thresholds(temperature, field, len(shape))

    def neighbours(other: Half, shifted: np.ndarray) -> Half:
        """Sums over nearest neighbours, which are all of the other colour; in rows that are `shifted` the own columns are odd."""
        rows = sum(jnp.roll(other, step, axis) for axis in range(1, len(shape)) for step in (1, -1))
        return rows + other + jnp.where(shifted, jnp.roll(other, -1, -1), jnp.roll(other, 1, -1))

    def update(spins: Half, sums: Half, key: PRNGKeyArray) -> Half:
        accept = jax.random.bits(key, spins.shape, jnp.uint32) <= _select(levels, spins, sums)
        return jnp.where(accept, -spins, spins)

    def sweep(state: tuple[Half, Half], key: PRNGKeyArray) -> tuple[tuple[Half, Half], Array]:
        even, other = state
        first, second = jax.random.split(key)
        even = update(even, neighbours(other, odd), first)
        sums = neighbours(even, ~odd)
        other = update(other, sums, second)
        sites = tuple(range(1, other.ndim))
        bonds = jnp.sum(other * sums, axis=sites, dtype=jnp.int32)  # every bond has one end of either colour
        total = jnp.sum(even, axis=sites, dtype=jnp.int32) + jnp.sum(other, axis=sites, dtype=jnp.int32)
        return (even, other), jnp.stack([bonds, total]) / n

    start = jnp.ones((replicas, *half), jnp.int8)
    _, kept = jax.lax.scan(sweep, (start, start), jax.random.split(key, warmup + sweeps))
    bonds, m = jnp.moveaxis(kept[warmup:], (0, 1, 2), (2, 0, 1))
    return Series(-bonds - field * m, m, jnp.abs(m), m**2, m**4)


def _thresholds(
    temperature: Float[Array, ""], field: Float[Array, ""], directions: int
) -> dict[tuple[int, int], UInt32[Array, ""]]:
    """(spin, sum of its neighbours) -> the largest 32-bit word that accepts its flip: min(1, exp(-2 s (sum + h)/T))."""
    states = itertools.product((-1, 1), range(-2 * directions, 2 * directions + 1, 2))
    largest = 2.0**32 - 1
    return {
        (s, total): jnp.clip(jnp.exp(-2 * s * (total + field) / temperature) * 2.0**32 - 1, 0, largest).astype(jnp.uint32)
        for s, total in states
    }


def _select(levels: dict[tuple[int, int], UInt32[Array, ""]], spins: Half, sums: Half) -> UInt32[Array, "replica *half"]:
    """The threshold of every site. A chain of selections is vectorised, a look-up in a table is not."""
    found = jnp.zeros(spins.shape, jnp.uint32)
    for (s, total), level in levels.items():
        found = jnp.where((spins == s) & (sums == total), level, found)
    return found
