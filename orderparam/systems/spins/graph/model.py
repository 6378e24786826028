"""The Potts model on a graph given by its edges, and on random graphs in which all sites have the
same number of neighbours.
"""

import math

import jax
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter, structure


class PottsGraph(System):
    r"""Potts spins on the sites of a graph.

    A spin takes one of q = `states` values, and

    $$ H = -\sum_{(ij)} \delta_{s_i s_j}, \qquad s_i \in \{0, \dots, q - 1\} $$

    sums over the `edges`. For q = 2 this is the Ising model at twice the temperature, because $s s'
    = 2 \delta_{s s'} - 1$. Sites are numbered from 0, and every number up to the largest one is a
    site of the graph.

    Raises:
        ValueError: for an edge that joins a site to itself.

    Source: Potts (1952).
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
                f"PottsGraph.edges join site {one[one == two][0]:g} to itself: must be two sites "
                "in every row"
            )


class RegularPotts(System):
    """The Potts model of `PottsGraph` on a random graph in which every site has `degree`
    neighbours."""

    temperature: float = parameter("temperature T in units of the coupling", above=0)
    sites: float = parameter("number of sites", minimum=4, integer=True, default=1000)
    degree: int = structure("number of neighbours of a site", minimum=2, maximum=100, default=3)
    states: int = structure("number q of states", minimum=2, maximum=1000, default=2)


# ------------------------------------------------------------------------------------------------
# Edges of lattices and of random graphs, as pairs of sites that are numbered from 0.


def lattice_edges(shape: tuple[int, ...]) -> np.ndarray:
    """Edges of a periodic hypercubic lattice of any dimension.

    Args:
        shape: number of sites along each direction: (L,) is a ring, (L, L) the square lattice, (L,
            L, L) the cubic lattice.

    Returns:
        pairs of sites, of shape (edge, 2), numbered from 0 in row-major order.

    >>> lattice_edges((3,)).tolist()
    [[0, 1], [1, 2], [2, 0]]
    """
    sites = np.arange(math.prod(shape)).reshape(shape)
    return np.concatenate(
        [
            np.stack([sites, np.roll(sites, -1, axis)], -1).reshape(-1, 2)
            for axis in range(len(shape))
        ]
    )


def random_edges(sites: int, edges: int, rng: np.random.Generator) -> np.ndarray:
    """Edges of a uniform random graph with a given number of edges.

    Args:
        sites: number of sites.
        edges: number of edges, all different. Every set of that many pairs is equally likely.
        rng: generator of random numbers.

    Returns:
        pairs of sites, of shape (edge, 2), numbered from 0.

    Source: Erdős, Rényi (1959).

    >>> random_edges(5, 3, np.random.default_rng(0)).shape
    (3, 2)
    """
    chosen = rng.choice(sites * (sites - 1) // 2, edges, replace=False)
    larger = ((1 + np.sqrt(1 + 8 * chosen.astype(float))) // 2).astype(int)
    larger -= larger * (larger - 1) // 2 > chosen  # where rounding went up
    return np.stack([chosen - larger * (larger - 1) // 2, larger], axis=-1)


def regular_edges(sites: int, degree: int, rng: np.random.Generator) -> np.ndarray:
    """Edges of a random graph in which every site has the same degree.

    The ends of edges are paired at random. Loops and double edges then swap one end with a random
    edge until none is left.

    Args:
        sites: number of sites.
        degree: number of neighbours of every site.
        rng: generator of random numbers.

    Returns:
        pairs of sites, of shape (edge, 2), numbered from 0.

    Raises:
        ValueError: unless sites * degree is even and degree is smaller than sites.

    >>> np.bincount(regular_edges(6, 3, np.random.default_rng(0)).ravel()).tolist()
    [3, 3, 3, 3, 3, 3]
    """
    if sites * degree % 2 or degree >= sites:
        raise ValueError(
            f"degree = {degree} of {sites} sites: sites * degree must be even, and degree smaller "
            "than sites"
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
