"""The flow of the whole potential without that of the gradient term: the local-potential approximation, optimised regulator.

    du/dt = -d u + (d - 2) rho u' + 1/(1 + u' + 2 rho u'') + (n - 1)/(1 + u'),        rho = phi^2/2, rescaled

(Litim 2001; the spectrum is that of Polchinski's equation). u is expanded to some order about its minimum, whose place flows too.
"""

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.newton import newton_fixed_point
from orderparam.systems.renormalization.magnet.model import VectorMagnet

_UNIT = 2.0  # of rho - rho_0, about its radius of convergence, so that all couplings are of order one or less
_MANY = 1000.0  # components from which the fixed point is followed; its minimum is at n, its curvature 1/(2 n), up to 1/n
_PATH = 32  # steps of the way, equal in the logarithm of n + 2


class LocalPotential(Result):
    """The Wilson-Fisher fixed point of the potential.

    nu = 1/y, omega: from the flow linearised about it; eta = 0 in this approximation. minimum: rho_0, where u' = 0.
    curvature: u''(rho_0). exponents: (order,) real parts of all eigenvalues in decreasing order: 1/nu, -omega, ...
    residual, converged: of the fixed point, followed from d = 3 and many components.
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
        raise ValueError(f"VectorMagnet.kinetic = {float(system.kinetic):g}: must be 2 for the flow of the potential")
    if not 2 < float(system.dim) < 4:
        raise ValueError(f"VectorMagnet.dim = {float(system.dim):g}: must be between 2 and 4, where the fixed point is")


@theory(traced=False, check=_possible)
def local_potential(system: VectorMagnet, *, order: int = 28) -> LocalPotential:
    """The fixed point of the potential, with (rho_0, u''(rho_0), ...) as `order` unknowns, and its exponents.

    It is followed from many components, where it is known: rho_0 = n, u'' = 1/(2 n), nu = omega = 1 in d = 3. For d = 3 and n = 1
    order 28 gives nu and omega to 1e-9; digits are lost as d falls towards 2.
    """
    dim, components = float(system.dim), float(system.components)
    share = jnp.linspace(0.0, 1.0, _PATH + 1)
    places = 3 + share * (dim - 3), (_MANY + 2) ** (1 - share) * (components + 2) ** share - 2
    start = jnp.zeros(order).at[0].set(_MANY).at[1].set(_UNIT / (2 * _MANY))
    couplings, converged, residual = _followed(start, *places)
    slopes = np.asarray(_slopes(couplings, jnp.asarray(dim), jnp.asarray(components)))
    finite = bool(np.all(np.isfinite(slopes)))
    exponents = np.sort(-np.linalg.eigvals(slopes).real)[::-1] if finite else np.full(order, np.nan)
    sound = finite and bool(converged) and exponents[0] > 0 > exponents[1] and float(couplings[1]) > 1e-8
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
    """The fixed point at the last place of a path, each found by Newton steps from the one before, and whether all were found."""

    def moved(couplings: Couplings, place: tuple) -> Couplings:
        return couplings + _flow(couplings, *place)

    def follow(couplings: Couplings, place: tuple) -> tuple[Couplings, tuple]:
        found = newton_fixed_point(moved, couplings, place, damping=1.0, tolerance=1e-12, max_steps=40)
        return found.value, (found.converged, found.residual)

    couplings, (converged, residual) = jax.lax.scan(follow, start, (dims, components))
    return couplings, jnp.all(converged), residual[-1]


@jax.jit
def _slopes(couplings: Couplings, dim: Float[Array, ""], components: Float[Array, ""]) -> Float[Array, "order order"]:
    return jax.jacfwd(_flow)(couplings, dim, components)


def _flow(couplings: Couplings, dim: Float[Array, ""], components: Float[Array, ""]) -> Couplings:
    """d/dt of (rho_0, v_1, v_2, ...), with u'(rho) = sum_k v_k x^k, x = (rho - rho_0)/unit, and t growing towards large scales
    with the sign of the potential's equation: relevant directions have negative eigenvalues."""
    minimum, power = couplings[0], jnp.arange(couplings.size + 1.0)
    slope = jnp.concatenate([jnp.zeros(1), couplings[1:], jnp.zeros(1)])  # u', which vanishes at the minimum
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
    """1/series to the same number of terms: the first column of the inverse of its triangular Toeplitz matrix."""
    place = np.arange(series.size)
    matrix = jnp.where(place[:, None] >= place, series[place[:, None] - place], 0.0)
    return jsl.solve_triangular(matrix, jnp.zeros(series.size).at[0].set(1.0), lower=True)
