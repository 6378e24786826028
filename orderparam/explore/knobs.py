"""The numbers of a system as sliders: range, scale and steps, from the declared field and from the
range that a study sweeps."""

import dataclasses
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from orderparam.analysis.phases.axes import Axis
from orderparam.core.fields import Declaration
from orderparam.core.grid import numeric
from orderparam.core.system import System, replace
from orderparam.explore.opening import Opening, curves_of, first_opening, opening_of
from orderparam.explore.systems import bounds, is_whole, numbers_of

STEPS = 240  # positions of a slider
DECADES = 1.5  # decades above and below the value of a field on a logarithmic scale
_WIDE = 20.0  # ratio of a range's ends above which its scale is logarithmic


@dataclass(frozen=True)
class Knob:
    """One number of a system: its dotted name, its meaning, its allowed values, and the range and
    scale of its slider."""

    name: str
    meaning: str
    allowed: str
    axis: Axis
    whole: bool

    def value(self, position: int) -> float:
        """The number at a position of the slider, with at most four digits, as it is shown and
        written in the address."""
        axis = self.axis
        if position <= 0 or position >= STEPS:
            return axis.low if position <= 0 else axis.high
        return self.neat(float(axis.value(position / STEPS)))

    def neat(self, value: float) -> float:
        """A number rounded to four digits, and to a whole number where it is a count, within the
        range."""
        neat = round(value) if self.whole else float(f"{value:.4g}")
        return float(min(max(neat, self.axis.low), self.axis.high))

    def position(self, value: float) -> int:
        """The position of the slider that is nearest to a number."""
        low, high = self.axis.low, self.axis.high
        value = min(max(value, low), high)
        share = (
            math.log(value / low) / math.log(high / low)
            if self.axis.log
            else (value - low) / (high - low)
        )
        return round(STEPS * share)


@functools.lru_cache(maxsize=256)
def knobs(system: str, start: str) -> dict[str, Knob]:
    """Every number of a system at its start: first those that its study sweeps, last those of its
    parts."""
    opening = opening_of(start) if start else first_opening(system)
    swept = swept_by(opening)
    found = {}
    for name, declaration, value in numbers_of(opening.system):
        axis, whole = _axis(name, declaration, value, swept.get(name, ())), is_whole(declaration)
        if axis is not None and _stands(opening.system, axis, whole):
            if not whole:
                axis = _inside(opening.system, axis)
            found[name] = Knob(name, declaration.meaning, declaration.allowed, axis, whole)
    return dict(sorted(found.items(), key=lambda item: (item[0] not in swept, "." in item[0])))


def swept_by(opening: Opening) -> dict[str, list[float]]:
    """The values that the study of a start gives to each number, in all its curves of that
    system."""
    found: dict[str, list[float]] = {}
    for curve in curves_of(opening.study) if opening.study else ():
        if type(curve.system) is type(opening.system):
            for name, values in curve.over.items():
                if numeric(values):
                    found.setdefault(name, []).extend(float(x) for x in values)
    return found


def _stands(system: System, axis: Axis, whole: bool) -> bool:
    """True if the system allows another number near the middle of the range. A term of a sum that
    must be one allows none."""
    for u in (0.3, 0.5, 0.7):
        value = float(axis.value(u))
        try:
            replace(system, {axis.name: round(value) if whole else value})
        except ValueError:
            continue
        return True
    return False


def _inside(system: System, axis: Axis) -> Axis:
    """The range without an end that the system refuses because of its other fields, such as a ridge
    of 0 beside a lasso of 0. Such an end moves inwards by a thousandth of the range.
    """
    step = (axis.high - axis.low) / 1000

    def taken(value: float) -> bool:
        try:
            replace(system, {axis.name: value})
        except ValueError:
            return False
        return True

    low = axis.low if taken(axis.low) else axis.low + step
    high = axis.high if taken(axis.high) else axis.high - step
    return dataclasses.replace(axis, low=low, high=high)


def _axis(name: str, declaration: Declaration, value: float, swept: Sequence[float]) -> Axis | None:
    """The range and scale of a slider: those that a study sweeps, widened to contain the value, or
    else a range around the value as far as the field allows."""
    low, high = bounds(declaration)
    excluded = declaration.limits["above"], declaration.limits["below"]
    whole = is_whole(declaration)
    finite = [float(x) for x in (*swept, value) if math.isfinite(x)]
    if len(set(swept)) > 2:
        first, last = min(finite), max(finite)
        log = first > 0 and last / first > _WIDE
    elif low is not None and high is not None and high <= 1e4:
        first, last, log = low, high, False
    elif finite and value > 0 and (whole or low is None or excluded[0] is not None or low > 0):
        first, last, log = value / 10**DECADES, value * 10**DECADES, True
    elif finite:
        size = 4 * abs(value) or 1.0
        first, last, log = -size, size, False
    else:  # infinite: nothing is left out
        first, last, log = 1.0, 1e4, True
    first = first if low is None else max(first, low)
    last = last if high is None else min(last, high)
    span = last - first
    if span <= 0 or not math.isfinite(span):
        return None
    if whole:
        first, last = math.floor(first) or (1.0 if log else 0.0), math.ceil(last)
        first = first if low is None else max(first, math.ceil(low))
    first, last = (x if x in (low, high, *finite) else float(f"{x:.3g}") for x in (first, last))
    if first == excluded[0]:
        first = 1.0 if whole else first + span / 1000
    if last == excluded[1]:
        last -= span / 1000
    return Axis(name, float(first), float(last), log and first > 0) if first < last else None
