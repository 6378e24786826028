"""Paths as people write them."""

import os
from pathlib import Path


def expanded(path: str | os.PathLike[str]) -> Path:
    """The path with ~ and ~NAME as home folders. Raises `ValueError` for a user who does not
    exist."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"{os.fspath(path)}: there is no such user") from None
