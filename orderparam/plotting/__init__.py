"""One look for all figures: panels drawn from facets, lines for theories, marks with error bars for
measurements."""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.plotting.figure import draw, figure_of, labelled, plot
    from orderparam.plotting.guides import curve, horizontal, slope, vertical
    from orderparam.plotting.layout import canvas, finish
    from orderparam.plotting.panel import Freehand, Panel
    from orderparam.plotting.style import house_style, save
    from orderparam.plotting.text import tex

__all__ = exported(globals())
