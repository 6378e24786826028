"""The public names: what `orderparam`, its packages and its topics offer, and on which page of the
reference each stands."""

import functools
import importlib
import pkgutil
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import orderparam
from orderparam.core import registry
from orderparam.core.exported import exported
from orderparam.core.on_demand import on_demand

CONTRACT = "contract"  # the page of `orderparam` itself and of the packages that carry it out
_OF_THE_CONTRACT = ("core", "running", "comparison")

# called by the commands, which have a page of their own
COMMANDS = ("orderparam.cli", "orderparam.explore")


@dataclass(frozen=True)
class Name:
    """A public name. page: of the reference; module: the package that offers it."""

    name: str
    module: str
    page: str
    thing: Any


@functools.cache
def topics() -> tuple[str, ...]:
    return tuple(name for name in dir(orderparam.systems) if not name.startswith("_"))


@functools.cache
def packages() -> tuple[str, ...]:
    """The packages below `orderparam` that are no topics, have no names of `orderparam` itself, and
    are no commands."""
    names = (module.name for module in pkgutil.iter_modules(orderparam.__path__) if module.ispkg)
    return tuple(
        name
        for name in names
        if name not in ("systems", *_OF_THE_CONTRACT) and f"orderparam.{name}" not in COMMANDS
    )


def title(page: str) -> str:
    """What a topic or a package is called."""
    named = {
        CONTRACT: "The contract",
        "online_sgd": "Online SGD",
        "multi_index": "Multi-index targets",
    }
    return named.get(page, page.replace("_", " ").capitalize() if page in topics() else page)


def page_of(module: str) -> str:
    """The page on which what a package offers stands."""
    parts = module.split(".")
    if parts[1:2] == ["systems"] and len(parts) > 2:
        return parts[2]
    return parts[1] if parts[1:2] and parts[1] in packages() else CONTRACT


@functools.cache
def public() -> tuple[Name, ...]:
    """Every public name, once a page, and there as the package nearest to the top offers it."""
    found: dict[tuple[str, str], Name] = {}
    for module in _packages():
        page = page_of(module.__name__)
        for name, thing in offered(module).items():
            found.setdefault((page, name), Name(name, module.__name__, page, thing))
    for verb in (*registry.theories().values(), *registry.experiments().values()):
        for thing in (verb, *verb.systems, *verb.results):
            name, module = getattr(thing, "fn", thing).__name__, thing.__module__
            found.setdefault((page_of(module), name), Name(name, module, page_of(module), thing))
    return tuple(found.values())


def _packages() -> list[ModuleType]:
    """All packages, those nearest to the top first."""
    found = pkgutil.walk_packages(orderparam.__path__, "orderparam.")
    names = [
        "orderparam",
        *(module.name for module in found if module.ispkg and not module.name.startswith(COMMANDS)),
    ]
    return [
        importlib.import_module(name)
        for name in sorted(names, key=lambda name: (name.count("."), name))
    ]


def offered(module: ModuleType) -> dict[str, Any]:
    """What a package's `__init__` offers; where that is nothing but modules, what those of `solve`
    define."""
    public = [name for name in vars(module) if not name.startswith("_")]
    names = [name for name in getattr(module, "__all__", public) if name != "LABELS"]
    things = {name: getattr(module, name) for name in names}
    own = {
        name: thing
        for name, thing in things.items()
        if not isinstance(thing, ModuleType) and _is_own(thing)
    }
    if module.__name__ != "orderparam.solve":
        return own
    inner = [
        importlib.import_module(f"{module.__name__}.{one.name}")
        for one in pkgutil.iter_modules(module.__path__)
    ]
    defined = [
        (name, thing, one)
        for one in inner
        for name, thing in vars(one).items()
        if not name.startswith("_")
    ]
    return {
        name: thing
        for name, thing, one in defined
        if getattr(thing, "__module__", "") == one.__name__
    }


def _is_own(thing: Any) -> bool:
    """Whether the package made it: a function, a class, a theory, or a constant."""
    helpers = (on_demand, exported)
    return not callable(thing) or (
        str(thing.__module__).startswith("orderparam")
        and not any(thing is helper for helper in helpers)
    )
