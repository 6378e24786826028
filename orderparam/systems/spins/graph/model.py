"""The Potts model on a graph of one's own, and on random graphs in which every site has as many neighbours."""

import jax
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter, structure


class PottsGraph(System):
    """Potts spins s = 0 .. q - 1 on the sites of a graph, H = -sum over edges of [s = s'].

    For q = 2 this is the Ising model at twice the temperature: s s' = 2 [s = s'] - 1. Sites are numbered from 0 and all that are
    numbered belong to the graph. Raises `ValueError` for a site that is joined to itself.
    """

    temperature: float = parameter("temperature T in units of the coupling", above=0)
    edges: Float[Array, "edge 2"] = parameter("pairs of sites that are joined", minimum=0, maximum=1e8, integer=True)
    states: int = structure("number q of states", minimum=2, maximum=1000, default=2)

    def __check_init__(self) -> None:
        if isinstance(self.edges, jax.core.Tracer):
            return
        one, two = np.asarray(self.edges)[..., 0], np.asarray(self.edges)[..., 1]
        if np.any(one == two):
            raise ValueError(f"PottsGraph.edges join site {one[one == two][0]:g} to itself: must be two sites in every row")


class RegularPotts(System):
    """The Potts model of `PottsGraph` on a random graph in which every site has `degree` neighbours."""

    temperature: float = parameter("temperature T in units of the coupling", above=0)
    sites: float = parameter("number of sites", minimum=4, integer=True, default=1000)
    degree: int = structure("number of neighbours of a site", minimum=2, maximum=100, default=3)
    states: int = structure("number q of states", minimum=2, maximum=1000, default=2)
