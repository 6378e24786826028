"""A Study: a named, runnable figure. Its theories and its experiments on one grid, and how far they are apart.

A study is a function from its parameters to the curves to compute. The parameters' defaults are the quick size; `full` holds
those of the figure as published:

    @study(
        "double-descent",
        title="Double descent of a finite-rank kernel",
        source="Canatar, Bordelon, Pehlevan 2021, Fig. 1",
        full={"repeats": 400},
        seconds=(20, 600),
        draw=draw,
    )
    def double_descent(rank: int = 50, repeats: int = 60) -> list[Curve]:
        system = KernelRegression(...)
        return [
            Curve("self-consistent", self_consistent, system, {"n_train": ...}),
            Curve("Gaussian design", gaussian_design, system, {"n_train": ...}, seeds=repeats),
        ]

Everything a person meets (the list, the command line, the gallery) is generated from the registry of these.
"""

import datetime
import importlib
import importlib.util
import inspect
import json
import os
import pkgutil
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr
import zarr

import orderparam
from orderparam.core import agreement as agreement_module
from orderparam.core.executor import resolve
from orderparam.core.grid import numeric
from orderparam.core.store import StoreError
from orderparam.core.sweep import checked, sweep
from orderparam.core.system import System, nearest


@dataclass(frozen=True)
class Curve:
    """One sweep of a study: a theory (`seeds` None) or an experiment. The fields are the arguments of `sweep`.

    Curves with the same `panel` are compared with one another and share one set of axes.
    """

    label: str
    fn: Callable[..., Any]
    system: System
    over: Mapping[str, Sequence[Any]]
    seeds: int | None = None
    batch_seeds: bool = False
    paired: tuple[str, ...] = ()
    panel: str = ""

    @property
    def is_experiment(self) -> bool:
        return self.seeds is not None


@dataclass(frozen=True)
class Study:
    """A registered study; made by the decorator `study`.

    name: what one types; seconds: expected time of the quick and of the full size on two cores; observables: what the agreement
    table shows; draw: from a finished `Comparison` to a figure.
    """

    name: str
    title: str
    source: str
    build: Callable[..., list[Curve]]
    full: Mapping[str, Any]
    seconds: tuple[float, float]
    observables: tuple[str, ...]
    draw: Callable[["Comparison"], Any]

    @property
    def room(self) -> str:
        """The room of `systems` it stands in."""
        return self.build.__module__.split(".")[-2]

    def mentions(self, word: str) -> bool:
        """Whether the word stands in its name, room, title or source."""
        text = f"{self.name} {self.room} {self.title} {self.source}"
        return word.lower().replace("_", " ") in text.lower().replace("_", " ")

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Parameter -> quick value."""
        return {name: parameter.default for name, parameter in inspect.signature(self.build).parameters.items()}

    def parameters(self, full: bool = False, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The parameters of one run. Texts are read as the type of the default; raises `ValueError` for what does not fit."""
        chosen = {**self.defaults, **(self.full if full else {})}
        for name, value in (settings or {}).items():
            if name not in chosen:
                raise ValueError(f"study {self.name!r} has no parameter {name!r}{nearest(name, list(chosen))}")
            chosen[name] = _read(name, value, self.defaults[name])
        return chosen


def _read(name: str, value: Any, default: Any) -> Any:
    """A value as the type of the default it replaces."""
    text = value if isinstance(value, str) else None
    try:
        if isinstance(default, tuple):
            items = text.split(",") if text is not None else list(value)
            example = default[0] if default else 0.0
            return tuple(_read(name, item.strip() if isinstance(item, str) else item, example) for item in items)
        if isinstance(default, bool):
            if text is not None:
                return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.lower()]
            return bool(value)
        if isinstance(default, int):
            if float(value) != int(float(value)):
                raise ValueError
            return int(float(value))
        if isinstance(default, float):
            return float(value)
        return value
    except (ValueError, TypeError, KeyError, OverflowError):
        wanted = f"a value like {default!r}"
        if isinstance(default, tuple):
            wanted = f"{'integers' if default and isinstance(default[0], int) else 'numbers'} separated by commas"
        raise ValueError(f"parameter {name} = {value!r}: give {wanted}") from None


