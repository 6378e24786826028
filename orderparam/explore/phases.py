"""The plane of two numbers: the phase diagram of a theory, refined until it is as fine as requested
or no longer needed."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import xarray as xr

from orderparam.analysis.phases.diagram import PhaseDiagram, phase_diagram
from orderparam.explore.evaluate import Stale, remember
from orderparam.explore.state import BRANCHES, RESOLUTIONS, PageState


def planes(
    state: PageState, finest: int, stale: Callable[[], bool], store: Path | None = None
) -> Iterator[PhaseDiagram]:
    """The phase diagram of the first theory at 8, 16, ... squares along each axis. Raises `Stale`
    between two batches of points.

    All branches of a theory are computed, as `orderparam phases` does. Raises
    `ValueError` and `SweepError` as `phase_diagram` does.
    """
    name = state.theories[0]
    words = {
        option: value for option, value in state.own_options(name).items() if option not in BRANCHES
    }
    fn: Any = state.with_(
        options={(name, option): value for option, value in words.items()}
    ).verb_with_options(name)
    over = {
        field: (low, high, "log" if log else "linear") for field, (low, high, log) in _axes(state)
    }

    def order(data: xr.Dataset) -> xr.DataArray:
        if stale():
            raise Stale
        return data[state.order]

    order.__name__ = state.order
    for resolution in RESOLUTIONS:
        if resolution <= finest:
            found = phase_diagram(
                fn, state.instance, over, order=order, resolution=resolution, store=store
            )
            remember((name, state.opening.name, state.x, state.y, resolution))
            yield found


def _axes(state: PageState) -> list[tuple[str, tuple[float, float, bool]]]:
    return [(state.x, state.span), (state.y, state.y_span)]
