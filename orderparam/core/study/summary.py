"""The record of a finished study: what `summary.json` holds."""

import datetime
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import jax
import xarray as xr

import orderparam
from orderparam.core.agreement import summary
from orderparam.core.study.registry import Study


def summary_of(
    chosen: Study,
    parameters: dict[str, Any],
    full: bool,
    results: Mapping[str, xr.Dataset],
    tables: Mapping[str, Mapping[str, xr.Dataset]],
    timings: Mapping[str, float],
    seconds: float,
    processor_seconds: float,
) -> dict[str, Any]:
    """What was run, how long it took, how far theory and experiment are apart, and on what."""
    libraries = ("jax", "jaxlib", "equinox", "numpy", "xarray", "zarr")
    return {
        "study": chosen.name,
        "title": chosen.title,
        "source": chosen.source,
        "size": "full" if full else "quick",
        "parameters": parameters,
        "curves": [
            {
                **{name: data.attrs[name] for name in ("label", "facets", "kind", "baseline", "function", "system")},
                "grid": {str(dim): data[dim].values.tolist() for dim in data["status"].dims if dim != "seed"},
                "seeds": data["seed"].values.tolist() if "seed" in data.dims else None,
                "points": data.attrs["points"],
                "failed": data.attrs["failed"],
                "unconverged": data.attrs["unconverged"],
                "seconds": round(timings[key], 3),
            }
            for key, data in results.items()
        ],
        "agreement": {key: summary(table) for key, table in tables.items()},
        "seconds": round(seconds, 3),
        "processor_seconds": round(processor_seconds, 3),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": {"orderparam": orderparam.__version__, "python": platform.python_version()}
        | {name: version(name) for name in libraries},
        "devices": [f"{device.platform}:{device.device_kind}" for device in jax.devices()],
    }
