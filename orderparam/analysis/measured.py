"""Measured values with their errors as flat columns, from a data set with or without runs."""

from typing import NamedTuple

import numpy as np
import xarray as xr


class Columns(NamedTuple):
    """Coordinates, means over seeds and standard errors of all points that are known."""

    coordinates: dict[str, np.ndarray]
    value: np.ndarray
    error: np.ndarray


def columns(data: xr.Dataset, observable: str, coordinates: tuple[str, ...]) -> Columns:
    """The observable against these coordinates. Errors are those that the runs claim,
    `{observable}_error`, joined over seeds, or follow from the scatter over at least two seeds.
    Points without value or error are left out.

    Raises `ValueError` for names that the data set lacks, for other dimensions, and where there are
    no errors.
    """
    for name in (observable, *coordinates):
        if name not in data:
            known = ", ".join(map(str, [*data.data_vars, *data.coords]))
            raise ValueError(f"{name!r} is not in the data, which hold {known}")
    values = data[observable]
    if spare := set(values.dims) - {"seed", *coordinates}:
        raise ValueError(
            f"{observable!r} has the dimensions {', '.join(sorted(map(str, spare)))} as well: select one value of each"
        )
    runs = "seed" in values.dims
    claimed = f"{observable}_error"
    if claimed in data:
        error = (
            np.sqrt((data[claimed] ** 2).sum("seed", skipna=False)) / values.sizes["seed"]
            if runs
            else data[claimed]
        )
    elif runs and values.sizes["seed"] > 1:
        error = values.std("seed", ddof=1, skipna=False) / np.sqrt(values.sizes["seed"])
    else:
        raise ValueError(
            f"{observable!r} has no errors: {claimed!r} or at least two seeds are needed"
        )
    mean = values.mean("seed", skipna=False) if runs else values
    given = {"value": mean, "error": error, **{name: data[name] for name in coordinates}}
    table = dict(zip(given, xr.broadcast(*map(xr.DataArray, given.values()))))
    flat = {name: np.asarray(column.values.ravel(), float) for name, column in table.items()}
    value, deviation = flat.pop("value"), flat.pop("error")
    known = np.isfinite(value) & np.isfinite(deviation) & (deviation > 0)
    return Columns(
        {name: place[known] for name, place in flat.items()}, value[known], deviation[known]
    )
