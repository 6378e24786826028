"""Compiled programs are kept on disk from one process to the next, by JAX's persistent compilation
cache.

They lie in the user's cache folder or in the one that `$ORDERPARAM_CACHE` names (`off`: nowhere),
in a sub-folder for what a compiled program depends on besides its own text: versions and processor.
All sub-folders together are bounded; entries that were not used for the longest time are removed
first. Each entry is stored under a digest of its name and content (`sealed_cache`). Where a person
has set JAX's own `JAX_COMPILATION_CACHE_DIR`, that folder is left to JAX.

JAX's own limit (`jax_compilation_cache_max_size`) is not used: it bounds one folder, so that the
folders of earlier versions would stay for ever; at every access it holds a lock on the folder, for
which processes that compile at the same time wait; and it trusts any file in the folder.

This module does not import JAX. A fault of the folder never stops a program, which is then compiled
anew.
"""

import atexit
import hashlib
import os
import platform
import sys
import time
import warnings
from pathlib import Path

from orderparam.core.jax_setup import jax_setting, set_jax
from orderparam.core.paths import expanded
from orderparam.core.sealed_cache import ASIDE, ENTRY, SealedCache, seal

ENVIRONMENT_VARIABLE = "ORDERPARAM_CACHE"
BYTES = 2**30
_INTERVAL = 3600.0  # seconds between two tidyings of a folder
# seconds; a file still being written is younger than this, or its process was killed
_WRITING = 60.0
_FOLDERS = "orderparam-*-jaxlib-*"
_command = False


def keep_programs(version: str) -> None:
    """Turns the cache on for this process and those it starts, in the sub-folder of orderparam
    `version`.

    Warns in one sentence when a folder that `$ORDERPARAM_CACHE` names cannot be used.
    """
    chosen = os.environ.get(ENVIRONMENT_VARIABLE, "")
    theirs = jax_setting("jax_compilation_cache_dir")
    # otherwise inherited from a process that ran this function
    if theirs and not _is_ours(Path(theirs)):
        return
    if chosen.lower() == "off" or not _loads_in_silence():
        set_jax("jax_compilation_cache_dir", None)
        return
    import jaxlib

    try:
        root = folder_of_programs()
        folder = root / f"orderparam-{version}-jaxlib-{jaxlib.__version__}-{_processor()}"
        str(folder).encode()  # JAX takes no other names
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        if chosen:
            reason = getattr(error, "strerror", None) or error
            warnings.warn(
                f"${ENVIRONMENT_VARIABLE} = {chosen!r} cannot keep compiled programs: {reason}",
                stacklevel=3,
            )
        set_jax("jax_compilation_cache_dir", None)
        return
    set_jax("jax_compilation_cache_dir", str(folder))
    seal(_is_ours)
    for name in (
        "jax_persistent_cache_min_compile_time_secs",
        "jax_persistent_cache_min_entry_size_bytes",
    ):
        if name.upper() not in os.environ:
            set_jax(name, 0)  # small programs are many: together they take longest
    # JAX compiles a program that it cannot read and keeps in memory one that it cannot write; a
    # warning for each program helps nobody.
    warnings.filterwarnings(
        "ignore", message="Error (reading|writing) persistent compilation cache entry"
    )
    atexit.register(_tidy_now_and_then, root)


def keep_for_commands() -> None:
    """Lets this process, which runs one command and in which nobody exchanges a function of the
    package, keep the list of theories and whole compiled theories, too."""
    global _command
    _command = True


def kept_for_commands() -> SealedCache | None:
    """The data that an earlier command left in the folder of programs; None in other processes, and
    where nothing is kept."""
    folder = jax_setting("jax_compilation_cache_dir") if _command else None
    return SealedCache(Path(folder)) if folder and _is_ours(Path(folder)) else None


def folder_of_programs() -> Path:
    """The folder that `$ORDERPARAM_CACHE` names, or else the user's cache folder. Raises
    `ValueError` where the path names the home of a user who does not exist."""
    import platformdirs

    chosen = os.environ.get(ENVIRONMENT_VARIABLE, "")
    return expanded(
        chosen or Path(platformdirs.user_cache_dir("orderparam")) / "programs"
    ).absolute()


def tidy(root: Path, limit: int = BYTES) -> None:
    """Removes files that killed processes left half written; then, until at most `limit` bytes
    remain, the entries of all sub-folders in the order of their last use; then empty sub-folders.

    Raises `OSError` where the folder cannot be read or changed.
    """
    for path in root.glob(f"{_FOLDERS}/*{ENTRY}.*{ASIDE}"):
        if path.stat().st_mtime < time.time() - _WRITING:
            path.unlink(missing_ok=True)
    entries = []
    for path in root.glob(f"{_FOLDERS}/*{ENTRY}"):
        status = path.stat()
        entries.append((max(status.st_atime, status.st_mtime), status.st_size, path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit:
            break
        path.unlink(missing_ok=True)
        total -= size
    for folder in root.glob(_FOLDERS):
        if not any(folder.iterdir()):
            folder.rmdir()


def _tidy_now_and_then(root: Path) -> None:
    if "jax" not in sys.modules:
        return
    stamp = root / ".tidied"
    try:
        if not stamp.exists() or abs(time.time() - stamp.stat().st_mtime) > _INTERVAL:
            stamp.touch()
            tidy(root)
    except OSError:  # not ours to change, or another process is at it
        pass


def _is_ours(folder: Path) -> bool:
    return folder.match(_FOLDERS)


def _processor() -> str:
    """A short name of the instructions and the number of cores that XLA compiles for."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        with open("/proc/cpuinfo") as lines:
            features = next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        # a processor that does not list its instructions is taken to be like no other
        features = platform.node()
    return hashlib.sha256(f"{platform.machine()} {cores} {features}".encode()).hexdigest()[:12]


def _loads_in_silence() -> bool:
    """True if XLA loads programs without a page of errors for each one. Where it still can be, XLA
    is made to do so.

    Until jaxlib 0.9, XLA compares a program's target with the processor it was compiled on, finds
    hints to the compiler that are no instructions, and reports them as errors. Its log level is
    read when JAX is imported, and JAX sets it to 1.
    """
    import jaxlib

    level = os.environ.get("TF_CPP_MIN_LOG_LEVEL")
    if tuple(map(int, jaxlib.__version__.split(".")[:2])) >= (0, 10) or level == "3":
        return True
    if "jax" in sys.modules or level == "0":
        return False
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    return True
