"""A figure from facets: panels say what is drawn against what, and `draw` (in `figure`) makes the
figure of a finished study.

    draw( comparison, [ Panel("n_train", "test_error", facet="loss", by="activation", log="x"),
        Panel("n_train", "train_error", facet="loss", by="activation", log="xy",
        reference=[vertical(300, "$n = p$")]), ], caption="Width {width}, {seeds} seeds.",
    )

The same rules hold in all figures: theories are lines, measurements are marks with standard errors
over runs; one colour is one value of `by` (or one label where there is no `by`) in the whole
figure, for a theory and for its measurement; without `by` measurements have the colour of text.
Curves for orientation (`baseline`) are thin and grey. Points of a theory that did not converge, or
are NaN, are left out and not bridged; means over measured runs that did not converge are large open
marks, in no other mean. The legend, the study's title, the caption and a sentence on lines and
marks are put around the axes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import xarray as xr

from orderparam.plotting.guides import Guide

# The name of a dimension, coordinate or observable; or an axis label and a function of the data set
Quantity = str | tuple[str, Callable[[xr.Dataset], Any]]


@dataclass(frozen=True)
class Panel:
    """One set of axes, or one for each value of a facet.

    x, y: a name, or (axis label, function of the data set to an array). `seed` is averaged over;
        all other dimensions must be x, `by`, `facet`, in `where`, or of one point.
    facet: a facet of the curves, or a dimension, with one set of axes for each of its values. by: a
    facet or dimension with one colour for each of its values. A curve that does not have the facet
    is drawn in all axes. Dimensions without coordinates are counted from 1 in the figure. where:
    facets, `label`, `kind` or dimensions -> the value, or tuple of values, that is shown; of
        dimensions without coordinates the index or a slice.
    log: the logarithmic axes, "", "x", "y" or "xy". reference: guides (`horizontal`, `vertical`,
    `slope`, `curve`).
    ratio_to: label of a curve; all others are divided by it, point by point (or by its only point),
        and it is drawn as a level at 1; the y axis says so unless it has a label.
    jump: an observable, such as the index of a phase, or a function of the data set to one, at
        whose changes the line of a theory is interrupted.
    fit: symbol of x. A legend in the axes gives the exponent of the power law through every
        measurement with its 95 % interval, and in brackets the slope of its theory over the same x.
    fit_to: the largest x of these fits.
    share_y: True if the axes of a facet in one row have one y axis.
    text: value of `by`, of `facet`, or label -> its text in the figure; an empty one has no entry
        in the legend.
    beside: value of `by`, or label of a curve without `by` -> x at which its text is written above
        its line, or (x, side) with the side "below", "left" or "right"; infinity is the last point.
        It is written once in the figure, in place of its entry in the legend.
    colours: value of `by`, or label of a curve without `by` -> its colour, where the one that it
    would get has another meaning in the figure; "text" is the colour of text.
    """

    x: Quantity
    y: Quantity
    facet: str = ""
    by: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    log: str = ""
    reference: Sequence[Guide] = ()
    xlabel: str = ""
    ylabel: str = ""
    title: str = ""
    xlim: tuple[float | None, float | None] | None = None
    ylim: tuple[float | None, float | None] | None = None
    ratio_to: str = ""
    jump: str | Callable[[xr.Dataset], Any] = ""
    fit: str = ""
    fit_to: float = math.inf
    share_y: bool = True
    text: Mapping[Any, str] = field(default_factory=dict)
    beside: Mapping[Any, float | tuple[float, str]] = field(default_factory=dict)
    colours: Mapping[Any, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Freehand:
    """One set of axes that a function draws: `function(axes, comparison)`. Its labelled artists
    enter the figure's legend. one_by_one: True if it draws a mark for every run or chain."""

    function: Callable[[Any, Any], None]
    title: str = ""
    one_by_one: bool = False
