"""The Potts model solved exactly: on a small graph by enumeration, on infinite random regular
graphs by the cavity method.
"""

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.newton import largest_fixed_point
from orderparam.systems.spins.graph.model import PottsGraph, RegularPotts
from orderparam.systems.spins.thermodynamics import Thermodynamics, averages

_LARGEST = 2**20  # configurations that are counted one by one


class Cavity(Result):
    """One solution of the cavity equation, per site.

    Fields:
        free_energy: -(T/N) ln Z.
        energy: minus the mean number of edges per site whose ends are equal.
        absolute_magnetisation: (q p - 1)/(q - 1), with p the fraction of spins in the favoured
            state.
        residual: residual of the fixed point h.
        converged: whether the fixed point was reached and the free energy is finite.
    """

    free_energy: Float[Array, ""]
    energy: Float[Array, ""]
    absolute_magnetisation: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def order_parameters(
    shares: Float[Array, "*batch state"], states: int
) -> tuple[Array, Array, Array, Array]:
    """Magnetisations of Potts spins from the shares p_s of their states.

    Args:
        shares: share of the spins that is in each state.
        states: number q of states.

    Returns:
        four arrays: the magnetisation (q p_0 - 1)/(q - 1) of state 0, its modulus (q max p - 1)/(q
            - 1), its square (q sum_s p_s^2 - 1)/(q - 1), and the square of this square, which
            stands for the fourth power.

    >>> [float(x) for x in order_parameters(jnp.array([0.5, 0.5, 0.0]), 3)]
    [0.25, 0.25, 0.25, 0.0625]
    """
    squared = (states * jnp.sum(shares**2, axis=-1) - 1) / (states - 1)
    first, largest = (
        (states * share - 1) / (states - 1) for share in (shares[..., 0], jnp.max(shares, axis=-1))
    )
    return first, largest, squared, squared**2


def _small(system: PottsGraph, **_: object) -> None:
    sites = int(np.max(system.edges)) + 1
    if sites * np.log(system.states) > np.log(_LARGEST) + 1e-9:
        raise ValueError(
            f"PottsGraph.edges join {sites} sites: at most {_LARGEST} configurations are counted"
        )


@theory(traced=False, check=_small)
def potts_enumerated(system: PottsGraph) -> Thermodynamics:
    r"""Exact averages of the Potts model on a small graph, summed over all configurations.

    $$ Z = \sum_{s \in \{0 \dots q-1\}^N} e^{-H(s)/T}, \qquad H = -\sum_{(ij)} \delta_{s_i s_j} $$

    Let $p_s$ be the share of the spins in state s. `magnetisation` is the mean of $(q p_0 - 1)/(q -
    1)$, `absolute_magnetisation` is the mean of $(q \max_s p_s - 1)/(q - 1)$, and
    `squared_magnetisation` is the mean of $m^2 = (q \sum_s p_s^2 - 1)/(q - 1)$. `binder` contains
    the mean of the square of this $m^2$.

    Raises:
        ValueError: for more than 2^20 configurations.

    Accuracy: rounding. This theory cannot be differentiated.

    Source: derived here, by definition of the partition sum.

    >>> triangle = PottsGraph(1.0, [[0, 1], [1, 2], [2, 0]], states=3)
    >>> round(float(potts_enumerated(triangle).energy), 6)
    -0.664721
    """
    edges = np.asarray(system.edges, int)
    sites, q = int(edges.max()) + 1, system.states
    spins = np.stack(np.unravel_index(np.arange(q**sites), (q,) * sites), axis=-1)
    energy = -np.sum(spins[:, edges[:, 0]] == spins[:, edges[:, 1]], axis=1) / sites
    shares = jnp.asarray(np.stack([np.mean(spins == state, axis=1) for state in range(q)], axis=-1))
    m, absolute, squared, fourth = order_parameters(shares, q)
    return averages(
        jnp.zeros(len(energy)),
        jnp.asarray(energy),
        m,
        system.temperature,
        sites,
        (absolute, squared, fourth),
    )


