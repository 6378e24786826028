"""Where a boundary crosses the edges that bracket it, and of which kind the transition is there.

The order parameter f is evaluated at geometrically decreasing distances h on both sides of the
crossing, and the change g(h) = |f(+h) - f(-h)| determines the kind of the boundary: Aitken's
extrapolation of g to h = 0 is the jump, g ~ h^exponent where there is none (`singularity`), and a
smooth f has f(+h) + f(-h) - 2 f(0) ~ h g.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from orderparam.analysis.phases.brackets import (
    SMALLEST,
    Brackets,
    Distances,
    Evaluate,
    Kind,
    Sides,
    bisected,
)
from orderparam.analysis.phases.singularity import UNKNOWN as UNDETERMINED
from orderparam.analysis.phases.singularity import Power, power_law

# largest ratio of a vanishing order parameter to its value on the other side at the same distance
_LEFT_OVER = 0.03
_FLOORS = 30.0  # rounding of the theory is small beside this many times its size
_NOISE = 1e-12  # of the range of the order parameter: what the theory's solver leaves open at best


@dataclass
class Crossings:
    """The points where boundaries cross edges (n), in the unit square.

    low, high: the order parameter on the side of the lower and of the higher label (or value).
    exponent, exponent_error: of continuous transitions and of divergences, NaN where it is not
    determined. logarithm: True if a logarithm multiplies the power. doubt: that of the kind, from 0
    (none) to 1 (it is a guess): the fraction of the jump, or of the change, that the extrapolation
    does not determine.
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
    logarithm: np.ndarray
    doubt: np.ndarray
    phases: np.ndarray  # (n, 2): the labels on both sides, the lower one first

    def take(self, chosen: np.ndarray) -> "Crossings":
        return Crossings(*(column[chosen] for column in vars(self).values()))

    def joined(self, others: "Crossings") -> "Crossings":
        return Crossings(
            *(np.concatenate(pair) for pair in zip(vars(self).values(), vars(others).values()))
        )


def around(
    centre: np.ndarray,
    along: np.ndarray,
    view: np.ndarray,
    reach: np.ndarray,
    evaluate: Evaluate,
    distances: Distances,
) -> tuple[np.ndarray, np.ndarray]:
    """Distances (n, distance), the largest first, and values (n, distance, side, component) on both
    sides of these points."""
    h = np.minimum(reach, 0.999 * _room(centre, along))[:, None] * distances.ratio ** -np.arange(
        float(distances.number)
    )
    placed = (
        centre[:, None, None]
        + np.array([-1.0, 1.0])[:, None] * (along[:, None] * h[:, :, None])[:, :, None]
    )
    values = evaluate(placed.reshape(-1, placed.shape[-1]))
    return h, values.reshape(len(centre), distances.number, 2, *values.shape[1:])[
        np.arange(len(centre)), :, :, view
    ]


