"""Finished numbers on disk: data, figure and summary in a folder of its own."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from orderparam.core.paths import clear_leftovers
from orderparam.running.store import StoreError, is_free, make_whole


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
        for name, one in data.items():
            kept = _portable(one if attributes else one.drop_attrs())
            kept.to_zarr(aside / numbers, group=name, zarr_format=3, consolidated=False)
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


def _portable(data: xr.Dataset) -> xr.Dataset:
    """The data with words of any length, for which the format has a specification."""
    words = {
        name: one.astype(object) for name, one in data.variables.items() if one.dtype.kind == "U"
    }
    return data.assign(words)
