"""A phase diagram on disk: everything as Zarr, its boundaries as a table."""

import csv
from pathlib import Path

import xarray as xr

from orderparam.analysis.phases.diagram import PhaseDiagram
from orderparam.core.store import StoreError, make_whole


def write(found: PhaseDiagram, folder: Path) -> None:
    """`diagram.zarr` and `boundaries.csv` in the folder; the same diagram may be there already. Words are written as their place
    in the attribute `meanings`. Raises `StoreError` when it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        make_whole(
            folder / "diagram.zarr", lambda aside: _coded(found.data).to_zarr(aside, mode="w", zarr_format=3, consolidated=False)
        )
        aside = folder / ".boundaries.csv.new"
        with open(aside, "w", newline="") as opened:
            writer = csv.writer(opened)
            writer.writerow(["curve", "kind", "branch", found.x, found.y, "error", "low", "high", "exponent", "doubt"])
            for curve, one in enumerate(found.boundaries):
                columns = (one.x, one.y, one.error, one.low, one.high, one.exponent, one.doubt)
                writer.writerows([curve, one.kind, one.branch, *map(float, row)] for row in zip(*columns))
        aside.replace(folder / "boundaries.csv")
    except OSError as error:
        raise StoreError(f"cannot write {folder}: {error.strerror or error}") from None


def _coded(data: xr.Dataset) -> xr.Dataset:
    """Texts by their place in a list: Zarr has no common form for them."""
    coded = data.copy()
    for name in [name for name, values in data.variables.items() if values.dtype.kind in "UO"]:
        words = sorted(set(map(str, data[name].values)))
        coded[name] = data[name].copy(data=[words.index(str(word)) for word in data[name].values]).astype(int)
        coded[name].attrs["meanings"] = words
    return coded
