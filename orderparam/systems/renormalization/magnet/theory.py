"""Approximations to the magnet near its transition: the expansion about four dimensions, bond
moving, and the local-potential approximation.
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
# The epsilon expansion below the upper critical dimension, and the one-loop flow of the mass and
# the quartic coupling.

SHELL = 1 / (8 * jnp.pi**2)  # K_4, the surface of the unit sphere in four dimensions over (2 pi)^4


class EpsilonExpansion(Result):
    """Exponents by the expansion in epsilon = 4 - d.

    Fields:
        nu_first: exponent nu of the correlation length, to first order in epsilon.
        nu: exponent nu to second order.
        eta: anomalous dimension, to second order.
        omega: exponent of corrections to scaling, to first order.
        mass: r* of the fixed point, to first order.
        quartic: u* of the fixed point, to first order.
        valid: whether 0 < epsilon <= 2 and sigma = 2.
    """

    nu_first: Float[Array, ""]
    nu: Float[Array, ""]
    eta: Float[Array, ""]
    omega: Float[Array, ""]
    mass: Float[Array, ""]
    quartic: Float[Array, ""]
    valid: Bool[Array, ""]


class OneLoopPoint(Result):
    """Fixed point of the one-loop flow with its denominators kept.

    Fields:
        mass: r*.
        quartic: u*.
        relevant: larger eigenvalue of the flow about the fixed point, 1/nu.
        irrelevant: smaller eigenvalue, -omega.
        nu: exponent of the correlation length.
        valid: whether epsilon > 0, so that u* > 0, and the larger eigenvalue is finite and
            positive.
    """

    mass: Float[Array, ""]
    quartic: Float[Array, ""]
    relevant: Float[Array, ""]
    irrelevant: Float[Array, ""]
    nu: Float[Array, ""]
    valid: Bool[Array, ""]


@theory
def epsilon_expansion(system: VectorMagnet) -> EpsilonExpansion:
    r"""Exponents of the magnet by the expansion in $\epsilon = 4 - d$, to first and second order.

    $$ \nu = \frac12 + \frac{n + 2}{4(n + 8)} \epsilon
       + \frac{(n + 2)(n^2 + 23n + 60)}{8 (n + 8)^3} \epsilon^2 , \qquad
       \eta = \frac{(n + 2)\, \epsilon^2}{2 (n + 8)^2} , \qquad \omega = \epsilon $$

    The fixed point is at $r^* = -(n + 2) \epsilon / (2(n + 8))$ (`mass`) and $u^* = 48 \pi^2
    \epsilon / (n + 8)$ (`quartic`); `nu_first` is $\nu$ without the term of second order.

    Source: Wilson, Fisher (1972); Wilson (1972) for the second order.

    >>> found = epsilon_expansion(VectorMagnet(dim=3.0, components=1.0))
    >>> round(float(found.nu), 4), round(float(found.eta), 4)
    (0.6265, 0.0185)
    """
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
    r"""Fixed point and exponents of the one-loop flow of mass and quartic coupling.

    $$ \frac{dr}{dl} = \sigma r + \frac{n + 2}{6} K_4 \frac{u}{1 + r} , \qquad
       \frac{du}{dl} = \epsilon u - \frac{n + 8}{6} K_4 \frac{u^2}{(1 + r)^2} , \qquad
       K_4 = \frac{1}{8 \pi^2} $$

    with $\epsilon = 2\sigma - d$, $\sigma$ = `kinetic`, $n$ = `components` and $d$ = `dim`.

    Accuracy: with the denominators kept, nu is less accurate than that of the series (for d = 3, n
    = 1: 0.527 against 0.583 to first order; the exact value is 0.630). The flow is meant for the
    flow diagram of the couplings. For many components its fixed point is the one that
    `spherical_point` gives for learning.

    Source: Wilson, Fisher (1972).

    >>> round(float(one_loop_point(VectorMagnet(dim=3.0, components=1.0)).nu), 3)
    0.527
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
    """Constants of the one-loop flow of the magnet."""
    n = system.components
    return OneLoop(system.kinetic, system.epsilon, (n + 2) / 6 * SHELL, (n + 8) / 6 * SHELL)


# ------------------------------------------------------------------------------------------------
# Real-space renormalization of the Ising magnet by moving bonds (Migdal 1975; Kadanoff 1976). It is
# exact on the chain.

_LARGEST = 100.0  # larger couplings count as infinite: the share of broken bonds is below e^-200


class BondFlow(Result):
    """Coupling along the bond-moving recursion.

    Fields:
        neighbour_coupling: K after 0, 1, 2, ... steps.
        length: b^step, the length of a renormalised lattice spacing in units of the original one.
    """

    neighbour_coupling: Float[Array, "step"]
    length: Float[Array, "step"]


