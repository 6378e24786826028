"""Stores of the finished points of a sweep: in memory, and on disk in a Zarr group that xarray
opens.

On disk a block (the points of one task) is one chunk of every array: the observables, `seconds`,
`checksum` and `status`, each written by an atomic rename and the status last, so that a kill at any
moment leaves every finished block complete and every other block missing. The checksum of a block
covers all its files and its place; every other file follows from the attributes of the root group
(`Layout`), which have a digest too. A damaged file is refused and a removed file is written again:
the remedy for damage is therefore to remove the damaged file. A power failure may cost the blocks
of the last seconds, and this is noticed too.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from orderparam.core.errors import StoreError
from orderparam.core.paths import clear_leftovers, is_free, make_whole
from orderparam.running.layout import (
    CHECKSUM,
    ELSEWHERE,
    FLAGS,
    SECONDS,
    STATUS,
    Layout,
    Observable,
    digest,
)
from orderparam.running.lock import READ_ONLY, lock
from orderparam.running.program import Outcome, Task
from orderparam.running.status import FAILED, MISSING
from orderparam.running.zarr3 import METADATA, blank, chunk_file, decode, encode

__all__ = [
    "MemoryStore",
    "PointStore",
    "ShapeMismatch",
    "StoreError",
    "fingerprint",
    "read",
]


class OtherCode(StoreError):
    """A store whose points were computed before the code of their function was edited."""


class ShapeMismatch(ValueError):
    """An observable whose shape or type differs from that at the other points."""


class MemoryStore:
    """The points of a sweep in memory.

    coords: the leading dimensions (grid, then seed); chunks: the extent of a task along them.
    """

    def __init__(self, coords: Mapping[str, np.ndarray], chunks: Sequence[int]):
        self.coords = dict(coords)
        self.dims = tuple(coords)
        self.shape = tuple(len(values) for values in coords.values())
        self.chunks = tuple(chunks)
        self.values: dict[str, np.ndarray] = {}
        self.own_dims: dict[str, tuple[str, ...]] = {}
        self.status = np.full(self.shape, MISSING, np.int8)
        self.seconds = np.full(self.shape, np.nan)

    def __enter__(self) -> "MemoryStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Releases what lies outside memory."""

    def unfinished(self, tasks: Iterable[Task]) -> list[Task]:
        """The tasks with points that are missing or that failed when they were computed."""
        return [
            task for task in tasks if np.isin(self.status[task.region], [MISSING, FAILED]).any()
        ]

    def write(self, task: Task, outcome: Outcome) -> None:
        """Keeps one finished task. Raises `WrongResult` and `ShapeMismatch`, with nothing kept."""
        outcome.check((*self.dims, STATUS, SECONDS, CHECKSUM))
        for name, value in outcome.values.items():
            if name not in self.values:
                continue
            own, others = value.shape[len(self.shape) :], self.values[name].shape[len(self.shape) :]
            if own != others:
                raise ShapeMismatch(
                    f"{name} has shape {own} here and {others} at other points: "
                    "the observables of a sweep must keep their shape over the grid"
                )
            if not np.can_cast(value.dtype, self.values[name].dtype, "safe"):
                raise ShapeMismatch(
                    f"{name} is {value.dtype} here and {self.values[name].dtype} at other points"
                )
        for name, value in outcome.values.items():
            if name not in self.values:
                self.new_observable(
                    name, value.dtype, value.shape[len(self.shape) :], outcome.dims[name]
                )
            self.values[name][task.region] = value
        self.seconds[task.region] = outcome.seconds / max(1, outcome.status.size)
        self.status[task.region] = outcome.status

    def new_observable(
        self, name: str, dtype: np.dtype, own_shape: tuple[int, ...], own_dims: tuple[str, ...]
    ) -> None:
        """Makes room for an observable, with blanks everywhere."""
        self.values[name] = np.full((*self.shape, *own_shape), blank(dtype), dtype)
        self.own_dims[name] = tuple(own_dims)

    def dataset(self, attrs: Mapping[str, Any]) -> xr.Dataset:
        variables: dict[str, Any] = {
            n: ((*self.dims, *self.own_dims[n]), v) for n, v in self.values.items()
        }
        variables[STATUS] = (self.dims, self.status, FLAGS)
        variables[SECONDS] = (self.dims, self.seconds)
        return xr.Dataset(variables, self.coords, dict(attrs))


