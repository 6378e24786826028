"""Runs a study: sweeps its theories and experiments, computes their agreement, and writes the
results to disk."""

import itertools
import os
import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from inspect import getsourcefile, unwrap
from pathlib import Path
from typing import Any

import xarray as xr

from orderparam.comparison.comparison import Comparison, agreements
from orderparam.comparison.curve import Curve, slug
from orderparam.comparison.files import open_result, write
from orderparam.comparison.registry import Study, find
from orderparam.comparison.summary import summary_of
from orderparam.core.errors import message_of
from orderparam.core.facets import agree
from orderparam.core.fields import short
from orderparam.core.grid import numeric
from orderparam.core.outline import Size
from orderparam.running.executor import resolve
from orderparam.running.lock import alone
from orderparam.running.store import OtherCode, fingerprint
from orderparam.running.sweep import checked, sweep


def compare(
    what: Study | str,
    *,
    size: Size = "quick",
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    executor: Any = None,
    progress: bool | None = None,
) -> Comparison:
    """Runs a study: sweeps its theories and experiments, and compares them.

    Args:
        what: A study, or its name.
        size: "quick" (a minute), "gallery" (the size of the documentation) or "full" (the sizes of
            the source), see `Study.parameters`.
        settings: Parameters to change; texts are read as the type of the default.
        out: Folder for `result.zarr` (each point as it finishes; the same call later resumes),
            `figure.png`, `figure.pdf` and `summary.json`. None keeps everything in memory.
        executor: None (this process), a number of local processes, a Dask client, or the address of
            a Dask scheduler.
        progress: True for a progress bar on standard error; by default when that is a terminal.

    Returns:
        A `Comparison`: the data set of every curve, and the agreement of theory and measurement.

    Raises:
        ValueError: for wrong names and values.
        StoreError: where `out` contains something else, or another process fills it.

    >>> import orderparam as op
    >>> done = op.compare(
    ...     "capacity-separability", settings={"dims": "10", "loads": "1.5,2.5", "learned": "1.2"}
    ... )
    >>> sorted(done.agreement)
    ['linear program, input dim 10', 'perceptron learning, input dim 10']
    """
    chosen = find(what) if isinstance(what, str) else what
    parameters = chosen.parameters(size, settings)
    begin, begin_processor = time.perf_counter(), _processor_seconds()
    results: dict[str, xr.Dataset] = {}
    timings: dict[str, float] = {}
    checksums: dict[str, str] = {}
    with ExitStack() as held:
        resumed = out is not None and (Path(out) / "result.zarr").is_dir()
        # another process that fills the folder is noticed before anything is built
        if out is not None and resumed:
            held.enter_context(alone(Path(out)))
        curves = _curves(chosen, parameters, settings)
        names = [slug(curve.key) for curve in curves]
        if len(set(names)) < len(names):
            raise ValueError(
                f"study {chosen.name!r}: its curves must differ in label or facets, not "
                f"{[c.key for c in curves]}"
            )
        for curve in curves:
            checked(curve.system, curve.over, curve.seeds)
        run = resolve(executor)
        # after everything that can be refused
        root = open_result(Path(out), chosen, parameters) if out is not None else None
        if out is not None and not resumed:
            held.enter_context(alone(Path(out)))
        for curve in curves:
            start = time.perf_counter()
            store = None if root is None else root / slug(curve.key)
            asked = curve if curve.is_experiment else _united(curve, curves)
            points = partial(
                sweep,
                asked.fn,
                asked.system,
                asked.over,
                seeds=asked.seeds,
                batch_seeds=asked.batch_seeds,
                paired=asked.paired,
                store=store,
                executor=run if curve.is_experiment else None,
                progress=progress,
            )
            try:
                results[curve.key] = points()
            except OtherCode:
                assert store is not None
                _set_aside(store, curve.key)
                results[curve.key] = points()
            role = "experiment" if curve.is_experiment else "theory"
            results[curve.key].attrs.update(
                label=curve.label,
                facets=curve.facets,
                kind=role,
                baseline=curve.baseline,
                bound=curve.bound or "",
                same_data=curve.same_data,
            )
            if store is not None:
                checksums[curve.key] = fingerprint(store)
            timings[curve.key] = time.perf_counter() - start
        tables = agreements(results, chosen.observables)
        seconds, processor = time.perf_counter() - begin, _processor_seconds() - begin_processor
        if resumed:  # the points of earlier runs count with the time that they took
            taken = sum(float(data["seconds"].sum()) for data in results.values())
            processor = max(processor, taken)
        record = summary_of(
            chosen, parameters, size, results, tables, timings, checksums, seconds, processor
        )
        comparison = Comparison(chosen, parameters, results, tables, record)
        if out is not None:
            write(comparison, Path(out))
    return comparison


def _set_aside(store: Path, curve: str) -> None:
    """Moves the points of a curve whose code was edited out of the result, into the folder
    `earlier-code` beside it."""
    earlier = store.parent.parent / "earlier-code"
    places = (earlier / f"{store.name}-{number}" for number in itertools.count(1))
    place = next(place for place in places if not place.exists())
    earlier.mkdir(exist_ok=True)
    store.rename(place)
    warnings.warn(
        f"{curve}: its code was edited since its points were computed, and they are computed "
        f"again; the old ones are in {place}",
        stacklevel=3,
    )


def _processor_seconds() -> float:
    """The processor time of this process and of its workers that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _curves(
    chosen: Study, parameters: Mapping[str, Any], settings: Mapping[str, Any] | None
) -> list[Curve]:
    """The curves of a study. If they cannot be built and settings were given, the message names the
    settings."""
    try:
        return chosen.build(**parameters)
    except Exception as error:
        if not settings or isinstance(error, OSError):
            raise
        given = ", ".join(f"{name} = {parameters[name]}" for name in settings)
        what = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        reason = what + message_of(error).partition("\n")[0]
        own = _raised_by(chosen, error)
        positive = _not_positive(chosen, parameters, settings)
        if positive and (what or not own):
            reason = f"no curve can be built from these values: {positive}"
        elif not own:
            reason = f"no curve can be built from these values ({reason.rstrip('.')})"
        raise ValueError(f"{chosen.name} with {given}: {reason}") from error


def _not_positive(chosen: Study, parameters: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """A message about settings of zero or below whose defaults are all positive; empty where there
    are none."""
    default = chosen.parameters()

    def positive(value: Any) -> bool:
        numbers = value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
        return all(numeric([one]) and one > 0 for one in numbers)

    return ", ".join(
        f"{name} must be positive, like {short(default[name])}"
        for name in settings
        if positive(default[name]) and not positive(parameters[name])
    )


def _raised_by(chosen: Study, error: Exception) -> bool:
    """True if this package or the study's own file raised the error, and no library that it
    calls."""
    raised = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
    package = Path(__file__).parents[1]
    return raised.is_relative_to(package) or raised == Path(
        getsourcefile(unwrap(chosen.build)) or ""
    )


def _united(curve: Curve, curves: Sequence[Curve]) -> Curve:
    """The curve of a theory with the measured points added to its grid, so that theory and
    measurement can be compared without interpolation."""
    over = dict(curve.over)
    for other in curves:
        if other.is_experiment and agree(other.facets, curve.facets):
            for name, values in other.over.items():
                if name in over and numeric(over[name]) and numeric(values):
                    over[name] = sorted({float(v) for v in over[name]} | {float(v) for v in values})
    return replace(curve, over=over)
