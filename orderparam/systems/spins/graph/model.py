"""The Potts model on a graph of one's own, and on random graphs in which every site has as many
neighbours.
"""

import math

import jax
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter, structure


class PottsGraph(System):
    """Potts spins s = 0 .. q - 1 on the sites of a graph, H = -sum over edges of [s = s'].

    For q = 2 this is the Ising model at twice the temperature: s s' = 2 [s = s'] - 1. Sites are
    numbered from 0 and all that are numbered belong to the graph. Raises `ValueError` for a site
    that is joined to itself.
    """

    temperature: float = parameter("temperature T in units of the coupling", above=0)
    edges: Float[Array, "edge 2"] = parameter(
        "pairs of sites that are joined", minimum=0, maximum=1e8, integer=True
    )
    states: int = structure("number q of states", minimum=2, maximum=1000, default=2)

    def __check_init__(self) -> None:
        if isinstance(self.edges, jax.core.Tracer):
            return
        one, two = np.asarray(self.edges)[..., 0], np.asarray(self.edges)[..., 1]
        if np.any(one == two):
            raise ValueError(
                f"PottsGraph.edges join site {one[one == two][0]:g} to itself: must be two sites in every row"
            )


class RegularPotts(System):
    """The Potts model of `PottsGraph` on a random graph in which every site has `degree`
    neighbours.
    """

    temperature: float = parameter("temperature T in units of the coupling", above=0)
    sites: float = parameter("number of sites", minimum=4, integer=True, default=1000)
    degree: int = structure("number of neighbours of a site", minimum=2, maximum=100, default=3)
    states: int = structure("number q of states", minimum=2, maximum=1000, default=2)


# ------------------------------------------------------------------------------------------------
# Edges of some graphs, as pairs of sites numbered from 0.


def lattice_edges(shape: tuple[int, ...]) -> np.ndarray:
    """The periodic lattice of any dimension: (L,) a ring, (L, L) the square, (L, L, L) the cubic
    lattice.
    """
    sites = np.arange(math.prod(shape)).reshape(shape)
    return np.concatenate(
        [
            np.stack([sites, np.roll(sites, -1, axis)], -1).reshape(-1, 2)
            for axis in range(len(shape))
        ]
    )


def random_edges(sites: int, edges: int, rng: np.random.Generator) -> np.ndarray:
    """So many different pairs out of all, each choice as likely as any other (Erdos, Renyi
    1959)."""
    chosen = rng.choice(sites * (sites - 1) // 2, edges, replace=False)
    larger = ((1 + np.sqrt(1 + 8 * chosen.astype(float))) // 2).astype(int)
    larger -= larger * (larger - 1) // 2 > chosen  # where rounding went up
    return np.stack([chosen - larger * (larger - 1) // 2, larger], axis=-1)


def regular_edges(sites: int, degree: int, rng: np.random.Generator) -> np.ndarray:
    """A random graph in which every site has the same degree: ends are paired at random, and loops
    and double edges swap an end with a random edge until none is left.

    Raises `ValueError` unless sites * degree is even and degree < sites.
    """
    if sites * degree % 2 or degree >= sites:
        raise ValueError(
            f"degree = {degree} of {sites} sites: sites * degree must be even, and degree smaller than sites"
        )
    edges = rng.permutation(np.repeat(np.arange(sites), degree)).reshape(-1, 2)
    while True:
        smaller, larger = edges.min(axis=1), edges.max(axis=1)
        _, first = np.unique(smaller * sites + larger, return_index=True)
        bad = np.setdiff1d(np.arange(len(edges)), first[smaller[first] != larger[first]])
        if not bad.size:
            return edges
        for edge, other in zip(bad, rng.integers(len(edges), size=bad.size)):
            edges[edge, 1], edges[other, 1] = edges[other, 1], edges[edge, 1]
