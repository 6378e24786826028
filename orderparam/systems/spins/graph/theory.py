"""The Potts model exactly: all configurations of a small graph, and infinite random regular graphs
by the cavity method.
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
    """Per site: free_energy -(T/N) ln Z, energy, and absolute_magnetisation (q p - 1)/(q - 1) of
    the favoured state, of share p.

    residual, converged: of the fixed point.
    """

    free_energy: Float[Array, ""]
    energy: Float[Array, ""]
    absolute_magnetisation: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def order_parameters(
    shares: Float[Array, "*batch state"], states: int
) -> tuple[Array, Array, Array, Array]:
    """Of the shares p of the states: magnetisation (q p_0 - 1)/(q - 1), its modulus with the
    largest share in place of p_0, the square (q sum p^2 - 1)/(q - 1), and its square."""
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
    """All configurations of a graph, at most 2^20 of them. Magnetisations as `order_parameters` has
    them.
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
    """Infinitely many sites, whose neighbourhood is a tree: a site without one of its neighbours
    favours one state by

        h = (c - 1) ln[(e^(K + h) + q - 1) / (e^h + e^K + q - 2)], K = 1/T (Bethe 1935; Mezard,
        Montanari 2009, chapter 17),

    exact for this ferromagnet. branch: the fixed point reached from full order, or h = 0. Of the
    two the one of lower free energy is the state: for q = 2 always the ordered one; for q > 2 they
    change places at a jump.
    """
    q, c, coupling = system.states, system.degree, jnp.asarray(1 / system.temperature)
    rise = jnp.expm1(coupling)

    def update(h: Array, coupling: Array) -> Array:
        # there relative accuracy counts, and beyond it exp(h) may be too large
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
    # what a neighbour gives to either state
    one, rest = jnp.log1p(rise * favoured), jnp.log1p(rise * other)
    site = jnp.logaddexp(c * one, jnp.log(q - 1.0) + c * rest)
    equal = favoured**2 + (q - 1) * other**2
    edge = jnp.log1p(rise * equal)
    share = jnp.exp(c * one - site)
    free_energy = -system.temperature * (site - c / 2 * edge)
    return Cavity(
        free_energy=free_energy,
        energy=-c / 2 * jnp.exp(coupling - edge) * equal,
        absolute_magnetisation=(q * share - 1) / (q - 1),
        residual=found.residual,
        converged=found.converged & jnp.isfinite(free_energy),
    )
