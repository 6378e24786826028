"""A finished forecast on disk: data, figure and summary in a folder of its own."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from orderparam.core.store import StoreError


def write_folder(out: Path, data: Mapping[str, xr.Dataset], draw: Callable[[], Any], summary: Mapping[str, Any]) -> None:
    """Writes `figure.png`, `figure.pdf`, `forecast.zarr` (a group for each data set) and `summary.json` into a new folder.

    Raises `StoreError` when the folder holds anything already, or cannot be written.
    """
    from orderparam.plotting import save

    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise StoreError(f"{out} is not empty; choose another folder with --out")
        out.mkdir(parents=True, exist_ok=True)
        for name, one in data.items():
            one.drop_attrs().to_zarr(out / "forecast.zarr", group=name, zarr_format=3, consolidated=False)
        save(draw(), out / "figure")
        (out / "summary.json").write_text(json.dumps(dict(summary), indent=2) + "\n")
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror or error}") from None