class BondPoint(Result):
    """Fixed point of the bond-moving recursion.

    Fields:
        critical_coupling: K* with K' = K.
        nu: ln b / ln(dK'/dK) at K*.
        residual: residual of ln K' = ln K.
        converged: whether there is a fixed point below 100 (there is none on the chain, d = 1).
    """

    critical_coupling: Float[Array, ""]
    nu: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def bond_flow(system: Bonds, *, steps: int = 8) -> BondFlow:
    r"""Coupling of neighbours after each step of real-space renormalization by moving bonds.

    $$ \tanh K' = \tanh^b(b^{d-1} K) $$

    $b^{d-1}$ parallel bonds are moved onto one another, and $b$ of the resulting bonds are joined
    in series, with $b$ = `scale`, $d$ = `dim` and $K$ = `coupling`.

    Args:
        steps: number of steps; 8 by default.

    Accuracy: exact on the chain (d = 1), where no bond is moved; an approximation otherwise.

    Source: Migdal (1975); Kadanoff (1976).

    >>> np.round(bond_flow(Bonds(0.5), steps=2).neighbour_coupling, 4)
    Array([0.5   , 0.6625, 0.9809], dtype=float64)
    """

    def step(coupling: Float[Array, ""], _: None) -> tuple[Float[Array, ""], Float[Array, ""]]:
        return scaled(coupling, system.dim, system.scale), coupling

    _, coupling = jax.lax.scan(step, jnp.asarray(system.coupling), length=steps + 1)
    return BondFlow(neighbour_coupling=coupling, length=system.scale ** jnp.arange(steps + 1.0))


