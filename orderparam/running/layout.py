"""The layout of a store: all files but those of the points follow from the sweep's identity,
coordinates and observables."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from orderparam.core.errors import StoreError
from orderparam.running.status import STATUS_MEANINGS
from orderparam.running.zarr3 import METADATA, array_metadata, chunk_file, encode, group_metadata

FORMAT = 2
FLAGS: dict[str, Any] = {
    "flag_values": list(range(len(STATUS_MEANINGS))),
    "flag_meanings": " ".join(STATUS_MEANINGS),
}
STATUS, SECONDS, CHECKSUM = "status", "seconds", "checksum"


ELSEWHERE = "move it away, or choose another place"


def digest(*parts: bytes, size: int = 16) -> bytes:
    """The hash of several byte strings. The length of each is hashed too, so that another division
    of the same bytes has another hash."""
    found = hashlib.blake2b(digest_size=size)
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.digest()


@dataclass(frozen=True)
class Observable:
    """The type, shape and dimensions of an observable at one point; the dimensions of the grid and
    the seeds come before these."""

    dtype: str
    shape: tuple[int, ...]
    dims: tuple[str, ...]


@dataclass(frozen=True)
class Layout:
    """The attributes of the root group, which describe the whole store and are protected by a
    digest.

    identity: function, system, grid and seeds of the sweep, in JSON types; coords: dimension ->
    values, in order; chunks: extent of a block, which is one chunk in every array; observables:
    those of the points computed so far.
    """

    identity: Mapping[str, Any]
    coords: Mapping[str, list[Any]]
    chunks: tuple[int, ...]
    observables: Mapping[str, Observable] = field(default_factory=dict)

    def with_observables(self, observables: Mapping[str, Observable]) -> "Layout":
        return replace(self, observables={**self.observables, **observables})

    @cached_property
    def dims(self) -> tuple[str, ...]:
        return tuple(self.coords)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(values) for values in self.coords.values())

    @cached_property
    def seal(self) -> bytes:
        """Digest of everything that never changes; it enters the checksum of every block."""
        return digest(
            json.dumps([FORMAT, self.identity, list(self.coords.items()), self.chunks]).encode()
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {name: np.asarray(values) for name, values in self.coords.items()}

    def blocks(self) -> Iterator[tuple[int, ...]]:
        """Index of every block."""
        return np.ndindex(*(-(-size // step) for size, step in zip(self.shape, self.chunks)))

    def region(self, index: Sequence[int]) -> tuple[slice, ...]:
        """The place of the block in the arrays."""
        return tuple(
            slice(i * step, min((i + 1) * step, size))
            for i, step, size in zip(index, self.chunks, self.shape)
        )

    @cached_property
    def files(self) -> dict[str, bytes]:
        """Every file of the store but the points': path -> content, the root first."""
        files = {METADATA: group_metadata({"orderparam": self._attributes()})}
        for name, values in self.coordinates().items():
            files[f"{name}/{METADATA}"] = array_metadata(
                values.shape, values.shape, (name,), values.dtype
            )
            files[f"{name}/{chunk_file((0,))}"] = encode(values, values.shape)
        blocks = tuple(-(-size // step) for size, step in zip(self.shape, self.chunks))
        files[f"{STATUS}/{METADATA}"] = array_metadata(
            self.shape, self.chunks, self.dims, np.dtype(np.int8), FLAGS
        )
        files[f"{SECONDS}/{METADATA}"] = array_metadata(
            self.shape, self.chunks, self.dims, np.dtype(np.float64)
        )
        files[f"{CHECKSUM}/{METADATA}"] = array_metadata(
            blocks, [1] * len(blocks), [f"{name}_block" for name in self.dims], np.dtype(np.uint64)
        )
        for name, own in self.observables.items():
            files[f"{name}/{METADATA}"] = array_metadata(
                (*self.shape, *own.shape),
                (*self.chunks, *own.shape),
                (*self.dims, *own.dims),
                np.dtype(own.dtype),
            )
        return files

    def _attributes(self) -> dict[str, Any]:
        record = {
            "format": FORMAT,
            "identity": self.identity,
            "coords": self.coords,
            "chunks": list(self.chunks),
            "observables": {
                name: [own.dtype, own.shape, own.dims] for name, own in self.observables.items()
            },
        }
        return {**record, "digest": digest(json.dumps(record).encode()).hex()}

    @classmethod
    def stored(cls, path: Path) -> "Layout":
        """The layout of the store at `path`. Raises `StoreError` if there is none, or if the store
        is foreign, older or damaged."""
        try:
            text = (path / METADATA).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise StoreError(
                f"{path} exists, but it is not the result of a sweep; {ELSEWHERE}"
            ) from None
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error.strerror or error}") from None
        try:
            record = json.loads(text)["attributes"]["orderparam"]
        except KeyError:
            raise StoreError(f"{path} was not written by orderparam; {ELSEWHERE}") from None
        except (ValueError, TypeError, RecursionError):
            raise StoreError(
                f"{path} is damaged: its {METADATA} cannot be read; {ELSEWHERE}"
            ) from None
        if isinstance(record, dict) and record.get("format") != FORMAT and "digest" not in record:
            raise StoreError(f"{path} was written by an earlier version of orderparam; {ELSEWHERE}")
        try:
            observables = {
                name: Observable(dtype, tuple(n), tuple(d))
                for name, (dtype, n, d) in record["observables"].items()
            }
            layout = cls(record["identity"], record["coords"], tuple(record["chunks"]), observables)
            sound = layout.files[METADATA] == text
        except Exception:  # altered text may raise anything above
            sound = False
        if not sound:
            raise StoreError(f"{path} is damaged: its {METADATA} was altered; {ELSEWHERE}")
        return layout
