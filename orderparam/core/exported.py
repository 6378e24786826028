"""The names that a star import of a package brings: its functions and classes, but not its
modules."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any


def without_modules(names: Mapping[str, Any]) -> list[str]:
    """The public names of a package, from its `globals()` once everything is imported.

    A module of a topic often has the name of a module or function elsewhere (`spectrum`,
    `channel`), which a star import would hide.

    >>> without_modules({"a": 1, "_b": 2, "np": np})
    ['a']
    """
    return [
        name
        for name, value in names.items()
        if not name.startswith("_")
        and not isinstance(value, ModuleType)
        and value is not without_modules
    ]
