"""Paths as people write them."""

import os
import platform
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
    or not at all. What was left of it by processes that were killed is removed.
    """
    clear_leftovers(target)
    aside = aside_of(target)
    try:
        yield aside
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)


def aside_of(path: Path) -> Path:
    """Where this process writes what is to be moved to `path`."""
    return path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}.new")


def clear_leftovers(path: Path) -> None:
    """Removes what processes of this machine that are gone were writing aside for `path` when they
    were killed."""
    path = Path(os.path.abspath(path))
    pattern = re.compile(
        rf"\.{re.escape(path.name)}\.(?:{re.escape(platform.node())}\.)?(\d+)(?:\.new)?"
    )
    with suppress(OSError):
        for entry in os.scandir(path.parent):
            found = pattern.fullmatch(entry.name)
            if found and not _is_alive(int(found[1])):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    os.unlink(entry.path)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