_registry: dict[str, Study] = {}


def study(
    name: str,
    *,
    title: str,
    source: str,
    draw: Callable[["Comparison"], Any],
    seconds: tuple[float, float],
    observables: Sequence[str] = ("test_error",),
    full: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., list[Curve]]], Study]:
    """Registers the decorated function (parameters -> curves) as a study."""

    def register(build: Callable[..., list[Curve]]) -> Study:
        if name in _registry and _registry[name].build.__module__ != build.__module__:
            raise ValueError(f"two studies are called {name!r}")
        _registry[name] = Study(name, title, source, build, dict(full or {}), seconds, tuple(observables), draw)
        return _registry[name]

    return register


def studies() -> dict[str, Study]:
    """All studies by name: every `studies.py` in the rooms of `orderparam.systems` is imported."""
    rooms = importlib.import_module("orderparam.systems")
    for room in pkgutil.iter_modules(rooms.__path__, "orderparam.systems."):
        if importlib.util.find_spec(f"{room.name}.studies") is not None:
            importlib.import_module(f"{room.name}.studies")
    return dict(sorted(_registry.items()))


def find(name: str) -> Study:
    """The study of that name; raises `ValueError` with the nearest one."""
    known = studies()
    if name not in known:
        raise ValueError(f"there is no study {name!r}{nearest(name, list(known))}")
    return known[name]


@dataclass(frozen=True)
class Comparison:
    """A finished study: the data set of every curve (attributes `label`, `panel`, `kind`) and the agreement of each experiment.

    `figure()` draws it; `summary` is what `summary.json` holds.
    """

    study: Study
    parameters: dict[str, Any]
    curves: dict[str, xr.Dataset]
    agreement: dict[str, xr.Dataset]
    summary: dict[str, Any] = field(repr=False)

    def theories(self, panel: str = "") -> dict[str, xr.Dataset]:
        return {k: d for k, d in self.curves.items() if d.attrs["kind"] == "theory" and d.attrs["panel"] == panel}

    def experiments(self, panel: str = "") -> dict[str, xr.Dataset]:
        return {k: d for k, d in self.curves.items() if d.attrs["kind"] == "experiment" and d.attrs["panel"] == panel}

    @property
    def panels(self) -> list[str]:
        return list(dict.fromkeys(data.attrs["panel"] for data in self.curves.values()))

    def figure(self) -> Any:
        """The figure, in the house style."""
        from orderparam.plotting import house_style

        with house_style():
            return self.study.draw(self)


def _united(curve: Curve, curves: Sequence[Curve]) -> Curve:
    """A theory evaluated at the measured points of its panel too, so that the two can be compared without interpolation."""
    over = dict(curve.over)
    for other in curves:
        if other.is_experiment and other.panel == curve.panel:
            for name, values in other.over.items():
                if name in over and numeric(over[name]) and numeric(values):
                    over[name] = sorted({float(v) for v in over[name]} | {float(v) for v in values})
    return Curve(curve.label, curve.fn, curve.system, over, panel=curve.panel)


def _slug(text: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in text.lower()).strip("-")


