"""The physics, one room per system: model (parameters), theory, experiment, studies. Rooms never import one another."""

import importlib
import pkgutil
from typing import Any


def __getattr__(name: str) -> Any:
    if any(room.name == name for room in pkgutil.iter_modules(__path__)):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"there is no room {name!r}")


def __dir__() -> list[str]:
    return sorted(room.name for room in pkgutil.iter_modules(__path__))
