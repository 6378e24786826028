"""Where the points of a sweep are kept as they finish: in memory, or on disk in a Zarr group that xarray opens.

On disk a task is one chunk. Its observables are written first and its status last, each by an atomic rename, so that a kill at
any moment leaves every finished task whole and every other one missing. Chunks do not overlap: several writers may share a store.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec

from orderparam.core.program import DONE, FAILED, MISSING, STATUS_MEANINGS, UNCONVERGED, Outcome, Task

FORMAT = 1


class StoreError(ValueError):
    """A store that is damaged, foreign, of another sweep, or cannot be written. It is never overwritten."""


class ShapeMismatch(ValueError):
    """An observable has another shape at this point than at the others."""


FLAGS: dict[str, Any] = {"flag_values": list(range(len(STATUS_MEANINGS))), "flag_meanings": " ".join(STATUS_MEANINGS)}


def _blank(dtype: np.dtype) -> Any:
    """What stands where nothing was measured."""
    return np.nan if np.issubdtype(dtype, np.inexact) else np.zeros((), dtype)[()]


def _own_shape(name: str, value: np.ndarray, task: Task, shape: Sequence[int] | None) -> tuple[int, ...]:
    """Shape of the observable's own dimensions, which every point of a sweep must share."""
    own = value.shape[len(task.shape) :]
    if shape is not None and tuple(shape) != own:
        raise ShapeMismatch(
            f"{name} has shape {own} here and {tuple(shape)} at other points: "
            "the observables of a sweep must keep their shape over the grid"
        )
    return own


class MemoryStore:
    """The points of a sweep in memory; the same interface as `PointStore`."""

    def __init__(self, coords: Mapping[str, np.ndarray], chunks: Sequence[int]):
        self.coords = dict(coords)
        self.dims = tuple(coords)
        self.shape = tuple(len(values) for values in coords.values())
        self.chunks = tuple(chunks)
        self.values: dict[str, np.ndarray] = {}
        self.own_dims: dict[str, tuple[str, ...]] = {}
        self.status = np.full(self.shape, MISSING, np.int8)
        self.seconds = np.full(self.shape, np.nan)

    def unfinished(self, tasks: Iterable[Task]) -> list[Task]:
        return list(tasks)

    def write(self, task: Task, outcome: Outcome) -> None:
        for name, value in outcome.values.items():
            known = self.values.get(name)
            own = _own_shape(name, value, task, None if known is None else known.shape[len(self.shape) :])
            if known is None:
                self.values[name] = np.full((*self.shape, *own), _blank(value.dtype), value.dtype)
                self.own_dims[name] = outcome.dims[name]
            self.values[name][task.region] = value
        self.seconds[task.region] = outcome.seconds / max(1, outcome.status.size)
        self.status[task.region] = outcome.status

    def dataset(self, attrs: Mapping[str, Any]) -> xr.Dataset:
        variables: dict[str, Any] = {n: ((*self.dims, *self.own_dims[n]), v) for n, v in self.values.items()}
        variables["status"] = (self.dims, self.status, FLAGS)
        variables["seconds"] = (self.dims, self.seconds)
        return xr.Dataset(variables, self.coords, dict(attrs))


