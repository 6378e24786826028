"""Paths as people write them."""

import hashlib
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


def expanded(path: str | os.PathLike[str]) -> Path:
    """The path with ~ and ~NAME as home folders. Raises `ValueError` for a user who does not
    exist."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"{os.fspath(path)}: there is no such user") from None


def resolved(path: str | os.PathLike[str]) -> Path:
    """The path with links followed. Raises `ValueError` for links in a circle and for names that no
    file can have.
    """
    try:
        return expanded(path).resolve()
    except RuntimeError:
        raise ValueError(f"{os.fspath(path)}: its links lead in a circle") from None
    except OSError as error:
        raise ValueError(f"{os.fspath(path)}: {error.strerror or error}") from None


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """The path of a temporary file beside `path`, for this process only. At the end it is moved to
    `path`, completely or not at all. Temporary files that killed processes left behind are removed.
    """
    clear_leftovers(target)
    aside = aside_of(target)
    try:
        yield aside
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)


def aside_of(path: Path) -> Path:
    """The path of the temporary file that this process writes before moving it to `path`."""
    return path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}.new")


def is_free(path: Path) -> bool:
    """True if nothing is there, or an empty folder."""
    return not path.exists() or (path.is_dir() and not any(path.iterdir()))


def make_whole(path: Path, fill: Callable[[Path], Any]) -> bool:
    """Makes a folder completely or not at all: `fill` writes a folder beside it, which is then
    moved into place. Returns False if another process was faster; its folder stays.
    """
    path = Path(os.path.abspath(path))
    aside = aside_of(path)
    try:
        aside.mkdir(parents=True, exist_ok=True)
        fill(aside)
        try:
            aside.rename(path)
        except OSError:
            if is_free(path):
                raise
            return False
        return True
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def clear_leftovers(path: Path) -> None:
    """Removes temporary files beside `path` that killed processes of this machine left behind."""
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


def state_of_files(files: Sequence[Path]) -> str:
    """A digest of the names, sizes and times of files."""
    digest = hashlib.sha256(platform.python_version().encode())
    for path in files:
        status = path.stat()
        digest.update(f"{path} {status.st_mtime_ns} {status.st_size}\n".encode())
    return digest.hexdigest()
