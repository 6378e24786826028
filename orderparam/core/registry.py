"""Everything that can be named: the theories, experiments, systems and studies of the package and of whoever adds to it.

Three places are looked in:

    the rooms of `orderparam.systems`,
    modules that installed packages name under the entry-point group `orderparam.rooms`,
    a file by its path: `load_file("glass.py")`.

A module that is imported registers what it decorates. So that a list costs no import, `index` reads the
decorators from the source: a study's name, title, source and times are literals or constants of its file.
"""

import ast
import functools
import importlib
import importlib.util
import inspect
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from orderparam.core.names import nearest

if TYPE_CHECKING:
    from orderparam.core.system import System
    from orderparam.core.verb import Experiment, Theory

ENTRY_POINTS = "orderparam.rooms"
_SYSTEMS = Path(__file__).parents[1] / "systems"
_DECORATORS = ("theory", "experiment", "study")
_DECORATED = re.compile(rf"^@(\w+\.)*({'|'.join(_DECORATORS)})\b", re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """What a decorator says of the function below it, read from the source.

    kind: theory, experiment or study. name: `room.function`, or the study's own. module: import it and the thing is registered.
    details: the decorator's literal keyword arguments; summary: the first sentence of the docstring.
    """

    kind: str
    name: str
    module: str
    room: str
    details: dict[str, Any]
    summary: str


def room_of(module: str) -> str:
    """The room a module stands in: below `systems` the folder's name, elsewhere the module's own."""
    parts = module.split(".")
    return parts[parts.index("systems") + 1] if "systems" in parts[:-1] else parts[-1]


@functools.cache
def index() -> tuple[Entry, ...]:
    """Every entry of the rooms and of the installed packages, in the order of the files; nothing is imported."""
    found: list[Entry] = []
    for path in sorted(_SYSTEMS.rglob("*.py")):
        name = ".".join(("orderparam", "systems", *path.relative_to(_SYSTEMS).with_suffix("").parts))
        found.extend(_entries(name.removesuffix(".__init__"), path))
    for point in entry_points(group=ENTRY_POINTS):
        found.extend(_entries_of_package(point.module))
    return tuple(found)


def _entries_of_package(name: str) -> Iterator[Entry]:
    """Entries of an installed module and, when it is a package, of all modules in it. What cannot be read is warned of."""
    try:
        spec = importlib.util.find_spec(name)
    except Exception:  # a package above it is not there, or fails
        spec = None
    if spec is None:
        warnings.warn(f"an installed package names {name} as its rooms, which cannot be found", stacklevel=2)
        return
    files = [(name, Path(spec.origin or ""))]
    if spec.submodule_search_locations is not None:
        found = [(Path(folder), path) for folder in spec.submodule_search_locations for path in Path(folder).rglob("*.py")]
        files = [(".".join((name, *path.relative_to(top).with_suffix("").parts)), path) for top, path in sorted(found)]
    for module, path in files:
        try:
            yield from _entries(module.removesuffix(".__init__"), path)
        except (OSError, SyntaxError, ValueError) as error:
            warnings.warn(f"{path} of an installed package is left out: {type(error).__name__}: {error}", stacklevel=2)


def _entries(module: str, path: Path) -> Iterator[Entry]:
    """The decorated functions of one file."""
    source = importlib.util.decode_source(path.read_bytes())
    if not _DECORATED.search(source):
        return
    constants: dict[str, Any] = {}
    for node in ast.parse(source, str(path)).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            constants[node.targets[0].id] = _literal(node.value, constants)
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            function = call.func if call else decorator
            kind = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if kind not in _DECORATORS:
                continue
            details = {word.arg: _literal(word.value, constants) for word in (call.keywords if call else []) if word.arg}
            given = _literal(call.args[0], constants) if call and call.args else None
            name = given or details.get("name") if kind == "study" else f"{room_of(module)}.{node.name}"
            summary = (ast.get_docstring(node) or "").partition("\n\n")[0].replace("\n", " ").partition(". ")[0].rstrip(".")
            if isinstance(name, str):
                yield Entry(kind, name, module, room_of(module), details, summary)


def _literal(node: ast.expr, constants: Mapping[str, Any]) -> Any:
    """The value of a literal, of a constant of its file, or of a text with such in it; None where it is computed."""
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if isinstance(node, ast.JoinedStr):
        parts = [_literal(part.value if isinstance(part, ast.FormattedValue) else part, constants) for part in node.values]
        return None if None in parts else "".join(map(str, parts))
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return None


# -- importing what is named -----------------------------------------------------------------------------------------------


def load_all() -> None:
    """Imports every module that has an entry, so that all is registered. Raises `ValueError` for a package that cannot be."""
    for module in dict.fromkeys(entry.module for entry in index()):
        _import(module)


def _import(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except Exception as error:
        if module.startswith("orderparam."):
            raise
        raise ValueError(f"the installed module {module} cannot be imported: {type(error).__name__}: {error}") from error


def load_entry(kind: str, name: str) -> None:
    """Imports the module of one entry. Raises `ValueError` with the nearest name when there is none."""
    known = {entry.name: entry for entry in index() if entry.kind == kind}
    if name not in known:
        raise ValueError(f"there is no {kind} {name!r}{nearest(name, list(known))}")
    _import(known[name].module)


loaded_files: list[Path] = []  # those of `load_file`, which workers on other machines are sent


def load_file(path: str | Path) -> ModuleType:
    """Imports a person's own file, once, under its own name; what it decorates is registered.

    Raises `ValueError` for a file that is not there, is no Python, or fails.
    """
    path = Path(path).expanduser().resolve()
    if path.suffix != ".py" or not path.is_file():
        raise ValueError(f"{path}: not a Python file")
    name = path.stem
    if not name.isidentifier():
        raise ValueError(f"{path}: the name of the file must be a Python name, such as {name.replace('-', '_')}.py")
    known = sys.modules.get(name)
    if getattr(known, "__file__", None) and Path(str(known.__file__)).resolve() == path:  # type: ignore[union-attr]
        return known  # type: ignore[return-value]
    if known is not None or name in sys.stdlib_module_names:
        raise ValueError(f"{path}: there is a module {name!r} already; give the file another name")
    # Its folder is where its worker processes find it, before another file of that name.
    if sys.path[:1] != [str(path.parent)]:
        sys.path.insert(0, str(path.parent))
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as error:
        sys.modules.pop(name, None)
        raise ValueError(f"{path}: {type(error).__name__}: {error}") from error
    loaded_files.append(path)
    return module


def theories() -> dict[str, "Theory"]:
    """All theories by name, `room.function`."""
    from orderparam.core import verb

    load_all()
    return dict(sorted(verb._theories.items()))


def experiments() -> dict[str, "Experiment"]:
    """All experiments by name, `room.function`."""
    from orderparam.core import verb

    load_all()
    return dict(sorted(verb._experiments.items()))


def systems() -> dict[str, type["System"]]:
    """The systems that some theory or experiment takes, by `room.Class`; for an abstract class, those made from it."""
    found = {}
    waiting = [system for one in (*theories().values(), *experiments().values()) for system in one.systems]
    while waiting:
        system = waiting.pop()
        if inspect.isabstract(system):
            waiting += system.__subclasses__()
        else:
            found[f"{room_of(system.__module__)}.{system.__name__}"] = system
    return dict(sorted(found.items()))


def find(name: str) -> Any:
    """The theory or experiment of that name, `room.function` or `function` where one room (or loaded file) alone has it.

    Raises `ValueError` with the nearest name.
    """
    from orderparam.core import verb

    modules = {entry.name: entry.module for entry in index() if entry.kind in ("theory", "experiment")}
    modules |= {known.name: known.__module__ for known in (*verb._theories.values(), *verb._experiments.values())}
    fitting = [known for known in modules if name in (known, known.rpartition(".")[2])]
    if not fitting:
        raise ValueError(f"there is no theory or experiment {name!r}{nearest(name, list(modules))}")
    if len(fitting) > 1:
        raise ValueError(f"{name!r} is in several rooms: say {' or '.join(fitting)}")
    (full,) = fitting
    _import(modules[full])
    return {**verb._theories, **verb._experiments}[full]
