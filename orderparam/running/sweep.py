"""The sweep: a theory or an experiment evaluated over a grid, as one labelled data set."""

import dataclasses
import hashlib
import re
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import jax
import numpy as np
import wadler_lindig as wl
import xarray as xr

import orderparam
from orderparam.core.errors import SweepError
from orderparam.core.fields import declarations
from orderparam.core.grid import Grid, numeric
from orderparam.core.own_code import state_of_own_code
from orderparam.core.system import System, nearest, replace
from orderparam.core.verb import Experiment, Theory, Verb, unwrap
from orderparam.running.executor import in_process, resolve
from orderparam.running.program import (
    FAILED,
    UNCONVERGED,
    ExperimentRun,
    Outcome,
    Program,
    Task,
    TheoryRun,
    WrongResult,
    describe,
    fn_name,
)
from orderparam.running.progress import track
from orderparam.running.store import MemoryStore, PointStore, ShapeMismatch


def sweep(
    fn: Callable[..., Any],
    system: System,
    over: Mapping[str, Sequence[Any]] | None = None,
    *,
    seeds: int | Sequence[int] | None = None,
    batch_seeds: bool = False,
    paired: Sequence[str] = (),
    store: str | Path | None = None,
    executor: Any = None,
    memory: int = 2**30,
    progress: bool | None = None,
) -> xr.Dataset:
    """Evaluates a theory `fn(system)` or an experiment `fn(system, key)` over a grid.

    Args:
        fn: The theory or experiment; `functools.partial` binds its options.
        system: The system; fields that are not varied keep its values.
        over: Field of the system (dotted names reach into nested modules) -> values. For a theory,
            dimensions of numbers are vmapped and compiled, at most `memory` bytes at a time; the
            sweep loops over all others (activations, architectures, static fields).
        seeds: None for a theory; for an experiment a number n (seeds 0 .. n-1) or the seeds
            themselves.
        batch_seeds: True runs all seeds of a point in one `jax.vmap` over keys; the experiment must
            then be traceable in its key.
        paired: Dimensions along which points share their random numbers (see `point_key`).
        store: Folder (`.zarr`) in which each finished point is stored at once; the same sweep later
            resumes where it stopped.
        executor: None (this process), a number of local processes, a Dask client, or the address of
            a Dask scheduler.
        memory: Bytes that one batch of a theory may use.
        progress: True for a progress bar on standard error; by default when that is a terminal.

    Returns:
        A data set with the grid dimensions first, `seed` next, the Result's own last, and the
        variable `status`: 1 done, 2 unconverged (the value is kept), 3 failed (an error, or
        unconverged and NaN throughout). One warning counts the marked points. Failed points are
        tried again when a stored sweep is resumed.

    Raises:
        ValueError: for unknown fields, values out of range, empty grids, a store of another sweep
            or one that another process is filling, and, at the first point, for a result of another
            shape or type than it declares.
        SweepError: where every point failed.

    >>> from orderparam.systems.spins import MeanFieldMagnet, mean_field
    >>> swept = op.sweep(
    ...     mean_field, MeanFieldMagnet(temperature=0.5), {"temperature": [0.5, 0.9, 1.5]}
    ... )
    >>> swept["magnetisation"].dims, swept["magnetisation"].values.round(4).tolist()
    (('temperature',), [0.9575, 0.5254, 0.0])
    """
    grid, numbers = checked(system, over, seeds)
    _check_seeds(fn, numbers)
    _check_options(grid, paired, memory, store)
    program: Program
    coords = grid.coords()
    if numbers is None:
        program = TheoryRun(fn, system, grid, memory)
    else:
        program = ExperimentRun(fn, system, grid, numbers, batch_seeds, tuple(paired))
        coords = {**coords, "seed": np.asarray(numbers)}
    run = resolve(executor)
    if run is not in_process:
        _check_travels(fn, system)
    attrs = {
        "function": describe(fn),
        "system": _fingerprint_text(system),
        "orderparam_version": orderparam.__version__,
    }
    errors: list[str] = []
    if store is None:
        points = MemoryStore(coords, program.block_shape())
    else:
        points = PointStore(
            store,
            identity(fn, system, grid, coords.get("seed"), paired),
            coords,
            program.block_shape,
        )
    with points as keep:
        todo = keep.unfinished(_tasks(program, grid, keep.chunks))
        total = sum(int(np.prod(task.shape)) for task in todo)
        with (
            track(total, fn_name(fn), progress) as advance,
            _closing(run(program, todo)) as outcomes,
        ):
            for task, outcome in outcomes:
                errors.extend(outcome.errors)
                try:
                    keep.write(task, outcome)
                except ShapeMismatch as error:
                    outcome = Outcome.failure(task, str(error), outcome.seconds)
                    errors.extend(outcome.errors)
                    keep.write(task, outcome)
                except WrongResult as error:
                    raise ValueError(f"{fn_name(fn)}: {error}") from None
                advance(int(np.prod(task.shape)), int(np.sum(outcome.status == FAILED)))
        dataset = keep.dataset(attrs)
    _report(dataset, fn, errors)
    return dataset


