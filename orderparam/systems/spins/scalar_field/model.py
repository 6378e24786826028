"""A real field on a periodic lattice with the potential of Landau."""

import math

from orderparam.core.system import System, parameter, structure


class ScalarField(System):
    """Fields of density exp(-S), S = sum_x [(1/2) sum_directions (phi_(x+1) - phi_x)^2 + (mass/2)
    phi_x^2 + coupling phi_x^4].

    mass is the coefficient of phi^2 / 2, and negative in the ordered phase. Each site has one bond
    in every direction.
    """

    mass: float = parameter("coefficient of phi^2/2")
    coupling: float = parameter("coefficient u of phi^4", above=0)
    shape: tuple[int, ...] = structure(
        "number of sites along each direction", minimum=2, maximum=1_000_000, default=(16, 16)
    )

    def __check_init__(self) -> None:
        if not self.shape:
            raise ValueError(f"{type(self).__name__}.shape = (): must have at least one direction")

    @property
    def sites(self) -> int:
        """Number of sites."""
        return math.prod(self.shape)