class PointStore(MemoryStore):
    """The points of a sweep in memory and at `path` (a folder that ends in .zarr, or one inside
    such a folder).

    identity: function, system, grid and seeds of the sweep, in JSON types, by which the same sweep
    finds its points again. coords: the leading dimensions (grid, then seed); chunks: a function
    that gives the extent of a task along them, called for a new store only.

    One process at a time has the lock of a store, until `close`. A store that can only be read is
    not locked, and can be used if it is finished. Raises `StoreError` for a store that is damaged,
    foreign, of another sweep, in use by another process, or that cannot be written.
    """

    def __init__(
        self,
        path: str | Path,
        identity: Mapping[str, Any],
        coords: Mapping[str, np.ndarray],
        chunks: Callable[[], Sequence[int]],
    ):
        self.path = Path(path)
        self._lock: int | None = None
        self._only_read: OSError | None = None  # the reason why nothing can be written
        asked = Layout(
            json.loads(json.dumps(dict(identity))),
            {name: values.tolist() for name, values in coords.items()},
            (),
        )
        clear_leftovers(self.path)
        if is_free(self.path):
            asked = Layout(asked.identity, asked.coords, tuple(max(1, int(n)) for n in chunks()))
            with self._writing():
                make_whole(self.path, lambda aside: _put_all(aside, asked.files))
        _same_sweep(self.path, Layout.stored(self.path), asked)
        try:
            with self._writing():
                self._hold_or_read()
            # read again: the last process that filled it may have added observables
            self.layout = Layout.stored(self.path)
            super().__init__(self.layout.coordinates(), self.layout.chunks)
            parent = self.path.parent / METADATA
            # the group that contains it, if there is one
            self._parent = parent.read_bytes() if parent.is_file() else None
            with self._writing():
                self._put_missing(_damaged(self.path, self.layout))
            self._names = _load(self.path, self.layout, self)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)  # which releases the lock
            self._lock = None

    def unfinished(self, tasks: Iterable[Task]) -> list[Task]:
        """The unfinished tasks, as in `MemoryStore`. Raises `StoreError` where there are some and
        the store can only be read."""
        todo = super().unfinished(tasks)
        if todo and self._only_read is not None:
            with self._writing():
                raise self._only_read
        return todo

    def write(self, task: Task, outcome: Outcome) -> None:
        """Keeps one finished task. Raises `StoreError` when the disk is full or not writable;
        points written before are safe."""
        super().write(task, outcome)
        new = {
            name: Observable(
                value.dtype.name, value.shape[len(self.shape) :], tuple(outcome.dims[name])
            )
            for name, value in outcome.values.items()
            if name not in self.layout.observables
        }
        index = tuple(part.start // step for part, step in zip(task.region, self.chunks))

        def put() -> None:
            if new:
                # The root, which lists the arrays, is written last: an array that it does not list
                # holds no finished point.
                self.layout = self.layout.with_observables(new)
                for file in [*(f"{name}/{METADATA}" for name in new), METADATA]:
                    _put(self.path, file, self.layout.files[file])
            self._names[index] = tuple(sorted(outcome.values))
            self._put_block(index)

        self._into_whole(put)

    def dataset(self, attrs: Mapping[str, Any]) -> xr.Dataset:
        self._into_whole(lambda: None)
        return super().dataset(attrs)

    # -- files ------------------------------------------------------------------------------------

    def _put_block(self, index: tuple[int, ...]) -> None:
        region, names = self.layout.region(index), self._names[index]
        # A block that failed before is removed until it has been written completely.
        for name in (STATUS, *(name for name in self.layout.observables if name not in names)):
            with suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(_chunk(self.path, self.layout, name, index))
        files = {}
        for name in names:
            own = self.values[name].shape[len(self.shape) :]
            if 0 not in own:
                files[name] = encode(self.values[name][region], (*self.chunks, *own))
        files[SECONDS] = encode(self.seconds[region], self.chunks)
        status = encode(self.status[region], self.chunks)
        files[CHECKSUM] = _checksum(self.layout, index, {**files, STATUS: status})
        files[STATUS] = status
        for name, data in files.items():
            _put(self.path, _chunk("", self.layout, name, index), data)

    def _into_whole(self, put: Callable[[], None]) -> None:
        """Writes into a complete store, and once more if the store is removed at that very
        moment."""
        with self._writing():
            for _ in range(9):
                with suppress(FileNotFoundError):
                    self._restore_if_gone()
                    put()
                    return
            self._restore_if_gone()
            put()

    def _restore_if_gone(self) -> None:
        """Notices that the store was removed while it was being filled, and writes it again from
        memory."""
        gone = [
            file for file in self.layout.files if not os.path.exists(os.path.join(self.path, file))
        ]
        held = self._only_read is not None or (
            self._lock is not None and os.fstat(self._lock).st_nlink > 0
        )
        if held and not gone:
            return
        self.close()
        if self._parent is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _put_all(self.path.parent, {METADATA: self._parent})
        if is_free(self.path):
            make_whole(self.path, lambda aside: _put_all(aside, self.layout.files))
        self._put_missing(gone)
        self._hold()
        for index in self._names:
            self._put_block(index)

    def _put_missing(self, files: Iterable[str]) -> None:
        for file in files:
            _put(self.path, file, self.layout.files[file])

    def _hold_or_read(self) -> None:
        try:
            self._hold()
        except OSError as error:
            if error.errno not in READ_ONLY:
                raise
            self._only_read = error

    def _hold(self) -> None:
        (self.path / STATUS).mkdir(exist_ok=True)
        self._lock = lock(self.path / STATUS / ".lock", self.path)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"cannot write {self.path}: {error.strerror or error}; finished points are safe, "
                "the same command goes on where it stopped"
            ) from None


