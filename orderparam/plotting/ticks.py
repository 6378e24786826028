"""Ticks of logarithmic axes: as many readable numbers as fit."""

from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from orderparam.plotting.text import number

_SUBDIVISIONS = ((1.0, 2.0, 3.0, 5.0, 7.0), (1.0, 2.0, 5.0), (1.0, 3.0), (1.0,))


def readable_ticks(axes: Any) -> None:
    """Puts numbers instead of bare powers of ten on the logarithmic axes, whose limits must be
    final."""
    width, height = axes.figure.get_size_inches() * (
        axes.get_position().width,
        axes.get_position().height,
    )
    for axis, scale, room in (
        (axes.xaxis, axes.get_xscale(), width / 0.42),
        (axes.yaxis, axes.get_yscale(), height / 0.28),
    ):
        if scale == "log":
            low, high = sorted(axis.get_view_interval())
            axis.set_major_locator(_locator(low, high, max(3, room)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: number(float(f"{value:.3g}"))))
            axis.set_minor_formatter(NullFormatter())


def _locator(low: float, high: float, room: float) -> Any:
    """The finest subdivision of decades whose ticks fit; ordinary numbers where fewer than three of
    them would be visible."""
    decades = 10.0 ** np.arange(np.floor(np.log10(low)) - 1, np.ceil(np.log10(high)) + 1)
    ticks = [np.outer(decades, subs).ravel() for subs in _SUBDIVISIONS]
    counts = [int(np.sum((low <= one) & (one <= high))) for one in ticks]
    if counts[0] < 3:
        return MaxNLocator(min(5, int(room)), steps=(1, 2, 2.5, 5, 10))
    for subs, count in zip(_SUBDIVISIONS, counts):
        if count <= room:
            return LogLocator(10, subs)
    return LogLocator(10, (1.0,), numticks=int(room))
