"""Reads the values of a sweep, `n_train=10:1000:50:log` or `temperature=0.1,0.2`, and the ranges of
a plane, `temperature=0.01:1`."""

import math
from collections.abc import Sequence
from typing import Any

from orderparam.core.described import number_in

_POINTS = 100_000


def is_range(text: str) -> bool:
    """True if a value is lo:hi or lo:hi:log; the architecture fc:1:relu is not."""
    parts = text.split(":")
    return len(parts) in (2, 3) and _is_number(parts[0]) and _is_number(parts[1])


def plane_range(name: str, text: str) -> tuple[Any, ...]:
    """The range as (lo, hi), or (lo, hi, "log")."""
    low, high, *scale = text.split(":")
    if not all(math.isfinite(number_in(end, name)) for end in (low, high)):
        raise ValueError(f"{name}={text}: both ends of a range must be finite numbers")
    if scale and scale[0] not in ("log", "linear"):
        raise ValueError(f"{name}={text}: write {name}=LOW:HIGH or {name}=LOW:HIGH:log")
    return (float(low), float(high), *scale)


def grid_of(texts: Sequence[str]) -> dict[str, list[float | str]]:
    """Every swept field and its values."""
    grid: dict[str, list[float | str]] = {}
    for text in texts:
        name, values = swept(text)
        if name in grid:
            raise ValueError(f"--over {text}: {name} is swept twice; write all of its values once")
        grid[name] = values
    return grid


def swept(text: str) -> tuple[str, list[float | str]]:
    """A field and its values from "x=lo:hi:n[:log]" or "x=a,b,c"."""
    name, equals, value = (part.strip() for part in text.partition("="))
    wrong = ValueError(
        f"--over {text}: write NAME=LOW:HIGH:NUMBER, NAME=LOW:HIGH:NUMBER:log or NAME=A,B,C"
    )
    if not equals or not value or not all(name.split(".")):
        raise wrong
    for number in filter(_is_number, value.replace(",", ":").split(":")):
        number_in(number, f"--over {name}")
    if ":" not in value:
        parts = [part.strip() for part in value.split(",")]
        numbers = [found for part in parts if (found := _number(part)) is not None]
        if 0 < len(numbers) < len(parts):
            odd = next(part for part in parts if _number(part) is None)
            raise ValueError(f"--over {text}: {odd!r} is not a finite number, as the others are")
        return name, list(numbers or parts)
    low, high, count, *scale = (*value.split(":"), "", "")[: max(3, value.count(":") + 1)]
    first, last, points = _number(low), _number(high), _number(count)
    if (
        first is None
        or last is None
        or points is None
        or not points.is_integer()
        or scale not in ([], ["log"], ["linear"])
    ):
        raise wrong
    if not 2 <= points <= _POINTS:
        raise ValueError(
            f"--over {text}: the number of values must be at least 2 and at most {_POINTS}"
        )
    if scale == ["log"] and not (first > 0 and last > 0):
        raise ValueError(f"--over {text}: a logarithmic range must be positive")
    import numpy as np

    made = (
        np.geomspace(first, last, int(points))
        if scale == ["log"]
        else np.linspace(first, last, int(points))
    )
    return name, made.tolist()


def _is_number(text: str) -> bool:
    """True for a number, also for nan, inf and what is too large for a double."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None
