"""The Ising model on a periodic hypercubic lattice."""

import math

from orderparam.core.system import System, parameter, structure

# Critical temperature of the infinite square lattice (Kramers, Wannier 1941; Onsager 1944).
CRITICAL_TEMPERATURE = 2 / math.log(1 + math.sqrt(2))


class IsingLattice(System):
    r"""Ising spins on a periodic hypercubic lattice.

    Spins s = +-1 with one bond to the next site in each direction have the energy

    $$ H = -\sum_{\langle ij \rangle} s_i s_j - h \sum_i s_i $$

    with h = `field`. Energies, the field and the temperature are in units of the coupling. A
    positive field favours s = +1; where a source writes $+h \sum s$, its field has the other sign.
    `shape` is (L,) for a ring, (L, M) for the square and (L, M, K) for the cubic lattice. Where a
    length is 2, the same two sites are joined twice.

    Raises:
        ValueError: for an empty `shape`.

    >>> IsingLattice(2.2, (16, 16)).spins
    256
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
