"""Magnets near their transition: a field of several components in any dimension, Ising spins whose
bonds are moved, and block spins.
"""

import math
from typing import Any

from orderparam.core.system import System, parameter, structure


class VectorMagnet(System):
    r"""The $\phi^4$ theory of n components in d dimensions, with cutoff 1.

    $$ S = \int \Big[ \tfrac12 \phi\, (-\partial^2)^{\sigma/2} \phi + \tfrac r2 \phi^2
       + \tfrac{u}{4!} (\phi^2)^2 \Big] $$

    with $d$ = `dim`, $n$ = `components` and $\sigma$ = `kinetic`. For $\sigma < 2$ the couplings
    fall as the distance to the power $-(d + \sigma)$. Some sources write $u \phi^4$ without $4!$;
    the u of these sources is u/24.
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
    """Ising spins on a hypercubic lattice with coupling K = J/T between neighbours; the length b of
    a step is `scale`.
    """

    coupling: float = parameter("coupling K = J/T", above=0)
    dim: float = parameter("dimension d of the lattice", minimum=1, maximum=6, default=2.0)
    scale: float = parameter(
        "length b that becomes one in a step", above=1, maximum=16, default=2.0
    )


class SpinBlocks(System):
    """Ising spins on a periodic square of `length` x `length` sites, replaced `levels` times by the
    majorities of blocks of two by two.

    Raises:
        ValueError: unless `length` is a multiple of 2^`levels` that leaves at least 4 x 4 blocks.
    """

    temperature: float = parameter("temperature T in units of the coupling", above=0)
    length: int = structure("sites along a side", minimum=8, maximum=4096, default=32)
    levels: int = structure("number of times that spins are put in blocks", minimum=1, default=2)

    def __check_init__(self) -> None:
        smallest = 4 * 2**self.levels
        if self.length % 2**self.levels or self.length < smallest:
            raise ValueError(
                f"SpinBlocks.length = {self.length}: must be a multiple of {2**self.levels} and >= "
                f"{smallest}, so that {self.levels} levels leave whole blocks and at least 4 x 4 "
                "of them"
            )

    @property
    def coupling(self) -> Any:
        """K = J/T, with J = 1."""
        return 1 / self.temperature


# K_c of the square lattice (Kramers, Wannier 1941; Onsager 1944)
EXACT_COUPLING = math.log(1 + math.sqrt(2)) / 2
