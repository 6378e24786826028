"""The files that the browser may name and upload: tables of numbers and words of a bounded size
inside one folder."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LARGEST = 8 * 2**20  # bytes of a file
# none of these formats can hold code, or unpack into more bytes than it has
KINDS = (".csv", ".tsv", ".npy")


def default_folder() -> Path:
    """The folder `explorer-results` in the folder in which the explorer was started."""
    return Path.cwd() / "explorer-results"


def inside(folder: Path, name: str) -> Path:
    """A file of the folder by its name. Raises `ValueError` for a file that lies elsewhere, after
    links are followed, or that is not a table."""
    root = folder.resolve()
    try:
        path = (root / name).resolve()
        found = path.is_relative_to(root) and path.is_file()
    except (
        OSError,
        ValueError,
        RuntimeError,
    ):  # a name that no file can have, or links in a circle
        found = False
    if not found:
        raise ValueError(f"{name[:80]!r}: there is no such file in the explorer's folder")
    return checked(path, path.stat().st_size)


def checked(path: Path, size: int) -> Path:
    """Raises `ValueError` for a file of another kind or size."""
    if path.suffix.lower() not in KINDS:
        raise ValueError(f"{path.name[:80]}: must be one of {', '.join(KINDS)}")
    if not 0 < size <= LARGEST:
        raise ValueError(
            f"{path.name[:80]} has {size} bytes: must be at least 1 and at most {LARGEST}"
        )
    return path


@contextmanager
def uploaded(name: str, content: bytes, size: int | None = None) -> Iterator[Path]:
    """A context in which an upload is a file that can be read. Only the ending and the letters of
    its name are used. size: its number of bytes, where the bytes were not sent.

    Messages contain the name of the file, and not the place where it lies.
    """
    ending = checked(Path(name), len(content) if size is None else size).suffix.lower()
    stem = "".join(c for c in Path(name).stem if c.isalnum() or c in "-_")[:40] or "data"
    with tempfile.TemporaryDirectory(prefix="orderparam-") as aside:
        path = Path(aside) / f"{stem}{ending}"
        path.write_bytes(content)
        try:
            yield path
        except ValueError as error:
            words = str(error).replace(str(path), path.name)
            raise ValueError(words if path.name in words else f"{path.name}: {words}") from None


def files(folder: Path) -> list[str]:
    """The tables that lie in the folder, at most 200."""
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        names = [
            entry.name
            for entry in entries
            if entry.is_file(follow_symlinks=False) and Path(entry.name).suffix.lower() in KINDS
        ]
    return sorted(names)[:200]
