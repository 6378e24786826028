"""The record of a finished study: the content of `summary.json`, protected by a checksum."""

import datetime
import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import jax
import numpy as np
import xarray as xr

import orderparam
from orderparam.comparison.agreement import summary
from orderparam.comparison.registry import Study
from orderparam.running.layout import digest


def summary_of(
    chosen: Study,
    parameters: dict[str, Any],
    size: str,
    results: Mapping[str, xr.Dataset],
    tables: Mapping[str, Mapping[str, xr.Dataset]],
    timings: Mapping[str, float],
    checksums: Mapping[str, str],
    seconds: float,
    processor_seconds: float,
) -> dict[str, Any]:
    """The record of a study: its parameters, times, differences between theory and experiment, and
    the machine and versions.

    checksums: those of the stores of the curves, by key; empty where all curves are in memory.
    """
    libraries = ("jax", "jaxlib", "equinox", "numpy", "xarray", "zarr")
    return {
        "study": chosen.name,
        "title": chosen.title,
        "source": chosen.source,
        "size": size,
        "parameters": parameters,
        "curves": [
            {
                **{
                    name: data.attrs[name]
                    for name in (
                        "label",
                        "facets",
                        "kind",
                        "baseline",
                        "bound",
                        "same_data",
                        "function",
                        "system",
                    )
                },
                "grid": {
                    str(dim): data[dim].values.tolist()
                    for dim in data["status"].dims
                    if dim != "seed"
                },
                "seeds": data["seed"].values.tolist() if "seed" in data.dims else None,
                "points": data.attrs["points"],
                "failed": data.attrs["failed"],
                "unconverged": data.attrs["unconverged"],
                "seconds": round(timings[key], 3),
                "checksum": checksums.get(key),
            }
            for key, data in results.items()
        ],
        "agreement": {key: summary(table, results[key]) for key, table in tables.items()},
        "seconds": round(seconds, 3),
        "processor_seconds": round(processor_seconds, 3),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": {"orderparam": orderparam.__version__, "python": platform.python_version()}
        | {name: version(name) for name in libraries},
        "devices": [f"{device.platform}:{device.device_kind}" for device in jax.devices()],
    }


def sealed(record: Mapping[str, Any]) -> str:
    """The text of `summary.json`: the record, followed by the checksum of everything before it."""
    plain = json.loads(json.dumps(dict(record), default=_plain))
    return json.dumps({**plain, "checksum": _checksum(plain)}, indent=2) + "\n"


def opened(text: str) -> dict[str, Any]:
    """The record in the text of a `summary.json`. Raises `ValueError` if it was altered."""
    record = json.loads(text)
    if not isinstance(record, dict):
        raise ValueError("it holds no record")
    checksum = record.pop("checksum", None)
    if checksum is None:
        raise ValueError(
            "it has no checksum: it was altered, or written by an earlier version of orderparam"
        )
    if checksum != _checksum(record):
        raise ValueError("it was altered")
    return record


def _checksum(record: Mapping[str, Any]) -> str:
    return digest(json.dumps(record, sort_keys=True).encode()).hex()


def _plain(value: Any) -> Any:
    return (
        value.item()
        if isinstance(value, np.generic)
        else value.tolist()
        if hasattr(value, "tolist")
        else str(value)
    )
