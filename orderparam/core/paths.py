"""Paths as people write them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def expanded(path: str | os.PathLike[str]) -> Path:
    """The path with ~ and ~NAME as home folders. Raises `ValueError` for a user who does not exist."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"{os.fspath(path)}: there is no such user") from None


def resolved(path: str | os.PathLike[str]) -> Path:
    """The same place with links followed. Raises `ValueError` for links in a circle and what no
    file can be called.
    """
    try:
        return expanded(path).resolve()
    except RuntimeError:
        raise ValueError(f"{os.fspath(path)}: its links lead in a circle") from None
    except OSError as error:
        raise ValueError(f"{os.fspath(path)}: {error.strerror or error}") from None


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """Where a file is written aside, by this process alone; it moves into place at the end, whole,
    or not at all.
    """
    aside = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        yield aside
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)
