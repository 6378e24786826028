"""Figures: places the axes of all panels, labels them once, and adds title, legend and caption."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from orderparam.plotting.captions import filled, marks_sentence
from orderparam.plotting.layout import canvas, finish, fit_labels
from orderparam.plotting.look import Look
from orderparam.plotting.panel import Freehand, Panel
from orderparam.plotting.style import house_style
from orderparam.plotting.ticks import readable_ticks

if TYPE_CHECKING:
    from orderparam.comparison import Comparison


def draw(
    comparison: "Comparison",
    panels: Sequence[Panel | Freehand],
    *,
    columns: int | None = None,
    caption: str = "",
    narrow: bool = False,
) -> Any:
    """The figure of a finished study.

    Each panel with a facet fills a row when all panels have equally many values of it; otherwise
    the axes follow one another in `columns` (by default at most three, or two for four axes).
    caption: formatted with the study's parameters. narrow: for a telephone, panels below one
    another. Raises `ValueError` for names that no curve has.
    """
    return figure_of(
        comparison.datasets,
        panels,
        title=comparison.study.title,
        caption=filled(caption, comparison.parameters),
        columns=columns,
        given=comparison,
        narrow=narrow,
    )


def figure_of(
    datasets: Mapping[str, xr.Dataset],
    panels: Sequence[Panel | Freehand],
    *,
    title: str = "",
    caption: str = "",
    columns: int | None = None,
    given: Any = None,
    narrow: bool = False,
) -> Any:
    """The figure of curves that belong to no study: see `labelled` for the attributes that they
    need."""
    look = Look(datasets, panels)
    places = [(panel, value) for panel in panels for value in look.facet_values(panel)]
    per_row = 1 if narrow else columns or _columns(panels, look, len(places))
    rows = -(-len(places) // per_row)
    figure, grid = canvas(rows, min(per_row, len(places)), narrow)
    flat = grid.ravel()
    for axes, (panel, value) in zip(flat, places):
        if isinstance(panel, Freehand):
            panel.function(axes, given)
            axes.set_title(panel.title or axes.get_title())
            look.enter(*axes.get_legend_handles_labels())
        else:
            look.draw(axes, panel, value)
    for axes in flat[len(places) :]:
        axes.remove()
    _share(flat[: len(places)], places, per_row)
    _say_once(flat[: len(places)], per_row)
    finish(figure, title, look.legend(), f"{caption} {marks_sentence(look.drawn)}".strip())
    figure.draw_without_rendering()
    for axes in flat[: len(places)]:
        fit_labels(axes)
        readable_ticks(axes)
    return figure


def labelled(curves: Mapping[str, xr.Dataset]) -> dict[str, xr.Dataset]:
    """Sweeps with the attributes that figures need: label, facets, and the kind "experiment" for
    those with the dimension `seed`."""
    return {
        label: data.assign_attrs(
            label=label,
            kind="experiment" if "seed" in data.dims else "theory",
            facets=data.attrs.get("facets", {}),
            baseline=data.attrs.get("baseline", False),
        )
        for label, data in curves.items()
    }


def plot(
    *curves: xr.Dataset, y: str, x: str | None = None, by: str = "", log: str = "", ax: Any = None
) -> Any:
    """Draws sweeps on one set of axes.

    Sweeps with a `seed` dimension are drawn as marks with standard errors, the others as lines.

    Args:
        curves: Data sets of `sweep`.
        y: The observable.
        x: The grid dimension along the axis; it may be left out when there is only one.
        by: A dimension shown by colour.
        log: The logarithmic axes, "", "x", "y" or "xy".
        ax: Axes of matplotlib to draw on; None makes a figure.

    Returns:
        The axes.

    Raises:
        ValueError: for a missing observable or an ambiguous axis.

    >>> from orderparam.systems.spins import MeanFieldMagnet, mean_field
    >>> swept = op.sweep(mean_field, MeanFieldMagnet(1.0), {"temperature": [0.5, 0.9, 1.5]})
    >>> op.plot(swept, y="magnetisation").get_ylabel() != ""
    True
    """
    for data in curves:
        if y not in data:
            raise ValueError(
                f"{y!r} is not in this sweep; it has: {', '.join(map(str, data.data_vars))}"
            )
    named: dict[str, xr.Dataset] = {}
    for number, data in enumerate(curves):
        label = (
            data.attrs.get("label")
            or str(data.attrs.get("function", f"curve {number}")).rsplit(".", 1)[-1]
        )
        named[label if label not in named else f"{label} ({number})"] = data
    panel = Panel(x or _only_dimension(curves, by), y, by=by, log=log)
    look = Look(labelled(named), [panel])
    with house_style():
        axes = canvas()[1][0, 0] if ax is None else ax
        look.draw(axes, panel, None)
        axes.legend(list(look.legend().values()), list(look.legend()))
        if ax is None:
            axes.figure.draw_without_rendering()
            readable_ticks(axes)
    return axes


def _only_dimension(curves: Sequence[xr.Dataset], by: str) -> str:
    dims = {
        str(dim)
        for data in curves
        for dim in data["status"].dims
        if dim not in ("seed", by) and data.sizes[dim] > 1
    }
    if len(dims) != 1:
        raise ValueError(
            f"x: name the axis, one of {', '.join(sorted(dims)) or 'no varied fields'}"
        )
    return dims.pop()


def _columns(panels: Sequence[Panel | Freehand], look: "Look", count: int) -> int:
    sizes = {len(look.facet_values(panel)) for panel in panels}
    if len(panels) > 1 and len(sizes) == 1 and 1 < (size := sizes.pop()) <= 4:
        return size
    return 2 if count == 4 else min(count, 3)


def _share(flat: Any, places: Sequence[tuple[Any, Any]], per_row: int) -> None:
    """Gives the axes of one panel in one row the same y limits (unless the panel says otherwise),
    and labels y only once."""
    for i, (axes, (panel, _)) in enumerate(zip(flat, places)):
        beside = [other for other in range(i - i % per_row, i) if places[other][0] is panel]
        if isinstance(panel, Panel) and beside:
            axes.set_ylabel("")
            if panel.share_y:
                first = flat[beside[0]]
                limits = np.array([first.get_ylim(), axes.get_ylim()])
                axes.sharey(first)
                axes.set_ylim(limits[:, 0].min(), limits[:, 1].max())


def _say_once(flat: Any, per_row: int) -> None:
    """Labels axes that stand below one another only once: their title above the first, x below the
    last."""
    columns = list(zip(flat, flat[per_row:]))
    for above, below in columns:
        if above.get_xlabel() == below.get_xlabel():
            above.set_xlabel("")
    for above, below in reversed(columns):
        if above.get_title() == below.get_title():
            below.set_title("")
