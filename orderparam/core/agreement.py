"""How far theory and measurement are apart, point by point: mean ± standard error, z-score, relative deviation."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr


def estimate(measured: xr.Dataset, observable: str) -> tuple[xr.DataArray, xr.DataArray]:
    """Mean over seeds of an observable and its standard error, std / sqrt(n) with n - 1 in the variance.

    Failed points (NaN) are left out; with fewer than two seeds the error is NaN.
    """
    values = measured[observable].astype(float)
    if "seed" not in values.dims:
        return values, xr.full_like(values, np.nan)
    count = values.notnull().sum("seed")
    error = values.std("seed", ddof=1, skipna=True) / np.sqrt(count) if values.sizes["seed"] > 1 else np.nan
    return values.mean("seed", skipna=True), xr.zeros_like(count, float) + error


def agreement(theories: Mapping[str, xr.Dataset], measured: xr.Dataset, observables: Sequence[str]) -> xr.Dataset:
    """Every theory against one measurement at the measured points.

    Returns a data set over (theory, observable, grid dimensions): `theory_value`, `mean`, `standard_error`,
    `z` = (mean - theory) / standard_error and `relative_deviation` = mean / theory - 1. Observables that only one side has, and
    theories that were not evaluated at the measured points, stand as NaN.
    """
    shared = [name for name in observables if name in measured and any(_fits(t, name, measured) for t in theories.values())]
    tables = []
    for theory in theories.values():
        rows = []
        for name in shared:
            mean, error = estimate(measured, name)
            value = _at(theory, name, mean)
            rows.append(
                xr.Dataset(
                    {
                        "theory_value": value,
                        "mean": mean,
                        "standard_error": error,
                        "z": (mean - value) / error.where(error > 0),
                        "relative_deviation": mean / value.where(value != 0) - 1,
                    }
                )
            )
        if rows:
            tables.append(xr.concat(rows, xr.Variable("observable", shared), join="outer"))
    if not tables:
        return xr.Dataset()
    return xr.concat(tables, xr.Variable("theory", list(theories)), join="outer")


def _fits(theory: xr.Dataset, name: str, measured: xr.Dataset | xr.DataArray) -> bool:
    """Whether a theory has the observable, along no dimension that was not measured (unless it has a single point there)."""
    return name in theory and all(dim in measured.dims or theory.sizes[dim] == 1 for dim in theory[name].dims)


def _at(theory: xr.Dataset, name: str, like: xr.DataArray) -> xr.DataArray:
    """The theory's value at the coordinates of a measurement, NaN where it has none."""
    if not _fits(theory, name, like):
        return xr.full_like(like, np.nan)
    value = theory[name].astype(float)
    value = value.isel({dim: 0 for dim in value.dims if dim not in like.dims}, drop=True)
    shared: dict[Any, Any] = {dim: like[dim] for dim in value.dims if dim in like.dims and dim in like.coords}
    return value.reindex(shared).broadcast_like(like).transpose(*like.dims, ...)


def summary(table: xr.Dataset) -> list[dict[str, Any]]:
    """One record per theory and observable: points compared, root mean square of z, median and worst relative deviation."""
    records = []
    for theory in table["theory"].values if "theory" in table.coords else []:
        for observable in table["observable"].values:
            part = table.sel(theory=theory, observable=observable)
            z, relative = part["z"].values.ravel(), part["relative_deviation"].values.ravel()
            z, relative = z[np.isfinite(z)], relative[np.isfinite(relative)]
            if relative.size == 0:
                continue
            records.append(
                {
                    "theory": str(theory),
                    "observable": str(observable),
                    "points": int(relative.size),
                    "rms_z": float(np.sqrt(np.mean(z**2))) if z.size else None,
                    "median_relative_deviation": float(np.median(relative)),
                    "worst_relative_deviation": float(relative[np.argmax(np.abs(relative))]),
                }
            )
    return records
