"""A phase diagram on disk: all data as Zarr, and the boundaries as a table."""

import csv
from contextlib import nullcontext
from pathlib import Path

import xarray as xr

from orderparam.analysis.phases.diagram import PhaseDiagram
from orderparam.core.errors import StoreError
from orderparam.core.paths import clear_leftovers, make_whole, whole_file
from orderparam.running.lock import may_stay


def write(found: PhaseDiagram, folder: Path) -> None:
    """Writes `diagram.zarr` and `boundaries.csv` into the folder, which may already contain the
    same diagram. A word is written as its place in the attribute `meanings`. Raises `StoreError`
    when the files cannot be written, or when the folder contains another diagram or a damaged
    one."""
    path, data = folder / "diagram.zarr", _coded(found.data)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        clear_leftovers(path)
        there = _holds(path, data)
        if not there and not make_whole(
            path, lambda aside: data.to_zarr(aside, mode="w", zarr_format=3, consolidated=False)
        ):
            raise StoreError(
                f"{path} is damaged, or another diagram: move it away, and the same command writes "
                "it anew"
            )
        place = folder / "boundaries.csv"
        with (
            may_stay(folder, "table of boundaries") if there and place.is_file() else nullcontext(),
            whole_file(place) as aside,
            open(aside, "w", newline="") as opened,
        ):
            writer = csv.writer(opened)
            writer.writerow(
                [
                    "curve",
                    "kind",
                    "branch",
                    found.x,
                    found.y,
                    "error",
                    "low",
                    "high",
                    "exponent",
                    "exponent_error",
                    "doubt",
                ]
            )
            for curve, one in enumerate(found.boundaries):
                columns = (
                    one.x,
                    one.y,
                    one.error,
                    one.low,
                    one.high,
                    one.exponent,
                    one.exponent_error,
                    one.doubt,
                )
                writer.writerows(
                    [curve, one.kind, one.branch, *map(float, row)] for row in zip(*columns)
                )
    except OSError as error:
        raise StoreError(f"cannot write {folder}: {error.strerror or error}") from None


def _holds(path: Path, data: xr.Dataset) -> bool:
    """True if the store contains exactly these numbers."""
    try:
        with xr.open_zarr(path, consolidated=False) as stored:
            return stored.load().drop_attrs().identical(data.drop_attrs())
    except Exception:  # a damaged store can raise anything
        return False


def _coded(data: xr.Dataset) -> xr.Dataset:
    """Replaces texts by their place in a list, because Zarr has no common format for texts."""
    coded = data.copy()
    for name in [name for name, values in data.variables.items() if values.dtype.kind in "UO"]:
        words = sorted(set(map(str, data[name].values)))
        coded[name] = (
            data[name].copy(data=[words.index(str(word)) for word in data[name].values]).astype(int)
        )
        coded[name].attrs["meanings"] = words
    return coded
