"""One transition on a line: its location, its kind, and the size of the jump or the exponent.

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
from orderparam.analysis.phases.brackets import (
    UNKNOWN,
    Brackets,
    Distances,
    Sides,
    bisected,
    sides_of,
)
from orderparam.analysis.phases.crossings import Crossings, examined
from orderparam.analysis.phases.measured import measured_transition
from orderparam.analysis.phases.points import STABLE, Order, Points, points_of
from orderparam.analysis.phases.poles import poles
from orderparam.core.system import System
from orderparam.core.verb import Experiment, unwrap
from orderparam.running.program import fn_name
from orderparam.running.sweep import SweepError

ACCURACY = 1e-11  # fraction of the range to which a crossing is bracketed
_DISTANCES = Distances(28, 2.0)  # eight decades
# change of the order parameter between neighbouring points that may be a jump, as a fraction of its
# range
SUDDEN = 0.1
_SAME = 1e-6  # fraction of the range: nearer crossings of one kind count as one
_RANK = {"jump": 0, "end": 1, "divergence": 2, "continuous": 3, "crossover": 4}


@dataclass(frozen=True)
class Transition:
    """A transition along one field.

    name, location, error: the field, its value, and half the width of the bracket, including all
    points in it that did not converge; for an experiment the standard deviation. kind: "jump",
    "continuous", "divergence", "end" (of a branch), or "crossover" (a requested level is crossed);
    "measured" for an experiment. branch: that of the transition, "stable" for the branch of lowest
    free energy, empty where there is only one. low, high: the order parameter on both sides.
    exponent, exponent_error: the exponent of a continuous transition and, negative, of a
    divergence, with half of an interval that covers it; NaN where it is not determined. logarithm:
    True if a power of the logarithm of the distance multiplies the power of the distance. doubt:
    that of the kind, 0 (none) to 1 (a guess). spinodals: branch -> field at which it jumps or ends.
    others: all other transitions on the line. data: every point; `data.attrs["unconverged"]` of
    them did not converge and were not used.
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
    logarithm: bool
    doubt: float
    spinodals: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    others: tuple["Transition", ...] = ()
    data: xr.Dataset = field(default_factory=xr.Dataset, repr=False)

    @property
    def jump(self) -> float:
        return self.high - self.low

    def __repr__(self) -> str:
        digits = max(
            4,
            min(
                12,
                int(np.ceil(np.log10(max(abs(self.location), 1e-300) / max(self.error, 1e-300))))
                + 1,
            ),
        )
        parts = [f"{self.name} = {self.location:.{digits}g} ± {self.error:.1g}", self.kind]
        if self.kind == "jump":
            parts.append(f"{self.component} from {self.low:.6g} to {self.high:.6g}")
        if self.kind in ("continuous", "divergence"):
            parts.append(told_exponent(self.exponent, self.exponent_error, self.logarithm))
        if self.branch:
            parts.append(f"branch {self.branch!r}")
        if self.doubt > 0.1:
            parts.append(f"doubt of the kind {self.doubt:.2g}")
        spinodals = [
            f"{name!r} at {', '.join(f'{x:.6g}' for x in at)}"
            for name, at in self.spinodals.items()
        ]
        text = "; ".join(
            ["; ".join(parts), *([f"branches end: {', '.join(spinodals)}"] if spinodals else [])]
        )
        more = f"; {len(self.others)} more in `others`" if self.others else ""
        return f"Transition({text}{more}{left_out(self.data)})"


def told_exponent(exponent: float, error: float, logarithm: bool = False) -> str:
    """The text "exponent 0.5 ± 1e-06", with as many digits as are determined."""
    if not np.isfinite(exponent):
        return "exponent not determined"
    digits = min(8, max(1, -int(np.floor(np.log10(max(error, 1e-8))))))
    beside = " beside a logarithm" if logarithm else ""
    return f"exponent {exponent:.{digits}f} ± {error:.1g}{beside}"


def left_out(data: xr.Dataset) -> str:
    """The part of a representation about points that did not converge: their number, and the range
    of the fields."""
    lost = data.attrs.get("unconverged", 0)
    if not lost:
        return ""
    rows = np.flatnonzero((data["phase"] == UNKNOWN).any("branch"))
    fields = [
        (str(name), column.values[rows])
        for name, column in data.coords.items()
        if column.dims == ("point",)
    ]
    where = ", ".join(f"{name} = {own.min():.6g} to {own.max():.6g}" for name, own in fields)
    points = data.sizes["point"] * data.sizes["branch"]
    return f"; {lost} of {points} evaluations did not converge and are not used ({where})"


