"""Measured values with their errors as flat columns, from a data set with or without runs, or from
a table.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy
import xarray as xr

# a data set, or columns of equal length: a `pandas.DataFrame`, a dictionary
Table = xr.Dataset | Mapping[str, Any]


class Columns(NamedTuple):
    """Coordinates, means over seeds and standard errors of all measured points. runs: the number of
    runs whose scatter gives the error; 0 where the data contain the errors."""

    coordinates: dict[str, np.ndarray]
    value: np.ndarray
    error: np.ndarray
    runs: int


def columns(table: Table, observable: str, coordinates: tuple[str, ...]) -> Columns:
    """The observable against these coordinates, which are dimensions or columns. Errors are those
    in the data, `{observable}_error`, combined over seeds, or follow from the scatter over at least
    two seeds. Points without value or error are left out.

    Raises `ValueError` for names that the data set lacks, for other dimensions, and where there are
    no errors.
    """
    data = table if isinstance(table, xr.Dataset) else _data_set(table)
    for name in (observable, *coordinates):
        if name not in data:
            names = ", ".join(map(str, [*data.data_vars, *data.coords]))
            raise ValueError(f"{name!r} is not in the data, which hold {names}")
    values = data[observable]
    places = {axis for name in coordinates for axis in data[name].dims}
    if spare := set(values.dims) - {"seed"} - places:
        raise ValueError(
            f"{observable!r} has the dimensions {', '.join(sorted(map(str, spare)))} as well: "
            "select one value of each"
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
    flat_table = dict(zip(given, xr.broadcast(*map(xr.DataArray, given.values()))))
    flat = {name: np.asarray(column.values.ravel(), float) for name, column in flat_table.items()}
    value, deviation = flat.pop("value"), flat.pop("error")
    measured = np.isfinite(value) & np.isfinite(deviation) & (deviation > 0)
    return Columns(
        {name: place[measured] for name, place in flat.items()},
        value[measured],
        deviation[measured],
        0 if claimed in data else values.sizes["seed"],
    )


def steadied(found: Columns, x: str) -> np.ndarray:
    """The errors, shrunk towards a straight line of ln(error / value) against ln x through all
    points where they come from the scatter of few runs.

    The scatter of four runs determines their standard deviation to 40 % only, and a point whose
    runs happen to lie close together would dominate a fit. The logarithm of an estimated variance
    with f degrees of freedom scatters with the variance trigamma(f / 2); the excess scatter is
    attributed to the points (Smyth 2004).
    """
    freedom = found.runs - 1
    if freedom < 1 or len(found.value) < 4:
        return found.error
    half = freedom / 2
    place = np.log(found.coordinates[x])
    log = np.log((found.error / found.value) ** 2) - scipy.special.digamma(half) + np.log(half)
    line = np.polynomial.Polynomial.fit(place, log, 1)(place)
    chance = float(scipy.special.polygamma(1, half))
    own = max(0.0, float(np.sum((log - line) ** 2)) / (len(log) - 2) - chance)
    steady = line + (log - line) * own / (own + chance)
    return np.exp(steady / 2) * np.abs(found.value)


def _data_set(table: Mapping[str, Any]) -> xr.Dataset:
    """A data set over the rows of columns of equal length."""
    return xr.Dataset({name: ("row", np.asarray(column)) for name, column in table.items()})
