"""A phase diagram as the curve of a study.

@study("hopfield-phases", ..., panels=[phases_panel()]) def hopfield_phases(resolution: int = 32) ->
    list[Curve]: over = {"load": (0.01, 0.2), "temperature": (0.01, 1.2)} return
    [diagram_curve(replica_symmetric, Hopfield(load=0.1), over, order="overlap",
    resolution=resolution)]
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from orderparam.analysis.phases.diagram import phase_diagram
from orderparam.analysis.phases.figure import LINES, draw_plane
from orderparam.analysis.phases.points import Order
from orderparam.comparison import Curve
from orderparam.core.result import Result
from orderparam.core.system import System
from orderparam.core.verb import Theory
from orderparam.plotting import Freehand

_KINDS, _ENDS = tuple(LINES), ("tricritical", "critical")


class Diagram(Result):
    """A phase diagram as numbers: the content of `PhaseDiagram.data`, with kinds and branches as
    their place in their lists.

    x, y, order: every point, with the first component of the order parameter of the first branch.
    boundary_*: every crossing, in the order of the curves; end_*: the ends.
    """

    x: Float[Array, "point"]
    y: Float[Array, "point"]
    order: Float[Array, "point"]
    curve: Int[Array, "boundary_point"]
    boundary_x: Float[Array, "boundary_point"]
    boundary_y: Float[Array, "boundary_point"]
    boundary_kind: Int[Array, "boundary_point"]
    boundary_branch: Int[Array, "boundary_point"]
    low: Float[Array, "boundary_point"]
    high: Float[Array, "boundary_point"]
    exponent: Float[Array, "boundary_point"]
    doubt: Float[Array, "boundary_point"]
    end_x: Float[Array, "end"]
    end_y: Float[Array, "end"]
    end_kind: Int[Array, "end"]


def diagram(system: System, *, theory: Any, over: Any, order: Any, options: Any) -> Diagram:
    """`phase_diagram` of a theory, as numbers. Raises `TypeError` where it is traced, because each
    next point depends on earlier values."""
    if isinstance(jnp.zeros(()), jax.core.Tracer):
        raise TypeError("a phase diagram cannot be traced")
    found = phase_diagram(theory, system, dict(over), order=order, **dict(options)).data
    branches = list(found["branch"].values)
    columns = {
        name: found[name].values for name in ("boundary_x", "boundary_y", "end_x", "end_y", "curve")
    }
    columns |= {
        name: found[f"boundary_{name}"].values for name in ("low", "high", "exponent", "doubt")
    }
    return Diagram(
        x=jnp.asarray(found[found.attrs["x"]].values),
        y=jnp.asarray(found[found.attrs["y"]].values),
        order=jnp.asarray(found["order"].values[:, 0, 0]),
        boundary_kind=jnp.asarray(
            [_KINDS.index(kind) for kind in found["boundary_kind"].values], int
        ),
        boundary_branch=jnp.asarray(
            [branches.index(branch) for branch in found["boundary_branch"].values], int
        ),
        end_kind=jnp.asarray([_ENDS.index(kind) for kind in found["end_kind"].values], int),
        **{name: jnp.asarray(column) for name, column in columns.items()},
    )


# not registered, because it acts on theories and is not a theory itself
_diagram = Theory(diagram, None, False, False)


def diagram_curve(
    theory: Callable[..., Any],
    system: System,
    over: Mapping[str, Sequence[Any]],
    *,
    order: Order,
    label: str = "phase diagram",
    facets: Mapping[str, Any] | None = None,
    **options: Any,
) -> Curve:
    """The curve of a study that is the phase diagram of a theory; options: those of
    `phase_diagram`."""
    frozen = tuple((name, tuple(ends)) for name, ends in over.items())
    fn = partial(
        _diagram, theory=theory, over=frozen, order=order, options=tuple(sorted(options.items()))
    )
    return Curve(label, fn, system, {}, facets=facets or {})


def phases_panel(
    x: str,
    y: str,
    *,
    log: str = "",
    order: str = "order",
    branches: Sequence[str] = ("",),
    title: str = "",
    centre: float | None = None,
    **facets: Any,
) -> Freehand:
    """The panel that draws the `diagram_curve` with these facets: the fields on its axes, the name
    of its order parameter, and the names of its branches (as `PhaseDiagram.data` lists them).
    `centre`: see `draw_plane`."""

    def draw(axes: Any, comparison: Any) -> None:
        for found in comparison.theories(**facets).values():
            if "boundary_kind" in found:
                drawn = _as_drawn(found, x, y, log, order, branches)
                draw_plane(axes, drawn, comparison.study.topic, centre)

    return Freehand(draw, title)


def _as_drawn(
    found: xr.Dataset, x: str, y: str, log: str, order: str, branches: Sequence[str]
) -> xr.Dataset:
    """The part of the data set of a `PhaseDiagram` that is drawn."""
    names = {"boundary_kind": _KINDS, "boundary_branch": tuple(branches), "end_kind": _ENDS}
    columns = {
        name: (found[name].dims, np.take(words, found[name].values, mode="clip"))
        for name, words in names.items()
    }
    values = found["order"].values[:, None, None]
    return xr.Dataset(
        {
            **columns,
            **{
                name: found[name]
                for name in ("curve", "boundary_x", "boundary_y", "end_x", "end_y")
            },
        }
        | {"order": (("point", "branch", "component"), values)},
        {x: ("point", found["x"].values), y: ("point", found["y"].values), "component": [order]},
        {"x": x, "y": y, "log": log, "branches": list(branches)},
    )
