"""One look for all figures: the house style, lines for theories, dots with error bars for measurements."""

from orderparam.plotting.curves import plot, plot_panel
from orderparam.plotting.style import house_style, save

__all__ = ["house_style", "plot", "plot_panel", "save"]