class PointStore:
    """The store of one sweep at `path` (a folder that ends in .zarr, or a group inside one).

    identity: what the sweep is (function, system, grid, seeds), in JSON types; the same sweep finds its points again.
    coords: the leading dimensions (grid, then seed); chunks: gives the extent of a task along them, asked for a new store only.
    """

    def __init__(
        self,
        path: str | Path,
        identity: Mapping[str, Any],
        coords: Mapping[str, np.ndarray],
        chunks: Callable[[], Sequence[int]],
    ):
        self.path = Path(path)
        self.dims = tuple(coords)
        self.shape = tuple(len(values) for values in coords.values())
        self._opened: dict[str, zarr.Array] = {}
        frozen: dict[str, Any] = json.loads(json.dumps({"format": FORMAT, **identity}))
        if self.path.exists() and any(self.path.iterdir() if self.path.is_dir() else [self.path]):
            self.group = self._open()
            self._compare(frozen)
        else:
            self._create(frozen, coords, chunks())
        self.chunks = tuple(self._array("status").chunks)

    # -- opening ---------------------------------------------------------------------------------------------------------

    def _open(self) -> zarr.Group:
        try:
            group = zarr.open_group(self.path, mode="r+")
        except Exception as error:
            raise StoreError(
                f"{self.path} is there, but it is no result of a sweep ({type(error).__name__}); "
                "choose another place, or move it away"
            ) from None
        if "orderparam" not in group.attrs:
            raise StoreError(f"{self.path} was not written by orderparam; choose another place, or move it away")
        return group

    def _compare(self, identity: dict[str, Any]) -> None:
        stored: Any = self.group.attrs["orderparam"]
        if stored == identity:
            return
        differing = [key for key in identity if not isinstance(stored, dict) or stored.get(key) != identity[key]]
        raise StoreError(
            f"{self.path} holds another sweep (it differs in: {', '.join(differing)}); choose another place, or move it away"
        )

    def _create(self, identity: dict[str, Any], coords: Mapping[str, np.ndarray], chunks: Sequence[int]) -> None:
        # Made aside and moved into place whole, so that no other process ever sees half a store.
        aside = self.path.with_name(f".{self.path.name}.{os.getpid()}.new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            group = zarr.create_group(aside, attributes={"orderparam": identity})
            for name, values in coords.items():
                values = np.asarray(values)
                if values.dtype.kind == "U":
                    values = values.astype(np.dtypes.StringDType())
                array = group.create_array(name, shape=values.shape, dtype=values.dtype, dimension_names=(name,))
                array[...] = values
            self._new_array(group, "status", self.shape, chunks, self.dims, np.dtype(np.int8), MISSING)
            group["status"].attrs.update(FLAGS)
            self._new_array(group, "seconds", self.shape, chunks, self.dims, np.dtype(np.float64), np.nan)
            try:
                aside.rename(self.path)
            except OSError:  # another process was first
                self.group = self._open()
                self._compare(identity)
                return
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {error.strerror or error}") from None
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        self.group = self._open()

    @staticmethod
    def _new_array(
        group: zarr.Group,
        name: str,
        shape: Sequence[int],
        chunks: Sequence[int],
        dims: Sequence[str],
        dtype: np.dtype,
        fill: Any,
    ) -> None:
        group.create_array(
            name,
            shape=tuple(shape),
            chunks=tuple(max(1, n) for n in chunks),
            dtype=dtype,
            fill_value=fill,
            dimension_names=tuple(dims),
            compressors=[ZstdCodec(), Crc32cCodec()],  # the checksum tells a damaged chunk from a result
        )

    def _find(self, name: str) -> zarr.Array | None:
        """The array of that name, opened once: its shape and chunks never change."""
        if name not in self._opened:
            array = self.group.get(name)
            if not isinstance(array, zarr.Array):
                return None
            self._opened[name] = array
        return self._opened[name]

    def _array(self, name: str) -> zarr.Array:
        array = self._find(name)
        if array is None:
            raise StoreError(f"{self.path} is damaged: its array {name!r} is gone; choose another place, or move it away")
        return array

    # -- points ----------------------------------------------------------------------------------------------------------

    def unfinished(self, tasks: Iterable[Task]) -> list[Task]:
        """The tasks with points that are missing or that failed when they were tried."""
        status = self._read("status", ...)
        return [task for task in tasks if np.isin(status[task.region], [MISSING, FAILED]).any()]

    def write(self, task: Task, outcome: Outcome) -> None:
        """Keeps one finished task. Raises `StoreError` when the disk is full or not writable; older points stay safe."""
        # Chunks of zeros are written too, so that a chunk that is not there is a chunk that was lost.
        with zarr.config.set({"array.write_empty_chunks": True}), self._writing():
            for name, value in outcome.values.items():
                known = self._find(name)
                own = _own_shape(name, value, task, None if known is None else known.shape[len(self.shape) :])
                if known is None:
                    dims = (*self.dims, *outcome.dims[name])
                    shape, chunks = (*self.shape, *own), (*self.chunks, *own)
                    with contextlib.suppress(zarr.errors.ContainsArrayError):  # another writer made it at the same moment
                        self._new_array(self.group, name, shape, chunks, dims, value.dtype, _blank(value.dtype))
                self._array(name)[task.region] = value
            self._array("seconds")[task.region] = outcome.seconds / max(1, outcome.status.size)
            self._array("status")[task.region] = outcome.status

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"cannot write {self.path}: {error.strerror or error}; finished points are safe, "
                "the same command goes on where it stopped"
            ) from None

    def _read(self, name: str, region: Any) -> np.ndarray:
        try:
            return np.asarray(self._array(name)[region])
        except StoreError:
            raise
        except Exception as error:
            raise StoreError(
                f"{self.path} is damaged: {name!r} cannot be read ({type(error).__name__}); "
                "choose another place, or move it away"
            ) from None

    def dataset(self, attrs: Mapping[str, Any]) -> xr.Dataset:
        """Everything in the store as one data set in memory. Raises `StoreError` when a finished chunk is gone or damaged."""
        self._opened.clear()  # what is on disk now counts
        done = np.isin(self._read("status", ...), [DONE, UNCONVERGED])
        chunks_done = sum(bool(done[region].any()) for region in _regions(self.shape, self.chunks))
        variables, coords = {}, {}
        for name, array in self.group.arrays():
            dims = tuple(getattr(array.metadata, "dimension_names", None) or ())
            value = self._read(name, ...)
            if value.dtype.kind == "T":
                value = np.asarray(value.tolist())
            if name in self.dims:
                coords[name] = (dims, value)
            elif array.nchunks_initialized < chunks_done:
                raise StoreError(
                    f"{self.path} is damaged: chunks of {name!r} are gone; choose another place, or move it away"
                )
            else:
                variables[name] = (dims, value, dict(array.attrs))
        return xr.Dataset(variables, coords, dict(attrs))


def _regions(shape: Sequence[int], chunks: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """The region of every chunk."""
    for corner in np.ndindex(*(-(-size // step) for size, step in zip(shape, chunks))):
        yield tuple(slice(i * step, (i + 1) * step) for i, step in zip(corner, chunks))
