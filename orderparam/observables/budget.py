"""Limits on the cost of a measurement, and the rules by which it becomes cheaper."""

import math
from dataclasses import dataclass

_EXAMPLES, _SKETCHED = 500, 2000  # of the exact tangent kernel, of that in random directions
_PRODUCTS = 1e12  # of the exact tangent kernel, examples^2 x parameters x outputs, in 10 minutes
_WORK = 2.5e12  # of the random directions, examples x directions x parameters, in 10 minutes
_COUPLED = 1e7  # of the learning coefficient, examples x parameters, in 10 minutes
_COPIES = 6  # matrices of the size of the kernel, or of the features, at one time
FEWEST_DIRECTIONS, MOST_DIRECTIONS = 16, 256
LEAST_MEMORY = 1.0


@dataclass(frozen=True)
class Budget:
    """The memory in GiB, at least 1, and the minutes of one core that `inspect` may use for the
    tangent kernel and the learning coefficient, each.

    What is too large is measured on fewer examples, drawn at random, or, for the tangent kernel, in
    random directions of the parameters; the note of the number says so. The rates are those of one
    core of a present machine.

    >>> Budget().directions(2000, 10_000_000)
    125
    >>> Budget(minutes=1).exact(500, 1_000_000, 1)
    False
    """

    memory: float = 4.0
    minutes: float = 10.0

    def __post_init__(self) -> None:
        if not LEAST_MEMORY <= self.memory < math.inf:
            raise ValueError(f"memory = {self.memory}: must be at least {LEAST_MEMORY:g} (GiB)")
        if not 0 < self.minutes < math.inf:
            raise ValueError(f"minutes = {self.minutes}: must be > 0")

    @property
    def _share(self) -> float:
        return self.minutes / 10

    def exact(self, examples: int, parameters: int, outputs: int) -> bool:
        """True if the tangent kernel of so many examples is formed."""
        return examples**2 * parameters * outputs <= _PRODUCTS * self._share

    @property
    def examples(self) -> int:
        """Largest number n of examples of the exact tangent kernel, whose eigenvalues cost n^3."""
        return int(min(_EXAMPLES * max(1.0, self._share ** (1 / 3)), self._rows(1) ** 0.5))

    def sketched(self) -> int:
        """Examples of the tangent kernel in random directions."""
        return int(min(_SKETCHED * max(1.0, self._share), self._rows(MOST_DIRECTIONS)))

    def directions(self, examples: int, parameters: int) -> int:
        """Random directions for so many examples and parameters."""
        most = int(_WORK * self._share / (examples * parameters))
        return min(max(most, FEWEST_DIRECTIONS), MOST_DIRECTIONS)

    def coupled(self, examples: int, parameters: int) -> bool:
        """True if the learning coefficient is measured."""
        return examples * parameters <= _COUPLED * self._share

    def _rows(self, columns: int) -> float:
        """Rows of so many numbers in double precision of which several copies fit."""
        return self.memory * 2**30 / (8 * _COPIES * columns)
