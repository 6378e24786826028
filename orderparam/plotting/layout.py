"""The layout of a figure on a page: title, one legend, axes and caption, in one of two widths."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from orderparam.plotting.style import COLUMN, PAGE

_TITLE, _CAPTION, _GAP = 10, 9, 0.08  # points, points, inches
# height of one set of axes, by the number of columns
_HEIGHTS = {1: 2.6, 2: 2.55, 3: 2.05, 4: 1.75}


def canvas(
    rows: int = 1, columns: int = 1, narrow: bool = False, **options: Any
) -> tuple[Any, np.ndarray]:
    """A figure with rows x columns of axes (always a matrix): a column wide for a single one or if
    `narrow`, else a page.

    options: further options of matplotlib's `subplots`, such as `sharex`.
    """
    import matplotlib.pyplot as plt

    width = COLUMN if narrow or rows * columns == 1 else PAGE
    size = (width, rows * _HEIGHTS.get(columns, 1.7))
    return plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", **options)


def finish(
    figure: Any, title: str = "", handles: Mapping[str, Any] | None = None, caption: str = ""
) -> None:
    """Puts a title and a legend (text -> handle) above the axes and a caption below; the figure
    grows by their heights."""
    width, height = figure.get_size_inches()
    inside = width - 2 * _GAP
    head = [_text(figure, title, inside, _TITLE, "bold")] if title else []
    foot = [_text(figure, caption, inside, _CAPTION, "normal")] if caption else []
    legend = _legend(figure, handles, inside) if handles else None
    tall = [_height(figure, text) + _GAP for text in (*head, *foot)]
    above = (tall[0] if head else 0) + (_height(figure, legend) + 0.5 * _GAP if legend else 0)
    below = tall[-1] + _GAP if foot else 0
    whole = height + above + below
    figure.set_size_inches(width, whole)
    figure.get_layout_engine().set(rect=(0, below / whole, 1, height / whole))
    left = _GAP / width
    for text, top in zip(
        (*head, *foot), ([1 - 0.5 * _GAP / whole] if head else []) + [(below - _GAP) / whole]
    ):
        text.set_position((left, top))
    if legend is not None:
        legend.set_bbox_to_anchor((0.5, 1 - (tall[0] if head else 0) / whole), figure.transFigure)
    for artist in (*head, *foot, legend):
        if artist is not None:
            artist.set_in_layout(False)


def fit_labels(axes: Any) -> None:
    """Breaks the labels of axes that are longer than the axes, which must have their final size."""
    size = axes.get_window_extent().size / axes.figure.dpi
    for label, room in ((axes.xaxis.label, size[0]), (axes.yaxis.label, size[1])):
        if (
            "\n" not in label.get_text()
            and max(label.get_window_extent().size) / axes.figure.dpi > 1.1 * room
        ):
            label.set_text(wrapped(axes.figure, label.get_text(), room, label.get_size()))


def _legend(figure: Any, handles: Mapping[str, Any], inside: float) -> Any:
    """The legend in as many columns as fit side by side."""
    for columns in range(len(handles), 0, -1):
        legend = figure.legend(
            list(handles.values()),
            list(handles),
            loc="upper center",
            ncols=columns,
            borderaxespad=0,
            columnspacing=1.4,
        )
        if columns == 1 or legend.get_window_extent().width / figure.dpi <= inside:
            return legend
        legend.remove()
    return None


def _height(figure: Any, artist: Any) -> float:
    return artist.get_window_extent().height / figure.dpi


def _text(figure: Any, text: str, width: float, size: float, weight: str) -> Any:
    return figure.text(
        0, 0, wrapped(figure, text, width, size, weight), size=size, weight=weight, va="top"
    )


def wrapped(figure: Any, text: str, width: float, size: float, weight: str = "normal") -> str:
    """The text in lines of at most `width` inches at that size; formulas stay whole, and the last
    line has more than one word."""
    words = re.findall(r"(?:\$[^$]*\$|[^\s$])+", " ".join(text.split()))
    probe = figure.text(0, 0, "", size=size, weight=weight)
    lengths = [_length(probe, word) for word in words]
    space = _length(probe, "n n") - 2 * _length(probe, "n")
    probe.remove()
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
    """The words on each line, as their indices, filled greedily."""
    lines: list[list[int]] = [[]]
    for i in range(len(lengths)):
        if lines[-1] and _extent([*lines[-1], i], lengths, space) > width:
            lines.append([])
        lines[-1].append(i)
    return lines


def _length(probe: Any, text: str) -> float:
    """The length of a text in inches in the font of the probe."""
    probe.set_text(text)
    return float(probe.get_window_extent().width / probe.figure.dpi)
