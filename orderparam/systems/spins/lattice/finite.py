"""Finite lattices exactly: the square torus by Kaufman's formula, small lattices by counting configurations."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.spins.lattice.infinite import (
    CRITICAL_AMPLITUDE,
    DiagonalCorrelation,
    at_critical_point,
    zero_field_square,
)
from orderparam.systems.spins.lattice.model import IsingLattice
from orderparam.systems.spins.thermodynamics import Thermodynamics, averages

_FROZEN = 100.0  # couplings above which excitations have weight below exp(-400)
_THETA_TERMS = 12
_LARGEST = 20  # spins whose configurations are counted one by one


class Torus(Result):
    """Per spin: free_energy -(T/N) ln Z, energy, heat_capacity."""

    free_energy: Float[Array, ""]
    energy: Float[Array, ""]
    heat_capacity: Float[Array, ""]


def _small(system: IsingLattice, **_: object) -> None:
    if system.spins > _LARGEST:
        raise ValueError(f"IsingLattice.shape = {system.shape}: must have at most {_LARGEST} sites (all states are counted)")


@theory(check=zero_field_square)
def kaufman(system: IsingLattice) -> Torus:
    """The L x M torus in zero field, exactly, from Kaufman's four products (1949, eq. 61): rounding is all there is, 1e-12.

    cosh g_l = cosh 2K coth 2K - cos(pi l/L), and g_0 = 2K + ln tanh K with its sign. Energy and heat capacity are derivatives.
    """
    coupling = 1 / system.temperature
    log_sum = functools.partial(_log_partition, shape=system.shape)
    slope = jax.grad(log_sum)
    spins = system.spins
    return Torus(
        -system.temperature * log_sum(coupling) / spins,
        -slope(coupling) / spins,
        coupling**2 * jax.grad(slope)(coupling) / spins,
    )


def _away_from_the_start(system: IsingLattice, *, reach: int = 0) -> None:
    zero_field_square(system)
    back = math.lcm(*system.shape)
    if not 0 <= reach < back:
        raise ValueError(
            f"reach = {reach}: must be from 0 to {back - 1}; then the diagonal of IsingLattice.shape = {system.shape} is back at "
            "its start"
        )


@theory(check=_away_from_the_start)
def torus_correlation(system: IsingLattice, *, reach: int = 0) -> DiagonalCorrelation:
    """Along the diagonal of a large torus at T_c, by conformal invariance (Di Francesco, Saleur, Zuber 1987),

        A L^(-1/4) |theta_1'(0) / theta_1(z)|^(1/4) sum_{k=1..4} |theta_k(z/2)| / sum_{k=2..4} |theta_k(0)|, A = 0.70338,

    with z = n (1 + i)/L and nome exp(-pi M/L) on the L x M lattice, n = 1 .. reach (0: half the shortest side). It leaves out
    what falls with the square of the distance (1.3 % at one step, 0.3 % at two); beyond half the lattice the correlation grows
    again.
    Raises `ValueError` for a reach that leads back to the start.
    """
    rows, columns = system.shape
    steps = np.arange(1, (reach or min(system.shape) // 2) + 1)
    nome = np.exp(-np.pi * columns / rows)
    z = steps * (1 + 1j) / rows
    slope = 2 * np.pi * sum((-1) ** n * (2 * n + 1) * nome ** ((n + 0.5) ** 2) for n in range(_THETA_TERMS))
    shape = sum(np.abs(theta) for theta in _theta(z / 2, nome)) / sum(np.abs(theta) for theta in _theta(0.0, nome)[1:])
    correlation = CRITICAL_AMPLITUDE * rows**-0.25 * np.abs(slope / _theta(z, nome)[0]) ** 0.25 * shape
    return DiagonalCorrelation(jnp.asarray(steps, float), jnp.asarray(correlation), at_critical_point(system))


@theory(check=_small)
def enumerated(system: IsingLattice) -> Thermodynamics:
    """All configurations of a lattice of at most 20 sites, in any dimension and field."""
    energy, magnetisation, log_count = map(jnp.asarray, _density_of_states(system.shape))
    n = system.spins
    m = magnetisation / n
    return averages(log_count, energy / n - system.field * m, m, system.temperature, n)


def _theta(u: Any, nome: float) -> tuple[Any, ...]:
    """theta_1 .. theta_4 at pi u."""
    odd, even = (
        [(n, nome ** ((n + 0.5) ** 2)) for n in range(_THETA_TERMS)],
        [(n, nome ** (n**2)) for n in range(1, _THETA_TERMS)],
    )
    return (
        2 * sum((-1) ** n * weight * np.sin((2 * n + 1) * np.pi * u) for n, weight in odd),
        2 * sum(weight * np.cos((2 * n + 1) * np.pi * u) for n, weight in odd),
        1 + 2 * sum(weight * np.cos(2 * n * np.pi * u) for n, weight in even),
        1 + 2 * sum((-1) ** n * weight * np.cos(2 * n * np.pi * u) for n, weight in even),
    )


def _log_partition(coupling: Float[Array, ""] | float, shape: tuple[int, ...]) -> Float[Array, ""]:
    """ln Z of the torus. With s = sinh 2K, cosh g_l - 1 = (s - 1)^2/s + 2 sin^2(pi l/2L), which loses nothing at T_c."""
    rows, columns = shape
    frozen = 2 * rows * columns * jnp.maximum(coupling - _FROZEN, 0.0)
    coupling = jnp.minimum(coupling, _FROZEN)
    s = jnp.sinh(2 * coupling)
    excess = (s - 1) ** 2 / s + 2 * np.sin(np.pi * np.arange(1, 2 * rows) / (2 * rows)) ** 2
    half = columns / 2 * jnp.log1p(excess + jnp.sqrt(excess) * jnp.sqrt(excess + 2))  # M g_l / 2, l = 1 .. 2L - 1
    log_tanh = jnp.log(-jnp.expm1(-2 * coupling)) - jnp.log1p(jnp.exp(-2 * coupling))
    zero = columns / 2 * (2 * coupling + log_tanh)
    fade = jnp.exp(-2 * half)
    log_cosh, log_sinh = half + jnp.log1p(fade), half + jnp.log(-jnp.expm1(-2 * half))  # of twice the functions
    even = jnp.sum(log_sinh[1::2])  # without l = 0, whose factor changes sign at T_c
    products = jnp.stack(
        [
            jnp.sum(log_cosh[::2]),
            jnp.sum(log_sinh[::2]),
            jnp.logaddexp(zero, -zero) + jnp.sum(log_cosh[1::2]),
            even + zero,
            even - zero,
        ]
    )
    total = jax.nn.logsumexp(products, b=np.array([1.0, 1.0, 1.0, 1.0, -1.0]))
    # (2 sinh 2K)^(LM/2) in logarithms
    return frozen - jnp.log(2.0) + rows * columns / 2 * jnp.log(2 * s) + total


@functools.cache
def _density_of_states(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The energies and sums of spins that occur without a field, and the logarithm of how many configurations have them."""
    n = int(np.prod(shape))
    spins = (2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1).astype(np.int8).reshape(-1, *shape)
    sites = tuple(range(1, 1 + len(shape)))
    energy = -sum((spins * np.roll(spins, 1, axis)).sum(axis=sites, dtype=np.int64) for axis in sites)
    states, counts = np.unique(np.stack([energy, spins.sum(axis=sites, dtype=np.int64)]), axis=1, return_counts=True)
    return states[0].astype(float), states[1].astype(float), np.log(counts)