def read(path: str | Path, whole: bool = True) -> xr.Dataset:
    """A finished sweep from its store, every file of it checked.

    Raises `StoreError` when the store is damaged or, with `whole`, not finished.
    """
    path = Path(path)
    if not path.exists():
        raise StoreError(f"{path} is not there: the same command computes it")
    layout = Layout.stored(path)
    gone = _damaged(path, layout)
    if gone:
        raise StoreError(
            f"{path} is damaged: {gone[0]} is missing; the command that made it restores it"
        )
    memory = MemoryStore(layout.coordinates(), layout.chunks)
    _load(path, layout, memory)
    missing = int(np.sum(memory.status == MISSING))
    if missing and whole:
        raise StoreError(
            f"{path}: {missing} of {memory.status.size} points are missing; the command that made "
            "it computes them"
        )
    return memory.dataset({})


def fingerprint(path: str | Path) -> str:
    """The digest of everything in the store of a sweep: the sweep's identity and the checksum of
    every block."""
    layout = Layout.stored(Path(path))
    checksums = (
        _get(Path(path), _chunk("", layout, CHECKSUM, index)) or b"" for index in layout.blocks()
    )
    return digest(layout.seal, *checksums).hex()


def _same_sweep(path: Path, stored: Layout, asked: Layout) -> None:
    differing = [key for key in asked.identity if stored.identity.get(key) != asked.identity[key]]
    if list(stored.coords.items()) != list(asked.coords.items()):
        differing = differing or ["coordinates"]
    if differing == ["code"]:
        raise OtherCode(
            f"{path} holds what {asked.identity['function'].partition('(')[0]} gave before its "
            f"code was edited; {ELSEWHERE}"
        )
    if differing:
        raise StoreError(
            f"{path} holds another sweep (it differs in: {', '.join(differing)}); {ELSEWHERE}"
        )


