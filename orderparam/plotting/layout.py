"""A figure as a page shows it: title, one legend, axes, caption below, in one of two widths."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from orderparam.plotting.style import COLUMN, PAGE, ink

_TITLE, _CAPTION, _GAP = 10, 9, 0.08  # points, points, inches
_HEIGHTS = {1: 2.6, 2: 2.55, 3: 2.05, 4: 1.75}  # of one set of axes, by the number of columns


def canvas(rows: int = 1, columns: int = 1, **options: Any) -> tuple[Any, np.ndarray]:
    """A figure with rows x columns of axes (always a matrix): a column wide for a single one, else a page.

    options: of matplotlib's `subplots`, such as `sharex`.
    """
    import matplotlib.pyplot as plt

    width = COLUMN if rows * columns == 1 else PAGE
    size = (width, rows * _HEIGHTS.get(columns, 1.7))
    return plt.subplots(rows, columns, figsize=size, squeeze=False, **options)


def finish(figure: Any, title: str = "", handles: Mapping[str, Any] | None = None, caption: str = "") -> None:
    """Puts a title and a legend (text -> handle) above the axes and a caption below; the figure grows by what they need."""
    width, height = figure.get_size_inches()
    inside = width - 2 * _GAP
    head = [figure.text(0, 0, wrapped(figure, title, inside, _TITLE), size=_TITLE, weight="bold", va="top")] if title else []
    foot = [figure.text(0, 0, wrapped(figure, caption, inside, _CAPTION), size=_CAPTION, va="top")] if caption else []
    legend = _legend(figure, handles, inside) if handles else None
    tall = [_height(figure, text) + _GAP for text in (*head, *foot)]
    above = (tall[0] if head else 0) + (_height(figure, legend) + 0.5 * _GAP if legend else 0)
    below = tall[-1] + _GAP if foot else 0
    whole = height + above + below
    figure.set_size_inches(width, whole)
    figure.get_layout_engine().set(rect=(0, below / whole, 1, height / whole))
    left = _GAP / width
    for text, top in zip((*head, *foot), ([1 - 0.5 * _GAP / whole] if head else []) + [(below - _GAP) / whole]):
        text.set_position((left, top))
    if legend is not None:
        legend.set_bbox_to_anchor((0.5, 1 - (tall[0] if head else 0) / whole), figure.transFigure)
    for artist in (*head, *foot, legend):
        if artist is not None:
            artist.set_in_layout(False)


def _legend(figure: Any, handles: Mapping[str, Any], inside: float) -> Any:
    """The legend in as many columns as fit side by side."""
    for columns in range(len(handles), 0, -1):
        legend = figure.legend(
            list(handles.values()), list(handles), loc="upper center", ncols=columns, borderaxespad=0, columnspacing=1.4
        )
        if columns == 1 or legend.get_window_extent(figure.canvas.get_renderer()).width / figure.dpi <= inside:
            return legend
        legend.remove()
    return None


def _height(figure: Any, artist: Any) -> float:
    return artist.get_window_extent(figure.canvas.get_renderer()).height / figure.dpi


def wrapped(figure: Any, text: str, width: float, size: float) -> str:
    """The text in lines of at most `width` inches at that size; formulas stay whole, and no last line is a lonely word."""
    words = re.findall(r"(?:\$[^$]*\$|[^\s$])+", text)
    lengths = [_length(figure, word, size) for word in words]
    space = _length(figure, "n n", size) - 2 * _length(figure, "n", size)
    lines = _lines(lengths, space, width)
    if len(lines) > 1 and _extent(lines[-1], lengths, space) < 0.3 * width:
        for narrower in np.linspace(width, 0.6 * width, 30):
            found = _lines(lengths, space, float(narrower))
            if len(found) > len(lines):
                break
            lines = found
            if _extent(lines[-1], lengths, space) >= 0.5 * width:
                break
    return "\n".join(" ".join(words[i] for i in line) for line in lines)


def _extent(line: list[int], lengths: list[float], space: float) -> float:
    return sum(lengths[i] for i in line) + space * (len(line) - 1)


def _lines(lengths: list[float], space: float, width: float) -> list[list[int]]:
    """Positions of the words on each line, filled greedily."""
    lines: list[list[int]] = [[]]
    for i in range(len(lengths)):
        if lines[-1] and _extent([*lines[-1], i], lengths, space) > width:
            lines.append([])
        lines[-1].append(i)
    return lines


def _length(figure: Any, text: str, size: float) -> float:
    """Inches that a text takes."""
    artist = figure.text(0, 0, text, size=size, color=ink())
    extent = artist.get_window_extent(figure.canvas.get_renderer()).width / figure.dpi
    artist.remove()
    return float(extent)