@theory
def bond_point(system: Bonds) -> BondPoint:
    r"""Critical coupling and exponent $\nu$ of real-space renormalization by moving bonds.

    $$ \tanh K^* = \tanh^b(b^{d-1} K^*) , \qquad \nu = \frac{\ln b}{\ln(dK'/dK)} \Big|_{K^*} $$

    with $K'(K)$ as in `bond_flow`, $b$ = `scale` and $d$ = `dim`; the system's `coupling` is not
    used.

    Accuracy: for d = 2 the exact K* = 0.4407 is reached as b approaches 1; nu misses the exact
    value 1 at every b.

    Source: Migdal (1975); Kadanoff (1976).

    >>> point = bond_point(Bonds(0.5))
    >>> round(float(point.critical_coupling), 4), round(float(point.nu), 4)
    (0.3047, 1.3383)
    """

    def excess(log_coupling: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        return log_coupling - jnp.log(scaled(jnp.exp(log_coupling), *args))

    args = (jnp.asarray(system.dim), jnp.asarray(system.scale))
    # Since tanh x < x, the fixed point of K' = (b^(d-1) K)^b is a lower bound.
    lowest = -(args[0] - 1) * args[1] * jnp.log(args[1]) / (args[1] - 1) - 1
    root = decreasing_root(excess, lowest, jnp.log(_LARGEST), args)
    coupling = jnp.exp(root.value)
    growth = jax.grad(scaled)(coupling, *args)
    steep = growth > 1
    return BondPoint(
        critical_coupling=coupling,
        nu=jnp.log(args[1]) / jnp.log(jnp.where(steep, growth, 2.0)),
        residual=root.residual,
        converged=root.converged & steep & (coupling < 0.99 * _LARGEST),
    )


def scaled(
    coupling: Float[Array, ""], dim: Float[Array, ""] | float, scale: Float[Array, ""] | float
) -> Float[Array, ""]:
    """The renormalised coupling K' = artanh(tanh^b(b^(d-1) K)). For strong bonds 1 - tanh^b is
    computed to full relative accuracy.
    """
    together = jnp.minimum(scale ** (dim - 1) * coupling, _LARGEST * 3.5)
    log_power = scale * jnp.log(jnp.tanh(jnp.minimum(together, 1.0)))
    weak = jnp.arctanh(jnp.exp(log_power))
    # tanh x = 1 - 2 q, q = 1/(1 + e^2x)
    log_strong = scale * jnp.log1p(-2 / (1 + jnp.exp(2 * jnp.maximum(together, 1.0))))
    strong = (jnp.log1p(jnp.exp(log_strong)) - jnp.log(-jnp.expm1(log_strong))) / 2
    return jnp.where(together < 1, weak, strong)


# ------------------------------------------------------------------------------------------------
# The local-potential approximation, in which the whole potential flows and the gradient term does
# not, with the optimised regulator.
#
#     du/dt = -d u + (d - 2) rho u' + 1/(1 + u' + 2 rho u'') + (n - 1)/(1 + u')
#
# (Litim 2001; the eigenvalues are those of Polchinski's equation). u is expanded to a given order
# about its minimum, whose position flows too.

# unit of rho - rho_0: about the radius of convergence, so that all couplings are of order one or
# less
_UNIT = 2.0
# number of components at which the path to the fixed point starts: there its minimum is at n and
# its curvature is 1/(2 n), up to corrections of relative size 1/n
_MANY = 1000.0
_PATH = 32  # steps of the path, equal in the logarithm of n + 2


class LocalPotential(Result):
    """The Wilson-Fisher fixed point in the local-potential approximation.

    Fields:
        nu: exponent of the correlation length, 1/y with the largest eigenvalue y.
        omega: exponent of corrections to scaling; eta is 0 in this approximation.
        minimum: rho_0, where u' = 0.
        curvature: u''(rho_0).
        exponents: real parts of all eigenvalues of the flow about the fixed point, in decreasing
            order: 1/nu, -omega, ...
        residual: residual of the equation for the fixed point.
        converged: whether the fixed point could be followed from d = 3 and many components to this
            d and n.
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
            f"VectorMagnet.kinetic = {float(system.kinetic):g}: must be 2 for the flow of the "
            "potential"
        )
    if not 2 < float(system.dim) < 4:
        raise ValueError(
            f"VectorMagnet.dim = {float(system.dim):g}: must be between 2 and 4, where the fixed "
            "point is"
        )


@theory(traced=False, check=_possible)
def local_potential(system: VectorMagnet, *, order: int = 28) -> LocalPotential:
    r"""Exponents of the magnet in the local-potential approximation with the optimised regulator.

    With $\varrho = \phi^2/2$ rescaled, the potential flows as

    $$ \frac{du}{dt} = -d u + (d - 2) \varrho u' + \frac{1}{1 + u' + 2 \varrho u''}
       + \frac{n - 1}{1 + u'} . $$

    It is expanded about its minimum, whose position flows too. The fixed point is followed from the
    limit of many components, where $\varrho_0 = n$, $u'' = 1/(2n)$ and, for $d = 3$, $\nu = \omega
    = 1$.

    Args:
        order: number of unknowns of the expansion, rho_0 among them; from 3 to 40, 28 by default.

    Raises:
        ValueError: for an order outside of 3 to 40, sigma different from 2, and d not between 2 and
            4.

    Accuracy: for d = 3, n = 1 order 28 gives nu of the approximation to 1e-10 and omega to 3e-9;
    digits are lost as d falls towards 2. In the approximation itself eta is 0 and nu is 0.6496
    (exact: 0.6300).

    Source: Litim (2001); Litim (2002) for its exponents.

    >>> round(float(local_potential(VectorMagnet(dim=3.0, components=1.0), order=16).nu), 4)
    0.6496
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
    """The fixed point at the end of a path, and whether all points of the path were found. Each is
    found by Newton steps from the one before.
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
    """d/dt of (rho_0, v_1, v_2, ...), where u'(rho) = sum_k v_k x^k and x = (rho - rho_0)/unit.

    t grows towards large scales with the sign of the potential's equation: relevant directions have
    negative eigenvalues.
    """
    minimum, power = couplings[0], jnp.arange(couplings.size + 1.0)
    # u', which vanishes at the minimum
    slope = jnp.concatenate([jnp.zeros(1), couplings[1:], jnp.zeros(1)])
    curvature = _derivative(slope)  # u''
    pulled = minimum * curvature + slope * power  # rho u''
    radial, goldstone = (slope + 2 * pulled).at[0].add(1.0), slope.at[0].add(1.0)
    loops = _reciprocal(radial) + (components - 1) * _reciprocal(goldstone)
    change = -2 * slope + (dim - 2) * pulled + _derivative(loops)
    drift = -change[0] / curvature[0]  # flow of the position of the minimum
    return (change + curvature * drift)[:-1].at[0].set(drift)


def _derivative(series: Float[Array, "power"]) -> Float[Array, "power"]:
    """d/d rho of a power series in x, to the same number of terms."""
    return jnp.concatenate([series[1:] * jnp.arange(1.0, series.size), jnp.zeros(1)]) / _UNIT


def _reciprocal(series: Float[Array, "power"]) -> Float[Array, "power"]:
    """1/series to the same number of terms: the first column of the inverse of its triangular
    Toeplitz matrix."""
    place = np.arange(series.size)
    matrix = jnp.where(place[:, None] >= place, series[place[:, None] - place], 0.0)
    return jsl.solve_triangular(matrix, jnp.zeros(series.size).at[0].set(1.0), lower=True)
