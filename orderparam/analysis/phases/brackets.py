"""Edges that a boundary crosses, narrowed by bisection of all edges at once.

The ends of an edge lie on different sides of the boundary. A point that did not converge is not
used: the bracket stays as wide as the gap that it leaves. `crossings` determines the kind of the
transition in each narrow bracket.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

Kind = Literal["jump", "continuous", "divergence", "crossover", "end"]
# smallest jump, as a fraction of the order parameter's range: theories that round a width or stop
# at a tolerance have smaller jumps
SMALLEST = 1e-3
MIDDLE = "middle"  # the level between the least and the largest value
NONE = -1  # label of a point where the branch does not exist
UNKNOWN = -2  # label of a point that did not converge; its value is infinite
# places tried in a bracket whose middle is unknown
_ELSEWHERE = (1 / 4, 3 / 4, 3 / 8, 5 / 8, 1 / 8, 7 / 8)


class Distances(NamedTuple):
    """The number of distances from a crossing at which f is evaluated, and the ratio of
    neighbouring distances, 2 or 4."""

    number: int
    ratio: float

    @property
    def stride(self) -> int:
        """The step between those distances whose ratio is 4, which determine the kind."""
        return 2 if self.ratio == 2 else 1

    @property
    def span(self) -> float:
        return self.ratio ** (self.number - 1)


@dataclass(frozen=True)
class Sides:
    """The side of a boundary on which a point is, and the difference between values.

    scale: that of each component; level: the value that separates the phases; vanishing: True for
    components whose modulus counts (the phase without order is then |f| <= level); for the others f
    itself counts.
    """

    scale: np.ndarray
    level: np.ndarray
    vanishing: np.ndarray

    def over(self, values: np.ndarray) -> np.ndarray:
        """(..., component): True for each component above its level."""
        return np.where(self.vanishing, np.abs(values), values) > self.level

    def label(self, values: np.ndarray) -> np.ndarray:
        """The number of components above their level; -1 where the branch does not exist, -2 where
        it is unknown whether it exists."""
        labels = np.where(np.isnan(values).any(axis=-1), NONE, self.over(values).sum(axis=-1))
        return np.where(np.isinf(values).any(axis=-1), UNKNOWN, labels)

    def differ(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """The largest difference of a component in units of its scale; 0 where a value does not
        exist or is unknown."""
        return _finite(_difference(one, other) / self.scale).max(axis=-1)

    def component(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """The component that distinguishes the two sides: the one that differs most among those
        that cross their level, or among all if none does."""
        differ = _finite(_difference(one, other) / self.scale)
        passes = self.over(one) != self.over(other)
        return np.argmax(
            np.where(passes.any(axis=-1, keepdims=True) & ~passes, -1.0, differ), axis=-1
        )


def _difference(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.abs(one - other)


def _finite(values: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(values), values, 0.0)


@dataclass
class Brackets:
    """Edges in the unit square from a to b (n, axes), each of one view, with the values (n,
    component) at their ends."""

    a: np.ndarray
    b: np.ndarray
    view: np.ndarray
    value_a: np.ndarray
    value_b: np.ndarray

    def __len__(self) -> int:
        return len(self.view)

    def take(self, chosen: np.ndarray) -> "Brackets":
        return Brackets(
            self.a[chosen],
            self.b[chosen],
            self.view[chosen],
            self.value_a[chosen],
            self.value_b[chosen],
        )

    def middle(self) -> np.ndarray:
        return (self.a + self.b) / 2

    def width(self) -> np.ndarray:
        return np.linalg.norm(self.b - self.a, axis=1)


Evaluate = Callable[[np.ndarray], np.ndarray]


def bisected(
    edges: Brackets, evaluate: Evaluate, sides: Sides, accuracy: float = 0.0, rounds: int = 60
) -> Brackets:
    """Replaces every edge by the half in which the label changes (or, where it does not, in which
    the values differ most), until edges are as narrow as `accuracy`, or the given number of
    times."""
    a, b, value_a, value_b = (
        array.copy() for array in (edges.a, edges.b, edges.value_a, edges.value_b)
    )
    stuck = np.zeros(len(edges), bool)
    for _ in range(rounds):
        wide = np.flatnonzero((np.linalg.norm(b - a, axis=1) > accuracy) & ~stuck)
        if not len(wide):
            break
        middle, value = _inside(a[wide], b[wide], edges.view[wide], evaluate)
        here, first, last = (
            sides.label(value),
            sides.label(value_a[wide]),
            sides.label(value_b[wide]),
        )
        stuck[wide[here == UNKNOWN]] = True
        nearer_a = sides.differ(value, value_a[wide]) <= sides.differ(value, value_b[wide])
        forward = np.where(first != last, here == first, (here == first) & nearer_a)
        for chosen, end, values in ((forward, a, value_a), (~forward, b, value_b)):
            chosen = chosen & (here != UNKNOWN)
            end[wide[chosen]], values[wide[chosen]] = middle[chosen], value[chosen]
    return Brackets(a, b, edges.view, value_a, value_b)


def _inside(
    a: np.ndarray, b: np.ndarray, view: np.ndarray, evaluate: Evaluate
) -> tuple[np.ndarray, np.ndarray]:
    """Points between a and b with their values: the middles, or where these did not converge
    another point that did."""
    rows = np.arange(len(a))
    middle = (a + b) / 2
    value = evaluate(middle)[rows, view]
    missing = np.flatnonzero(np.isinf(value).any(axis=-1))
    if len(missing):
        parts = np.array(_ELSEWHERE)[:, None, None]
        tried = a[missing] + parts * (b[missing] - a[missing])  # (part, edge, axis)
        values = evaluate(tried.reshape(-1, a.shape[1])).reshape(
            len(parts), len(missing), -1, value.shape[-1]
        )
        values = values[:, np.arange(len(missing)), view[missing]]
        first = np.argmax(~np.isinf(values).any(axis=-1), axis=0)
        middle[missing] = tried[first, np.arange(len(missing))]
        value[missing] = values[first, np.arange(len(missing))]
    return middle, value


def sides_of(values: np.ndarray, level: float | str | None, zero: float) -> Sides:
    """The levels that separate the phases, from the values at a first set of points (point, view,
    component).

    Without a `level`, a component that vanishes (up to `zero` of its largest modulus) at some
    points and not at others is separated there. Any other component has no level, so that only its
    jumps and divergences are boundaries; with "middle" its level lies half way between its smallest
    and largest value.
    """
    flat = np.where(np.isfinite(values), values, np.nan).reshape(-1, values.shape[-1])
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        least, most, size = (
            np.nanmin(flat, axis=0),
            np.nanmax(flat, axis=0),
            np.nanmax(np.abs(flat), axis=0),
        )
        vanishes = np.nanmin(np.abs(flat), axis=0) <= zero * size
    spread = np.where(most > least, most - least, np.where(size > 0, size, 1.0))
    spread = np.where(np.isfinite(spread), spread, 1.0)
    nowhere = np.zeros(len(spread), bool)
    if level == MIDDLE:
        return Sides(spread, (least + most) / 2, nowhere)
    if isinstance(level, (int, float)):
        return Sides(spread, np.full(len(spread), float(level)), nowhere)
    if level is not None:
        raise ValueError(
            f'level = {level!r}: must be a number, or "{MIDDLE}" for the middle of the range of '
            "values"
        )
    return Sides(spread, np.where(vanishes, zero * size, np.inf), vanishes)
