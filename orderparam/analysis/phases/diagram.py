"""The phase diagram of a theory in a plane of two fields.

    op.phase_diagram(quenched, system, {"n_train": (1e2, 1e5, "log"), "temperature": (0.01, 1)},
    order="overlap")

Squares whose corners differ are divided until they have the size of the resolution; then boundaries
are followed from square to square in every direction, and on every edge that they cross they are
located by bisection and classified (`brackets`). Neighbouring crossings make curves (`curves`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from orderparam.analysis.phases.axes import Axis, axes_of
from orderparam.analysis.phases.brackets import UNKNOWN, Brackets, Distances, Sides, sides_of
from orderparam.analysis.phases.crossings import Crossings, examined
from orderparam.analysis.phases.curves import Chain, chains
from orderparam.analysis.phases.points import Order, Points, points_of
from orderparam.analysis.phases.transition import dataset, left_out, surviving, told_exponent
from orderparam.core.names import nearest
from orderparam.core.system import System

COARSE = 8  # number of squares of the first grid along each axis
# smallest changes, in units of the range, over a square that is divided and along an edge that may
# contain a jump
_ROUGH, _SUDDEN = 0.2, 0.05
_DISTANCES = Distances(9, 4.0)
_END_ROUNDS = 6  # number of halvings between the last crossings of two kinds

Node = tuple[int, int]
Edge = tuple[int, int, int]  # the node at its lower end, and the axis along which it goes


@dataclass(frozen=True)
class Boundary:
    """A curve along which one kind of transition happens.

    kind, branch: as in `Transition`. x, y: its points in order. error: that of each point along its
    edge, in units of the axes' ranges. low, high: the order parameter on both sides. exponent,
    exponent_error: at each point of a continuous transition the exponent and half of an interval
    that covers it, NaN where it is not determined. doubt: that of the kind at each point.
    """

    kind: str
    branch: str
    component: str
    x: np.ndarray
    y: np.ndarray
    error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    exponent: np.ndarray
    exponent_error: np.ndarray
    doubt: np.ndarray


@dataclass(frozen=True)
class End:
    """A point inside the plane where a boundary changes its kind or ends: "tricritical" between a
    jump and a continuous transition, "critical" where a jump ends. error: that of its place along
    the boundary, in units of the axes' ranges."""

    kind: str
    branch: str
    x: float
    y: float
    error: float


@dataclass(frozen=True)
class PhaseDiagram:
    """Boundaries and their ends in the plane of the fields x and y. data: all numbers as a labelled
    data set. points: the number of evaluated points.

    `data` holds `order` and `phase` at every point, and one row for each point of a boundary
    (`boundary_*`; `curve` numbers them) and for each end (`end_*`).
    """

    x: str
    y: str
    boundaries: tuple[Boundary, ...]
    ends: tuple[End, ...]
    points: int
    data: xr.Dataset = field(repr=False)

    def select(self, kind: str | None = None, branch: str | None = None) -> tuple[Boundary, ...]:
        """The boundaries of that kind and branch. Raises `ValueError` for a branch that does not
        exist."""
        branches = [str(name) for name in self.data["branch"].values]
        if branch is not None and branch not in branches:
            raise ValueError(f"the diagram has no branch {branch!r}{nearest(branch, branches)}")
        return tuple(
            one
            for one in self.boundaries
            if kind in (None, one.kind) and branch in (None, one.branch)
        )

    def figure(self) -> Any:
        """The plane with its boundaries, in the house style."""
        from orderparam.analysis.phases.figure import figure_of

        return figure_of(self.data)

    def __repr__(self) -> str:
        lines = [f"PhaseDiagram({self.x}, {self.y}: {self.points} points{left_out(self.data)})"]
        for one in self.boundaries:
            where = f"({one.x[0]:.5g}, {one.y[0]:.5g}) to ({one.x[-1]:.5g}, {one.y[-1]:.5g})"
            parts = [f"  {one.kind:<12}{one.branch:<14}{len(one.x):>4} points {where}"]
            if one.kind == "jump":
                sizes = np.abs(one.high - one.low)
                parts.append(f"{one.component} jumps by {np.min(sizes):.3g} to {np.max(sizes):.3g}")
            if one.kind == "continuous":
                determined = np.isfinite(one.exponent)
                enough = 2 * determined.sum() > len(determined)
                exponent, error = (
                    float(np.median(each[determined])) if enough else np.nan
                    for each in (one.exponent, one.exponent_error)
                )
                parts.append(told_exponent(exponent, error))
            parts.append(f"doubt {np.median(one.doubt):.2g}")
            lines.append(", ".join(parts))
        for end in self.ends:
            lines.append(
                f"  {end.kind:<12}{end.branch:<14}at ({end.x:.6g}, {end.y:.6g}) ± {end.error:.1g} "
                "of the range"
            )
        return "\n".join(lines)


