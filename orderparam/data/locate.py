"""Finds data files: in a folder that the user names, in `$ORDERPARAM_DATA`, in the user's cache,
and last by a download with a known hash."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orderparam.core import paths

ENVIRONMENT_VARIABLE = "ORDERPARAM_DATA"


class DataNotFound(FileNotFoundError, ValueError):
    """The files of a data set were not found; the message names the files and where to put them."""


@dataclass(frozen=True)
class RemoteFile:
    """A published file: the same bytes at every address, known by their SHA-256."""

    file: str
    sha256: str
    folders: tuple[str, ...]

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(folder + self.file for folder in self.folders)


def cache_folder() -> Path:
    """The folder of this user's downloads."""
    import pooch

    return Path(pooch.os_cache("orderparam"))


def expanded(path: str | os.PathLike[str]) -> Path:
    """The path with ~ and ~NAME as home folders. Raises `DataNotFound` for a user who does not
    exist."""
    try:
        return paths.expanded(path)
    except ValueError as error:
        raise DataNotFound(str(error)) from None


def search_folders(folder: str | os.PathLike[str] | None, subfolders: Sequence[str]) -> list[Path]:
    """The existing folders to look in, in order. Raises `DataNotFound` for a named folder that does
    not exist."""
    roots: list[Path] = []
    named = {"folder": folder, f"${ENVIRONMENT_VARIABLE}": os.environ.get(ENVIRONMENT_VARIABLE)}
    for origin, given in named.items():
        if given:
            if not expanded(given).is_dir():
                raise DataNotFound(f"{origin} = {os.fspath(given)!r}: there is no such folder")
            roots.append(expanded(given))
    roots.append(cache_folder())
    candidates = [root / subfolder for root in roots for subfolder in ("", *subfolders)]
    return [candidate for candidate in candidates if candidate.is_dir()]


def first_file(folder: Path, names: Sequence[str]) -> Path | None:
    """The first of these files that is in the folder."""
    return next((folder / name for name in names if (folder / name).is_file()), None)


class _DownloadBar:
    """A rich progress bar with the interface pooch drives: `total`, `update`, `reset`, `close`."""

    def __init__(self, description: str) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        columns = (
            TextColumn("{task.description}"), BarColumn(bar_width=24), DownloadColumn(),
            TransferSpeedColumn(),
            TextColumn("left"), TimeRemainingColumn(),
        )  # fmt: skip
        self.total = 0
        self.received = 0
        self.bar = Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty())
        self.task = self.bar.add_task(description, total=None)
        self.bar.start()

    def update(self, size: int) -> None:
        self.received += size
        self.bar.update(
            self.task,
            total=self.total or None,
            completed=min(self.received, self.total or self.received),
        )

    def reset(self) -> None:
        self.received = 0

    def close(self) -> None:
        self.bar.stop()


def fetch(remote: RemoteFile, subfolder: str) -> Path:
    """Downloads a file into the user's cache and returns its path; a file with the right hash is
    not downloaded again.

    Raises `OSError` when no address answers, and `ValueError` when the received file is not the
    published one.
    """
    import pooch

    failure: OSError | None = None
    for url in remote.urls:
        bar: Any = _DownloadBar(remote.file)
        try:
            path = pooch.retrieve(
                url,
                known_hash=f"sha256:{remote.sha256}",
                fname=remote.file,
                path=cache_folder() / subfolder,
                downloader=pooch.HTTPDownloader(progressbar=bar, timeout=20),
            )
            return Path(path)
        except OSError as error:
            failure = error
        except ValueError as error:
            raise ValueError(
                f"{remote.file}: what {url} sends is not the published file ({error})"
            ) from None
        finally:
            bar.close()
    assert failure is not None
    raise failure
