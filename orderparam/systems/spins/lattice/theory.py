"""Exact theory of the Ising model on periodic lattices: the infinite square lattice, finite
lattices, and finite-size scaling.
"""

import functools
import math
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float

from orderparam.analysis import Collapse, Exponent, collapse, exponent
from orderparam.core.needs import at_most
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.rules import double_exponential
from orderparam.systems.spins.lattice.conformal import torus_correlator
from orderparam.systems.spins.lattice.model import CRITICAL_TEMPERATURE, IsingLattice
from orderparam.systems.spins.thermodynamics import Thermodynamics, averages

# ------------------------------------------------------------------------------------------------
# The infinite square lattice without a field (Onsager 1944, Yang 1952), and its correlations at the
# critical point.

# Amplitude A of <s s'> = A / distance^(1/4) at T_c: e^(1/4) 2^(5/24) / Glaisher's constant^3 (Wu
# 1966).
CRITICAL_AMPLITUDE = math.exp(1 / 4) * 2 ** (5 / 24) / 1.2824271291006226**3

_AGM_STEPS = 14  # the mean of 1 and 1e-300 needs 13


class InfiniteLattice(Result):
    """Thermodynamics of the infinite square lattice, per spin.

    Fields:
        free_energy: -(T/N) ln Z.
        energy: <e>.
        heat_capacity: d<e>/dT.
        absolute_magnetisation: spontaneous magnetisation, zero above T_c.
    """

    free_energy: Float[Array, ""]
    energy: Float[Array, ""]
    heat_capacity: Float[Array, ""]
    absolute_magnetisation: Float[Array, ""]


class DiagonalCorrelation(Result):
    """Correlations along the diagonal at the critical temperature.

    Fields:
        steps: number n of diagonal steps between the two sites; their distance is n sqrt 2.
        correlation: <s s'> of the two sites.
        valid: whether the system's temperature is the critical one, to 1e-12.
    """

    steps: Float[Array, "step"]
    correlation: Float[Array, "step"]
    valid: Bool[Array, ""]


def zero_field_square(system: IsingLattice, **_: object) -> None:
    """Refuse a lattice that has no exact solution.

    Raises:
        ValueError: for another dimension than two, or a field.
    """
    if len(system.shape) != 2:
        raise ValueError(
            f"IsingLattice.shape = {system.shape}: must have two directions (the square lattice is "
            "what is solved)"
        )
    if system.field != 0:
        raise ValueError(
            f"IsingLattice.field = {float(system.field):g}: must be 0 (no field is solved on the "
            "square lattice)"
        )


