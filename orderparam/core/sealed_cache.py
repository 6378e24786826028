"""Entries of JAX's compilation cache, each under a digest of its name and content.

JAX trusts any file under an entry's name: an entry that was exchanged with another, or altered,
gives wrong numbers or ends the process. Here such an entry counts as missing, and the program is
compiled again and replaces it.
"""

import hashlib
import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

# suffixes of the names of finished entries, and of entries that are being written
ENTRY, ASIDE = "-cache", ".new"
_BYTES = 32  # of a digest, behind the content
_MODULE = "jax._src.compilation_cache"


_anew: ContextVar[bool] = ContextVar("compiled_anew", default=False)


@contextmanager
def compiled_anew() -> Iterator[None]:
    """Inside, every program is compiled, though it may be stored. XLA writes a program that it read
    from the disk without some of its functions, so that it fails when it is read a second time."""
    token = _anew.set(True)
    try:
        yield
    finally:
        _anew.reset(token)


class SealedCache:
    """The interface that JAX asks of a cache, `get` and `put`, on a folder."""

    def __init__(self, folder: Path):
        self._path = folder
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: str) -> bytes | None:
        """The content of an entry; None where there is none, or where it is not what `put` stored
        there, and inside `compiled_anew`."""
        if _anew.get():
            return None
        try:
            data = (self._path / f"{key}{ENTRY}").read_bytes()
        except FileNotFoundError:
            return None
        content = data[:-_BYTES]
        return content if data[-_BYTES:] == _digest(key, content) else None

    def put(self, key: str, value: bytes) -> None:
        """Writes an entry, completely or not at all, in place of any entry of that name."""
        place = self._path / f"{key}{ENTRY}"
        aside = place.with_name(f"{place.name}.{os.getpid()}{ASIDE}")
        try:
            aside.write_bytes(value + _digest(key, value))
            aside.replace(place)
        except BaseException:
            with suppress(OSError):
                aside.unlink()
            raise


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.blake2b(
        content, key=hashlib.sha256(key.encode()).digest(), digest_size=_BYTES
    ).digest()


def seal(ours: Callable[[Path], bool]) -> None:
    """Makes JAX keep programs in a `SealedCache` for every folder for which `ours` is true. JAX is
    not imported by this.

    If this version of JAX has no place for another cache, no programs are kept.
    """

    def change(module: Any) -> None:
        usual = getattr(module, "get_file_cache", None)
        if usual is None:
            sys.modules["jax._src.config"].config.update("jax_compilation_cache_dir", None)
            return
        module.get_file_cache = lambda path: (
            (SealedCache(Path(path)), path) if ours(Path(path)) else usual(path)
        )

    if _MODULE in sys.modules:
        change(sys.modules[_MODULE])
    else:
        sys.meta_path.insert(0, _Imported(change))


class _Imported(importlib.abc.MetaPathFinder):
    """An import hook that changes JAX's cache module when it is imported."""

    def __init__(self, change: Callable[[ModuleType], None]):
        self._change = change

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        loader: Any = spec.loader if spec is not None else None
        if loader is not None:
            usual = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                usual(module)
                self._change(module)

            loader.exec_module = exec_module
        return spec