def compare(
    what: Study | str,
    *,
    full: bool = False,
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    executor: Any = None,
    progress: bool | None = None,
) -> Comparison:
    """Runs a study: sweeps its theories and experiments, and reports how far they are apart.

    full: the published sizes in place of the quick ones; settings: parameters to change (texts are read as numbers).
    out: folder for `result.zarr` (points as they finish; the same command again goes on), `figure.png`, `figure.pdf` and
    `summary.json`. Raises `ValueError` for wrong names and values and `StoreError` when `out` holds something else.
    """
    chosen = find(what) if isinstance(what, str) else what
    parameters = chosen.parameters(full, settings)
    begin = time.perf_counter()
    curves = _curves(chosen, parameters, settings)
    labels = [curve.label for curve in curves]
    if len(set(labels)) < len(labels):
        raise ValueError(f"study {chosen.name!r}: its curves must have different labels, not {labels}")
    for curve in curves:
        checked(curve.system, curve.over, curve.seeds)
    run = resolve(executor)
    root = _open_result(Path(out), chosen, parameters) if out is not None else None  # after all that can be refused
    results: dict[str, xr.Dataset] = {}
    timings: dict[str, float] = {}
    for curve in curves:
        start = time.perf_counter()
        asked = curve if curve.is_experiment else _united(curve, curves)
        results[curve.label] = sweep(
            asked.fn,
            asked.system,
            asked.over,
            seeds=asked.seeds,
            batch_seeds=asked.batch_seeds,
            paired=asked.paired,
            store=None if root is None else root / _slug(curve.label),
            executor=run if curve.is_experiment else None,
            progress=progress,
        )
        role = "experiment" if curve.is_experiment else "theory"
        results[curve.label].attrs.update(label=curve.label, panel=curve.panel, kind=role)
        timings[curve.label] = time.perf_counter() - start
    tables = _agreements(chosen, results)
    summary = _summary(chosen, parameters, full, results, tables, timings, time.perf_counter() - begin)
    comparison = Comparison(chosen, parameters, results, tables, summary)
    if out is not None:
        _write(comparison, Path(out))
    return comparison


def _curves(chosen: Study, parameters: Mapping[str, Any], settings: Mapping[str, Any] | None) -> list[Curve]:
    """The curves of a study. What cannot be built is the fault of the settings, if there are any, and is said with them."""
    try:
        return chosen.build(**parameters)
    except Exception as error:
        if not settings or isinstance(error, OSError):
            raise
        given = ", ".join(f"{name} = {parameters[name]}" for name in settings)
        what = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        reason = what + str(error).partition("\n")[0]
        raise ValueError(f"{chosen.name} with {given}: {reason}") from error


def _agreements(chosen: Study, results: Mapping[str, xr.Dataset]) -> dict[str, xr.Dataset]:
    tables = {}
    for label, data in results.items():
        if data.attrs["kind"] == "experiment":
            panel = data.attrs["panel"]
            theories = {
                k: d for k, d in results.items() if d.attrs["kind"] == "theory" and d.attrs["panel"] == panel
            }
            tables[label] = agreement_module.agreement(theories, data, chosen.observables)
    return tables


def _summary(
    chosen: Study,
    parameters: dict[str, Any],
    full: bool,
    results: Mapping[str, xr.Dataset],
    tables: Mapping[str, xr.Dataset],
    timings: Mapping[str, float],
    seconds: float,
) -> dict[str, Any]:
    libraries = ("jax", "jaxlib", "equinox", "numpy", "xarray", "zarr")
    return {
        "study": chosen.name,
        "title": chosen.title,
        "source": chosen.source,
        "size": "full" if full else "quick",
        "parameters": parameters,
        "curves": [
            {
                "label": label,
                "panel": data.attrs["panel"],
                "kind": data.attrs["kind"],
                "function": data.attrs["function"],
                "system": data.attrs["system"],
                "grid": {str(dim): data[dim].values.tolist() for dim in data["status"].dims if dim != "seed"},
                "seeds": data["seed"].values.tolist() if "seed" in data.dims else None,
                "points": data.attrs["points"],
                "failed": data.attrs["failed"],
                "unconverged": data.attrs["unconverged"],
                "seconds": round(timings[label], 3),
            }
            for label, data in results.items()
        ],
        "agreement": {label: agreement_module.summary(table) for label, table in tables.items()},
        "seconds": round(seconds, 3),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": {"orderparam": orderparam.__version__, "python": platform.python_version()}
        | {name: version(name) for name in libraries},
        "devices": [f"{device.platform}:{device.device_kind}" for device in jax.devices()],
    }


