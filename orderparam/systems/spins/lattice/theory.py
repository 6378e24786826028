"""The Ising model on periodic lattices exactly: the infinite square lattice, finite lattices, and
finite-size scaling.
"""

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float

from orderparam.analysis import Collapse, Exponent, collapse, exponent
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.spins.lattice.model import CRITICAL_TEMPERATURE, IsingLattice
from orderparam.systems.spins.thermodynamics import Thermodynamics, averages

# ------------------------------------------------------------------------------------------------
# The infinite square lattice in zero field, solved by Onsager (1944) and Yang (1952); correlations at the critical point.

# of <s s'> = amplitude / distance^(1/4) at T_c: e^(1/4) 2^(5/24) / Glaisher's constant^3 (Wu 1966)
CRITICAL_AMPLITUDE = math.exp(1 / 4) * 2 ** (5 / 24) / 1.2824271291006226**3

_AGM_STEPS = 14  # the mean of 1 and 1e-300 needs 13


class InfiniteLattice(Result):
    """Per spin: free_energy -T ln Z, energy, heat_capacity, and absolute_magnetisation, the
    spontaneous one.
    """

    free_energy: Float[Array, ""]
    energy: Float[Array, ""]
    heat_capacity: Float[Array, ""]
    absolute_magnetisation: Float[Array, ""]


class DiagonalCorrelation(Result):
    """correlation: <s s'> of two sites that are `steps` diagonal steps (a distance steps sqrt 2)
    apart.

    valid: the system's temperature is the critical one, to 1e-12.
    """

    steps: Float[Array, "step"]
    correlation: Float[Array, "step"]
    valid: Bool[Array, ""]


def zero_field_square(system: IsingLattice, **_: object) -> None:
    """Raises `ValueError` for what has no exact solution: another dimension than two, or a
    field."""
    if len(system.shape) != 2:
        raise ValueError(
            f"IsingLattice.shape = {system.shape}: must have two directions (the square lattice is what is solved)"
        )
    if system.field != 0:
        raise ValueError(
            f"IsingLattice.field = {float(system.field):g}: must be 0 (no field is solved on the square lattice)"
        )


@theory(check=zero_field_square)
def onsager(system: IsingLattice) -> InfiniteLattice:
    """The square lattice of infinite size, whatever `shape` is. The heat capacity diverges as -ln|T
    - T_c| at 2/ln(1 + sqrt 2).

    With K = 1/T, k = 2 sinh 2K / cosh^2 2K and k' = 2 tanh^2 2K - 1: -energy = coth 2K (1 + (2/pi)
    k' K_1(k)) (Onsager 1944, eqs. 106 to 117), and m^8 = 1 - 1/sinh^4 2K below T_c (Yang 1952, eq.
    96). Complete elliptic integrals come from the arithmetic-geometric mean of 1 and |k'|, which
    loses nothing at k = 1.
    """
    coupling = 1 / system.temperature
    fade = jnp.exp(-4 * coupling)
    tanh, sech = -jnp.expm1(-4 * coupling) / (1 + fade), 2 * jnp.exp(-2 * coupling) / (1 + fade)
    signed = 1 - 2 * sech**2  # k'
    first, difference = _elliptic(jnp.abs(signed), 4 * (tanh * sech) ** 2)
    energy = -(1 + 2 / jnp.pi * signed * first) / tanh
    heat_capacity = (
        4 / jnp.pi * (coupling / tanh) ** 2 * (difference - sech**2 * (jnp.pi / 2 + signed * first))
    )
    angle, weight = _RULE
    root = jnp.sqrt(np.sin(angle) ** 2 + (signed * np.cos(angle)) ** 2)
    integral = jnp.sum(weight * jnp.log((1 + root) / 2)) / jnp.pi
    free_energy = -2 - system.temperature * (jnp.log1p(fade) + integral)
    ordered = system.temperature < CRITICAL_TEMPERATURE
    inverse_sinh = sech / jnp.where(ordered, tanh, 1.0)
    magnetisation = jnp.where(ordered, jnp.where(ordered, 1 - inverse_sinh**4, 1.0) ** 0.125, 0.0)
    return InfiniteLattice(free_energy, energy, heat_capacity, magnetisation)


