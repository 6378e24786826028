"""The Potts model on a square lattice, with bonds to nearest or also to next-nearest neighbours."""

import math

from orderparam.core.system import System, parameter, structure

# Critical coupling of the Ising model with equal couplings to nearest and next-nearest neighbours:
# twice the K_c of spins +-1 (Luijten, Blöte, Binder 1996).
_CRITICAL_DIAGONAL = 2 * 0.1901926807


class PottsLattice(System):
    r"""Potts spins on a periodic square lattice of `length` x `length` sites.

    Spins $\sigma = 0, \dots, q - 1$, with q = `states`, have the weight

    $$ \exp\Big( K \sum_{\langle xy \rangle} \delta_{\sigma_x \sigma_y} \Big) $$

    with K = `coupling`. Bonds join nearest neighbours. If `diagonals` is true, bonds of the same
    coupling also join next-nearest neighbours, along both diagonals of every square. For q = 2 this
    is the Ising model, where K is twice the coupling of spins +-1.

    >>> round(PottsLattice(1.0, 16).critical_coupling, 8)
    0.88137359
    """

    coupling: float = parameter("coupling K of equal spins, in units of the temperature", above=0)
    length: int = structure("number of sites along each direction", minimum=3, maximum=10_000)
    states: int = structure("number q of states of a spin", minimum=2, maximum=100, default=2)
    diagonals: bool = structure("whether next-nearest neighbours are bonded too", default=False)

    @property
    def steps(self) -> tuple[tuple[int, int], ...]:
        """The steps from a site to the other ends of its bonds, each bond once."""
        nearest = ((1, 0), (0, 1))
        return (*nearest, (1, 1), (1, -1)) if self.diagonals else nearest

    @property
    def critical_coupling(self) -> float:
        """Critical K of the infinite lattice: exactly ln(1 + sqrt q) without diagonals, and NaN
        where the sources used here give no value.

        Source: Potts (1952); Luijten, Blöte, Binder (1996) for two states with diagonals.
        """
        if not self.diagonals:
            return math.log(1 + math.sqrt(self.states))
        return _CRITICAL_DIAGONAL if self.states == 2 else math.nan