def transition(
    fn: Callable[..., Any],
    system: System,
    over: Mapping[str, Sequence[Any]],
    *,
    order: Order,
    level: float | str | None = None,
    branches: Sequence[str] | None = None,
    points: int = 65,
    zero: float = 1e-6,
    store: str | Path | None = None,
    batch: int = 64,
    seeds: int | None = None,
    accuracy: float | None = None,
) -> Transition:
    """The transition of a theory or an experiment along one field.

    Args:
        fn: The theory or experiment.
        system: Its system; the value of the varied field is not used.
        over: The field and its range, `{"temperature": (0.1, 2)}` or `(0.1, 2, "log")`.
        order: The order parameter: an observable, several, or a function of the data set (dimension
            `point`) to an array; entries are components.
        level: The value that separates the two phases. None: where the order parameter vanishes on
            a part of the line, the end of that part. "middle": half way between the smallest and
            the largest value. Jumps and divergences are found anywhere.
        branches: Words of the theory's option `branch` (or `start`), None for all. If the theory
            has a free energy, the transition is that of the branch of lowest free energy, and the
            ends of branches are its `spinodals`.
        points: Number of points of the first scan; two transitions between neighbouring points may
            be missed.
        zero: Size below which an order parameter counts as zero, in units of its largest value.
        store: Folder in which points are stored; the same call later resumes.
        batch: Number of points that are evaluated at a time.
        seeds: Number of runs at each point of an experiment.
        accuracy: Of the location, in units of the range (default 1e-11; for an experiment 0.01).

    Returns:
        The most definite transition (a jump before the end of a branch, a divergence, a continuous
        transition, a crossover; of equals that with the largest change), with the others in
        `others`. Points that did not converge are not used.

    Raises:
        ValueError: for unknown names and illegal ranges, and where there is no transition.
        SweepError: where every point failed or none converged.

    >>> from orderparam.systems.spins import MeanFieldMagnet, mean_field
    >>> onset = op.transition(
    ...     mean_field, MeanFieldMagnet(1.0), {"temperature": (0.3, 1.7)}, order="magnetisation"
    ... )
    >>> onset.kind, round(onset.location, 9)
    ('continuous', 1.0)
    """
    measured = isinstance(unwrap(fn)[0], Experiment)
    (axis,) = axes_of(system, over, 1, whole=measured)
    if measured:
        return _of_experiment(fn, system, axis, order, level, seeds, accuracy, store)
    if seeds is not None:
        raise ValueError("seeds are given, but this is a theory, which takes none")
    if points < 5:
        raise ValueError(f"points = {points}: must be at least 5")
    evaluate = points_of(fn, system, (axis,), order, branches, store, batch)
    unit = np.linspace(0, 1, points)[:, None]
    values = evaluate(unit)
    sides = sides_of(values, level, zero)
    if not np.isfinite(values).any():
        raise SweepError(
            f"{fn_name(fn)}: no point converged between {axis.name} = {axis.low:g} and "
            f"{axis.high:g}"
        )
    diverging = poles(unit, values, evaluate, sides, _DISTANCES) if level is None else None
    edges = surviving(_edges(unit, values, sides, diverging), evaluate, sides)
    crossings = examined(
        edges, evaluate, sides, ACCURACY if accuracy is None else accuracy, _DISTANCES
    )
    if diverging is not None:
        crossings = crossings.take(crossings.kind != "crossover").joined(diverging)
    if not len(crossings.kind):
        nothing = _nothing(values, axis, evaluate.components[0], level)
        raise ValueError(nothing + left_out(dataset(evaluate, (axis,), sides)))
    return _chosen(crossings, evaluate, axis, sides)


def _of_experiment(
    fn: Callable[..., Any],
    system: System,
    axis: Axis,
    order: Order,
    level: float | str | None,
    seeds: int | None,
    accuracy: float | None,
    store: str | Path | None,
) -> Transition:
    """The transition of an experiment, by stochastic bisection."""
    if not isinstance(order, str):
        raise ValueError(f"order = {order!r}: name one observable of the experiment")
    if seeds is None:
        raise ValueError(
            "seeds = None: this is an experiment; give the number of runs at each point"
        )
    if isinstance(level, str):
        raise ValueError(
            f"level = {level!r}: must be a number for an experiment, or None for the middle of "
            "its two ends"
        )
    found = measured_transition(
        fn, system, axis, order, level, seeds, 0.01 if accuracy is None else accuracy, store
    )
    return Transition(
        name=axis.name,
        location=found.location,
        error=found.error,
        kind="measured",
        branch="",
        component=order,
        low=found.low,
        high=found.high,
        exponent=np.nan,
        exponent_error=np.nan,
        logarithm=False,
        doubt=0.0,
        data=found.data,
    )


