"""Packages whose modules are imported when they are first used, but are listed by `dir` and tab
completion before that."""

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable
from typing import Any


def on_demand(
    package: str, path: Iterable[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a package, from its `__name__` and
    `__path__`."""

    def get(name: str) -> Any:
        if name in modules_of(path):
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, functools.partial(modules_of, path)


def modules_of(path: Iterable[str]) -> list[str]:
    """The names of the modules in the folders `path`, without private ones."""
    return sorted(
        module.name for module in pkgutil.iter_modules(path) if not module.name.startswith("_")
    )
