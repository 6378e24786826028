"""The difference between theory and measurement, point by point: mean ± standard error, z-score,
relative deviation."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import chdtrc, ndtri, stdtr

from orderparam.running.estimate import pooled_runs, unconverged_runs
from orderparam.running.status import DONE, UNCONVERGED

ENOUGH_RUNS = 4  # the scatter of fewer runs does not determine the error of their mean
# a theory counts as zero where it is smaller than this, relative to its largest value at the
# measured points
ZERO = 1e-6
# deviations and errors that are both smaller than this, in the same units, are rounding errors
ROUNDING = 1e-9
# a theory that is nowhere larger than this is zero but for rounding (1e-16, squared), and
# deviations from it have no relative size
NOTHING = 1e-20
BY_CHANCE = 0.01  # what is less probable than this is no chance


def agreement(
    theories: Mapping[str, xr.Dataset], measured: xr.Dataset, observables: Sequence[str]
) -> dict[str, xr.Dataset]:
    """Compares every theory with one measurement at the measured points: observable -> table.

    A table has the dimensions `theory` and those of the measured observable without `seed`:
    `theory_value`, `theory_error`, `run_value`, `mean`, `standard_error` (see `estimate`), `runs`,
    `unconverged` (runs that are left out because they did not converge), `mean_of_all` (with them),
    `z`, `relative_deviation`, `resolution`, and `baseline` and `bound` (theory).

    `theory_error` is the standard error of a theory that is evaluated by sampling (`X_uncertainty`
    beside `X`), and 0 for other theories. The error of a deviation is sqrt(standard_error^2 +
    theory_error^2).

    A theory with the dimension `seed` is one on the training set of each run. It is compared run by
    run: `theory_value` and `mean` are those of the runs in which both converged, and
    `standard_error` is the error of their mean difference. `run_value` (with the dimension `seed`)
    is its value for each run, and 0 for other theories.

    relative_deviation is mean / theory - 1, and resolution is the error of the deviation over
    |theory|. Where the theory is smaller than a millionth of its largest value at the measured
    points, the denominator of both is that largest value.

    z is the deviation over its error, as a normal deviate: an error from the scatter of n runs is
    itself uncertain, so that z is the number of standard deviations which is as improbable as the
    deviation is in Student's distribution with n - 1 degrees of freedom, or more where a theory's
    error adds to it (Welch and Satterthwaite; a theory's error is taken as it is). It is NaN where
    there are fewer than four runs and these have no standard errors, and where deviation and error
    are both rounding errors.

    Where a theory is a `bound` ("lower" or "upper"), z is zero for measurements on the allowed side
    of it, and resolution is the error over the larger of theory and mean.

    Left out are observables that only theory or only measurement has, theories over dimensions that
    were not measured or have another length, and theories without a converged value at a measured
    point.
    """
    tables = {}
    for name in observables:
        if name not in measured:
            continue
        rows = {
            key: row
            for key, data in theories.items()
            if (row := _compared(data, measured, name)) is not None
        }
        if rows:
            table = xr.concat(rows.values(), xr.Variable("theory", list(rows)), join="outer")
            aside = [bool(theories[key].attrs.get("baseline", False)) for key in rows]
            bounds = [_bound(theories[key]) for key in rows]
            tables[name] = table.assign(baseline=("theory", aside), bound=("theory", bounds))
    return tables


def _bound(theory: xr.Dataset) -> str:
    """ "lower" or "upper" for a theory that only limits the measurement, else ""."""
    return str(theory.attrs.get("bound", ""))


def _compared(theory: xr.Dataset, measured: xr.Dataset, name: str) -> xr.Dataset | None:
    """One theory compared with the measurement, or None where they have no point in common."""
    if name not in theory:
        return None
    for dim, size in theory[name].sizes.items():
        if size > 1 and (
            dim not in measured[name].dims
            or (dim not in theory.coords and size != measured.sizes[dim])
        ):
            return None
    each = xr.zeros_like(measured[name], float)
    if "seed" in theory[name].dims:
        each = _at(theory, name, measured[name])
        differences = measured.assign({name: measured[name] - each})
        deviation, scatter, own, runs = pooled_runs(differences, name)
        value = each.where(_converged(differences, name)).mean("seed")
        mean = value + deviation
    else:
        mean, scatter, own, runs = pooled_runs(measured, name)
        value = _at(theory, name, mean)
        deviation = mean - value
    if not value.notnull().any():
        return None
    by_scatter = scatter.notnull() & ~(own >= scatter)
    error = xr.where(by_scatter, scatter, own)
    enough = ~by_scatter | (runs >= ENOUGH_RUNS)
    uncertainty = f"{name}_uncertainty"
    blur = _at(theory, uncertainty, mean).fillna(0.0) if uncertainty in theory else 0.0 * value
    both = np.hypot(error, blur)
    largest = np.abs(value).max()
    rounding = (np.abs(deviation) < ROUNDING * largest) & (both < ROUNDING * largest)
    bound = _bound(theory)
    wrong = {"lower": np.minimum(deviation, 0.0), "upper": np.maximum(deviation, 0.0)}
    ratio = (wrong.get(bound, deviation) / both.where(both > 0)).where(enough & ~rounding)
    share = ((error / both.where(both > 0)) ** 2).clip(1e-6)  # of the variance
    scale = xr.where(np.abs(value) > ZERO * largest, np.abs(value), largest)
    scale = scale.where(scale > NOTHING)
    missed = unconverged_runs(measured)
    every = measured[name].astype(float)
    return xr.Dataset(
        {
            "theory_value": value,
            "theory_error": blur.where(value.notnull()),
            "run_value": each,
            "mean": mean,
            "standard_error": error,
            "runs": runs,
            "unconverged": missed.broadcast_like(mean)
            if set(missed.dims) <= set(mean.dims)
            else xr.zeros_like(runs),
            "mean_of_all": every.mean("seed") if "seed" in every.dims else every,
            "z": xr.where(by_scatter, _normal_deviate(ratio, (runs - 1) / share**2), ratio),
            "relative_deviation": deviation * np.sign(value + (value == 0)) / scale,
            "resolution": both / (np.maximum(scale, np.abs(mean)) if bound else scale),
        }
    )


def _converged(measured: xr.Dataset, name: str) -> xr.DataArray:
    """True for the runs that count: finite and converged."""
    counts = measured[name].notnull()
    return counts & (measured["status"] != UNCONVERGED) if "status" in measured else counts


def run_deviations(measured: xr.Dataset, name: str, column: xr.Dataset) -> np.ndarray:
    """A vector for every measured point, in the order of `column["z"]`: the deviations of the
    converged runs from their mean, over the root of their sum of squares. Where the column of
    `agreement` is that of a theory on the training set of each run, it is the differences from this
    theory that deviate.

    The product of the vectors of two points is the correlation of these points over the runs. A
    vector is zero where the runs do not scatter.
    """
    like, values = column["z"], measured[name].astype(float) - column["run_value"]
    if "seed" not in values.dims:
        return np.zeros((like.size, 1))
    if "status" in measured and set(measured["status"].dims) <= set(values.dims):
        values = values.where(measured["status"] != UNCONVERGED)
    away = (values - values.mean("seed")).fillna(0.0)
    length = (away**2).sum("seed") ** 0.5
    unit = (away / length.where(length > 0)).fillna(0.0).transpose(*like.dims, "seed")
    return np.asarray(unit.values).reshape(like.size, -1)


def independent_points(vectors: Iterable[np.ndarray]) -> float:
    """Number of independent points among measured ones, K^2 / sum_ij r_ij^2.

    vectors: those of `run_deviations`, one for each of the K points.

    r_ij^2 is the squared correlation of two points over the runs, without its bias for n runs: r^2
    - (1 - r^2) / (n - 2). With this number of degrees of freedom K z^2 has
    the mean and variance of chi-squared where all z are normal deviates with these correlations.
    Points of few runs, or of a different number of runs, count as uncorrelated.
    """
    listed = list(vectors)
    together = float(len(listed))
    for runs in {len(vector) for vector in listed}:
        rows = np.asarray([vector for vector in listed if len(vector) == runs])
        rows = rows[(rows != 0).any(1)]
        if runs < ENOUGH_RUNS or not len(rows):
            continue
        squares = float(((rows.T @ rows) ** 2).sum())  # sum_ij r_ij^2
        pairs, bias = len(rows) * (len(rows) - 1), 1 / (runs - 2)
        together += max(0.0, (1 + bias) * (squares - len(rows)) - bias * pairs)
    return len(listed) ** 2 / together if listed else 0.0


def probability_by_chance(z: np.ndarray, independent: float) -> float | None:
    """Probability that chance gives a root mean square of normal deviates as large as that of `z`
    or larger, by chi-squared with `independent` degrees of freedom; None without points."""
    return float(chdtrc(independent, independent * np.mean(z**2))) if z.size else None


def differs(record: Mapping[str, Any]) -> bool:
    """True if a theory that is no baseline has points beyond three standard errors or systematic
    deviations in its record of `summary`."""
    systematic = record["probability"] is not None and record["probability"] < BY_CHANCE
    return not record["baseline"] and bool(record["points_beyond_3"] or systematic)


def _normal_deviate(t: xr.DataArray, freedom: xr.DataArray) -> xr.DataArray:
    """The normal deviate with the tail probability of Student's t. It is at most 37, whose tail is
    the smallest positive number."""
    tail = stdtr(np.maximum(freedom.values, 1), -np.abs(t.values))
    return t.copy(data=-np.sign(t.values) * ndtri(np.maximum(tail, np.finfo(float).tiny)))


def _at(theory: xr.Dataset, name: str, like: xr.DataArray) -> xr.DataArray:
    """The theory's converged value at the coordinates of a measurement, NaN where it has none."""
    value = theory[name].astype(float)
    if "status" in theory:
        value = value.where(theory["status"] == DONE)
    value = value.isel({dim: 0 for dim in value.dims if dim not in like.dims}, drop=True)
    shared: dict[Any, Any] = {
        dim: like[dim] for dim in value.dims if dim in like.dims and dim in like.coords
    }
    return value.reindex(shared).broadcast_like(like).transpose(*like.dims)


def summary(tables: Mapping[str, xr.Dataset], measured: xr.Dataset) -> list[dict[str, Any]]:
    """One record per theory and observable, from the tables of a measurement (see `agreement`).

    points: points compared; points_with_z, points_beyond_3: those with an error, and with |z| > 3;
    rms_z: root mean square of z, 1 within 1 / sqrt(2 independent points) where theory and
    measurement agree; independent_points: see there; probability: that chance gives this rms_z or a
    larger one, so that a small one says that deviations are systematic even if none is beyond 3;
    median and worst relative deviation; resolution: median of the error of the deviation over the
    theory (see `agreement`); runs: fewest and most converged runs at a point. A `baseline` is
    recorded as such and never counts as a disagreement; a `bound` is "lower", "upper" or "".
    """
    records = []
    for observable, table in tables.items():
        for theory in table["theory"].values:
            part = table.sel(theory=theory)
            names = ("z", "relative_deviation", "resolution")
            z, relative, resolution = (
                part[name].values[np.isfinite(part[name].values)] for name in names
            )
            vectors = run_deviations(measured, observable, part)
            independent = independent_points(vectors[np.isfinite(part["z"].values.ravel())])
            runs = part["runs"].values[np.isfinite((part["mean"] - part["theory_value"]).values)]
            records.append(
                {
                    "theory": str(theory),
                    "observable": observable,
                    "baseline": bool(part["baseline"]),
                    "bound": str(part["bound"].values),
                    "points": int(np.isfinite((part["mean"] - part["theory_value"]).values).sum()),
                    "points_with_z": int(z.size),
                    "points_beyond_3": int(np.sum(np.abs(z) > 3)),
                    "rms_z": float(np.sqrt(np.mean(z**2))) if z.size else None,
                    "independent_points": independent,
                    "probability": probability_by_chance(z, independent),
                    "median_relative_deviation": float(np.median(np.abs(relative)))
                    if relative.size
                    else None,
                    "worst_relative_deviation": float(relative[np.argmax(np.abs(relative))])
                    if relative.size
                    else None,
                    "resolution": float(np.median(resolution)) if resolution.size else None,
                    "runs": [int(runs.min()), int(runs.max())] if runs.size else None,
                }
            )
    return records