@theory(check=zero_field_square)
def critical_correlation(system: IsingLattice, *, reach: int = 32) -> DiagonalCorrelation:
    """Along the diagonal of the infinite square lattice at its critical temperature, for n = 1 ..
    reach steps: (2/pi)^n prod_{k<n} (1 - 1/(4 k^2))^(k - n) (McCoy, Wu 1973, section XI), which
    falls as 0.70338 / distance^(1/4)."""
    steps = np.arange(1, reach + 1)
    # ln c_n = n ln(2/pi) + sum_{k<n} (k - n) l_k, whose second difference in n is -l_n
    logs = np.log1p(-1 / (4.0 * steps**2))
    exponent = steps * np.log(2 / np.pi) - np.concatenate([[0.0], np.cumsum(np.cumsum(logs))[:-1]])
    return DiagonalCorrelation(
        jnp.asarray(steps, float), jnp.exp(exponent), at_critical_point(system)
    )


def at_critical_point(system: IsingLattice) -> Bool[Array, ""]:
    return jnp.abs(system.temperature / CRITICAL_TEMPERATURE - 1) < 1e-12


def _elliptic(
    complement: Float[Array, ""], squared: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """K(k) and K(k) - E(k) of modulus k = sqrt(squared), complement = sqrt(1 - k^2) (Abramowitz,
    Stegun 17.6).
    """
    a, b, total = jnp.ones(()), jnp.maximum(complement, 1e-300), squared / 2
    for step in range(_AGM_STEPS):
        total = total + 2.0**step * ((a - b) / 2) ** 2
        a, b = (a + b) / 2, jnp.sqrt(a * b)
    return jnp.pi / (2 * a), jnp.pi / (2 * a) * total


def _double_exponential(nodes: int = 241) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [0, pi/2] that crowd at its ends (Takahasi, Mori 1974): at T_c the
    integrand bends within k' of 0.
    """
    u, step = np.linspace(-3.6, 3.6, nodes, retstep=True)
    angle = np.pi / 2 / (1 + np.exp(-np.pi * np.sinh(u)))
    return angle, step * np.pi**2 / 8 * np.cosh(u) / np.cosh(np.pi / 2 * np.sinh(u)) ** 2


_RULE = _double_exponential()


# ------------------------------------------------------------------------------------------------
# Finite lattices exactly: the square torus by Kaufman's formula, small lattices by counting configurations.

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
        raise ValueError(
            f"IsingLattice.shape = {system.shape}: must have at most {_LARGEST} sites (all states are counted)"
        )


@theory(check=zero_field_square)
def kaufman(system: IsingLattice) -> Torus:
    """The L x M torus in zero field, exactly, from Kaufman's four products (1949, eq. 61): rounding
    is all there is, 1e-12.

    cosh g_l = cosh 2K coth 2K - cos(pi l/L), and g_0 = 2K + ln tanh K with its sign. Energy and
    heat capacity are derivatives.
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
    """Along the diagonal of a large torus at T_c, by conformal invariance (Di Francesco, Saleur,
    Zuber 1987),

        A L^(-1/4) |theta_1'(0) / theta_1(z)|^(1/4) sum_{k=1..4} |theta_k(z/2)| / sum_{k=2..4}
        |theta_k(0)|, A = 0.70338,

    with z = n (1 + i)/L and nome exp(-pi M/L) on the L x M lattice, n = 1 .. reach (0: half the
    shortest side). It leaves out what falls with the square of the distance (1.3 % at one step, 0.3
    % at two); beyond half the lattice the correlation grows again. Raises `ValueError` for a reach
    that leads back to the start.
    """
    rows, columns = system.shape
    steps = np.arange(1, (reach or min(system.shape) // 2) + 1)
    nome = np.exp(-np.pi * columns / rows)
    z = steps * (1 + 1j) / rows
    slope = (
        2
        * np.pi
        * sum((-1) ** n * (2 * n + 1) * nome ** ((n + 0.5) ** 2) for n in range(_THETA_TERMS))
    )
    shape = sum(np.abs(theta) for theta in _theta(z / 2, nome)) / sum(
        np.abs(theta) for theta in _theta(0.0, nome)[1:]
    )
    correlation = (
        CRITICAL_AMPLITUDE * rows**-0.25 * np.abs(slope / _theta(z, nome)[0]) ** 0.25 * shape
    )
    return DiagonalCorrelation(
        jnp.asarray(steps, float), jnp.asarray(correlation), at_critical_point(system)
    )


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
    """ln Z of the torus. With s = sinh 2K, cosh g_l - 1 = (s - 1)^2/s + 2 sin^2(pi l/2L), which
    loses nothing at T_c.
    """
    rows, columns = shape
    frozen = 2 * rows * columns * jnp.maximum(coupling - _FROZEN, 0.0)
    coupling = jnp.minimum(coupling, _FROZEN)
    s = jnp.sinh(2 * coupling)
    excess = (s - 1) ** 2 / s + 2 * np.sin(np.pi * np.arange(1, 2 * rows) / (2 * rows)) ** 2
    # M g_l / 2, l = 1 .. 2L - 1
    half = columns / 2 * jnp.log1p(excess + jnp.sqrt(excess) * jnp.sqrt(excess + 2))
    log_tanh = jnp.log(-jnp.expm1(-2 * coupling)) - jnp.log1p(jnp.exp(-2 * coupling))
    zero = columns / 2 * (2 * coupling + log_tanh)
    fade = jnp.exp(-2 * half)
    # of twice the functions
    log_cosh, log_sinh = half + jnp.log1p(fade), half + jnp.log(-jnp.expm1(-2 * half))
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
    """The energies and sums of spins that occur without a field, and the logarithm of how many
    configurations have them.
    """
    n = int(np.prod(shape))
    spins = (
        (2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1)
        .astype(np.int8)
        .reshape(-1, *shape)
    )
    sites = tuple(range(1, 1 + len(shape)))
    energy = -sum(
        (spins * np.roll(spins, 1, axis)).sum(axis=sites, dtype=np.int64) for axis in sites
    )
    states, counts = np.unique(
        np.stack([energy, spins.sum(axis=sites, dtype=np.int64)]), axis=1, return_counts=True
    )
    return states[0].astype(float), states[1].astype(float), np.log(counts)


# ------------------------------------------------------------------------------------------------
# Finite-size scaling of the Ising model: the critical temperature and the exponents from small lattices.


@dataclass(frozen=True)
class CriticalPoint:
    """What lattices of several sizes say of the transition; each fit tells the sizes that it used.

    binder: temperature and 1/nu, from the ratio, which is a function of (T - T_c) L^(1/nu) alone.
    magnetisation: its `power` is -beta/nu; susceptibility: gamma/nu; both at the temperature and
    1/nu of the ratio, whose errors are joined to theirs. correlation: of opposite sites at T_c,
    L^-eta; None where it was not measured.
    """

    binder: Collapse
    magnetisation: Collapse
    susceptibility: Collapse
    correlation: Exponent | None

    @property
    def exponents(self) -> dict[str, tuple[float, float]]:
        """Name -> value and standard error."""
        found = {
            "T_c": (self.binder.critical, self.binder.critical_error),
            "1/nu": (self.binder.inverse_nu, self.binder.inverse_nu_error),
            "beta/nu": (-self.magnetisation.power, self.magnetisation.power_error),
            "gamma/nu": (self.susceptibility.power, self.susceptibility.power_error),
        }
        return (
            found
            if self.correlation is None
            else {**found, "eta": (-self.correlation.exponent, self.correlation.exponent_error)}
        )


def finite_size_scaling(
    runs: xr.Dataset, correlations: xr.Dataset | None = None, window: float = 3.0
) -> CriticalPoint:
    """From measured `binder`, `absolute_magnetisation` and `squared_magnetisation` against `length`
    and `temperature` (a sweep of `swendsen_wang` near T_c over square lattices), and the
    `correlation` of opposite sites against `length` at T_c.

    The susceptibility is that of the symmetric phase, L^2 <m^2>. window: of |T - T_c| L.
    """
    places = {"x": "temperature", "size": "length", "window": window}
    binder = collapse(runs, y="binder", power=0, **places)  # type: ignore[arg-type]
    squared = (
        runs["squared_magnetisation"] * runs["length"] ** 2,
        runs["squared_magnetisation_error"] * runs["length"] ** 2,
    )
    runs = runs.assign(
        symmetric_susceptibility=squared[0], symmetric_susceptibility_error=squared[1]
    )
    magnetisation, susceptibility = (
        _at(binder, runs, y, places) for y in ("absolute_magnetisation", "symmetric_susceptibility")
    )
    far = None if correlations is None else exponent(correlations, "length", "correlation")
    return CriticalPoint(binder, magnetisation, susceptibility, far)


def _at(binder: Collapse, runs: xr.Dataset, y: str, places: dict) -> Collapse:
    """The collapse at the temperature and 1/nu of the ratio, whose errors move the power."""
    shifts = [(0, 0), (binder.critical_error, 0), (0, binder.inverse_nu_error)]
    fits = [
        collapse(
            runs, y=y, critical=binder.critical + t, inverse_nu=binder.inverse_nu + n, **places
        )
        for t, n in shifts
    ]
    found = fits[0]
    changes = [found.power_error, *(fit.power - found.power for fit in fits[1:])]
    return replace(found, power_error=float(np.linalg.norm(changes)))
