"""Magnets near their transition: a field of several components in any dimension, bonds between
spins, spins in blocks.
"""

import math
from typing import Any

from orderparam.core.system import System, parameter, structure


class VectorMagnet(System):
    """phi^4 theory of n components in d dimensions, cutoff 1,

        S = int [(1/2) phi (-d^2)^(sigma/2) phi + (r/2) phi^2 + (u/4!) (phi^2)^2].

    Elsewhere u phi^4 without 4!: u/24; k^2 + m^2 without 1/2: half of it. sigma < 2: couplings that
    fall with distance to the power -(d + sigma).
    """

    dim: float = parameter("dimension d of space", above=0, maximum=6, default=3.0)
    components: float = parameter(
        "number n of components of the field", above=-2, maximum=1e6, default=1.0
    )
    kinetic: float = parameter("power sigma of the kinetic term", above=0, maximum=2, default=2.0)

    @property
    def epsilon(self) -> Any:
        """2 sigma - d, the distance from the upper critical dimension."""
        return 2 * self.kinetic - self.dim


class Bonds(System):
    """Ising spins on a hypercubic lattice with one coupling K = J/T between neighbours, scaled by b
    in each step.
    """

    coupling: float = parameter("coupling K = J/T", above=0)
    dim: float = parameter("dimension d of the lattice", minimum=1, maximum=6, default=2.0)
    scale: float = parameter(
        "length b that becomes one in a step", above=1, maximum=16, default=2.0
    )


class SpinBlocks(System):
    """Ising spins on a periodic square of `length` x `length` sites, put in blocks of two by two
    `levels` times by majority.
    """

    temperature: float = parameter("temperature T in units of the coupling", above=0)
    length: int = structure("sites along a side", minimum=8, maximum=4096, default=32)
    levels: int = structure("number of times that spins are put in blocks", minimum=1, default=2)

    def __check_init__(self) -> None:
        smallest = 4 * 2**self.levels
        if self.length % 2**self.levels or self.length < smallest:
            raise ValueError(
                f"SpinBlocks.length = {self.length}: must be a multiple of {2**self.levels} and >= {smallest}, "
                f"so that {self.levels} levels leave whole blocks and at least 4 x 4 of them"
            )

    @property
    def coupling(self) -> Any:
        return 1 / self.temperature


# K_c of the square lattice (Kramers, Wannier 1941; Onsager 1944)
EXACT_COUPLING = math.log(1 + math.sqrt(2)) / 2
