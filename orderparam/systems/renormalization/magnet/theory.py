"""Approximations to the magnet near its transition: expansion about four dimensions, moved bonds,
local potentials.
"""

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.newton import newton_fixed_point
from orderparam.solve.root import decreasing_root
from orderparam.systems.renormalization.magnet.model import Bonds, VectorMagnet
from orderparam.systems.renormalization.one_loop import OneLoop, fixed_point

# ------------------------------------------------------------------------------------------------
# Below the upper critical dimension: the epsilon expansion, and the one-loop flow of the two couplings.

SHELL = 1 / (8 * jnp.pi**2)  # K_4, the surface of the unit sphere in four dimensions over (2 pi)^4


class EpsilonExpansion(Result):
    """Exponents by the expansion in epsilon = 4 - d, to first and to second order. valid: 0 <
    epsilon <= 2 and sigma = 2.

    nu_first, nu: of the correlation length, to the orders 1 and 2. eta: of the correlations, to
    order 2. omega: of corrections to scaling, to order 1. mass, quartic: the fixed point r*, u* to
    order 1.
    """

    nu_first: Float[Array, ""]
    nu: Float[Array, ""]
    eta: Float[Array, ""]
    omega: Float[Array, ""]
    mass: Float[Array, ""]
    quartic: Float[Array, ""]
    valid: Bool[Array, ""]


class OneLoopPoint(Result):
    """The fixed point (r*, u*) of the flow with its denominators, and eigenvalues; nu = 1/relevant,
    omega = -irrelevant.

    valid: epsilon > 0, so that u* > 0.
    """

    mass: Float[Array, ""]
    quartic: Float[Array, ""]
    relevant: Float[Array, ""]
    irrelevant: Float[Array, ""]
    nu: Float[Array, ""]
    valid: Bool[Array, ""]


@theory
def epsilon_expansion(system: VectorMagnet) -> EpsilonExpansion:
    """nu = 1/2 + (n+2)/(4(n+8)) eps + (n+2)(n^2+23n+60)/(8(n+8)^3) eps^2, eta = (n+2)
    eps^2/(2(n+8)^2), omega = eps, r* = -(n+2) eps/(2(n+8)), u* = 48 pi^2 eps/(n+8) (Wilson, Fisher
    1972; Wilson 1972)."""
    n, eps = system.components, system.epsilon
    first = 0.5 + (n + 2) / (4 * (n + 8)) * eps
    return EpsilonExpansion(
        nu_first=first,
        nu=first + (n + 2) * (n**2 + 23 * n + 60) / (8 * (n + 8) ** 3) * eps**2,
        eta=(n + 2) * eps**2 / (2 * (n + 8) ** 2),
        omega=jnp.asarray(eps),
        mass=-(n + 2) * eps / (2 * (n + 8)),
        quartic=48 * jnp.pi**2 * eps / (n + 8),
        valid=(eps > 0) & (eps <= 2) & (system.kinetic == 2),
    )


@theory
def one_loop_point(system: VectorMagnet) -> OneLoopPoint:
    """dr/dl = sigma r + ((n+2)/6) K_4 u/(1+r), du/dl = eps u - ((n+8)/6) K_4 u^2/(1+r)^2,
    denominators kept.

    With them the exponent nu is worse than that of the expansion (in d = 3, n = 1: 0.527 against
    0.583; it is 0.630): the flow is for the picture. For many components the position of the fixed
    point is that of learning (`spherical_point`).
    """
    point = fixed_point(magnet_loop(system))
    valid = jnp.asarray(system.epsilon > 0)
    return OneLoopPoint(
        mass=jnp.asarray(point.mass),
        quartic=jnp.asarray(point.quartic),
        relevant=jnp.asarray(point.relevant),
        irrelevant=jnp.asarray(point.irrelevant),
        nu=jnp.where(
            point.relevant != 0, 1 / jnp.where(point.relevant != 0, point.relevant, 1.0), 0.0
        ),
        valid=valid & jnp.isfinite(point.relevant) & (point.relevant > 0),
    )


def magnet_loop(system: VectorMagnet) -> OneLoop:
    n = system.components
    return OneLoop(system.kinetic, system.epsilon, (n + 2) / 6 * SHELL, (n + 8) / 6 * SHELL)


# ------------------------------------------------------------------------------------------------
# Real-space renormalization of the Ising magnet by moving bonds (Migdal 1975; Kadanoff 1976); exact on the chain.

_LARGEST = 100.0  # couplings beyond are infinite: e^-200 of all bonds is broken


class BondFlow(Result):
    """neighbour_coupling: (step,) K after 0, 1, 2, ... steps. length: (step,) b^step, the length
    that has become one.
    """

    neighbour_coupling: Float[Array, "step"]
    length: Float[Array, "step"]