def classified(
    narrow: Brackets, reach: np.ndarray, evaluate: Evaluate, sides: Sides, distances: Distances
) -> Crossings:
    """The kind of the transition in each of these narrow brackets, from values at distances up to
    `reach`."""
    rows = np.arange(len(narrow))
    along = (narrow.b - narrow.a) / narrow.width()[:, None]
    component = sides.component(narrow.value_a, narrow.value_b)
    end_a, end_b = (values[rows, component] for values in (narrow.value_a, narrow.value_b))
    label_a, label_b = sides.label(narrow.value_a), sides.label(narrow.value_b)
    swap = np.where(label_a == label_b, end_a > end_b, label_a > label_b)
    low, high = np.where(swap, end_b, end_a), np.where(swap, end_a, end_b)
    level = np.where(
        sides.vanishing[component] & ~(np.abs(low) > sides.level[component]),
        sides.level[component],
        0.0,
    )
    centre, error = narrow.middle(), narrow.width() / 2

    def seen() -> tuple[np.ndarray, np.ndarray]:
        h, values = around(centre, along, narrow.view, reach, evaluate, distances)
        f = np.take_along_axis(values, component[:, None, None, None], axis=3)[..., 0]
        return h, np.where(swap[:, None, None], f[:, :, ::-1], f)  # the lower side first

    def kinds() -> list[_Told]:
        columns = (low, high, level, sides.scale[component], error)
        numbers = np.stack(columns, axis=1)
        return [_kind(_Seen.of(h[i], f[i], numbers[i], distances.stride)) for i in rows]

    # the side where the order parameter is smaller
    toward = np.where(swap, 1.0, -1.0)[:, None] * along
    h, f = seen()
    beyond = np.array([_beyond(h[i], f[i], float(level[i])) for i in rows])
    hidden = beyond > 2 * error
    # the level is crossed before the order parameter vanishes: look around that place
    if hidden.any():
        centre = np.where(hidden[:, None], centre + beyond[:, None] * toward, centre)
        error = np.where(hidden, beyond, error)
        h, f = seen()
        first = kinds()
        nearer = np.array(
            [
                one.power.shift_error
                if one.kind == "continuous" and one.power.determined
                else np.inf
                for one in first
            ]
        )
        nearer = hidden & (nearer < error / 2)
        shift = np.where(nearer, [one.power.shift for one in first], 0.0)
        centre = centre + shift[:, None] * toward
        error = np.where(nearer, [2 * one.power.shift_error for one in first], error)
        h, f = seen()
    found = kinds()
    error = np.array([one.error for one in found])
    onset = np.array([one.kind == "continuous" for one in found], bool) & (level > 0)
    shift, spread = (
        np.array([getattr(one.power, name) for one in found]) for name in ("shift", "shift_error")
    )
    # the power law gives the place more precisely than the bracket
    better = onset & (spread < error)
    return Crossings(
        np.where(better[:, None], centre + shift[:, None] * toward, centre),
        np.where(better, np.maximum(spread, np.minimum(narrow.width() / 2, error)), error),
        narrow.view,
        np.array([one.kind for one in found], dtype="<U10"),
        low,
        high,
        component,
        np.array([one.power.exponent for one in found]),
        np.array([one.power.error for one in found]),
        np.array([one.power.logarithm for one in found], bool),
        np.array([one.doubt for one in found]),
        np.sort(np.stack([label_a, label_b], axis=1), axis=1),
    )


def examined(
    edges: Brackets, evaluate: Evaluate, sides: Sides, accuracy: float, distances: Distances
) -> Crossings:
    """Bisects every edge to `accuracy` and classifies the crossing."""
    lengths = edges.width()
    if len(lengths):
        smallest = float(lengths.min()) / distances.span
        # a bracket is small compared with the smallest distance
        accuracy = min(accuracy, max(smallest / 16, 1e-12))
    narrow = bisected(edges, evaluate, sides, accuracy)
    return classified(narrow, lengths, evaluate, sides, distances)


def _room(centre: np.ndarray, along: np.ndarray) -> np.ndarray:
    """The largest distance that stays inside the unit square in both directions."""
    room = np.minimum(centre, 1 - centre)
    return np.min(
        np.divide(room, np.abs(along), out=np.full_like(room, np.inf), where=np.abs(along) > 1e-12),
        axis=1,
    )


@dataclass(frozen=True)
class _Seen:
    """One crossing. h: distances, the largest first; f: (distance, side), the lower side first.
    level: 0 where the order parameter does not vanish on one side. error: of the place."""

    h: np.ndarray
    f: np.ndarray
    low: float
    high: float
    level: float
    scale: float
    error: float
    stride: int

    @classmethod
    def of(cls, h: np.ndarray, f: np.ndarray, numbers: np.ndarray, stride: int) -> "_Seen":
        """A crossing with the numbers low, high, level, scale and error."""
        low, high, level, scale, error = numbers.tolist()
        return cls(h, f, low, high, level, scale, error, stride)

    def power(self, y: np.ndarray, rest: np.ndarray | float = 0.0) -> Power:
        """The power law of y. rest: the part of a rounded transition on the other side, which may
        change y by its square root."""
        noise = _NOISE * self.scale
        with np.errstate(all="ignore"):
            return power_law(
                self.h, y, np.where(rest > noise, np.sqrt(rest / y), noise / y), self.error
            )


class _Told(NamedTuple):
    """The kind, the power law, the doubt of the kind, and the error of the place."""

    kind: Kind
    power: Power
    doubt: float
    error: float


