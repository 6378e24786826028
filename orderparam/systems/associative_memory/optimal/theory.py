"""Basins of attraction of networks of optimal stability: the map of the overlap, its slope and its
unstable fixed point.

The stability of a pattern at a neuron is D = xi_i J.xi/|J|. Over all patterns and neurons D has the
density Phi(kappa) delta(D - kappa) + phi(D) theta(D - kappa), with kappa the largest stability, Phi
the normal distribution function and phi its density (Gardner 1988). Let a state have the overlap m
with a pattern, with its wrong spins at random places. After one parallel step its overlap is

    m' = f(m) = E_D erf(m D / sqrt(2 (1 - m^2)))

(Krauth, Mézard, Nadal 1988). The first step follows this map in every network of largest stability
with many inputs. A strongly diluted network follows it at every step. In a fully connected network
states and couplings are correlated from the second step on, and the map is an approximation there.
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
    """Basin of attraction of a stored pattern.

    Fields:
        stability: largest stability kappa.
        slope: slope f'(0) = sqrt(2/pi) E D of the map of the overlap.
        basin_edge: unstable fixed point m_b of the map. A state whose overlap exceeds m_b is
            attracted by the pattern. m_b is 0 where the slope exceeds 1: every state with a
            positive overlap is attracted there.
        residual: largest residual of the equations for kappa and m_b.
        converged: whether both equations were solved.
    """

    stability: Float[Array, ""]
    slope: Float[Array, ""]
    basin_edge: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class Trajectory(Result):
    """Predicted overlaps in the course of recall.

    Fields:
        overlap: overlap of the state with the pattern after 0, 1, ... parallel steps.
    """

    overlap: Float[Array, "time"]


class SelfCoupledStep(Result):
    """Recall after one parallel step.

    Fields:
        overlap: overlap of the state with the pattern after the step.
        residual: residual of the equation for the largest stability.
        converged: whether this equation was solved.
    """

    overlap: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def largest_stability(load: Number | float) -> tuple[Number, Number, Bool[Array, ""]]:
    """Largest stability kappa of random patterns at a load below 2, from 1/alpha =
    int_{-kappa}^inf Dt (t + kappa)^2 (Gardner 1988).

    Args:
        load: patterns per input alpha, above 0 and below 2.

    Returns:
        the stability, the residual of its equation, and whether it was solved.
    """

    def equation(kappa: Number, load: Number) -> Number:
        return 1 - load * ((1 + kappa**2) * ndtr(kappa) + kappa * _density(kappa))

    root = decreasing_root(equation, jnp.zeros(()), 1 / jnp.sqrt(load), load)
    return root.value, root.residual, root.converged


@theory
def basin(system: OptimalStability) -> Basin:
    r"""Largest stability, and the edge of the basin of attraction of a stored pattern.

    With $\alpha$ = `load`, the `stability` $\kappa$ solves the first equation, and one parallel
    step changes the overlap from m to f(m):

    $$ \frac1\alpha = \int_{-\kappa}^\infty Dt\, (t + \kappa)^2, \qquad
       f(m) = E_D\, \mathrm{erf} \frac{m D}{\sqrt{2 (1 - m^2)}} $$

    where the stability D of a pattern at a neuron has the density $\Phi(\kappa)\, \delta(D -
    \kappa) + \varphi(D)\, \theta(D - \kappa)$. `basin_edge` is the unstable solution of m = f(m),
    and `slope` is f'(0).

    Accuracy: 1e-8. The edge is exact for strongly diluted networks of many inputs.

    Source: Gardner (1988); Krauth, Mézard, Nadal (1988).

    >>> found = basin(OptimalStability(0.5))
    >>> round(float(found.stability), 8), round(float(found.basin_edge), 8)
    (1.03431406, 0.65604459)
    """
    kappa, residual, converged = largest_stability(system.load)
    slope = jnp.sqrt(2 / np.pi) * (kappa * ndtr(kappa) + _density(kappa))
    narrow = slope < 1
    # f(m)/m - 1 equals slope - 1 < 0 at m = 0 and rises through zero at m_b. Beyond m_b, 1 - f(m)
    # is less than 1 - m: it falls as exp(-(kappa u)^2/2) with u = m/sqrt(1 - m^2).
    inner = jnp.where(narrow, kappa, 0.5)
    edge = decreasing_root(
        lambda u, kappa: 1 - _next_overlap(_sine(u), kappa) / _sine(u),
        jnp.asarray(1e-8),
        6 + 10 / inner,
        inner,
    )
    return Basin(
        stability=kappa,
        slope=slope,
        basin_edge=jnp.where(narrow, _sine(edge.value), 0.0),
        residual=jnp.maximum(residual, jnp.where(narrow, edge.residual, 0.0)),
        converged=converged & (~narrow | edge.converged),
    )


@theory
def overlaps(system: OptimalStability, *, steps: int = 1) -> Trajectory:
    r"""Overlap after each parallel step in a network of largest stability that starts at the
    overlap `start`.

    $$ m_{t+1} = f(m_t) = E_D\, \mathrm{erf} \frac{m_t D}{\sqrt{2 (1 - m_t^2)}} $$

    with the density of D as in `basin`.

    Args:
        steps: number of parallel steps.

    Accuracy: 1e-8. The first step is exact for every network of largest stability with many inputs.
    Later steps are exact for strongly diluted networks only.

    Source: Krauth, Mézard, Nadal (1988).

    >>> path = overlaps(OptimalStability(0.5, start=0.5), steps=2)
    >>> [round(float(m), 6) for m in path.overlap]
    [0.5, 0.474465, 0.447089]
    """
    kappa = largest_stability(system.load)[0]
    path: list[Number | float] = [system.start]
    for _ in range(steps):
        path.append(_next_overlap(path[-1], kappa))
    return Trajectory(overlap=jnp.stack(path))


@theory
def self_coupled_step(system: OptimalStability, *, coupling: float = 0.0) -> SelfCoupledStep:
    r"""Overlap after one parallel step in a fully connected network of optimal stability whose
    neurons are also coupled to themselves.

    Every neuron has the coupling $j_0$ = `coupling` to itself, in units of the norm of its other
    couplings. This coupling adds $j_0$ to the field of a neuron whose state agrees with the
    pattern, and subtracts $j_0$ from the field of a neuron whose state is wrong:

    $$ m' = \sum_\pm \frac{1 \pm m}{2}\,
        E_D\, \mathrm{erf} \frac{m D \pm j_0}{\sqrt{2 (1 - m^2)}} $$

    with m = `start` and the density of D as in `basin`. The best coupling is finite and depends on
    m. Later steps do not follow from this map, because a neuron remembers its own error.

    Args:
        coupling: $j_0 \ge 0$.

    Accuracy: 1e-8, for many neurons.

    Source: Krauth, Mézard, Nadal (1988) without the coupling; the formula is derived here.

    >>> round(float(self_coupled_step(OptimalStability(0.5, start=0.5), coupling=0.5).overlap), 6)
    0.592208
    """
    kappa, residual, converged = largest_stability(system.load)
    m = jnp.asarray(system.start)
    right, wrong = (_next_overlap(m, kappa, sign * coupling) for sign in (1, -1))
    return SelfCoupledStep(
        overlap=((1 + m) * right + (1 - m) * wrong) / 2, residual=residual, converged=converged
    )


def _next_overlap(m: Number | float, kappa: Number, own: float = 0.0) -> Number:
    """Overlap f(m) after one step, if a field `own` along the pattern is added; f(1) is 1."""
    noise = jnp.sqrt(2 * (1 - m) * (1 + m))
    unit = 1 / jnp.where(noise == 0, 1.0, noise)
    d, weight = standard_normal_rule((0.0, kappa))
    # A fraction Phi(kappa) of the stabilities D equals kappa; the others have the normal density at
    # D > kappa.
    beyond = jnp.sum(weight * jnp.where(d > kappa, erf((m * d + own) * unit), 0.0))
    return jnp.where(noise == 0, 1.0, ndtr(kappa) * erf((m * kappa + own) * unit) + beyond)


def _sine(u: Number) -> Number:
    """Overlap m in [0, 1) with m/sqrt(1 - m^2) = u.

    Fixed points with m near 1 are far apart in u, so that the search for a root separates them.
    """
    return u / jnp.sqrt(1 + u**2)


def _density(x: Number) -> Number:
    return jnp.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
