"""Locks, so that only one process at a time fills a store. The operating system releases a lock
when its process ends, however that happens."""

import errno
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orderparam.core.errors import StoreError

# error numbers of a place that can only be read
READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)
# error numbers of a file system without locks
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)
_RESULT = "result.zarr"


def lock(file: Path, what: Path) -> int:
    """Takes a lock file, which is made if necessary, and returns its descriptor. No other process
    can take the lock until it is closed.

    Raises `StoreError` where another process has it or the file cannot be locked, and `OSError`
    where it cannot be opened. On a file system without locks nothing is guarded.
    """
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    if sys.platform == "win32":
        return descriptor
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                reason = (
                    f"{what} is being filled by another process; wait until it ends, or choose "
                    "another place"
                )
                raise StoreError(reason) from None
            raise StoreError(f"cannot lock {what}: {error.strerror or error}") from None
    return descriptor


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """A context inside which no other process fills the run in this folder. If the folder does not
    exist, or can only be read, nothing is guarded.

    Raises `StoreError` at once where another process does.
    """
    descriptor = None
    try:
        if (out / _RESULT).is_dir():
            descriptor = lock(out / f".{_RESULT}.lock", out)
    except OSError as error:
        if error.errno not in READ_ONLY:
            raise StoreError(f"cannot lock {out}: {error.strerror or error}") from None
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def may_stay(folder: Path, files: str) -> Iterator[None]:
    """Inside, a finished result is described anew by these files; where its folder can only be
    read, one warning says that they stay as they were."""
    try:
        yield
    except OSError as error:
        if error.errno not in READ_ONLY:
            raise
        warnings.warn(f"{folder} can only be read: its {files} stay as they were", stacklevel=4)