def _damaged(path: Path, layout: Layout) -> list[str]:
    """The files of the layout that are missing. Raises `StoreError` for a file that was altered."""
    gone = []
    for file, content in layout.files.items():
        found = _get(path, file)
        if found is None:
            gone.append(file)
        elif found != content:
            raise StoreError(
                f"{path} is damaged: {file} was altered; remove that file and the same command "
                f"writes it anew, or {ELSEWHERE}"
            )
    return gone


def _load(
    path: Path, layout: Layout, memory: MemoryStore
) -> dict[tuple[int, ...], tuple[str, ...]]:
    """Reads every finished block of the store into memory, and returns index -> names of its
    observables.

    Raises `StoreError` for blocks whose files do not fit their checksum.
    """
    for name, own in layout.observables.items():
        memory.new_observable(name, np.dtype(own.dtype), own.shape, own.dims)
    names: dict[tuple[int, ...], tuple[str, ...]] = {}
    broken: list[str] = []
    targets = {SECONDS: memory.seconds, STATUS: memory.status, **memory.values}
    for index in layout.blocks():
        status_file = _chunk("", layout, STATUS, index)
        if _get(path, status_file) is None:
            continue
        files = {
            name: _get(path, _chunk("", layout, name, index))
            for name in (*layout.observables, SECONDS, CHECKSUM, STATUS)
        }
        there = {
            name: data for name, data in files.items() if data is not None and name != CHECKSUM
        }
        if files[CHECKSUM] != _checksum(layout, index, there):
            broken.append(status_file)
            continue
        region = layout.region(index)
        for name, data in there.items():
            target = targets[name]
            chunks = (*layout.chunks, *target.shape[len(layout.shape) :])
            target[region] = decode(data, target.dtype, chunks, target[region].shape)
        names[index] = tuple(sorted(name for name in there if name in layout.observables))
    if broken:
        which = ", ".join(broken) if len(broken) <= 3 else f"the files {STATUS}/c.*"
        raise StoreError(
            f"{path} is damaged: {len(broken)} of its blocks do not fit their checksum; remove "
            f"{which} in it and the same command computes {'these' if len(broken) <= 3 else 'all'} "
            f"points again, or {ELSEWHERE}"
        )
    return names


def _checksum(layout: Layout, index: tuple[int, ...], files: Mapping[str, bytes]) -> bytes:
    """The checksum file of a block: a checksum of its place and of the names and contents of its
    other files."""
    parts = (part for name in sorted(files) for part in (name.encode(), files[name]))
    found = digest(layout.seal, json.dumps(index).encode(), *parts, size=8)
    return encode(
        np.frombuffer(found, np.dtype("<u8")).reshape((1,) * len(index)), (1,) * len(index)
    )


def _chunk(path: str | Path, layout: Layout, name: str, index: tuple[int, ...]) -> str:
    own = layout.observables[name].shape if name in layout.observables else ()
    return os.path.join(path, name, chunk_file((*index, *(0 for _ in own))))


def _get(path: Path, file: str) -> bytes | None:
    try:
        with open(os.path.join(path, file), "rb") as opened:
            return opened.read()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        raise StoreError(
            f"cannot read {os.path.join(path, file)}: {error.strerror or error}; {ELSEWHERE}"
        ) from None


def _put(path: Path, file: str, data: bytes) -> None:
    """Writes a file of the store completely or not at all. Only one process writes, so that one
    name is enough for the unfinished file."""
    aside, place = os.path.join(path, STATUS, ".new"), os.path.join(path, file)
    try:
        with open(aside, "wb") as opened:
            opened.write(data)
        os.replace(aside, place)
    except FileNotFoundError:  # the first file of a folder
        os.makedirs(os.path.dirname(aside), exist_ok=True)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(aside, "wb") as opened:
            opened.write(data)
        os.replace(aside, place)


def _put_all(path: Path, files: Mapping[str, bytes]) -> None:
    for file, data in files.items():
        place = path / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