def _check_travels(fn: Callable, system: Any) -> None:
    """Raises `ValueError` for a function or class that worker processes cannot import."""
    for thing in (unwrap(fn)[0], type(system)):
        if isinstance(thing, Verb | type) and (
            thing.__module__ == "__main__" or "<locals>" in thing.__qualname__
        ):
            raise ValueError(
                f"{thing.__qualname__} is defined in the running script or notebook, or in a "
                "function, which worker processes cannot import: move it into a .py file and "
                "import it from there, or leave out the executor"
            )
    for name, declaration in declarations(system).items():
        if declaration.kind == "part" and dataclasses.is_dataclass(getattr(system, name)):
            _check_travels(fn, getattr(system, name))


@contextmanager
def _closing(outcomes: Iterator[tuple[Task, Outcome]]) -> Iterator[Iterator[tuple[Task, Outcome]]]:
    """Ends the work of an executor as soon as the sweep ends, however it ends: a traceback would
    keep it alive."""
    try:
        yield outcomes
    finally:
        if isinstance(outcomes, Generator):
            outcomes.close()


def checked(
    system: System, over: Mapping[str, Sequence[Any]] | None, seeds: int | Sequence[int] | None
) -> tuple[Grid, tuple[int, ...] | None]:
    """The grid and the seeds of a sweep. Raises `ValueError` for everything that can be refused
    before anything runs."""
    if not isinstance(system, System):
        raise ValueError(f"system = {system!r}: must be a System")
    grid = Grid.of(over)
    for name, values in grid.over.items():
        for value in values:
            replace(system, {name: value})
    return grid, None if seeds is None else _seed_numbers(seeds)


def _seed_numbers(seeds: Any) -> tuple[int, ...]:
    wrong = ValueError(
        f"seeds = {seeds!r}: give their number, at least one and at most a million, or different "
        "integers >= 0 (and below 2^63)"
    )
    if _is_integer(seeds):
        if not 1 <= seeds <= 10**6:
            raise wrong
        return tuple(range(int(seeds)))
    listed = isinstance(seeds, Sequence) and not isinstance(seeds, str | bytes)
    if not listed and not (isinstance(seeds, np.ndarray | jax.Array) and seeds.ndim == 1):
        raise wrong
    if not all(_is_integer(seed) and 0 <= seed < 2**63 for seed in seeds):
        raise wrong
    numbers = tuple(int(seed) for seed in seeds)
    if not numbers or len(set(numbers)) < len(numbers):
        raise wrong
    return numbers


def _is_integer(value: Any) -> bool:
    """True for a whole number of Python, NumPy or JAX: not for 0.5, "1" or True."""
    return (
        not isinstance(value, bool) and np.ndim(value) == 0 and np.asarray(value).dtype.kind in "iu"
    )