def _nothing(values: np.ndarray, axis: Axis, component: str, level: float | str | None) -> str:
    """The message that there is no transition on the line, with the values that were seen."""
    seen = values[np.isfinite(values)]
    line = (
        f"no transition between {axis.name} = {axis.low:g} and {axis.high:g}: {component} is "
        f"{seen.min():.6g} to {seen.max():.6g}"
    )
    if level is not None:
        return f"{line}, on one side of the level"
    return (
        f"{line}, without a jump, a divergence or a part where it vanishes; give a level (level=, "
        "--level) to ask where it passes that value"
    )


def _edges(unit: np.ndarray, values: np.ndarray, sides: Sides, found: Crossings | None) -> Brackets:
    """Pairs of neighbouring converged points between which the label changes or the values differ
    strongly, except around a divergence, where they always do."""
    label = sides.label(values)
    kept = []
    for number in range(values.shape[1]):
        labelled = np.flatnonzero(label[:, number] != UNKNOWN)
        first, last = labelled[:-1], labelled[1:]
        changes = label[first, number] != label[last, number]
        sudden = sides.differ(values[last, number], values[first, number]) > SUDDEN
        for place in [] if found is None else found.place[found.view == number, 0]:
            sudden &= (unit[last, 0] < place - 2 / len(unit)) | (
                unit[first, 0] > place + 2 / len(unit)
            )
        chosen = changes | sudden
        kept.append((first[chosen], last[chosen], np.full(int(chosen.sum()), number)))
    first, last, view = (np.concatenate(columns) for columns in zip(*kept))
    order = np.lexsort((view, first))
    first, last, view = first[order], last[order], view[order]
    return Brackets(unit[first], unit[last], view, values[first, view], values[last, view])


def surviving(
    edges: Brackets, evaluate: Callable[[np.ndarray], np.ndarray], sides: Sides
) -> Brackets:
    """The edges that a boundary crosses: the label changes, or there is a jump, which eight
    bisections do not make smaller than a tenth (a smooth change becomes 1/256 of it, a square root
    1/16, a cube root 1/6)."""
    differ = sides.label(edges.value_a) != sides.label(edges.value_b)
    tried = edges.take(~differ)
    after = bisected(tried, evaluate, sides, rounds=8)
    before = sides.differ(tried.value_a, tried.value_b)
    lasts = sides.label(after.value_a) != sides.label(after.value_b)
    lasts |= sides.differ(after.value_a, after.value_b) > 0.1 * before
    return edges.take(
        np.sort(np.concatenate([np.flatnonzero(differ), np.flatnonzero(~differ)[lasts]]))
    )


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
            bool(found.logarithm[i]),
            float(found.doubt[i]),
            data=data,
        )
        for i in range(len(found.view))
    ]
    transitions = [
        one
        for k, one in enumerate(transitions)
        if not any(_same(one, other, axis) for other in transitions[:k])
    ]
    spinodals: dict[str, tuple[float, ...]] = {}
    for name in views if len(views) > 1 else ():
        ends = [
            one.location
            for one in transitions
            if one.branch == name and one.kind in ("jump", "end")
        ]
        if ends and name != STABLE:
            spinodals[name] = tuple(sorted(ends))
    main = [one for one in transitions if one.branch == views[0]] or transitions
    best = min(main, key=lambda one: (_RANK[one.kind], -abs(np.nan_to_num(one.jump))))
    others = tuple(
        sorted((one for one in transitions if one is not best), key=lambda one: one.location)
    )
    return Transition(**{**vars(best), "spinodals": spinodals, "others": others})


def _same(one: Transition, other: Transition, axis: Axis) -> bool:
    """True if two crossings are one transition, found on two neighbouring edges."""
    near = abs(one.location - other.location) < _SAME * (axis.high - axis.low)
    return near and (one.branch, one.kind) == (other.branch, other.kind)


def dataset(evaluate: Points, axes: Sequence[Axis], sides: Sides) -> xr.Dataset:
    """Every point that was evaluated, in the order of evaluation: the fields, the order parameter
    (NaN where it does not exist or did not converge) and the phase of each view."""
    unit, values = np.concatenate(evaluate.unit), np.concatenate(evaluate.values)
    coords: dict[Any, Any] = {
        axis.name: ("point", axis.value(unit[:, k])) for k, axis in enumerate(axes)
    }
    coords |= {"branch": list(evaluate.views), "component": list(evaluate.components)}
    shown = np.where(np.isinf(values), np.nan, values)
    variables = {
        "order": (("point", "branch", "component"), shown),
        "phase": (("point", "branch"), sides.label(values)),
    }
    return xr.Dataset(
        variables, coords, {"unconverged": evaluate.unconverged, "failed": evaluate.failed}
    )
