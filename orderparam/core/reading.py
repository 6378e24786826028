"""Reading files from anywhere: every fault becomes one `ValueError` that names the file, and no
file can run code."""

import csv
import gzip
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from orderparam.core.names import nearest

# Exceptions of the standard readers on damaged files. RuntimeError: an encrypted or exotically
# compressed zip member. MemoryError, OverflowError: a header that claims more numbers than the file
# holds.
FAULTS = (
    OSError, EOFError, ValueError, LookupError, RuntimeError, MemoryError, OverflowError,
    struct.error, zlib.error, zipfile.BadZipFile, tarfile.TarError, csv.Error,
)  # fmt: skip

# endings of files with a person's own rows
KINDS = (".npz", ".npy", ".csv", ".tsv", ".parquet", ".feather", ".xlsx")


MOST_UNPACKED = 2**30  # bytes by which an .npz file may grow when unpacked


class TooLarge(ValueError):
    """An archive that unpacks into more than a machine holds."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns any fault inside into `ValueError("path: what is wrong")`."""
    try:
        yield
    except FAULTS as error:
        if isinstance(error, MemoryError):
            what = "claims more numbers than fit into memory"
        elif isinstance(error, UnicodeDecodeError):
            what = (
                f"is not text in {error.encoding.upper()}: byte {error.start + 1} is "
                f"0x{error.object[error.start]:02x}"
            )
        else:
            what = str(error)
        raise ValueError(f"{path}: {what or 'unreadable'}") from None


def existing(path: Path, kinds: Sequence[str], missing: type[ValueError] = ValueError) -> Path:
    """The path of a file that exists and has an end.

    Raises `missing` with the nearest name among the files of these kinds beside it, and
    `ValueError` for a path that is not a file, but a folder, a pipe or a device, which has no end.
    """
    try:
        if path.is_file():
            return path
        if path.is_dir():
            raise ValueError(f"{path} is a folder: must be a file")
        if path.exists():
            raise ValueError(f"{path} is a pipe, a socket or a device: must be a file")
        beside = (
            [p.name for p in path.parent.iterdir() if p.suffix in kinds]
            if path.parent.is_dir()
            else []
        )
    except OSError as error:  # an impossible name, or a folder without permission
        raise missing(f"{path}: {error.strerror or error}") from None
    raise missing(f"there is no file {path}{nearest(path.name, beside)}")


def read_bytes(path: Path) -> bytes:
    """The content of a file, decompressed if its first two bytes say gzip."""
    with reading(path):
        raw = path.read_bytes()
        if raw[:2] != b"\x1f\x8b":
            return raw
        try:
            return gzip.decompress(raw)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"damaged gzip file ({error})") from None


def check_archive(path: Path, most: int) -> None:
    """Refuses a zip archive that grows by more than so many bytes, before it is unpacked. Raises
    `TooLarge`.
    """
    with zipfile.ZipFile(path) as parts:
        more = sum(part.file_size - part.compress_size for part in parts.infolist())
    if more > most:
        raise TooLarge(f"unpacks into {more} bytes more than it has: must be at most {most}")


def _numpy_reads(read: Callable[[], Any]) -> Any:
    """The value of `read`. On damaged bytes NumPy's header parser raises anything (SyntaxError,
    TypeError, TokenError, ..), which becomes a `ValueError`."""
    try:
        return read()
    except MemoryError:
        raise
    except Exception as error:
        if "allow_pickle" in str(error):  # NumPy's advice to load it nevertheless
            raise ValueError(
                "holds no array of numbers that NumPy has written: it is another kind of file, or "
                "holds Python objects, which are never loaded because they can run code"
            ) from None
        raise ValueError(f"NumPy cannot read it: {error}") from None


def read_npy(path: Path) -> np.ndarray:
    """The array of a `.npy` file. Object arrays (pickles) are refused."""
    with reading(path):
        array = _numpy_reads(lambda: np.load(path, allow_pickle=False))
        if not isinstance(array, np.ndarray):
            array.close()
            raise ValueError("is an .npz archive, not one .npy array: rename it")
        return array


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an `.npz` file by name. Object arrays (pickles) are refused."""
    with reading(path):
        archive = _numpy_reads(lambda: np.load(path, allow_pickle=False))
        if isinstance(archive, np.ndarray):
            raise ValueError("is one .npy array, not an .npz archive: rename it")
        with archive:
            check_archive(path, MOST_UNPACKED)
            return {name: _member(archive, name) for name in archive.files}


def _member(archive: Any, name: str) -> np.ndarray:
    try:
        member = _numpy_reads(lambda: archive[name])
    except ValueError as error:
        raise ValueError(f"array {name!r}: {error}") from None
    # NumPy hands over members of another format as raw bytes
    if not isinstance(member, np.ndarray):
        raise ValueError(f"{name!r} is not an array")
    return member