def _open_result(out: Path, chosen: Study, parameters: dict[str, Any]) -> Path:
    """The `result.zarr` inside `out`, new or of the very same run; anything else is refused."""
    path = out / "result.zarr"
    identity = json.loads(json.dumps({"study": chosen.name, "parameters": parameters}))
    try:
        if out.exists() and not out.is_dir():
            raise StoreError(f"{out} is a file; choose another folder with --out")
        if not path.exists():
            if out.exists() and any(not entry.name.startswith(".result.zarr.") for entry in out.iterdir()):
                raise StoreError(f"{out} is not empty and holds no result; choose another folder with --out")
            # Made aside and moved into place whole: a kill at any moment leaves a result or none.
            aside = out / f".result.zarr.{os.getpid()}"
            zarr.create_group(aside, attributes={"orderparam_study": identity}, overwrite=True)
            aside.rename(path)
            return path
        stored: Any = zarr.open_group(path, mode="r").attrs.get("orderparam_study")
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror or error}") from None
    except StoreError:
        raise
    except Exception as error:
        raise StoreError(f"{path} is damaged ({type(error).__name__}); choose another folder with --out") from None
    if not isinstance(stored, dict) or "study" not in stored:
        raise StoreError(f"{path} was not written by orderparam; choose another folder with --out")
    if stored["study"] != identity["study"]:
        raise StoreError(f"{out} holds a result of {stored['study']!r}; choose another folder with --out")
    if stored["parameters"] != identity["parameters"]:
        keys = set(identity["parameters"]) | set(stored["parameters"])
        other = sorted(k for k in keys if stored["parameters"].get(k) != identity["parameters"].get(k))
        raise StoreError(f"{out} holds a run with other values of {', '.join(other)}; choose another folder with --out")
    return path


def _write(comparison: Comparison, out: Path) -> None:
    """Agreement, figure and summary beside the points; each file whole or not at all."""
    from orderparam.plotting import save

    try:
        for label, table in comparison.agreement.items():
            if table.sizes:
                words = [name for name, values in table.coords.items() if values.dtype.kind in "UO"]
                texts = {name: table[name].astype(np.dtypes.StringDType()) for name in words}
                group = f"agreement-{_slug(label)}"
                table.assign_coords(texts).to_zarr(
                    out / "result.zarr", group=group, mode="w", zarr_format=3, consolidated=False
                )
        save(comparison.figure(), out / "figure")
        text = json.dumps(comparison.summary, indent=2, default=_plain)
        aside = out / ".summary.json.new"
        aside.write_text(text + "\n")
        aside.replace(out / "summary.json")
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror or error}; the points are safe in result.zarr") from None


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value.tolist() if hasattr(value, "tolist") else str(value)


def load(out: str | Path) -> Comparison:
    """A finished comparison from its folder. Raises `StoreError` when there is none or it is damaged."""
    out = Path(out)
    if out.name in ("result.zarr", "summary.json"):
        out = out.parent
    if not (out / "result.zarr").is_dir():
        raise StoreError(f"{out} holds no result of orderparam (no result.zarr in it)")
    if not (out / "summary.json").is_file():
        raise StoreError(f"{out} holds an unfinished run: the same command again goes on where it stopped")
    try:
        summary = json.loads((out / "summary.json").read_text())
        curves, tables = {}, {}
        for record in summary["curves"]:
            label = record["label"]
            data = xr.open_zarr(out / "result.zarr", group=_slug(label), consolidated=False, chunks=None).load()
            data.attrs = {key: record[key] for key in ("label", "panel", "kind", "function", "system")} | {
                key: record[key] for key in ("points", "failed", "unconverged")
            }
            curves[label] = data
            group = f"agreement-{_slug(label)}"
            if (out / "result.zarr" / group).is_dir():
                tables[label] = xr.open_zarr(out / "result.zarr", group=group, consolidated=False, chunks=None).load()
        chosen = find(summary["study"])
        parameters = chosen.parameters(settings=summary["parameters"])
    except StoreError:
        raise
    except Exception as error:
        raise StoreError(f"{out} is damaged ({type(error).__name__}: {error})") from None
    return Comparison(chosen, parameters, curves, tables, summary)