class BondPoint(Result):
    """critical_coupling: K*, where K' = K; nu = ln b / ln (dK'/dK) there.

    converged: there is one below 100 (on the chain there is none: d = 1). residual: of ln K' = ln
    K.
    """

    critical_coupling: Float[Array, ""]
    nu: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def bond_flow(system: Bonds, *, steps: int = 8) -> BondFlow:
    """tanh K' = tanh^b(b^(d-1) K): b^(d-1) bonds are moved into one, b of these in a row are
    joined. For d = 2, b = 2: K' = (1/2) ln cosh 4K; for d = 1 nothing is moved, and it is exact."""

    def step(coupling: Float[Array, ""], _: None) -> tuple[Float[Array, ""], Float[Array, ""]]:
        return scaled(coupling, system.dim, system.scale), coupling

    _, coupling = jax.lax.scan(step, jnp.asarray(system.coupling), length=steps + 1)
    return BondFlow(coupling, system.scale ** jnp.arange(steps + 1.0))


@theory
def bond_point(system: Bonds) -> BondPoint:
    """The fixed point of the recursion and its exponent, whatever the system's coupling."""

    def excess(log_coupling: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        return log_coupling - jnp.log(scaled(jnp.exp(log_coupling), *args))

    args = (jnp.asarray(system.dim), jnp.asarray(system.scale))
    # tanh x < x: the fixed point of K' = (b^(d-1) K)^b lies below
    lowest = -(args[0] - 1) * args[1] * jnp.log(args[1]) / (args[1] - 1) - 1
    root = decreasing_root(excess, lowest, jnp.log(_LARGEST), args)
    coupling = jnp.exp(root.value)
    growth = jax.grad(scaled)(coupling, *args)
    steep = growth > 1
    return BondPoint(
        coupling,
        jnp.log(args[1]) / jnp.log(jnp.where(steep, growth, 2.0)),
        root.residual,
        root.converged & steep & (coupling < 0.99 * _LARGEST),
    )


def scaled(
    coupling: Float[Array, ""], dim: Float[Array, ""] | float, scale: Float[Array, ""] | float
) -> Float[Array, ""]:
    """K' = artanh(tanh^b(b^(d-1) K)), with 1 - tanh^b kept to full accuracy where bonds are
    strong."""
    together = jnp.minimum(scale ** (dim - 1) * coupling, _LARGEST * 3.5)
    log_power = scale * jnp.log(jnp.tanh(jnp.minimum(together, 1.0)))
    weak = jnp.arctanh(jnp.exp(log_power))
    # tanh x = 1 - 2 q, q = 1/(1 + e^2x)
    log_strong = scale * jnp.log1p(-2 / (1 + jnp.exp(2 * jnp.maximum(together, 1.0))))
    strong = (jnp.log1p(jnp.exp(log_strong)) - jnp.log(-jnp.expm1(log_strong))) / 2
    return jnp.where(together < 1, weak, strong)


# ------------------------------------------------------------------------------------------------
# The flow of the whole potential without that of the gradient term: the local-potential approximation, optimised regulator.
#
#     du/dt = -d u + (d - 2) rho u' + 1/(1 + u' + 2 rho u'') + (n - 1)/(1 + u'),        rho = phi^2/2, rescaled
#
# (Litim 2001; the spectrum is that of Polchinski's equation). u is expanded to some order about its
# minimum, whose place flows too.

# of rho - rho_0, about its radius of convergence, so that all couplings are of order one or less
_UNIT = 2.0
# components from which the fixed point is followed; its minimum is at n, its curvature 1/(2 n), up
# to 1/n
_MANY = 1000.0
_PATH = 32  # steps of the way, equal in the logarithm of n + 2


class LocalPotential(Result):
    """The Wilson-Fisher fixed point of the potential.

    nu = 1/y, omega: from the flow linearised about it; eta = 0 in this approximation. minimum:
    rho_0, where u' = 0. curvature: u''(rho_0). exponents: (order,) real parts of all eigenvalues in
    decreasing order: 1/nu, -omega, ... residual, converged: of the fixed point, followed from d = 3
    and many components.
    """

    nu: Float[Array, ""]
    omega: Float[Array, ""]
    minimum: Float[Array, ""]
    curvature: Float[Array, ""]
    exponents: Float[Array, "order"]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def _possible(system: VectorMagnet, *, order: int = 28) -> None:
    if not 3 <= order <= 40:
        raise ValueError(f"local_potential: order = {order}: must be from 3 to 40")
    if float(system.kinetic) != 2:
        raise ValueError(
            f"VectorMagnet.kinetic = {float(system.kinetic):g}: must be 2 for the flow of the potential"
        )
    if not 2 < float(system.dim) < 4:
        raise ValueError(
            f"VectorMagnet.dim = {float(system.dim):g}: must be between 2 and 4, where the fixed point is"
        )


@theory(traced=False, check=_possible)
def local_potential(system: VectorMagnet, *, order: int = 28) -> LocalPotential:
    """The fixed point of the potential, with (rho_0, u''(rho_0), ...) as `order` unknowns, and its
    exponents.

    It is followed from many components, where it is known: rho_0 = n, u'' = 1/(2 n), nu = omega = 1
    in d = 3. For d = 3 and n = 1 order 28 gives nu and omega to 1e-9; digits are lost as d falls
    towards 2.
    """
    dim, components = float(system.dim), float(system.components)
    share = jnp.linspace(0.0, 1.0, _PATH + 1)
    places = 3 + share * (dim - 3), (_MANY + 2) ** (1 - share) * (components + 2) ** share - 2
    start = jnp.zeros(order).at[0].set(_MANY).at[1].set(_UNIT / (2 * _MANY))
    couplings, converged, residual = _followed(start, *places)
    slopes = np.asarray(_slopes(couplings, jnp.asarray(dim), jnp.asarray(components)))
    finite = bool(np.all(np.isfinite(slopes)))
    exponents = np.sort(-np.linalg.eigvals(slopes).real)[::-1] if finite else np.full(order, np.nan)
    sound = (
        finite
        and bool(converged)
        and exponents[0] > 0 > exponents[1]
        and float(couplings[1]) > 1e-8
    )
    return LocalPotential(
        nu=jnp.asarray(1 / exponents[0]),
        omega=jnp.asarray(-exponents[1]),
        minimum=couplings[0],
        curvature=couplings[1] / _UNIT,
        exponents=jnp.asarray(exponents),
        residual=residual,
        converged=jnp.asarray(sound),
    )


Couplings = Float[Array, "order"]


@jax.jit
def _followed(
    start: Couplings, dims: Float[Array, "step"], components: Float[Array, "step"]
) -> tuple[Couplings, Bool[Array, ""], Float[Array, ""]]:
    """The fixed point at the last place of a path, each found by Newton steps from the one before,
    and whether all were found.
    """

    def moved(couplings: Couplings, place: tuple) -> Couplings:
        return couplings + _flow(couplings, *place)

    def follow(couplings: Couplings, place: tuple) -> tuple[Couplings, tuple]:
        found = newton_fixed_point(
            moved, couplings, place, damping=1.0, tolerance=1e-12, max_steps=40
        )
        return found.value, (found.converged, found.residual)

    couplings, (converged, residual) = jax.lax.scan(follow, start, (dims, components))
    return couplings, jnp.all(converged), residual[-1]


@jax.jit
def _slopes(
    couplings: Couplings, dim: Float[Array, ""], components: Float[Array, ""]
) -> Float[Array, "order order"]:
    return jax.jacfwd(_flow)(couplings, dim, components)


def _flow(couplings: Couplings, dim: Float[Array, ""], components: Float[Array, ""]) -> Couplings:
    """d/dt of (rho_0, v_1, v_2, ...), with u'(rho) = sum_k v_k x^k, x = (rho - rho_0)/unit, and t
    growing towards large scales with the sign of the potential's equation: relevant directions have
    negative eigenvalues."""
    minimum, power = couplings[0], jnp.arange(couplings.size + 1.0)
    # u', which vanishes at the minimum
    slope = jnp.concatenate([jnp.zeros(1), couplings[1:], jnp.zeros(1)])
    curvature = _derivative(slope)  # u''
    pulled = minimum * curvature + slope * power  # rho u''
    radial, goldstone = (slope + 2 * pulled).at[0].add(1.0), slope.at[0].add(1.0)
    loops = _reciprocal(radial) + (components - 1) * _reciprocal(goldstone)
    change = -2 * slope + (dim - 2) * pulled + _derivative(loops)
    drift = -change[0] / curvature[0]  # of the minimum
    return (change + curvature * drift)[:-1].at[0].set(drift)


def _derivative(series: Float[Array, "power"]) -> Float[Array, "power"]:
    """d/d rho of a power series in x, to the same number of terms."""
    return jnp.concatenate([series[1:] * jnp.arange(1.0, series.size), jnp.zeros(1)]) / _UNIT


def _reciprocal(series: Float[Array, "power"]) -> Float[Array, "power"]:
    """1/series to the same number of terms: the first column of the inverse of its triangular
    Toeplitz matrix.
    """
    place = np.arange(series.size)
    matrix = jnp.where(place[:, None] >= place, series[place[:, None] - place], 0.0)
    return jsl.solve_triangular(matrix, jnp.zeros(series.size).at[0].set(1.0), lower=True)
