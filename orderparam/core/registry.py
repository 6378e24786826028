"""The registry of everything that has a name: the theories, experiments, systems, studies and tools
of this package and of packages that add to it.

Three places are searched:

    the topics of `orderparam.systems`,
    modules that installed packages name under the entry-point group `orderparam.topics`,
    a file by its path: `load_file("glass.py")`.

A module that is imported registers what it decorates. So that a list costs no import, `index` reads
the decorators from the source (`declared`).
"""

import functools
import hashlib
import importlib
import importlib.util
import inspect
import pickle
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from orderparam.core import declared
from orderparam.core.compilation_cache import kept_for_commands
from orderparam.core.declared import SYSTEMS, Entry, entries_of, package_of_topic, topic_of
from orderparam.core.errors import message_of
from orderparam.core.names import nearest
from orderparam.core.outline import Outline
from orderparam.core.paths import resolved, state_of_files

if TYPE_CHECKING:
    from orderparam.core.system import System
    from orderparam.core.verb import Experiment, Theory

ENTRY_POINTS = "orderparam.topics"


def outline(name: str) -> Outline | None:
    """The outline of a study, read from its source; None for a study in a person's file, and where
    the source is not enough.

    Raises `ValueError` with the nearest name where there is no such study.
    """
    if ".py" in name or name in studies_made:
        return None
    return _entry("study", name).outline


@functools.cache
def index() -> tuple[Entry, ...]:
    """Every entry of the topics and of the installed packages, in the order of the files; nothing
    is imported."""
    found = list(_own_entries())
    for point in entry_points(group=ENTRY_POINTS):
        for module, path in _files_of_package(point.module):
            try:
                found.extend(entries_of(module.removesuffix(".__init__"), path))
            except (OSError, SyntaxError, ValueError) as error:
                warnings.warn(
                    f"{path} of an installed package is left out: {type(error).__name__}: {error}",
                    stacklevel=2,
                )
    return tuple(found)


def _own_entries() -> list[Entry]:
    """The entries of the topics. A command finds them on the disk as long as no file of the topics
    has changed since another command read them."""
    files = _modules_in("orderparam.systems", SYSTEMS)
    readers = [Path(__file__), Path(declared.__file__)]
    state = state_of_files([*readers, *(path for _, path in files)])
    cache, key = kept_for_commands(), f"entries-{state}"
    if cache is not None:
        with suppress(Exception):  # nothing is stored
            return pickle.loads(cache.get(key) or b"")
    found: list[Entry] = []
    for module, path in files:
        found.extend(entries_of(module.removesuffix(".__init__"), path))
    if cache is not None:
        with suppress(Exception):  # a full disk
            cache.put(key, pickle.dumps(found))
    return found


@functools.cache
def source_files() -> tuple[Path, ...]:
    """All files on which registered functions may depend: those of this package and of the packages
    that add to it, as this process first finds them."""
    added = [
        path
        for point in entry_points(group=ENTRY_POINTS)
        for _, path in _files_of_package(point.module)
    ]
    own = sorted(SYSTEMS.parent.rglob("*.py"))
    return (*own, *(path for path in added if path.is_file()))


def _files_of_package(name: str) -> list[tuple[str, Path]]:
    """An installed module and, when it is a package, all modules in it, with their files. A module
    that cannot be found gives a warning."""
    try:
        spec = importlib.util.find_spec(name)
    except Exception:  # a package above it is missing, or fails
        spec = None
    if spec is None:
        warnings.warn(
            f"an installed package names {name} as its topics, which cannot be found", stacklevel=2
        )
        return []
    files = [(name, Path(spec.origin or ""))]
    if spec.submodule_search_locations is not None:
        files = [
            module
            for folder in sorted(spec.submodule_search_locations)
            for module in _modules_in(name, Path(folder))
        ]
    return files


def _modules_in(package: str, folder: Path) -> list[tuple[str, Path]]:
    """All modules in the folder of a package, with their files, in the order of the files."""
    return [
        (".".join((package, *path.relative_to(folder).with_suffix("").parts)), path)
        for path in sorted(folder.rglob("*.py"))
    ]


# -- importing what is named ---------------------------------------------------------------------


def load_all() -> None:
    """Imports every module that has an entry, so that everything is registered. Raises `ValueError`
    for a package that cannot be imported."""
    for module in dict.fromkeys(entry.module for entry in index()):
        _import(module)