def phase_diagram(
    theory: Callable[..., Any],
    system: System,
    over: Mapping[str, Sequence[Any]],
    *,
    order: Order,
    level: float | str | None = None,
    branches: Sequence[str] | None = None,
    resolution: int = 32,
    accuracy: float = 1e-6,
    zero: float = 1e-6,
    store: str | Path | None = None,
    batch: int = 64,
) -> PhaseDiagram:
    """The phases of a theory in the plane of two fields.

    The phase of a point is the number of components of the order parameter above their level; at a
    boundary it changes, or a component jumps. Lines along which the order parameter diverges are
    not followed: `transition` finds them one by one.

    Args:
        theory: The theory.
        system: Its system; the values of the varied fields are not used.
        over: The two fields and their ranges, `{"load": (0.01, 0.2), "temperature": (0.01, 1,
            "log")}`, that of the x axis first.
        order, level, branches, zero, store, batch: As in `transition`.
        resolution: Squares along each axis (8, 16, 32, ...); narrower phases may be missed.
        accuracy: Of each crossing along its edge, in units of the axes' ranges.

    Raises:
        ValueError: for unknown names and illegal ranges.
        SweepError: where every point failed.

    >>> from orderparam.systems.spins import MeanFieldMagnet, mean_field
    >>> plane = {"temperature": (0.3, 1.7), "field": (-0.3, 0.3)}
    >>> phases = op.phase_diagram(
    ...     mean_field, MeanFieldMagnet(1.0), plane, order="magnetisation", resolution=8
    ... )
    >>> "jump" in {boundary.kind for boundary in phases.boundaries}
    True
    """
    axes = axes_of(system, over, 2)
    if resolution < COARSE or resolution & (resolution - 1):
        raise ValueError(f"resolution = {resolution}: must be 8, 16, 32, 64, ...")
    if not 1e-12 <= accuracy <= 0.1 / resolution:
        raise ValueError(
            f"accuracy = {accuracy}: must be at least 1e-12 and at most a tenth of a square, "
            f"{0.1 / resolution:g}"
        )
    evaluate = points_of(theory, system, axes, order, branches, store, batch)
    plane = _Plane(evaluate, resolution)
    plane.evaluate(_corners(plane.coarse))
    first = np.stack(list(plane.values.values()))
    sides = sides_of(first, level, zero)
    crossed, edges = plane.followed(plane.refined(sides), sides)
    found = examined(edges, evaluate, sides, accuracy, _DISTANCES)
    # where a smooth order parameter crosses 0, or begins at 0 on the border, there is no boundary
    if level is None:
        real = found.kind != "crossover"
        crossed, found = [name for name, kept in zip(crossed, real) if kept], found.take(real)
    curves = chains(crossed, found, resolution)
    ends = [
        end
        for chain in curves
        for end in _ends(chain, found, evaluate, sides, accuracy, curves, 1 / resolution)
    ]
    return _diagram(axes, evaluate, sides, found, curves, ends)


