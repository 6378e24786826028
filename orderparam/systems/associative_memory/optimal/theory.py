"""Basins of attraction of networks of optimal stability: the map of the overlap, its unstable fixed
point, its slope.

The aligned fields D of stored patterns have the density Phi(kappa) delta(D - kappa) + phi(D)
theta(D - kappa), kappa the largest stability (Gardner 1988). A state with overlap m at random
places is followed in one parallel step by

    m' = f(m) = E_D erf(m D / sqrt(2 (1 - m^2)))

(Krauth, Mézard, Nadal 1988), whatever the network; and in every later one where it is strongly
diluted. In a fully connected network states and couplings are correlated from the second step on.
"""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf, ndtr
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian import standard_normal_rule
from orderparam.solve.root import decreasing_root
from orderparam.systems.associative_memory.optimal.model import OptimalStability

Number = Float[Array, ""]


class Basin(Result):
    """stability kappa; slope f'(0) = sqrt(2/pi) E D; basin_edge: the unstable fixed point m_b, from
    which on states are attracted, 0 where the slope exceeds 1 (the basin is as large as it can be).
    """

    stability: Float[Array, ""]
    slope: Float[Array, ""]
    basin_edge: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class Trajectory(Result):
    """Overlap after 0, 1, ... parallel steps."""

    overlap: Float[Array, "time"]


def largest_stability(load: Number | float) -> tuple[Number, Number, Bool[Array, ""]]:
    """kappa with 1/alpha = int_{-kappa}^inf Dt (t + kappa)^2, alpha < 2 (Gardner 1988); the
    residual; whether it was found.
    """

    def equation(kappa: Number, load: Number) -> Number:
        return 1 - load * ((1 + kappa**2) * ndtr(kappa) + kappa * _density(kappa))

    root = decreasing_root(equation, jnp.zeros(()), 1 / jnp.sqrt(load), load)
    return root.value, root.residual, root.converged


@theory
def basin(system: OptimalStability) -> Basin:
    """Where the basin of attraction of a stored pattern ends."""
    kappa, residual, converged = largest_stability(system.load)
    slope = jnp.sqrt(2 / np.pi) * (kappa * ndtr(kappa) + _density(kappa))
    narrow = slope < 1
    # f(m)/m - 1 rises from slope - 1 < 0 through zero at m_b; 1 - f(m) ~ exp(-(kappa u)^2/2) is
    # less than 1 - m beyond it
    inner = jnp.where(narrow, kappa, 0.5)
    edge = decreasing_root(
        lambda u, kappa: 1 - _next_overlap(_sine(u), kappa) / _sine(u),
        jnp.asarray(1e-8),
        6 + 10 / inner,
        inner,
    )
    return Basin(
        kappa,
        slope,
        jnp.where(narrow, _sine(edge.value), 0.0),
        jnp.maximum(residual, jnp.where(narrow, edge.residual, 0.0)),
        converged & (~narrow | edge.converged),
    )


@theory
def overlaps(system: OptimalStability, *, steps: int = 1) -> Trajectory:
    """m, f(m), f(f(m)), ... from the overlap `start`."""
    kappa = largest_stability(system.load)[0]
    path: list[Number | float] = [system.start]
    for _ in range(steps):
        path.append(_next_overlap(path[-1], kappa))
    return Trajectory(jnp.stack(path))


def _next_overlap(m: Number | float, kappa: Number) -> Number:
    """f(m). At m = 1 it is 1."""
    noise = jnp.sqrt(2 * (1 - m) * (1 + m))
    gain = m / jnp.where(noise == 0, 1.0, noise)
    d, weight = standard_normal_rule((0.0, kappa))
    beyond = jnp.sum(weight * jnp.where(d > kappa, erf(gain * d), 0.0))
    return jnp.where(noise == 0, 1.0, ndtr(kappa) * erf(gain * kappa) + beyond)


def _sine(u: Number) -> Number:
    """m in [0, 1) of m/sqrt(1 - m^2) = u, the gain, in which fixed points near 1 are as far apart
    as those near 0.
    """
    return u / jnp.sqrt(1 + u**2)


def _density(x: Number) -> Number:
    return jnp.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
