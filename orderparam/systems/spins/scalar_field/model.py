"""A real field on a periodic lattice with a quartic potential, as in Landau's theory."""

import math

from orderparam.core.system import System, parameter, structure


class ScalarField(System):
    r"""A real field on a periodic lattice with a quartic potential.

    The density of a configuration is $e^{-S}$ with

    $$ S = \sum_x \Big[ \tfrac12 \sum_i (\phi_{x + i} - \phi_x)^2 + \tfrac r2 \phi_x^2 + u\,
          \phi_x^4 \Big] $$

    where i runs over the directions of `shape`, r is `mass` and u is `coupling`. The mass is
    negative in the ordered phase. Each site has one bond in every direction.

    Raises:
        ValueError: for an empty `shape`.

    >>> ScalarField(-1.0, 0.25, (8, 8)).sites
    64
    """

    mass: float = parameter("coefficient of phi^2/2")
    coupling: float = parameter("coefficient u of phi^4", above=0)
    shape: tuple[int, ...] = structure(
        "number of sites along each direction", minimum=2, maximum=1_000_000, default=(16, 16)
    )

    def __check_init__(self) -> None:
        if not self.shape:
            raise ValueError(f"{type(self).__name__}.shape = (): must have at least one direction")

    def check_square(self) -> None:
        """Raise `ValueError` unless the lattice has two equal lengths."""
        if len(self.shape) != 2 or self.shape[0] != self.shape[1]:
            raise ValueError(f"ScalarField.shape = {self.shape}: must be two equal lengths")

    @property
    def sites(self) -> int:
        """Number of sites."""
        return math.prod(self.shape)
