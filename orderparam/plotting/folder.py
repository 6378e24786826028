"""Finished numbers on disk: data, figure and summary in a folder of its own."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from orderparam.core.errors import StoreError
from orderparam.core.paths import clear_leftovers, is_free, make_whole
from orderparam.running.zarr3 import METADATA, array_metadata, chunk_file, encode, group_metadata


def write_folder(
    out: Path,
    data: Mapping[str, xr.Dataset],
    draw: Callable[[], Any],
    summary: Mapping[str, Any],
    numbers: str = "forecast.zarr",
    attributes: bool = False,
    pages: Mapping[str, str] | None = None,
) -> None:
    """Writes `figure.png`, `figure.pdf`, the numbers (a group for each data set), `summary.json`
    and pages (name -> text) into a new folder. attributes: those of the data are written too.

    The folder is written completely or not at all. Raises `StoreError` when it exists and is not
    empty, or cannot be written.
    """
    from orderparam.plotting import save

    def fill(aside: Path) -> None:
        (aside / numbers).mkdir()
        (aside / numbers / METADATA).write_bytes(group_metadata({}))
        for name, one in data.items():
            _write_group(aside / numbers / name, one if attributes else one.drop_attrs())
        save(draw(), aside / "figure")
        (aside / "summary.json").write_text(json.dumps(dict(summary), indent=2) + "\n")
        for name, text in (pages or {}).items():
            (aside / name).write_text(text)

    clear_leftovers(out)
    try:
        if not is_free(out) or not make_whole(out, fill):
            raise StoreError(f"{out} is not empty; choose another folder with --out")
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror or error}") from None


def _write_group(group: Path, data: xr.Dataset) -> None:
    """Writes a data set as a Zarr group of one chunk for each array. The library `zarr` takes a
    third of a second of processor to do so, most of it for its import."""
    beside = {str(name) for name in data.coords} - {str(name) for name in data.dims}
    named = {"coordinates": " ".join(sorted(beside))} if beside else {}
    group.mkdir(parents=True)
    (group / METADATA).write_bytes(group_metadata({**_plain(data.attrs), **named}))
    for name, one in data.variables.items():
        values = one.values.astype(str) if one.dtype.kind == "O" else one.values
        dims = [str(dim) for dim in one.dims]
        array = group / str(name)
        array.mkdir()
        metadata = array_metadata(values.shape, values.shape, dims, values.dtype, _plain(one.attrs))
        (array / METADATA).write_bytes(metadata)
        (array / chunk_file([0] * values.ndim)).write_bytes(encode(values, values.shape))


def _plain(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    """Attributes as JSON has them: numbers of NumPy as numbers, arrays as lists."""
    return dict(json.loads(json.dumps(dict(attributes), default=lambda one: one.tolist())))