def _import(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except Exception as error:
        if module.startswith("orderparam."):
            raise
        raise ValueError(
            f"the installed module {module} cannot be imported: {type(error).__name__}: {error}"
        ) from error


def _entry(kind: str, name: str) -> Entry:
    entries = {entry.name: entry for entry in index() if entry.kind == kind}
    if name not in entries:
        own = " (one of your own is FILE.py:NAME)" if kind == "study" else ""
        raise ValueError(f"there is no {kind} {name!r}{own}{nearest(name, list(entries))}")
    return entries[name]


def load_entry(kind: str, name: str) -> None:
    """Imports the module of one entry. Raises `ValueError` with the nearest name when there is
    none."""
    _import(_entry(kind, name).module)


# by name; only functions whose module is imported
theories_made: dict[str, "Theory"] = {}
experiments_made: dict[str, "Experiment"] = {}
studies_made: dict[str, Any] = {}
tools_made: dict[str, Callable[..., Any]] = {}
# a person's own files -> the digest of what was imported; they are sent to workers on other
# machines
loaded_files: dict[Path, str] = {}


def load_file(path: str | Path) -> ModuleType:
    """Imports a person's own file under its own name, which registers the functions that it
    decorates.

    A file that was edited since it was loaded is imported anew, and what it registered before is
    forgotten. Raises `ValueError` for a file that is missing, is not Python, or fails.
    """
    path = resolved(path)
    if not path.exists():
        raise ValueError(f"there is no file {path}")
    if path.suffix != ".py" or not path.is_file():
        raise ValueError(f"{path}: not a Python file")
    name = path.stem
    if not name.isidentifier():
        raise ValueError(
            f"{path}: the name of the file must be a Python name, such as "
            f"{name.replace('-', '_')}.py"
        )
    loaded = sys.modules.get(name)
    if getattr(loaded, "__file__", None) and Path(str(loaded.__file__)).resolve() == path:  # type: ignore[union-attr]
        if path not in edited_files():
            return loaded  # type: ignore[return-value]
        _forget_file(path)
    elif loaded is not None or name in sys.stdlib_module_names:
        raise ValueError(f"{path}: there is a module {name!r} already; give the file another name")
    # Worker processes search its folder first, before another file of that name.
    if sys.path[:1] != [str(path.parent)]:
        sys.path.insert(0, str(path.parent))
    importlib.invalidate_caches()
    content = _content(path)
    try:
        module = importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        sys.modules.pop(name, None)
        raise ValueError(f"{path}: {type(error).__name__}: {message_of(error)}") from error
    loaded_files[path] = content
    return module


def edited_files() -> list[Path]:
    """The files of `load_file` that are not any more what was imported."""
    return [path for path, content in loaded_files.items() if _content(path) != content]


def check_unedited(module: str) -> None:
    """Raises `ValueError` where it is a person's own file that is not any more what was imported:
    other processes would import what it is now."""
    for path in edited_files():
        if path.stem == module:
            raise ValueError(f"{path}: was edited since it was loaded; load it again")


def _content(path: Path) -> str:
    """A digest of a file; empty where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _forget_file(path: Path) -> None:
    """Undoes `load_file`."""
    module = sys.modules.pop(path.stem)
    del loaded_files[path]
    # what Python kept of it counts as good for a whole second after it was written
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
    for made in (theories_made, experiments_made, tools_made):
        for name in [name for name, one in made.items() if one.__module__ == module.__name__]:
            del made[name]
    for name in [
        name for name, one in studies_made.items() if one.build.__module__ == module.__name__
    ]:
        del studies_made[name]


def tool(function: Callable[..., Any]) -> Callable[..., Any]:
    """Registers a function of a topic that works on a person's own data or formula, so that a
    command finds it by name without importing the topic: see `find_tool`."""
    tools_made[f"{topic_of(function.__module__)}.{function.__name__}"] = function
    return function


def find_tool(name: str) -> Callable[..., Any]:
    """The function `topic.function` under `@tool`. Raises `ValueError` with the nearest name."""
    load_entry("tool", name)
    return tools_made[name]


def labels_of(topic: str) -> dict[str, tuple[str, str]]:
    """The axis labels that a topic declares, name -> words and symbol: the `LABELS` of its package,
    or of a person's own file."""
    made = (verb.__module__ for verb in (*theories_made.values(), *experiments_made.values()))
    listed = (entry.module for entry in index())
    modules = {module for module in (*made, *listed) if topic_of(module) == topic}
    found: dict[str, tuple[str, str]] = {}
    for package in sorted({package_of_topic(module) for module in modules}):
        found |= getattr(_import(package), "LABELS", {})
    return found


def theories() -> dict[str, "Theory"]:
    """All theories by name, `topic.function`.

    >>> "spins.mean_field" in op.theories()
    True
    """
    load_all()
    return dict(sorted(theories_made.items()))


def experiments() -> dict[str, "Experiment"]:
    """All experiments by name, `topic.function`.

    >>> "spins.glauber" in op.experiments()
    True
    """
    load_all()
    return dict(sorted(experiments_made.items()))


def systems() -> dict[str, type["System"]]:
    """The systems that some theory or experiment takes, by `topic.Class`; for an abstract class,
    those made from it."""
    found = {}
    waiting = [
        system for one in (*theories().values(), *experiments().values()) for system in one.systems
    ]
    while waiting:
        system = waiting.pop()
        if inspect.isabstract(system):
            waiting += system.__subclasses__()
        else:
            found[f"{topic_of(system.__module__)}.{system.__name__}"] = system
    return dict(sorted(found.items()))


def full_name(name: str) -> str:
    """The full name `topic.function` of a theory or experiment, from that name or from `function`
    where only one topic (or loaded file) has it.

    Nothing is imported. Raises `ValueError` with the nearest name.
    """
    return _module_of(name)[0]


def find(name: str) -> Any:
    """The theory or experiment of that name, see `full_name`. Raises `ValueError` with the nearest
    name."""
    full, module = _module_of(name)
    _import(module)
    return {**theories_made, **experiments_made}[full]


def _module_of(name: str) -> tuple[str, str]:
    modules = {
        entry.name: entry.module for entry in index() if entry.kind in ("theory", "experiment")
    }
    modules |= {
        verb.name: verb.__module__ for verb in (*theories_made.values(), *experiments_made.values())
    }
    fitting = [full for full in modules if name in (full, full.rpartition(".")[2])]
    if not fitting:
        short = [full.rpartition(".")[2] for full in modules]
        raise ValueError(
            f"there is no theory or experiment {name!r}{nearest(name, [*short, *modules])}"
        )
    if len(fitting) > 1:
        raise ValueError(f"{name!r} is in several topics: write {' or '.join(fitting)}")
    return fitting[0], modules[fitting[0]]
