"""The figure of every start, as numbers stored in the package: it is shown at once, before a theory
is compiled.

`figures.json` holds, for each system of the table of starts, its theories along the axis and the
measurement beside them; docs/explorer_figures.py writes it. Pictures are drawn from it when a page
asks for them.
"""

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from orderparam.explore.curves import colours
from orderparam.explore.starts import FirstFigure
from orderparam.explore.systems import theories_of

STORE = Path(__file__).with_name("figures.json")
WIDTH, HEIGHT, EDGE = 160, 96, 6  # size of a picture, in its own units
RADIUS = 2.6


@dataclass(frozen=True)
class StoredFigure:
    """x; curves: theory -> rows of the observable; measured_x, mean, error: the marks, a row for
    each entry of the observable."""

    x: np.ndarray
    curves: Mapping[str, np.ndarray]
    measured_x: np.ndarray
    mean: np.ndarray
    error: np.ndarray


@functools.cache
def stored_figures() -> Mapping[str, StoredFigure]:
    """System -> the figure of its start."""
    return {name: _read(row) for name, row in json.loads(STORE.read_text()).items()}


def _read(row: Mapping[str, Any]) -> StoredFigure:
    def numbers(values: Any) -> np.ndarray:
        return np.array(values, dtype=float)  # null, a point without a value, becomes NaN

    x, mean, error = (numbers(row[key]) for key in ("measured_x", "mean", "error"))
    return StoredFigure(
        numbers(row["x"]),
        {name: numbers(rows) for name, rows in row["curves"].items()},
        x,
        mean,
        error,
    )


def picture(start: FirstFigure) -> str:
    """The figure of a start as a small SVG: theories as lines, measurements as dots, in the colours
    of the page."""
    figure = stored_figures().get(start.system)
    if figure is None:
        return ""
    log_x = start.x.endswith(":log")
    across, up = _scale(log_x), _scale(start.log_y)
    heights = np.concatenate([up(rows).ravel() for rows in (*figure.curves.values(), figure.mean)])
    heights = heights[np.isfinite(heights)]
    places = np.concatenate([across(figure.x), across(figure.measured_x)])
    if not heights.size or not places.size:
        return ""
    left, right, low, high = places.min(), places.max(), heights.min(), heights.max()

    def place(x: np.ndarray, y: np.ndarray) -> list[tuple[float, float]]:
        u = (across(x) - left) / max(right - left, 1e-12)
        v = (up(y) - low) / max(high - low, 1e-12)
        return [
            (EDGE + a * (WIDTH - 2 * EDGE), HEIGHT - EDGE - b * (HEIGHT - 2 * EDGE))
            for a, b in zip(u, v)
        ]

    lines = []
    for name, colour in reversed(colours(list(theories_of(start.system)), start.theories).items()):
        for row in figure.curves.get(name, ()):
            path = _path(place(figure.x, row))
            lines.append(f'<path d="{path}" stroke="{colour}"/>' if path else "")
    dots = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}"/>'
        for row in figure.mean
        for x, y in place(figure.measured_x, row)
        if np.isfinite(y)
    ]
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'aria-hidden="true">{"".join(lines)}{"".join(dots)}</svg>'
    )


def _scale(log: bool) -> Callable[[np.ndarray], np.ndarray]:
    def scaled(values: np.ndarray) -> np.ndarray:
        if not log:
            return values
        return np.log10(np.where(values > 0, values, np.nan))

    return scaled


def _path(points: Sequence[tuple[float, float]]) -> str:
    """The path of a line, interrupted where a value is missing."""
    words, drawing = [], False
    for x, y in points:
        if np.isfinite(y):
            words.append(f"{'L' if drawing else 'M'}{x:.1f} {y:.1f}")
            drawing = True
        else:
            drawing = False
    return "".join(words)