@theory
def cavity(system: RegularPotts, *, branch: Literal["ordered", "disordered"] = "ordered") -> Cavity:
    r"""Free energy, energy and magnetisation of the Potts model on an infinite random regular
    graph, by the cavity method.

    The neighbourhood of a site is a tree. A site that lacks one of its c = `degree` neighbours
    favours one of the q = `states` states by a field h, which solves, with K = 1/`temperature`,

    $$ h = (c - 1) \ln \frac{e^{K + h} + q - 1}{e^h + e^K + q - 2} $$

    With $p = 1/(1 + (q - 1) e^{-h})$ and $r = (1 - p)/(q - 1)$ the `free_energy` is

    $$ f = -T \Big[ \ln\big( (1 + (e^K - 1) p)^c + (q - 1)(1 + (e^K - 1) r)^c \big) - \frac c2
          \ln\big( 1 + (e^K - 1)(p^2 + (q - 1) r^2) \big) \Big] $$

    The method is exact for this ferromagnet.

    Args:
        branch: "ordered" is the fixed point that is reached from full order, "disordered" is h = 0.
            The branch of lower free energy is the equilibrium state. For q = 2 this is the ordered
            branch wherever it exists; for q > 2 the two free energies cross at a first-order
            transition.

    Accuracy: 1e-9 relative to h, also where h is small; `residual` gives the accuracy reached.

    Source: Bethe (1935); Mézard, Montanari (2009), chapter 17.

    >>> found = cavity(RegularPotts(0.8, degree=4, states=3))
    >>> round(float(found.absolute_magnetisation), 6), bool(found.converged)
    (0.967684, True)
    """
    q, c, coupling = system.states, system.degree, jnp.asarray(1 / system.temperature)
    rise = jnp.expm1(coupling)

    def update(h: Array, coupling: Array) -> Array:
        # For h < 1 this form keeps the relative accuracy of a small h. For h > 1 the code uses
        # logarithms, because exp(h) may overflow.
        small = jnp.minimum(h, 1.0)
        gain = (
            -jnp.expm1(-coupling)
            * jnp.expm1(small)
            / (1 + (jnp.exp(small) + q - 2) * jnp.exp(-coupling))
        )
        top = jnp.logaddexp(coupling + h, jnp.log(q - 1.0))
        bottom = jnp.logaddexp(h, jnp.logaddexp(coupling, jnp.log(q - 2.0)) if q > 2 else coupling)
        return (c - 1) * jnp.where(h < 1, jnp.log1p(gain), top - bottom)

    start = (c - 1) * coupling if branch == "ordered" else jnp.zeros(())
    found = largest_fixed_point(update, start, coupling)
    h = found.value
    favoured = 1 / (1 + (q - 1) * jnp.exp(-h))
    other = (1 - favoured) / (q - 1)
    # Bethe free energy: c neighbours multiply the weight of a site's state by 1 + (e^K - 1) times
    # the probability that the neighbour is in that state; every edge is then counted twice.
    one, rest = jnp.log1p(rise * favoured), jnp.log1p(rise * other)
    site = jnp.logaddexp(c * one, jnp.log(q - 1.0) + c * rest)
    equal = favoured**2 + (q - 1) * other**2
    edge = jnp.log1p(rise * equal)
    # The share of the sites in the favoured state, where each site has all of its c neighbours.
    share = jnp.exp(c * one - site)
    free_energy = -system.temperature * (site - c / 2 * edge)
    return Cavity(
        free_energy=free_energy,
        energy=-c / 2 * jnp.exp(coupling - edge) * equal,
        absolute_magnetisation=(q * share - 1) / (q - 1),
        residual=found.residual,
        converged=found.converged & jnp.isfinite(free_energy),
    )
