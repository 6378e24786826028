"""Means over the seeds of a sweep, with their standard errors."""

import numpy as np
import xarray as xr

from orderparam.running.status import DONE, UNCONVERGED


def estimate(
    measured: xr.Dataset, observable: str, converged: bool = True
) -> tuple[xr.DataArray, xr.DataArray]:
    """Mean over seeds of an observable and the standard error of that mean.

    The error is the scatter over seeds, std / sqrt(n) with n - 1 in the variance. Where each run
    has a standard error too (`X_error` beside `X`, from the effective number of samples of its
    chains), the pooled value sqrt(sum of squares)/n of these is a lower bound of the error, and
    replaces the scatter where there is a single run. Failed runs (NaN) and runs that did not
    converge are left out; a single run without a standard error has the error NaN.

    converged: False gives the mean over the runs that did not converge, and its error.
    """
    mean, scatter, own, _ = pooled_runs(measured, observable, converged)
    return mean, xr.where(own >= scatter, own, scatter).where(scatter.notnull(), own)


def unconverged_runs(measured: xr.Dataset) -> xr.DataArray:
    """Number of runs that did not converge at each point of the grid."""
    status = measured["status"] if "status" in measured else xr.DataArray(DONE)
    missed = (status == UNCONVERGED).astype(int)
    return missed.sum("seed") if "seed" in missed.dims else missed


def pooled_runs(
    measured: xr.Dataset, observable: str, converged: bool = True
) -> tuple[xr.DataArray, ...]:
    """The mean over seeds, its error from the scatter over seeds, its error from the errors of the
    runs (NaN where there are none), and the number of runs."""
    values = measured[observable].astype(float)
    if "status" in measured and set(measured["status"].dims) <= set(values.dims):
        values = values.where((measured["status"] == UNCONVERGED) != converged)
    own = measured.get(f"{observable}_error")
    own = (
        xr.full_like(values, np.nan)
        if own is None or own.dims != values.dims
        else own.astype(float)
    )
    if "seed" not in values.dims:
        return (
            values,
            xr.full_like(values, np.nan),
            own.where(values.notnull()),
            values.notnull().astype(int),
        )
    count = values.notnull().sum("seed")
    several = count.where(count > 1)
    variance = ((values - values.mean("seed")) ** 2).sum("seed") / (several - 1)
    complete = (own.notnull() | values.isnull()).all("seed")
    pooled = (own**2).where(values.notnull()).sum("seed").where(
        complete & (count > 0)
    ) ** 0.5 / count.where(count > 0)
    return values.mean("seed"), (variance / several) ** 0.5, pooled, count
