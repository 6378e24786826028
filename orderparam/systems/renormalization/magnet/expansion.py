"""Below the upper critical dimension: the epsilon expansion, and the one-loop flow of the two couplings."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.renormalization.magnet.model import VectorMagnet
from orderparam.systems.renormalization.one_loop import OneLoop, fixed_point

SHELL = 1 / (8 * jnp.pi**2)  # K_4, the surface of the unit sphere in four dimensions over (2 pi)^4


class EpsilonExpansion(Result):
    """Exponents by the expansion in epsilon = 4 - d, to first and to second order. valid: 0 < epsilon <= 2 and sigma = 2.

    nu_first, nu: of the correlation length, to the orders 1 and 2. eta: of the correlations, to order 2. omega: of corrections to
    scaling, to order 1. mass, quartic: the fixed point r*, u* to order 1.
    """

    nu_first: Float[Array, ""]
    nu: Float[Array, ""]
    eta: Float[Array, ""]
    omega: Float[Array, ""]
    mass: Float[Array, ""]
    quartic: Float[Array, ""]
    valid: Bool[Array, ""]


class OneLoopPoint(Result):
    """The fixed point (r*, u*) of the flow with its denominators, and eigenvalues; nu = 1/relevant, omega = -irrelevant.

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
    """nu = 1/2 + (n+2)/(4(n+8)) eps + (n+2)(n^2+23n+60)/(8(n+8)^3) eps^2, eta = (n+2) eps^2/(2(n+8)^2), omega = eps,
    r* = -(n+2) eps/(2(n+8)), u* = 48 pi^2 eps/(n+8) (Wilson, Fisher 1972; Wilson 1972)."""
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
    """dr/dl = sigma r + ((n+2)/6) K_4 u/(1+r), du/dl = eps u - ((n+8)/6) K_4 u^2/(1+r)^2, denominators kept.

    With them the exponent nu is worse than that of the expansion (in d = 3, n = 1: 0.527 against 0.583; it is 0.630): the flow is
    for the picture. For many components the position of the fixed point is that of learning (`spherical_point`).
    """
    point = fixed_point(magnet_loop(system))
    valid = jnp.asarray(system.epsilon > 0)
    return OneLoopPoint(
        mass=jnp.asarray(point.mass),
        quartic=jnp.asarray(point.quartic),
        relevant=jnp.asarray(point.relevant),
        irrelevant=jnp.asarray(point.irrelevant),
        nu=jnp.where(point.relevant != 0, 1 / jnp.where(point.relevant != 0, point.relevant, 1.0), 0.0),
        valid=valid & jnp.isfinite(point.relevant) & (point.relevant > 0),
    )


def magnet_loop(system: VectorMagnet) -> OneLoop:
    n = system.components
    return OneLoop(system.kinetic, system.epsilon, (n + 2) / 6 * SHELL, (n + 8) / 6 * SHELL)
