"""Which code the numbers of a study come from, as a hash."""

import ast
import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path

import orderparam


def source_state(module: str) -> str:
    """A hash of the code that numbers of that module's studies can come from: all it imports of the package, without `core` and
    `plotting`, which carry and draw them."""
    home = Path(orderparam.__file__).parents[1]
    reached: dict[Path, str] = {}
    names = [module]
    while names:
        path = home.joinpath(*names.pop().split("."))
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if file.is_file() and file not in reached and file.relative_to(home).parts[1] not in ("core", "plotting"):
            reached[file], imports = _read(file.read_text())
            names += imports
    found = hashlib.sha256()
    for file, code in sorted(reached.items()):
        found.update(f"{file.relative_to(home)}\0{code}\0".encode())
    return found.hexdigest()[:8]


@functools.cache
def _read(source: str) -> tuple[str, tuple[str, ...]]:
    """What a module does, and what it imports."""
    tree = ast.parse(source)
    imports = tuple(_imports(tree))
    return _code(tree), imports


def _code(tree: ast.Module) -> str:
    """What a module does, without its words: comments, docstrings, and what `@study` is told (titles, panels, explanations)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [it for it in node.decorator_list if "study(" not in ast.unparse(it)]
    return ast.dump(tree)


def _imports(tree: ast.Module) -> Iterator[str]:
    """Modules of the package that a module names, and what it takes from them (which may be modules too)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "orderparam":
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)
