"""A finished forecast on disk: data, figure and summary in a folder of its own."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from orderparam.core.paths import clear_leftovers
from orderparam.running.store import StoreError, is_free, make_whole


def write_folder(
    out: Path, data: Mapping[str, xr.Dataset], draw: Callable[[], Any], summary: Mapping[str, Any]
) -> None:
    """Writes `figure.png`, `figure.pdf`, `forecast.zarr` (a group for each data set) and
    `summary.json` into a new folder.

    The folder is written completely or not at all. Raises `StoreError` when it exists and is not
    empty, or cannot be written.
    """
    from orderparam.plotting import save

    def fill(aside: Path) -> None:
        for name, one in data.items():
            one.drop_attrs().to_zarr(
                aside / "forecast.zarr", group=name, zarr_format=3, consolidated=False
            )
        save(draw(), aside / "figure")
        (aside / "summary.json").write_text(json.dumps(dict(summary), indent=2) + "\n")

    clear_leftovers(out)
    try:
        if not is_free(out) or not make_whole(out, fill):
            raise StoreError(f"{out} is not empty; choose another folder with --out")
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror or error}") from None