@dataclass(frozen=True)
class PlaneSquare:
    """A square: its lower left corner on the finest lattice, and its side."""

    i: int
    j: int
    side: int

    @property
    def corners(self) -> tuple[Node, Node, Node, Node]:
        i, j, s = self.i, self.j, self.side
        return (i, j), (i + s, j), (i, j + s), (i + s, j + s)

    @property
    def parts(self) -> tuple["PlaneSquare", ...]:
        half = self.side // 2
        return tuple(
            PlaneSquare(i, j, half)
            for i in (self.i, self.i + half)
            for j in (self.j, self.j + half)
        )

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The edges of a square of side 1."""
        i, j = self.i, self.j
        return (i, j, 0), (i, j + 1, 0), (i, j, 1), (i + 1, j, 1)


def _corners(squares: Iterable[PlaneSquare]) -> list[Node]:
    return list(dict.fromkeys(node for square in squares for node in square.corners))


@dataclass
class _Plane:
    """The values (view, component) at those nodes of the finest lattice that were needed."""

    points: Points
    resolution: int
    values: dict[Node, np.ndarray] = field(default_factory=dict)

    def evaluate(self, nodes: Iterable[Node]) -> None:
        missing = [node for node in nodes if node not in self.values]
        if missing:
            self.values.update(zip(missing, self.points(np.array(missing) / self.resolution)))

    @property
    def no_edges(self) -> Brackets:
        values = np.zeros((0, len(self.points.components)))
        return Brackets(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0, int), values, values)

    @property
    def coarse(self) -> list[PlaneSquare]:
        side = self.resolution // COARSE
        return [
            PlaneSquare(i, j, side)
            for i in range(0, self.resolution, side)
            for j in range(0, self.resolution, side)
        ]

    def refined(self, sides: Sides) -> list[PlaneSquare]:
        """The squares of side 1 inside all squares whose corners differ."""
        squares, side = self.coarse, self.resolution // COARSE
        while side > 1:
            squares = [
                part for square in squares if self._differs(square, sides) for part in square.parts
            ]
            self.evaluate(_corners(squares))
            side //= 2
        return squares

    def _differs(self, square: PlaneSquare, sides: Sides) -> bool:
        corner = np.stack([self.values[node] for node in square.corners])
        label = sides.label(corner)
        return bool(
            (label != label[0]).any()
            or (sides.differ(corner, np.roll(corner, 1, axis=0)) > _ROUGH).any()
        )

    def followed(
        self, squares: Sequence[PlaneSquare], sides: Sides
    ) -> tuple[list[tuple[Edge, int]], Brackets]:
        """All edges that boundaries cross, each with its view: those of the given squares, and
        those of every further square that a boundary enters."""
        crossed: list[tuple[Edge, int]] = []
        kept = [self.no_edges]
        seen, tried, waiting = set(squares), set(), list(squares)
        while waiting:
            self.evaluate(_corners(waiting))
            new = list(
                dict.fromkeys(
                    edge for square in waiting for edge in square.edges if edge not in tried
                )
            )
            tried.update(new)
            names, edges = self._crossing(new, sides)
            crossed += names
            kept.append(edges)
            entered = dict.fromkeys(square for edge, _ in names for square in self._beside(edge))
            waiting = [square for square in entered if square not in seen]
            seen.update(waiting)
        columns = [
            np.concatenate([getattr(one, name) for one in kept])
            for name in ("a", "b", "view", "value_a", "value_b")
        ]
        return crossed, Brackets(*columns)

    def _crossing(
        self, edges: Sequence[Edge], sides: Sides
    ) -> tuple[list[tuple[Edge, int]], Brackets]:
        if not edges:
            return [], self.no_edges
        ends = [((i, j), (i + 1, j) if axis == 0 else (i, j + 1)) for i, j, axis in edges]
        first, last = (np.stack([self.values[pair[k]] for pair in ends]) for k in (0, 1))
        labels = sides.label(first), sides.label(last)
        decided = (labels[0] != UNKNOWN) & (labels[1] != UNKNOWN)
        at, view = np.nonzero(
            decided & ((labels[0] != labels[1]) | (sides.differ(first, last) > _SUDDEN))
        )
        lower, upper = (np.array([pair[k] for pair in ends])[at] / self.resolution for k in (0, 1))
        candidates = Brackets(lower, upper, view, first[at, view], last[at, view])
        names = {
            (tuple(a), tuple(b), v): (edges[k], int(v))
            for a, b, v, k in zip(lower, upper, view, at.tolist())
        }
        chosen = surviving(candidates, self.points, sides)
        return [
            names[tuple(a), tuple(b), v] for a, b, v in zip(chosen.a, chosen.b, chosen.view)
        ], chosen

    def _beside(self, edge: Edge) -> list[PlaneSquare]:
        """The squares on both sides of an edge that lie in the plane."""
        i, j, axis = edge
        both = (
            PlaneSquare(i, j, 1),
            PlaneSquare(i, j - 1, 1) if axis == 0 else PlaneSquare(i - 1, j, 1),
        )
        return [
            square
            for square in both
            if 0 <= square.i < self.resolution and 0 <= square.j < self.resolution
        ]


def _ends(
    chain: Chain,
    found: Crossings,
    evaluate: Points,
    sides: Sides,
    accuracy: float,
    curves: Sequence[Chain],
    square: float,
) -> list[tuple[str, int, np.ndarray, float]]:
    """Kind, view, place and error of those ends of one chain that lie inside the plane."""
    kinds, members = chain.kinds, chain.members
    ends = []
    for k in range(len(members) - 1):
        pair = {str(kinds[k]), str(kinds[k + 1])}
        if "jump" in pair and len(pair & {"continuous", "crossover"}):
            place, error = _narrowed(
                found, members[k], members[k + 1], str(kinds[k]), evaluate, sides, accuracy
            )
            line = (
                "continuous" in pair
                and len(_run(kinds, k if kinds[k] == "continuous" else k + 1)) > 1
            )
            ends.append(
                ("tricritical" if line else "critical", int(found.view[members[k]]), place, error)
            )
    same = (
        other
        for other in curves
        if other is not chain and found.view[other.members[0]] == found.view[members[0]]
    )
    others = [found.place[m] for other in same for m in other.members]
    for k in () if chain.closed else (0, -1):
        place = found.place[members[k]]
        inside = np.all((place > square) & (place < 1 - square))
        alone = not any(np.linalg.norm(place - other) < 2 * square for other in others)
        if kinds[k] == "jump" and inside and alone:
            ends.append(("critical", int(found.view[members[k]]), place, 2 * square))
    return ends


def _run(kinds: np.ndarray, k: int) -> np.ndarray:
    """The crossings of the same kind around k. At the critical point itself a single crossing is
    continuous."""
    piece = np.cumsum(np.concatenate([[0], kinds[1:] != kinds[:-1]]))
    return np.flatnonzero(piece == piece[k])


def _narrowed(
    found: Crossings,
    one: int,
    other: int,
    kind: str,
    evaluate: Points,
    sides: Sides,
    accuracy: float,
) -> tuple[np.ndarray, float]:
    """The place between two crossings where the kind changes, found by crossing the boundary again
    between them."""
    first, last = found.place[one], found.place[other]
    view = found.view[[one]]
    for _ in range(_END_ROUNDS):
        middle, along = (first + last) / 2, last - first
        across = np.array([-along[1], along[0]]) / 2
        ends = np.clip(np.stack([middle - across, middle + across]), 0, 1)
        values = evaluate(ends)[[0, 1], view[0]]
        edge = Brackets(ends[:1], ends[1:], view, values[:1], values[1:])
        if (
            sides.label(values[0]) == sides.label(values[1])
            or np.linalg.norm(along) < 100 * accuracy
        ):
            break
        here = examined(edge, evaluate, sides, accuracy, _DISTANCES)
        if here.kind[0] == kind:
            first = here.place[0]
        else:
            last = here.place[0]
    return (first + last) / 2, float(np.linalg.norm(last - first)) / 2


def _diagram(
    axes: tuple[Axis, ...],
    evaluate: Points,
    sides: Sides,
    found: Crossings,
    curves: Sequence[Chain],
    ends: Sequence[tuple[str, int, np.ndarray, float]],
) -> PhaseDiagram:
    x, y = axes
    boundaries = []
    for chain in curves:
        for kind, members in chain.pieces():
            component = evaluate.components[np.bincount(found.component[members]).argmax()]
            columns = (
                getattr(found, name)[members]
                for name in ("error", "low", "high", "exponent", "exponent_error", "doubt")
            )
            place = found.place[members]
            branch = evaluate.views[found.view[members[0]]]
            boundaries.append(
                Boundary(
                    kind, branch, component, x.value(place[:, 0]), y.value(place[:, 1]), *columns
                )
            )
    named = tuple(
        End(kind, evaluate.views[view], float(x.value(place[0])), float(y.value(place[1])), error)
        for kind, view, place, error in ends
    )
    data = dataset(evaluate, axes, sides)
    rows: dict[str, Any] = {
        "curve": np.concatenate(
            [np.full(len(b.x), k) for k, b in enumerate(boundaries)] or [np.zeros(0, int)]
        )
    }
    for name in ("x", "y", "error", "low", "high", "exponent", "exponent_error", "doubt"):
        rows[f"boundary_{name}"] = np.concatenate(
            [getattr(one, name) for one in boundaries] or [np.zeros(0)]
        )
    for name in ("kind", "branch", "component"):
        rows[f"boundary_{name}"] = np.array(
            [getattr(one, name) for one in boundaries for _ in one.x], dtype=str
        )
    data = data.assign({name: ("boundary_point", column) for name, column in rows.items()})
    for name in ("kind", "branch", "x", "y", "error"):
        data[f"end_{name}"] = (
            "end",
            np.array(
                [getattr(end, name) for end in named],
                dtype=str if name in ("kind", "branch") else float,
            ),
        )
    data.attrs |= {
        "x": x.name,
        "y": y.name,
        "log": ("x" if x.log else "") + ("y" if y.log else ""),
        "branches": list(evaluate.views),
    }
    return PhaseDiagram(x.name, y.name, tuple(boundaries), named, len(data["point"]), data)
