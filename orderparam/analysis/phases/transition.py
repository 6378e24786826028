"""One transition on a line: where, of which kind, how large a jump or with which exponent.

    op.transition(mean_field, magnet, {"temperature": (0.1, 2)}, order="magnetisation")
    # Transition(temperature = 1 ± 2e-12; continuous, exponent 0.5 ± 1e-9)

For an experiment it is a stochastic bisection: see `measured`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from orderparam.analysis.phases.axes import Axis, axes_of
from orderparam.analysis.phases.brackets import Brackets, Crossings, Sides, bisected, examined, sides_of
from orderparam.analysis.phases.measured import measured_transition
from orderparam.analysis.phases.points import STABLE, Order, Points, points_of
from orderparam.core.system import System
from orderparam.core.verb import Experiment, unwrap

ACCURACY = 1e-11  # of the range, to which a crossing is bracketed
_DISTANCES = 6
SUDDEN = 0.1  # a change of the order parameter between neighbouring points that may be a jump, of its range
_RANK = {"jump": 0, "end": 1, "continuous": 2, "crossover": 3}


@dataclass(frozen=True)
class Transition:
    """A transition along one field.

    name, location, error: the field, where, and half the width of the bracket; for an experiment the standard deviation.
    kind: "jump", "continuous", "crossover" (nothing but a value that is passed), or "end" (of a branch); "measured" for an
    experiment. branch: the one on which it happens, "stable" for that of least free energy, empty where there is but one.
    low, high: the order parameter on both sides. exponent, exponent_error: of a continuous one. doubt: of the kind, 0 (none) to
    1 (a guess). spinodals: branch -> where it jumps or ends. others: all other transitions on the line. data: every point.
    """

    name: str
    location: float
    error: float
    kind: str
    branch: str
    component: str
    low: float
    high: float
    exponent: float
    exponent_error: float
    doubt: float
    spinodals: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    others: tuple["Transition", ...] = ()
    data: xr.Dataset = field(default_factory=xr.Dataset, repr=False)

    @property
    def jump(self) -> float:
        return self.high - self.low

    def __repr__(self) -> str:
        digits = max(4, min(12, int(np.ceil(np.log10(max(abs(self.location), 1e-300) / max(self.error, 1e-300)))) + 1))
        parts = [f"{self.name} = {self.location:.{digits}g} ± {self.error:.1g}", self.kind]
        if self.kind == "jump":
            parts.append(f"{self.component} from {self.low:.6g} to {self.high:.6g}")
        if self.kind == "continuous":
            parts.append(f"exponent {self.exponent:.6g} ± {self.exponent_error:.1g}")
        if self.branch:
            parts.append(f"branch {self.branch!r}")
        if self.doubt > 0.1:
            parts.append(f"doubt of the kind {self.doubt:.2g}")
        spinodals = [f"{name!r} at {', '.join(f'{x:.6g}' for x in at)}" for name, at in self.spinodals.items()]
        text = "; ".join(["; ".join(parts), *([f"branches end: {', '.join(spinodals)}"] if spinodals else [])])
        more = f"; {len(self.others)} more in `others`" if self.others else ""
        return f"Transition({text}{more})"


def transition(
    fn: Callable[..., Any],
    system: System,
    over: Mapping[str, Sequence[Any]],
    *,
    order: Order,
    level: float | None = None,
    branches: Sequence[str] | None = None,
    points: int = 65,
    zero: float = 1e-6,
    store: str | Path | None = None,
    batch: int = 64,
    seeds: int | None = None,
    accuracy: float | None = None,
) -> Transition:
    """The transition of a theory or an experiment along one field, `{"temperature": (0.1, 2)}` or `(0.1, 2, "log")`.

    order: an observable, several, or a function of the data set (dimension `point`) to an array; entries are components.
    level: the value that parts the two phases; None: where the order parameter vanishes on a part of the line, the end of that
        part. Jumps are found anywhere; only where there is neither, the middle between least and largest value parts the phases.
    branches: words of the theory's option `branch` (or `start`), None for all. Where the theory has a free energy, the
        transition is that of the branch of least free energy, and the ends of branches are its `spinodals`.
    points: those of the first scan; two transitions between neighbouring points may be missed. zero: what counts as vanished,
        in units of the largest value. accuracy: of the location, in units of the range (1e-11; an experiment: 0.01).
    seeds: runs at each point of an experiment. store: folder in which points are kept; the same call again goes on there.

    Returns the most definite transition (a jump before the end of a branch, a continuous one, a crossover; of equals that with
    the largest change), the others in `others`. Raises `ValueError` for unknown names and illegal ranges, and where the order
    parameter does not change sides on the line; `SweepError` when every point failed.

    >>> from orderparam.systems.spins import MeanFieldMagnet, mean_field
    >>> onset = op.transition(mean_field, MeanFieldMagnet(1.0), {"temperature": (0.3, 1.7)}, order="magnetisation")
    >>> onset.kind, round(onset.location, 9)
    ('continuous', 1.0)
    """
    measured = isinstance(unwrap(fn)[0], Experiment)
    (axis,) = axes_of(system, over, 1, whole=measured)
    if measured:
        if not isinstance(order, str):
            raise ValueError(f"order = {order!r}: name one observable of the experiment")
        if seeds is None:
            raise ValueError("seeds = None: this is an experiment; give the number of runs at each point")
        found = measured_transition(fn, system, axis, order, level, seeds, 0.01 if accuracy is None else accuracy, store)
        own = (found.location, found.error, "measured", "", order, found.low, found.high, np.nan, np.nan, 0.0)
        return Transition(axis.name, *own, data=found.data)
    if seeds is not None:
        raise ValueError("seeds are given, but this is a theory, which takes none")
    if points < 5:
        raise ValueError(f"points = {points}: must be at least 5")
    evaluate = points_of(fn, system, (axis,), order, branches, store, batch)
    unit = np.linspace(0, 1, points)[:, None]
    values = evaluate(unit)
    for middle in (False, True):
        sides = sides_of(values, level, zero, middle)
        edges = surviving(_edges(unit, values, sides), evaluate, sides)
        if len(edges):
            break
    else:
        seen = f"{evaluate.components[0]} is {np.nanmin(values):.6g} to {np.nanmax(values):.6g}"
        raise ValueError(f"no transition between {axis.name} = {axis.low:g} and {axis.high:g}: {seen}, without a jump")
    crossings = examined(edges, evaluate, sides, ACCURACY if accuracy is None else accuracy, _DISTANCES)
    return _chosen(crossings, evaluate, axis, sides)


def _edges(unit: np.ndarray, values: np.ndarray, sides: Sides) -> Brackets:
    """Neighbouring points between which the label changes, or the values differ much."""
    label = sides.label(values)
    sudden = sides.differ(values[1:], values[:-1]) > SUDDEN
    at, view = np.nonzero((label[1:] != label[:-1]) | sudden)
    return Brackets(unit[at], unit[at + 1], view, values[at, view], values[at + 1, view])


def surviving(edges: Brackets, evaluate: Callable[[np.ndarray], np.ndarray], sides: Sides) -> Brackets:
    """Those edges that a boundary crosses: the label changes, or there is a jump, which six bisections do not make smaller
    than a quarter (a smooth change becomes 1/64 of it, a square root 1/8)."""
    differ = sides.label(edges.value_a) != sides.label(edges.value_b)
    tried = edges.take(~differ)
    after = bisected(tried, evaluate, sides, rounds=6)
    before = sides.differ(tried.value_a, tried.value_b)
    lasts = sides.label(after.value_a) != sides.label(after.value_b)
    lasts |= sides.differ(after.value_a, after.value_b) > 0.25 * before
    return edges.take(np.sort(np.concatenate([np.flatnonzero(differ), np.flatnonzero(~differ)[lasts]])))


def _chosen(found: Crossings, evaluate: Points, axis: Axis, sides: Sides) -> Transition:
    data = dataset(evaluate, (axis,), sides)
    views = evaluate.views
    transitions = [
        Transition(
            axis.name,
            float(axis.value(found.place[i, 0])),
            float(found.error[i]) * axis.slope(float(np.clip(found.place[i, 0], 0, 1))),
            str(found.kind[i]),
            views[found.view[i]],
            evaluate.components[found.component[i]],
            float(found.low[i]),
            float(found.high[i]),
            float(found.exponent[i]),
            float(found.exponent_error[i]),
            float(found.doubt[i]),
            data=data,
        )
        for i in range(len(found.view))
    ]
    spinodals: dict[str, tuple[float, ...]] = {}
    for name in views if len(views) > 1 else ():
        ends = [one.location for one in transitions if one.branch == name and one.kind in ("jump", "end")]
        if ends and name != STABLE:
            spinodals[name] = tuple(sorted(ends))
    main = [one for one in transitions if one.branch == views[0]] or transitions
    best = min(main, key=lambda one: (_RANK[one.kind], -abs(np.nan_to_num(one.jump))))
    others = tuple(sorted((one for one in transitions if one is not best), key=lambda one: one.location))
    return Transition(**{**vars(best), "spinodals": spinodals, "others": others})


def dataset(evaluate: Points, axes: Sequence[Axis], sides: Sides) -> xr.Dataset:
    """Every point that was evaluated, in the order of evaluation: the fields, the order parameter and the phase of each view."""
    unit, values = np.concatenate(evaluate.unit), np.concatenate(evaluate.values)
    coords: dict[Any, Any] = {axis.name: ("point", axis.value(unit[:, k])) for k, axis in enumerate(axes)}
    coords |= {"branch": list(evaluate.views), "component": list(evaluate.components)}
    variables = {"order": (("point", "branch", "component"), values), "phase": (("point", "branch"), sides.label(values))}
    return xr.Dataset(variables, coords, {"unconverged": evaluate.unconverged, "failed": evaluate.failed})
