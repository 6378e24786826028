"""The range of the search: one field or two, each linear or logarithmic, mapped to the unit
interval or square."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orderparam.core.names import near
from orderparam.core.system import System, is_number, replace


@dataclass(frozen=True)
class Axis:
    """A field of the system from `low` to `high`; u in [0, 1] is linear in the field, or in its
    logarithm."""

    name: str
    low: float
    high: float
    log: bool

    def value(self, u: float | np.ndarray) -> np.ndarray:
        """The field at u; the ends of the unit interval give the ends exactly."""
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        between = (1 - u) * low + u * high
        found = np.exp(between) if self.log else between
        return np.clip(
            np.where(u == 0, self.low, np.where(u == 1, self.high, found)), self.low, self.high
        )

    def slope(self, u: float) -> float:
        """d value / du."""
        return (
            float(self.value(u)) * math.log(self.high / self.low)
            if self.log
            else self.high - self.low
        )


def axes_of(
    system: System, over: Mapping[str, Sequence[Any]], count: int, whole: bool = False
) -> tuple[Axis, ...]:
    """Reads `{"temperature": (0.01, 1), "n_train": (1e2, 1e5, "log")}`.

    Raises `ValueError` for another number of fields, ends that are not finite and increasing, a
    logarithmic range that is not positive, and ends that the system refuses; without `whole`, also
    for a field of whole numbers.
    """
    if not isinstance(over, Mapping) or len(over) != count:
        wanted = "one field and its range" if count == 1 else "two fields and their ranges"
        raise ValueError(f'over = {over!r}: give {wanted}, such as {{"temperature": (0.01, 1)}}')
    axes = []
    for name, given in over.items():
        ends = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else ()
        scale = ends[2] if len(ends) == 3 else "linear"
        if len(ends) not in (2, 3) or not all(is_number(end) for end in ends[:2]):
            raise ValueError(f'over[{name!r}] = {given!r}: give (low, high) or (low, high, "log")')
        if scale not in ("linear", "log"):
            raise ValueError(
                f"over[{name!r}] = {given!r}: the scale must be linear or "
                f"log{near(str(scale), ['linear', 'log'])}"
            )
        low, high = float(ends[0]), float(ends[1])
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"over[{name!r}] = {given!r}: the ends must be finite and increasing")
        if scale == "log" and low <= 0:
            raise ValueError(f"over[{name!r}] = {given!r}: a logarithmic range must be positive")
        axes.append(Axis(name, low, high, scale == "log"))
    _check_legal(system, axes, (0.0, 1.0) if whole else (0.0, 0.38196601, 1.0))
    return tuple(axes)


def _check_legal(system: System, axes: Sequence[Axis], at: tuple[float, ...]) -> None:
    """Checks that the system accepts the corners, and points inside, which are not whole
    numbers."""
    corners = np.stack(np.meshgrid(*[at] * len(axes), indexing="ij"), -1).reshape(-1, len(axes))
    for corner in corners:
        replace(system, {axis.name: float(axis.value(u)) for axis, u in zip(axes, corner)})
