"""The Ising model on a periodic hypercubic lattice."""

import math

from orderparam.core.system import System, parameter, structure

# of the infinite square lattice (Kramers, Wannier 1941; Onsager 1944)
CRITICAL_TEMPERATURE = 2 / math.log(1 + math.sqrt(2))


class IsingLattice(System):
    """Spins s = +-1 on a periodic lattice, H = -sum over nearest neighbours s s' - field sum s.

    Energies, the field and the temperature are in units of the coupling. shape: the number of sites
    along each direction, (L,) a ring, (L, M) the square and (L, M, K) the cubic lattice. Each site
    has one bond in every direction: where a length is 2, the same two sites are joined twice. A
    positive field favours s = +1: where +h sum s is written instead, it has the other sign.
    """

    temperature: float = parameter("temperature T in units of the coupling", above=0)
    shape: tuple[int, ...] = structure(
        "number of sites along each direction", minimum=2, maximum=1_000_000, default=(16, 16)
    )
    field: float = parameter("magnetic field h in units of the coupling", default=0.0)

    def __check_init__(self) -> None:
        if not self.shape:
            raise ValueError(f"{type(self).__name__}.shape = (): must have at least one direction")

    @property
    def spins(self) -> int:
        """Number N of sites."""
        return math.prod(self.shape)