def _check_seeds(fn: Callable[..., Any], numbers: tuple[int, ...] | None) -> None:
    """Refuses an experiment without seeds, and a theory with seeds."""
    verb = unwrap(fn)[0]
    if isinstance(verb, Experiment) and numbers is None:
        raise ValueError(
            f"seeds = None: {verb.name} is an experiment; give their number, or the seeds"
        )
    if isinstance(verb, Theory) and numbers is not None:
        raise ValueError(f"seeds are given, but {verb.name} is a theory, which takes none")


def _check_options(grid: Grid, paired: Sequence[str], memory: int, store: Any) -> None:
    if isinstance(paired, str):
        raise ValueError(
            f"paired = {paired!r}: give a sequence of dimensions, such as ({paired!r},)"
        )
    for name in paired:
        if name not in grid.dims:
            raise ValueError(
                f"paired names {name!r}, which is not a dimension of this "
                f"sweep{nearest(str(name), list(grid.dims))}"
            )
    if not _is_integer(memory) or memory < 1:
        raise ValueError(f"memory = {memory!r}: give a number of bytes, at least 1")
    if not isinstance(store, str | PathLike | None):
        raise ValueError(f"store = {store!r}: give the path of a folder")


def _tasks(program: Program, grid: Grid, shape: Sequence[int]) -> Iterator[Task]:
    if isinstance(program, TheoryRun):
        for block in grid.blocks(shape):
            yield Task(block)
        return
    step = shape[-1]
    # Seeds vary most slowly: an interrupted sweep has every point once before it has any point
    # twice.
    for start in range(0, len(program.seeds), step):
        for block in grid.blocks(shape[:-1]):
            yield Task(block, slice(start, min(start + step, len(program.seeds))))


def _fingerprint_text(system: System) -> str:
    """The fields of the system in one line: arrays by their shape, nothing by its memory
    address."""
    return re.sub(r" at 0x[0-9a-f]+", "", wl.pformat(system, width=10**6, hide_defaults=False))


def identity(
    fn: Callable, system: System, grid: Grid, seeds: np.ndarray | None, paired: Sequence[str]
) -> dict[str, Any]:
    """What determines the numbers of a sweep: function, system, grid and seeds, with a digest of
    all arrays. A store is used again only for the same identity."""
    digest = hashlib.sha256()
    # Objects in a grid and arrays in options are not determined by their names.
    objects = [values for values in grid.over.values() if not numeric(values)]
    inside = [
        x
        for x in jax.tree.leaves((objects, unwrap(fn)[1]))
        if hasattr(x, "dtype") or isinstance(x, float)
    ]
    for leaf in (*jax.tree.leaves(system), *inside):
        digest.update(np.asarray(leaf).tobytes() if hasattr(leaf, "dtype") else repr(leaf).encode())
    coords = {name: values.tolist() for name, values in grid.coords().items()}
    inner = unwrap(fn)[0]
    code = inner.own_code if isinstance(inner, Verb) else state_of_own_code(inner)
    return {
        **({"code": code} if code else {}),
        "function": re.sub(r" at 0x[0-9a-f]+", "", describe(fn, registered=True)),
        "system": _fingerprint_text(system),
        "numbers": digest.hexdigest(),
        "grid": coords,
        "seeds": None if seeds is None else seeds.tolist(),
        "paired": list(paired),
    }


def _report(dataset: xr.Dataset, fn: Callable, errors: Sequence[str]) -> None:
    """Counts the marked points: one warning, or `SweepError` when no point is left."""
    status = dataset["status"].values
    failed, unconverged = int(np.sum(status == FAILED)), int(np.sum(status == UNCONVERGED))
    dataset.attrs.update(failed=failed, unconverged=unconverged, points=int(status.size))
    if errors:
        dataset.attrs["failures"] = list(errors[:20])
    name = fn_name(fn)
    if failed == status.size and errors:
        raise SweepError(f"{name}: every point failed; the first: {errors[0]}")
    if failed or unconverged:
        marks = [
            f"{n} {word}"
            for n, word in ((failed, "failed"), (unconverged, "did not converge"))
            if n
        ]
        first = f"; the first failure: {errors[0]}" if errors else ""
        warnings.warn(
            f"{name}: of {status.size} points {' and '.join(marks)} (see `status`){first}",
            stacklevel=3,
        )
