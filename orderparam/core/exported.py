"""Packages that import what they export when it is first used, so that a person who solves one
theory does not wait for the libraries of all others."""

import ast
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from orderparam.core.on_demand import modules_of


class _Package(ModuleType):
    """A package with a table `_exported`: exported name -> the module that defines it."""

    _exported: dict[str, str]

    def __getattr__(self, name: str) -> Any:
        if name in self._exported:
            value = getattr(importlib.import_module(self._exported[name]), name)
            super().__setattr__(name, value)
            return value
        if not name.startswith("_") and name in modules_of(self.__path__):
            return importlib.import_module(f"{self.__name__}.{name}")
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        # Python binds an imported module in its package; it must not hide a function of its name.
        if not (name in self._exported and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        found = {*super().__dir__(), *self._exported, *modules_of(self.__path__)}
        return sorted(found - {"TYPE_CHECKING", "exported"})


def exported(names: dict[str, Any]) -> list[str]:
    """The public names of a package, for its `__all__`.

    Args:
        names: the `globals()` of the package. Its file imports what it exports under `if
            TYPE_CHECKING:`, where checkers of types and readers see it. Python imports the module
            of a name when the name is first used.

    Modules are not among the names: one of a topic often has the name of a module or function
    elsewhere (`spectrum`, `channel`), which a star import would hide.
    """
    tree = ast.parse(Path(names["__file__"]).read_text(encoding="utf-8"))
    table = {
        one.name: statement.module
        for block in tree.body
        if isinstance(block, ast.If)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom) and statement.module
        for one in statement.names
    }
    own = [name for name in names if name.isupper() and not name.startswith("_")]
    module = sys.modules[names["__name__"]]
    module.__dict__["_exported"] = table
    module.__class__ = _Package
    return [*table, *(name for name in own if name != "TYPE_CHECKING")]