def _kind(seen: _Seen, floor: float = 0.0) -> _Told:
    """The kind of a crossing. floor: changes of the order parameter below this are rounding errors
    of the theory."""
    f = seen.f
    if np.isnan([seen.low, seen.high, *f.ravel()]).any():  # a branch may vanish just before it ends
        return _end(seen)
    usable = np.flatnonzero(np.isfinite(f).all(axis=1) & (seen.h > seen.error))
    usable = usable[(len(usable) - 1) % seen.stride :: seen.stride] if len(usable) else usable
    g = np.abs(f[usable, 1] - f[usable, 0])
    # at the border of the plane, or almost no point converged
    if not (len(g) >= 4 and seen.h[-1] > 0 and np.all(g > 0)):
        return _Told("crossover", UNDETERMINED, 1.0, seen.error)
    jump, before = _aitken(g[-3:]), _aitken(g[-4:-1])
    if jump > 0.5 * g[-1] and (floor > 0 or abs(seen.high - seen.low) > 0.5 * jump):
        if jump > SMALLEST * seen.scale:
            return _Told("jump", UNDETERMINED, min(1.0, abs(jump - before) / jump), seen.error)
        # a larger part by which the order parameter changes
        farther = seen.h[usable][g > _FLOORS * jump]
        if floor > 0 or len(farther) < 5:
            return _Told("crossover", UNDETERMINED, 1.0, seen.error)
        kept = seen.h >= farther[-1]
        return _kind(
            replace(
                seen, h=seen.h[kept], f=f[kept], error=max(seen.error, float(farther[-1]) / _FLOORS)
            ),
            jump,
        )
    rest = min(1.0, max(0.0, abs(jump) - 2 * max(seen.level, floor)) / g[-1])
    y, left = np.abs(f[:, 1]), np.abs(f[:, 0])
    if seen.level > 0 and np.sum(left[usable] < _LEFT_OVER * y[usable]) >= 4:
        return _Told("continuous", _determined(seen.power(y, left)), rest, seen.error)
    bent = np.abs(f[usable].sum(axis=1) - seen.low - seen.high) / g
    slopes = np.diff(np.log(g)) / np.diff(np.log(seen.h[usable]))
    steep, unsteady = abs(1 - slopes[-1]), abs(slopes[-1] - slopes[-2])
    smooth = bent[-1] <= 1e-3 or bent[-1] <= 0.5 * bent[-2] or floor > 0
    if smooth and not (steep > 0.05 and unsteady < 0.1 * steep):
        return _Told(
            "crossover",
            UNDETERMINED,
            1.0 if floor > 0 else float(min(1.0, max(bent[-1], steep))),
            seen.error,
        )
    return _Told("continuous", _determined(seen.power(np.abs(f[:, 1] - f[:, 0]))), rest, seen.error)


def _end(seen: _Seen) -> _Told:
    """The kind of the end of a branch: where its order parameter vanishes it is a continuous
    transition, where it grows without bound a divergence."""
    lives = [side for side in (0, 1) if np.isfinite(seen.f[:, side]).all()]
    if len(lives) == 1 and seen.h[-1] > 0:
        y = np.abs(seen.f[:, lives[0]])
        power = seen.power(y)
        if power.determined and power.exponent > 0.02 and y[-1] < 0.05 * y[0]:
            return _Told("continuous", power, 0.0, seen.error)
        if power.determined and power.exponent < -0.02 and y[-1] > 100 * y[0]:
            return _Told("divergence", power, 0.0, seen.error)
    return _Told("end", UNDETERMINED, 0.0, seen.error)


def _determined(power: Power) -> Power:
    return power if power.determined else UNDETERMINED


def _beyond(h: np.ndarray, f: np.ndarray, level: float) -> float:
    """The distance between the place where the order parameter crosses the level and the place
    where it vanishes, by the power law of the smallest distances."""
    y, left = np.abs(f[:, 1]), np.abs(f[:, 0])
    seen = np.isfinite(y) & (y > 0) & (np.isnan(left) | (left < _LEFT_OVER * y))
    if level == 0 or h[-1] <= 0 or seen.sum() < 4:
        return 0.0
    h, y = h[seen], y[seen]
    ratio = h[0] / h[1]
    beyond = 0.0
    for _ in range(100):
        slopes = np.diff(np.log(y)) / np.diff(np.log(h + beyond))
        exponent = float(slopes[-1] + (slopes[-1] - slopes[-2]) / (ratio - 1))
        if not 0 < exponent < 20:
            return 0.0
        last, beyond = beyond, float((h[-1] + beyond) * (level / y[-1]) ** (1 / exponent))
        if abs(beyond - last) <= 1e-12 * h[-1]:
            break
    return beyond if beyond < h[0] else 0.0


def _aitken(g: np.ndarray) -> float:
    """The limit of a geometric sequence from three of its numbers."""
    first, second = g[1] - g[0], g[2] - g[1]
    if abs(second) <= 1e-6 * abs(g[2]) or first == second:
        return float(g[2])
    return float(g[2] + second * second / (first - second))
