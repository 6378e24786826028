"""The infinite square lattice in zero field, solved by Onsager (1944) and Yang (1952); correlations at the critical point."""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.spins.lattice.model import CRITICAL_TEMPERATURE, IsingLattice

# of <s s'> = amplitude / distance^(1/4) at T_c: e^(1/4) 2^(5/24) / Glaisher's constant^3 (Wu 1966)
CRITICAL_AMPLITUDE = math.exp(1 / 4) * 2 ** (5 / 24) / 1.2824271291006226**3

_AGM_STEPS = 14  # the mean of 1 and 1e-300 needs 13


class InfiniteLattice(Result):
    """Per spin: free_energy -T ln Z, energy, heat_capacity, and absolute_magnetisation, the spontaneous one."""

    free_energy: Float[Array, ""]
    energy: Float[Array, ""]
    heat_capacity: Float[Array, ""]
    absolute_magnetisation: Float[Array, ""]


class DiagonalCorrelation(Result):
    """correlation: <s s'> of two sites that are `steps` diagonal steps (a distance steps sqrt 2) apart.

    valid: the system's temperature is the critical one, to 1e-12.
    """

    steps: Float[Array, "step"]
    correlation: Float[Array, "step"]
    valid: Bool[Array, ""]


def zero_field_square(system: IsingLattice, **_: object) -> None:
    """Raises `ValueError` for what has no exact solution: another dimension than two, or a field."""
    if len(system.shape) != 2:
        raise ValueError(f"IsingLattice.shape = {system.shape}: must have two directions (the square lattice is what is solved)")
    if system.field != 0:
        raise ValueError(f"IsingLattice.field = {float(system.field):g}: must be 0 (no field is solved on the square lattice)")


@theory(check=zero_field_square)
def onsager(system: IsingLattice) -> InfiniteLattice:
    """The square lattice of infinite size, whatever `shape` is. The heat capacity diverges as -ln|T - T_c| at 2/ln(1 + sqrt 2).

    With K = 1/T, k = 2 sinh 2K / cosh^2 2K and k' = 2 tanh^2 2K - 1: -energy = coth 2K (1 + (2/pi) k' K_1(k)) (Onsager 1944,
    eqs. 106 to 117), and m^8 = 1 - 1/sinh^4 2K below T_c (Yang 1952, eq. 96). Complete elliptic integrals come from the
    arithmetic-geometric mean of 1 and |k'|, which loses nothing at k = 1.
    """
    coupling = 1 / system.temperature
    fade = jnp.exp(-4 * coupling)
    tanh, sech = -jnp.expm1(-4 * coupling) / (1 + fade), 2 * jnp.exp(-2 * coupling) / (1 + fade)
    signed = 1 - 2 * sech**2  # k'
    first, difference = _elliptic(jnp.abs(signed), 4 * (tanh * sech) ** 2)
    energy = -(1 + 2 / jnp.pi * signed * first) / tanh
    heat_capacity = 4 / jnp.pi * (coupling / tanh) ** 2 * (difference - sech**2 * (jnp.pi / 2 + signed * first))
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
    """Along the diagonal of the infinite square lattice at its critical temperature, for n = 1 .. reach steps:
    (2/pi)^n prod_{k<n} (1 - 1/(4 k^2))^(k - n) (McCoy, Wu 1973, section XI), which falls as 0.70338 / distance^(1/4)."""
    steps = np.arange(1, reach + 1)
    # ln c_n = n ln(2/pi) + sum_{k<n} (k - n) l_k, whose second difference in n is -l_n
    logs = np.log1p(-1 / (4.0 * steps**2))
    exponent = steps * np.log(2 / np.pi) - np.concatenate([[0.0], np.cumsum(np.cumsum(logs))[:-1]])
    return DiagonalCorrelation(jnp.asarray(steps, float), jnp.exp(exponent), at_critical_point(system))


def at_critical_point(system: IsingLattice) -> Bool[Array, ""]:
    return jnp.abs(system.temperature / CRITICAL_TEMPERATURE - 1) < 1e-12


def _elliptic(complement: Float[Array, ""], squared: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """K(k) and K(k) - E(k) of modulus k = sqrt(squared), complement = sqrt(1 - k^2) (Abramowitz, Stegun 17.6)."""
    a, b, total = jnp.ones(()), jnp.maximum(complement, 1e-300), squared / 2
    for step in range(_AGM_STEPS):
        total = total + 2.0**step * ((a - b) / 2) ** 2
        a, b = (a + b) / 2, jnp.sqrt(a * b)
    return jnp.pi / (2 * a), jnp.pi / (2 * a) * total


def _double_exponential(nodes: int = 241) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [0, pi/2] that crowd at its ends (Takahasi, Mori 1974): at T_c the integrand bends within k' of 0."""
    u, step = np.linspace(-3.6, 3.6, nodes, retstep=True)
    angle = np.pi / 2 / (1 + np.exp(-np.pi * np.sinh(u)))
    return angle, step * np.pi**2 / 8 * np.cosh(u) / np.cosh(np.pi / 2 * np.sinh(u)) ** 2


_RULE = _double_exponential()