@theory(check=zero_field_square)
def onsager(system: IsingLattice) -> InfiniteLattice:
    r"""Free energy, energy, heat capacity and spontaneous magnetisation of the infinite square
    lattice without a field.

    With $K = 1/T$ (`temperature`), $k = 2 \sinh 2K / \cosh^2 2K$, $k' = 2 \tanh^2 2K - 1$ and the
    complete elliptic integrals $K_1$, $E_1$ of modulus k,

    $$ -e = \coth 2K \Big( 1 + \frac{2}{\pi} k' K_1 \Big), \qquad
       C = \frac{4}{\pi} (K \coth 2K)^2 \Big[ K_1 - E_1 - (1 - \tanh^2 2K) \Big( \frac{\pi}{2} +
          k' K_1 \Big) \Big] $$

    $$ -\frac{f}{T} = \ln(2 \cosh 2K) + \frac{1}{\pi} \int_0^{\pi/2} \ln \frac{1 + \sqrt{1 - k^2
          \sin^2\theta}}{2}\, d\theta, \qquad
       m^8 = 1 - \sinh^{-4} 2K \quad (T < T_c) $$

    are `energy` e, `heat_capacity` C, `free_energy` f and `absolute_magnetisation` m. The heat
    capacity diverges as $-\ln|T - T_c|$ at $T_c = 2/\ln(1 + \sqrt 2)$. The theory does not use
    `shape` except for its dimension.

    Raises:
        ValueError: for another dimension than two, or a field.

    Accuracy: 1e-11, also near T_c. Relative accuracy of e and C is lost where they vanish, and at
    T_c itself rounding makes the infinite C finite. The elliptic integrals come from the
    arithmetic-geometric mean of 1 and |k'|, which is accurate at k = 1.

    Source: Onsager (1944), equations 106 to 117; Yang (1952), equation 96.

    >>> found = onsager(IsingLattice(2.0))
    >>> round(float(found.energy), 8), round(float(found.absolute_magnetisation), 8)
    (-1.74556458, 0.91131938)
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
    return InfiniteLattice(
        free_energy=free_energy,
        energy=energy,
        heat_capacity=heat_capacity,
        absolute_magnetisation=magnetisation,
    )


@theory(check=zero_field_square)
def critical_correlation(system: IsingLattice, *, reach: int = 32) -> DiagonalCorrelation:
    r"""Correlations along the diagonal of the infinite square lattice at its critical temperature.

    $$ \langle s_0 s_n \rangle = \Big( \frac{2}{\pi} \Big)^n \prod_{k=1}^{n-1} \Big( 1 -
          \frac{1}{4 k^2} \Big)^{k - n} $$

    is `correlation` after n = 1 .. `reach` diagonal steps. It falls as $0.70338\, r^{-1/4}$ with
    the distance $r = n \sqrt 2$.

    Args:
        reach: largest number of diagonal steps.

    Raises:
        ValueError: for another dimension than two, or a field.

    Accuracy: rounding.

    Source: McCoy, Wu (1973), section XI.

    >>> found = critical_correlation(IsingLattice(CRITICAL_TEMPERATURE), reach=2)
    >>> [round(float(x), 8) for x in found.correlation]
    [0.63661977, 0.54037965]
    """
    steps = np.arange(1, reach + 1)
    # ln c_n = n ln(2/pi) + sum_{k<n} (k - n) l_k, whose second difference in n is -l_n
    logs = np.log1p(-1 / (4.0 * steps**2))
    exponent = steps * np.log(2 / np.pi) - np.concatenate([[0.0], np.cumsum(np.cumsum(logs))[:-1]])
    return DiagonalCorrelation(
        steps=jnp.asarray(steps, float),
        correlation=jnp.exp(exponent),
        valid=at_critical_point(system),
    )


def at_critical_point(system: IsingLattice) -> Bool[Array, ""]:
    """True if the temperature equals the critical temperature up to a relative 1e-12."""
    return jnp.abs(system.temperature / CRITICAL_TEMPERATURE - 1) < 1e-12


def _elliptic(
    complement: Float[Array, ""], squared: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """K(k) and K(k) - E(k) of modulus k = sqrt(squared), complement = sqrt(1 - k^2) (Abramowitz,
    Stegun 17.6)."""
    a, b, total = jnp.ones(()), jnp.maximum(complement, 1e-300), squared / 2
    for step in range(_AGM_STEPS):
        total = total + 2.0**step * ((a - b) / 2) ** 2
        a, b = (a + b) / 2, jnp.sqrt(a * b)
    return jnp.pi / (2 * a), jnp.pi / (2 * a) * total


def _double_exponential(nodes: int = 241) -> tuple[np.ndarray, np.ndarray]:
    """Quadrature nodes and weights on [0, pi/2] that are dense at both ends (Takahasi, Mori 1974),
    because near T_c the integrand bends within a distance k' of 0.
    """
    u, step = np.linspace(-3.6, 3.6, nodes, retstep=True)
    place, weight = double_exponential(u, step)
    return np.pi / 2 * place, np.pi / 2 * weight


_RULE = _double_exponential()


# ------------------------------------------------------------------------------------------------
# Finite lattices: the square torus by Kaufman's formula, small lattices by counting configurations.

_FROZEN = 100.0  # above this coupling excitations have a weight below exp(-400)
_LARGEST = 20  # spins whose configurations are counted one by one


class Torus(Result):
    """Thermodynamics of a finite torus, per spin.

    Fields:
        free_energy: -(T/N) ln Z.
        energy: <e>.
        heat_capacity: d<e>/dT.
    """

    free_energy: Float[Array, ""]
    energy: Float[Array, ""]
    heat_capacity: Float[Array, ""]


@theory(check=zero_field_square)
def kaufman(system: IsingLattice) -> Torus:
    r"""Free energy, energy and heat capacity of the L x M square torus without a field.

    With $K = 1/T$ (`temperature`), $\cosh g_l = \cosh 2K \coth 2K - \cos(\pi l/L)$, and $g_0 = 2K +
    \ln \tanh K$ with its sign, the partition sum is

    $$ Z = \tfrac12 (2 \sinh 2K)^{LM/2} \Big[ \prod_{l\,\mathrm{odd}} 2 \cosh \tfrac{M g_l}{2} +
          \prod_{l\,\mathrm{odd}} 2 \sinh \tfrac{M g_l}{2} + \prod_{l\,\mathrm{even}} 2 \cosh
          \tfrac{M g_l}{2} + \prod_{l\,\mathrm{even}} 2 \sinh \tfrac{M g_l}{2} \Big] $$

    with l = 0 .. 2L - 1. `energy` and `heat_capacity` are its first and second derivatives.

    Raises:
        ValueError: for another dimension than two, or a field.

    Accuracy: 1e-11, also at T_c.

    Source: Kaufman (1949), equation 61.

    >>> round(float(kaufman(IsingLattice(2.2, (16, 16))).energy), 8)
    -1.550106
    """
    # Per spin the energy is -d ln Z/dK and the heat capacity K^2 d^2 ln Z/dK^2, with K = 1/T.
    coupling = 1 / system.temperature
    log_sum = functools.partial(_log_partition, shape=system.shape)
    slope = jax.grad(log_sum)
    spins = system.spins
    return Torus(
        free_energy=-system.temperature * log_sum(coupling) / spins,
        energy=-slope(coupling) / spins,
        heat_capacity=coupling**2 * jax.grad(slope)(coupling) / spins,
    )


def _away_from_the_start(system: IsingLattice, *, reach: int = 0) -> None:
    zero_field_square(system)
    back = math.lcm(*system.shape)
    if not 0 <= reach < back:
        raise ValueError(
            f"reach = {reach}: must be from 0 to {back - 1}; then the diagonal of "
            f"IsingLattice.shape = {system.shape} is back at its start"
        )


@theory(check=_away_from_the_start)
def torus_correlation(system: IsingLattice, *, reach: int = 0) -> DiagonalCorrelation:
    r"""Correlations along the diagonal of a large torus at the critical temperature, by conformal
    invariance.

    $$ \langle s_0 s_n \rangle = A L^{-1/4} \left| \frac{\theta_1'(0)}{\theta_1(z)} \right|^{1/4}
          \frac{\sum_{k=1}^4 |\theta_k(z/2)|}{\sum_{k=2}^4 |\theta_k(0)|}, \qquad
       A = 0.70338 $$

    with $z = n (1 + i)/L$ and the nome $e^{-\pi M/L}$ on the L x M lattice. The result is
    `correlation`, after n = 1 .. `reach` steps. Beyond half the lattice the correlation grows
    again.

    Args:
        reach: largest number of diagonal steps; 0 stands for half the shortest side. It must be
            smaller than the number of steps after which the diagonal returns to its start.

    Raises:
        ValueError: for another dimension than two, a field, or a `reach` that leads back to the
            start.

    Accuracy: terms of relative order 1/distance^2 are left out: 1.3 % at one step, 0.4 % at two.

    Source: Di Francesco, Saleur, Zuber (1987).

    >>> found = torus_correlation(IsingLattice(CRITICAL_TEMPERATURE, (16, 16)), reach=2)
    >>> [round(float(x), 6) for x in found.correlation], bool(found.valid)
    ([0.672873, 0.589256], True)
    """
    rows, columns = system.shape
    steps = np.arange(1, (reach or min(system.shape) // 2) + 1)
    shape = torus_correlator(steps * (1 + 1j) / rows, columns / rows)
    correlation = CRITICAL_AMPLITUDE * rows**-0.25 * shape
    return DiagonalCorrelation(
        steps=jnp.asarray(steps, float),
        correlation=jnp.asarray(correlation),
        valid=at_critical_point(system),
    )


@theory(needs={"spins": at_most(_LARGEST, why="all states of the shape are counted")})
def enumerated(system: IsingLattice) -> Thermodynamics:
    r"""Exact averages of a small lattice in any dimension and field, summed over all
    configurations.

    $$ Z = \sum_{s \in \{\pm 1\}^N} e^{-H(s)/T} $$

    Raises:
        ValueError: for more than 20 sites.

    Accuracy: rounding.

    Cost: all 2^N configurations are counted, once for each `shape`.

    Source: derived here, by definition of the partition sum.

    >>> round(float(enumerated(IsingLattice(2.0, (3, 3), field=0.1)).magnetisation), 8)
    0.37768212
    """
    energy, magnetisation, log_count = map(jnp.asarray, _density_of_states(system.shape))
    n = system.spins
    m = magnetisation / n
    return averages(log_count, energy / n - system.field * m, m, system.temperature, n)


def _log_partition(coupling: Float[Array, ""] | float, shape: tuple[int, ...]) -> Float[Array, ""]:
    """Logarithm of the partition sum of the torus.

    With s = sinh 2K the excess cosh g_l - 1 is (s - 1)^2/s + 2 sin^2(pi l/2L), a form without
    cancellation at T_c.
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
    # ln 2cosh and ln 2sinh of M g_l / 2
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
    """The pairs of energy and sum of spins that occur without a field, and the logarithm of the
    number of configurations with each pair.
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
# Finite-size scaling: the critical temperature and the exponents from small lattices.


@dataclass(frozen=True)
class CriticalPoint:
    """Critical temperature and exponents from lattices of several sizes; each fit lists the sizes
    that entered it.

    Fields:
        binder: collapse of Binder's ratio, a function of (T - T_c) L^(1/nu) alone, which gives the
            temperature and 1/nu.
        magnetisation: collapse of <|m|> at that temperature and 1/nu; its `power` is -beta/nu.
        susceptibility: collapse of L^2 <m^2> at that temperature and 1/nu; its `power` is gamma/nu.
            The errors of both powers include those of the temperature and of 1/nu.
        correlation: power law L^-eta of the correlation of opposite sites at T_c; None where it was
            not measured.
    """

    binder: Collapse
    magnetisation: Collapse
    susceptibility: Collapse
    correlation: Exponent | None

    @property
    def exponents(self) -> dict[str, tuple[float, float]]:
        """Value and standard error of the critical temperature and of every exponent, by name."""
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
    r"""Critical temperature and exponents of the Ising model from simulations of several sizes.

    Each observable y is fitted by one polynomial F of the scaled temperature,

    $$ y = L^p F\big( (T - T_c) L^{1/\nu} \big) $$

    Binder's ratio, with p = 0, gives T_c and 1/nu. With these two numbers fixed, p of the
    magnetisation is -beta/nu, and p of the susceptibility $L^2 \langle m^2 \rangle$ of the
    symmetric phase is gamma/nu.

    Args:
        runs: measured `binder`, `absolute_magnetisation` and `squared_magnetisation` with their
            errors against `length` and `temperature`: a sweep of `swendsen_wang` near T_c over
            square lattices.
        correlations: measured `correlation` of opposite sites with its error against `length` at
            T_c; optional.
        window: largest |T - T_c| L that enters the fits.

    Returns:
        the fits, see `CriticalPoint`.

    Raises:
        ValueError: for too few sizes or temperatures.

    Source: Fisher, Barber (1972); Binder (1981).
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
    """The collapse of y with the critical temperature and 1/nu that Binder's ratio gave. The errors
    of both are propagated to the power.
    """
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
