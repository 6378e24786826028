"""Edges that a boundary crosses: where it crosses them, and what happens there.

Of an edge one end is on one side and the other on the other. Bisection of all edges at once narrows them; then the order
parameter g(h) = |f(+h) - f(-h)| at distances h on both sides, each a quarter of the one before, says which kind of boundary it
is: Aitken's extrapolation of g to h = 0 is the jump, g ~ h^exponent where there is none, and a smooth f has
f(+h) + f(-h) - 2 f(0) ~ h g.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

Kind = Literal["jump", "continuous", "crossover", "end"]
RATIO = 4.0  # between neighbouring distances
SMALLEST = 1e-3  # of the order parameter's range, a jump: theories that round a width or stop at a tolerance have smaller ones
NONE = -1  # label of a point where the branch does not exist


@dataclass(frozen=True)
class Sides:
    """On which side of a boundary a point is, and by how much values differ.

    scale: of each component; level: the value that parts the phases; vanishing: of which components the size counts (the phase
    without order is then where |f| <= level), else f itself does.
    """

    scale: np.ndarray
    level: np.ndarray
    vanishing: np.ndarray

    def over(self, values: np.ndarray) -> np.ndarray:
        """(..., component): whether each is beyond its level."""
        return np.where(self.vanishing, np.abs(values), values) > self.level

    def label(self, values: np.ndarray) -> np.ndarray:
        """How many components are beyond their level; -1 where the branch does not exist."""
        return np.where(np.isnan(values).any(axis=-1), NONE, self.over(values).sum(axis=-1))

    def differ(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """The largest difference of a component in units of its scale; 0 where one does not exist."""
        return np.nan_to_num(np.abs(one - other) / self.scale).max(axis=-1)

    def component(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """The component that tells the two sides apart: of those that pass their level the one that differs most, else of all."""
        differ = np.nan_to_num(np.abs(one - other) / self.scale)
        passes = self.over(one) != self.over(other)
        return np.argmax(np.where(passes.any(axis=-1, keepdims=True) & ~passes, -1.0, differ), axis=-1)


@dataclass
class Brackets:
    """Edges in the unit square from a to b (n, axes), each of one view, with the values (n, component) at their ends."""

    a: np.ndarray
    b: np.ndarray
    view: np.ndarray
    value_a: np.ndarray
    value_b: np.ndarray

    def __len__(self) -> int:
        return len(self.view)

    def take(self, chosen: np.ndarray) -> "Brackets":
        return Brackets(self.a[chosen], self.b[chosen], self.view[chosen], self.value_a[chosen], self.value_b[chosen])

    def middle(self) -> np.ndarray:
        return (self.a + self.b) / 2

    def width(self) -> np.ndarray:
        return np.linalg.norm(self.b - self.a, axis=1)


Evaluate = Callable[[np.ndarray], np.ndarray]


def bisected(edges: Brackets, evaluate: Evaluate, sides: Sides, accuracy: float = 0.0, rounds: int = 60) -> Brackets:
    """The halves in which the label changes; where it does not, those in which the values differ most. Until they are as narrow
    as `accuracy`, or the given number of times."""
    a, b, value_a, value_b = (array.copy() for array in (edges.a, edges.b, edges.value_a, edges.value_b))
    for _ in range(rounds):
        wide = np.flatnonzero(np.linalg.norm(b - a, axis=1) > accuracy)
        if not len(wide):
            break
        middle = (a[wide] + b[wide]) / 2
        value = evaluate(middle)[np.arange(len(wide)), edges.view[wide]]
        here, first, last = sides.label(value), sides.label(value_a[wide]), sides.label(value_b[wide])
        nearer_a = sides.differ(value, value_a[wide]) <= sides.differ(value, value_b[wide])
        forward = np.where(first != last, here == first, (here == first) & nearer_a)
        for chosen, end, known in ((forward, a, value_a), (~forward, b, value_b)):
            end[wide[chosen]], known[wide[chosen]] = middle[chosen], value[chosen]
    return Brackets(a, b, edges.view, value_a, value_b)


@dataclass
class Crossings:
    """Where boundaries cross edges (n), in the unit square.

    low, high: the order parameter on the side of the lower and of the higher label (or value). exponent: NaN but for continuous
    ones. doubt: of the kind, from 0 (none) to 1 (it is a guess): the part of the jump that its extrapolation leaves open, or the
    part of the change of the order parameter that the power law does not explain.
    """

    place: np.ndarray
    error: np.ndarray
    view: np.ndarray
    kind: np.ndarray
    low: np.ndarray
    high: np.ndarray
    component: np.ndarray
    exponent: np.ndarray
    exponent_error: np.ndarray
    doubt: np.ndarray
    phases: np.ndarray  # (n, 2): the labels on both sides, the lower first

    def put(self, at: np.ndarray, others: "Crossings") -> None:
        """Replaces those at these places."""
        for name, column in vars(self).items():
            column[at] = getattr(others, name)


def classified(narrow: Brackets, lengths: np.ndarray, evaluate: Evaluate, sides: Sides, distances: int) -> Crossings:
    """What happens in these narrow brackets, which came from edges of the given lengths."""
    n, rows = len(narrow), np.arange(len(narrow))
    along = (narrow.b - narrow.a) / narrow.width()[:, None]
    centre = narrow.middle()
    h = np.minimum(lengths / 4, 0.999 * _room(centre, along))[:, None] * RATIO ** -np.arange(distances)  # (n, distance)
    placed = centre[:, None, None] + np.array([-1.0, 1.0])[:, None] * (along[:, None] * h[:, :, None])[:, :, None]
    values = evaluate(placed.reshape(-1, placed.shape[-1]))
    around = values.reshape(n, distances, 2, *values.shape[1:])[rows, :, :, narrow.view]  # (n, distance, side, component)
    component = sides.component(narrow.value_a, narrow.value_b)
    f = np.take_along_axis(around, component[:, None, None, None], axis=3)[..., 0]
    end_a, end_b = (values[rows, component] for values in (narrow.value_a, narrow.value_b))
    label_a, label_b = sides.label(narrow.value_a), sides.label(narrow.value_b)
    swap = np.where(label_a == label_b, end_a > end_b, label_a > label_b)
    low, high = np.where(swap, end_b, end_a), np.where(swap, end_a, end_b)
    phases = np.sort(np.stack([label_a, label_b], axis=1), axis=1)
    level = np.where(sides.vanishing[component] & (np.abs(low) <= sides.level[component]), sides.level[component], 0.0)
    step = SMALLEST * sides.scale[component]
    seen = [_kind(h[i], f[i], float(low[i]), float(high[i]), float(level[i]), float(step[i])) for i in rows]
    kind = np.array([one[0] for one in seen], dtype="<U10")
    exponent, exponent_error, doubt, beyond = np.array([one[1:] for one in seen], float).reshape(n, 4).T.copy()
    place = centre + (np.where(swap, 1.0, -1.0) * beyond)[:, None] * along
    error = narrow.width() / 2 + 1e-3 * beyond
    return Crossings(place, error, narrow.view, kind, low, high, component, exponent, exponent_error, doubt, phases)


DOUBTFUL = 0.02
_FINEST, _MOST = 1e-11, 10  # bracket and distances of a second look


def examined(edges: Brackets, evaluate: Evaluate, sides: Sides, accuracy: float, distances: int) -> Crossings:
    """Every edge bisected to `accuracy` and classified; those of which the kind is doubtful once more, much nearer."""
    lengths = edges.width()
    if not len(lengths):
        return classified(edges, lengths, evaluate, sides, distances)
    accuracy = min(accuracy, float(lengths.min()) / (64 * RATIO**distances))  # a bracket is small beside the smallest distance
    narrow = bisected(edges, evaluate, sides, accuracy)
    found = classified(narrow, lengths, evaluate, sides, distances)
    visible = np.linalg.norm(found.place - narrow.middle(), axis=1) > narrow.width()  # nearer, the level would hide the onset
    doubtful = np.flatnonzero((found.doubt > DOUBTFUL) & (found.kind != "end") & ~visible)
    if len(doubtful):
        nearer = bisected(narrow.take(doubtful), evaluate, sides, max(_FINEST, accuracy / RATIO ** (_MOST - distances)))
        found.put(doubtful, classified(nearer, lengths[doubtful], evaluate, sides, _MOST))
    return found


def _room(centre: np.ndarray, along: np.ndarray) -> np.ndarray:
    """How far one may go both ways inside the unit square."""
    room = np.minimum(centre, 1 - centre)
    return np.min(np.divide(room, np.abs(along), out=np.full_like(room, np.inf), where=np.abs(along) > 1e-12), axis=1)


def _kind(
    h: np.ndarray, f: np.ndarray, low: float, high: float, level: float, step: float
) -> tuple[Kind, float, float, float, float]:
    """Kind, exponent, its error, doubt, and how far beyond the crossing of the level the order parameter vanishes.

    f: (distance, side), the smallest distance last; level: 0 where the order parameter does not vanish on one side; step: a
    smaller jump may be the theory's own rounding.
    """
    nan = float("nan")
    if np.isnan([low, high, *f.ravel()]).any():  # a branch may vanish just before it ends
        return "end", nan, nan, 0.0, 0.0
    g = np.abs(f[:, 1] - f[:, 0])
    if not (h[-1] > 0 and np.all(g > 0)):  # at the border of the plane
        return "crossover", nan, nan, 1.0, 0.0
    jump, before = _aitken(g[-3:]), _aitken(g[-4:-1])
    if jump > 0.5 * g[-1] and abs(high - low) > 0.5 * jump:
        if jump < step:
            return "crossover", nan, nan, 1.0, 0.0
        return "jump", nan, nan, min(1.0, abs(jump - before) / jump), 0.0
    exponent, error, beyond = _power(h, g, level)
    bent, steep = np.abs(f.sum(axis=1) - low - high) / g, abs(1 - exponent)
    smooth = bent[-1] <= 1e-3 or bent[-1] <= 0.5 * bent[-2]
    if smooth and not (steep > 0.05 and error < 0.1 * steep):
        return "crossover", nan, nan, float(min(1.0, max(bent[-1], steep))), 0.0
    rest = max(0.0, abs(jump) - 2 * level) / g[-1]
    return "continuous", exponent, error, float(min(1.0, max(rest, error / max(exponent, 1e-9)))), beyond


def _power(h: np.ndarray, g: np.ndarray, level: float) -> tuple[float, float, float]:
    """The exponent of g ~ (h + beyond)^exponent, corrected for a factor 1 + O(h), with the correction as its error; and beyond,
    where g passes the level at h = 0."""
    beyond = 0.0
    for _ in range(100):
        slopes = np.diff(np.log(g)) / np.diff(np.log(h + beyond))
        exponent = float(slopes[-1] + (slopes[-1] - slopes[-2]) / (RATIO - 1))
        if not 0 < exponent < 20 or level == 0:
            break
        last, beyond = beyond, float((h[-1] + beyond) * (level / g[-1]) ** (1 / exponent))
        if abs(beyond - last) <= 1e-12 * h[-1]:
            break
    return exponent, float(abs(exponent - slopes[-1])), beyond if beyond < h[0] else 0.0


def _aitken(g: np.ndarray) -> float:
    """The limit of three numbers that come near it geometrically."""
    first, second = g[1] - g[0], g[2] - g[1]
    if abs(second) <= 1e-6 * abs(g[2]) or first == second:
        return float(g[2])
    return float(g[2] + second * second / (first - second))


def sides_of(values: np.ndarray, level: float | None, zero: float, middle: bool = False) -> Sides:
    """What parts the phases, from the values at a first set of points (point, view, component).

    Without a `level`, a component that vanishes (up to `zero` of its largest size) at some points and not at others is parted
    there, and any other nowhere, so that only its jumps are boundaries; with `middle`, between its least and largest value.
    """
    flat = values.reshape(-1, values.shape[-1])
    with np.errstate(all="ignore"):
        least, most, size = np.nanmin(flat, axis=0), np.nanmax(flat, axis=0), np.nanmax(np.abs(flat), axis=0)
        vanishes = np.nanmin(np.abs(flat), axis=0) <= zero * size
    spread = np.where(most > least, most - least, np.where(size > 0, size, 1.0))
    spread = np.where(np.isfinite(spread), spread, 1.0)
    if level is not None:
        return Sides(spread, np.full(len(spread), float(level)), np.zeros(len(spread), bool))
    return Sides(spread, np.where(vanishes, zero * size, (least + most) / 2 if middle else np.inf), vanishes)
