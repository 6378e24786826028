"""Selects the data of a panel from a curve: whether it is shown, at which of its points, and its x,
y and errors there."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from orderparam.plotting.panel import Panel, Quantity
from orderparam.running.estimate import estimate
from orderparam.running.status import DONE, UNCONVERGED


def role_of(data: xr.Dataset) -> str:
    """The role of a curve in a figure: "theory", "experiment" or "baseline"."""
    return "baseline" if data.attrs["baseline"] else data.attrs["kind"]


def quantity_name(quantity: Quantity) -> str:
    """The name or the axis label of a quantity."""
    return quantity if isinstance(quantity, str) else quantity[0]


def carried(data: xr.Dataset) -> dict[str, Any]:
    """The facets of a curve, with its label and kind."""
    return {"label": data.attrs["label"], "kind": data.attrs["kind"], **data.attrs["facets"]}


def carries(data: xr.Dataset, name: str) -> bool:
    """True if a curve has a facet or a dimension of that name."""
    return name in carried(data) or name in data.dims


def select_all(data: xr.Dataset, where: Mapping[str, Any]) -> xr.Dataset | None:
    """The curve at the values of several facets and dimensions; None where it lacks one of the
    values."""
    chosen: xr.Dataset | None = data
    for name, value in where.items():
        if chosen is not None:
            chosen = select(chosen, name, value)
    return chosen


def select(data: xr.Dataset, name: str, value: Any) -> xr.Dataset | None:
    """The curve at a value of a facet or dimension; None where it lacks that value, and unchanged
    where it has no facet or dimension of that name."""
    if not name or (value is None):
        return data
    several = isinstance(value, tuple | list | set | frozenset)
    if name in carried(data):
        own = carried(data)[name]
        return data if (own in value if several else own == value) else None
    if name not in data.dims:
        return data
    if (
        name not in data.coords
        and not several
        and not isinstance(value, slice)
        and value >= data.sizes[name]
    ):
        return None
    if isinstance(value, slice) or name not in data.coords:
        return data.isel({name: list(value) if several else value})
    wanted = [one for one in (value if several else [value]) if one in data[name].values]
    return data.sel({name: wanted if several else wanted[0]}) if wanted else None


def values_of(curves: Iterable[xr.Dataset], name: str) -> list[Any]:
    """The values of a facet or of a dimension in their order, taken from measurements where one has
    it."""
    listed = list(curves)
    own = [carried(data)[name] for data in listed if name in carried(data)]
    if own:
        return list(dict.fromkeys(own))
    having = [data for data in listed if name in data.dims]
    if not having:
        raise ValueError(f"no curve has a facet or dimension {name!r}")
    measured = [data for data in having if data.attrs["kind"] == "experiment"] or having
    if name in measured[0].coords:
        return list(
            dict.fromkeys(value for data in measured for value in data[name].values.tolist())
        )
    return list(range(max(data.sizes[name] for data in measured)))


def get(data: xr.Dataset, quantity: Quantity) -> xr.DataArray:
    """The numbers of a quantity; dimensions without coordinates count from 1."""
    if not isinstance(quantity, str):
        return xr.DataArray(quantity[1](data))
    if quantity in data.variables:
        return data[quantity]
    if quantity in data.dims:
        return xr.DataArray(np.arange(1, data.sizes[quantity] + 1), dims=[quantity])
    raise ValueError(
        f"{data.attrs['label']} has neither a dimension nor an observable {quantity!r}"
    )


def points_of(
    panel: Panel, data: xr.Dataset, key: str, converged: bool = True
) -> tuple[Any, Any, Any]:
    """x, y and standard error (None for theories) as arrays without dimensions of one point.

    converged: False gives the means over the measured runs that did not converge.
    """
    values = get(data, panel.y).astype(float)
    error = None
    if data.attrs["kind"] == "theory":
        if "status" in data and set(data["status"].dims) <= set(values.dims):
            values = values.where(data["status"] == DONE)
    else:
        named, name = (
            (data, panel.y) if isinstance(panel.y, str) else (values.to_dataset(name="y"), "y")
        )
        if "status" in data and "status" not in named:
            named = named.assign(status=data["status"])
        values, error = estimate(named, name, converged)
    x = get(data, panel.x)
    x = x.mean("seed") if "seed" in x.dims else x
    keep = [dim for dim in x.dims if data.sizes.get(dim, 2) > 1 or x.ndim == 1]
    x = x.isel({dim: 0 for dim in x.dims if dim not in keep})
    left = [dim for dim in values.dims if dim not in x.dims and values.sizes[dim] > 1]
    # a plain array
    if len(left) == x.ndim == 1 and x.dims[0] not in data.dims and x.size == values.sizes[left[0]]:
        x, left = x.rename({x.dims[0]: left[0]}), []
    if left or x.ndim > 1:
        along = ", ".join(map(str, left or x.dims))
        raise ValueError(
            f"{key}: {quantity_name(panel.y)} along {along} is neither x nor by nor in where"
        )
    drop = {dim: 0 for dim in values.dims if dim not in x.dims}
    bars = None if error is None or not error.notnull().any() else error.isel(drop).values
    return x.values, values.isel(drop).values, bars


def has_unconverged(data: xr.Dataset) -> bool:
    """True if a measurement has a run that did not converge."""
    return (
        data.attrs["kind"] == "experiment"
        and "status" in data
        and bool(np.any(data["status"] == UNCONVERGED))
    )


def isolated(y: np.ndarray) -> np.ndarray:
    """The points of a line without a neighbour, which the line alone would not show."""
    finite = np.concatenate([[False], np.isfinite(y), [False]])
    return finite[1:-1] & ~finite[:-2] & ~finite[2:]


def interrupted(
    panel: Panel, data: xr.Dataset, x: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The line of a theory, with a gap wherever `jump` changes its value."""
    if not panel.jump or (isinstance(panel.jump, str) and panel.jump not in data):
        return x, y
    state = np.ravel(data[panel.jump] if isinstance(panel.jump, str) else panel.jump(data))
    places = np.flatnonzero(state[1:] != state[:-1]) + 1
    return np.insert(x.astype(float), places, np.nan), np.insert(y, places, np.nan)
