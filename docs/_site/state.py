"""A hash of the code that a study's numbers, or a test, can depend on.

The hash covers definitions (functions, classes, constants), not files: starting from one
definition, every name that its code uses is followed through imports to the definition it stands
for, and so on. It therefore does not change when code moves from one file to another, when
comments, docstrings, the text of an error, the description of a field, the reason for a need
(`why=`) or the words of `@study` change, when a function is registered by `@tool`, or when other
parts of a file change.

Four folders of the package are left out, `core`, `running`, `comparison` and `plotting`: they carry
and draw numbers, and have tests of their own.
"""

import ast
import functools
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import orderparam
from orderparam.core.registry import index

LEFT_OUT = ("core", "running", "comparison", "plotting")


class Module(NamedTuple):
    """The parts of one source file."""

    definitions: dict[str, list[ast.stmt]]  # name -> the top-level statements that bind it
    # name -> (module, the name in it; "" for the module itself)
    imports: dict[str, tuple[str, str]]
    on_import: list[ast.stmt]  # statements that act when the module is imported and bind no name


class Search(NamedTuple):
    """Where modules are found."""

    folders: tuple[Path, ...]  # with modules that are not in the package
    left_out: tuple[str, ...]  # folders of the package that are not searched


NUMBERS = Search((), LEFT_OUT)  # the code that computes numbers


def source_state(module: str, name: str) -> str:
    """Hash (8 hexadecimal digits) of all code of the package that the definition `name` of a module
    can reach."""
    return state_of([(_package_file(module), name)])


def state_of(
    roots: Iterable[tuple[Path | None, str]],
    folders: tuple[Path, ...] = (),
    words: str = "",
    left_out: tuple[str, ...] = LEFT_OUT,
) -> str:
    """Hash of all code that the given definitions, as (file, name), can reach.

    `folders` are searched for modules that are not in the package, as Python searches its path.
    `words` enter the hash. `left_out` are the folders of the package that do not.
    """
    code: set[str] = set()
    seen: set[tuple[Path, str]] = set()
    waiting = [(file, name) for file, name in roots if file]
    while waiting:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        own, used = _step(*place, Search(folders, left_out))
        code.update(own)
        waiting += used
    return hashlib.sha256("\0".join([words, *sorted(code)]).encode()).hexdigest()[:8]


def used_in(source: str) -> list[tuple[Path, str]]:
    """The definitions of the package that a text of Python uses, as (file, name): by their names
    and attributes, and by texts that are names in the registry."""
    tree = ast.parse(source)
    module = _parts(tree)
    found = [
        place
        for statement in tree.body
        for chain in _names(statement)
        if chain[0] not in module.definitions
        for place in _resolved(None, module, chain, NUMBERS)
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found += _registered().get(node.value, ())
    return list(dict.fromkeys(found))


@functools.cache
def _registered() -> dict[str, list[tuple[Path, str]]]:
    """The functions of each name in the registry; of a study all that its module defines, because
    its name need not be that of its function."""
    named: dict[str, list[tuple[Path, str]]] = {}
    for entry in index():
        if file := _package_file(entry.module):
            function = ALL if entry.kind == "study" else entry.name.rpartition(".")[2]
            named.setdefault(entry.name, []).append((file, function))
    return named


def forget() -> None:
    """Forget all files that were read, so that they are read again."""
    for cached in (_step, _code, _file, _module, _registered):
        cached.cache_clear()


ON_IMPORT = ""  # stands for what a module does when it is imported
ALL = "*"  # stands for all definitions of a module


@functools.cache
def _step(
    file: Path, name: str, search: Search
) -> tuple[tuple[str, ...], tuple[tuple[Path, str], ...]]:
    """The code of one definition, and the definitions that it uses."""
    module = _module(file)
    code, chains = _code(file, name)
    used: list[tuple[Path, str]] = []
    if name != ON_IMPORT:
        used.append((file, ON_IMPORT))
        if name == ALL:
            used += [(file, one) for one in module.definitions]
        if name in module.imports:
            used += _imported(*module.imports[name], search)
    for chain in chains:
        used += _resolved(file, module, chain, search)
    return code, tuple(dict.fromkeys(used))


@functools.cache
def _code(file: Path, name: str) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """The code of one definition, and the names in it with their attributes."""
    module = _module(file)
    statements = module.on_import if name == ON_IMPORT else module.definitions.get(name, [])
    without_words = [_without_words(statement) for statement in statements]
    chains = [chain for statement in without_words for chain in _names(statement)]
    return tuple(ast.dump(one) for one in without_words), tuple(chains)


def _package_file(module: str, search: Search = NUMBERS) -> Path | None:
    """The file of a module of the package, or of one of the folders; None for a module of another
    package."""
    return _file(module, search, Path(orderparam.__file__).parent)


@functools.cache
def _file(module: str, search: Search, home: Path) -> Path | None:
    first, *rest = module.split(".")
    if first == "orderparam":
        if rest and rest[0] in search.left_out:
            return None
        places = [home.joinpath(*rest)]
    else:
        places = [folder.joinpath(first, *rest) for folder in search.folders]
    for place in places:
        for file in (place / "__init__.py", place.with_suffix(".py")):
            if file.is_file():
                return file
    return None


def _imported(module: str, name: str, search: Search) -> Iterator[tuple[Path, str]]:
    """The definition that `from module import name` stands for: a whole module where the name is
    that of one."""
    inner = _package_file(f"{module}.{name}" if name else module, search)
    outer = _package_file(module, search)
    if name and outer and name in _lazy(outer):
        yield from _imported(f"orderparam.{_lazy(outer)[name]}", name, search)
    elif inner:
        yield inner, ALL
    elif outer:
        yield outer, name


def _resolved(
    file: Path | None, module: Module, chain: tuple[str, ...], search: Search
) -> Iterator[tuple[Path, str]]:
    """The definitions that `a.b.c` stands for: attributes are followed as long as the names are
    modules."""
    first, *rest = chain
    if file and first in module.definitions:
        yield file, first
    if first not in module.imports:
        return
    source, name = module.imports[first]
    reached = f"{source}.{name}" if name else source
    if _package_file(reached, search) is None:
        yield from _imported(source, name, search)
        return
    for at, attribute in enumerate(rest):
        outer = _package_file(reached, search)
        if outer and attribute in _lazy(outer):
            yield from _imported(reached, attribute, search)
            return
        if _package_file(f"{reached}.{attribute}", search) is None:
            yield from _imported(reached, attribute, search)
            return
        reached = f"{reached}.{attribute}"
        if at == len(rest) - 1:
            break
    yield from _imported(reached, "", search)


@functools.cache
def _lazy(file: Path) -> dict[str, str]:
    """The names that the package itself imports when they are asked for, each with its module."""
    if file != Path(orderparam.__file__):
        return {}
    return dict(vars(orderparam).get("_NAMES", {}))


@functools.cache
def _module(file: Path) -> Module:
    """The parts of a source file."""
    return _parts(ast.parse(file.read_text(encoding="utf-8")))


def _parts(tree: ast.Module) -> Module:
    """The parts of a source."""
    module = Module({}, {}, [])
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                module.imports[one.asname or one.name] = (node.module, one.name)
        elif isinstance(node, ast.Import):
            for one in node.names:
                name = one.asname or one.name.partition(".")[0]
                module.imports[name] = (one.name if one.asname else name, "")
    for statement in _statements(tree.body):
        if isinstance(statement, ast.Import | ast.ImportFrom) or _is_words(statement):
            continue
        bound = _bound(statement)
        for name in bound:
            module.definitions.setdefault(name, []).append(statement)
        if not bound:
            module.on_import.append(statement)
    return module


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Top-level statements, those inside `if`, `try` and `with` one by one where they only
    import."""
    for statement in body:
        inner = [
            one for one in ast.walk(statement) if isinstance(one, ast.stmt) and one is not statement
        ]
        only_imports = all(isinstance(one, ast.Import | ast.ImportFrom | ast.Pass) for one in inner)
        if isinstance(statement, ast.If | ast.Try) and only_imports:
            continue
        yield statement


def _is_words(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _bound(statement: ast.stmt) -> set[str]:
    """The top-level names that a statement binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    return {
        one.id
        for one in ast.walk(statement)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }


def _names(statement: ast.stmt) -> tuple[tuple[str, ...], ...]:
    """The names that a statement uses, with their attributes: `a.b.c` as (a, b, c). A function's
    arguments are used too: a test takes its fixtures by them."""
    skipped: set[int] = set()
    used: dict[tuple[str, ...], None] = {}
    for node in ast.walk(statement):
        if isinstance(node, ast.arg):
            used[(node.arg,)] = None
        elif isinstance(node, ast.Attribute | ast.Name) and id(node) not in skipped:
            chain: list[str] = []
            at: ast.expr = node
            while isinstance(at, ast.Attribute):
                chain.append(at.attr)
                skipped.add(id(at))
                at = at.value
            if isinstance(at, ast.Name):
                skipped.add(id(at))
                used[(at.id, *reversed(chain))] = None
    return tuple(used)


def _only_registers(decorator: ast.expr) -> bool:
    """Whether a decorator is `@study(...)`, which tells a study its words, or `@tool`."""
    if isinstance(decorator, ast.Name):
        return decorator.id == "tool"
    return (
        isinstance(decorator, ast.Call)
        and isinstance(decorator.func, ast.Name)
        and decorator.func.id == "study"
    )


def _without_words(statement: ast.stmt) -> ast.stmt:
    """A statement without docstrings, without the texts of `raise`, without the descriptions of
    fields, without the reasons for needs, and without what `@study` is told (title, panels,
    explanations)."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Raise):
            _drop_texts(node)
        elif isinstance(node, ast.Call) and _declares(node):
            node.args = node.args[1:]
        if isinstance(node, ast.Call):
            node.keywords = [word for word in node.keywords if word.arg != "why"]
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
            node.decorator_list = [one for one in node.decorator_list if not _only_registers(one)]
    return statement


def _drop_texts(node: ast.Raise) -> None:
    """Empty all texts of a `raise`; the expressions inside formatted texts stay."""
    for one in ast.walk(node):
        if isinstance(one, ast.JoinedStr):
            one.values = [part for part in one.values if not isinstance(part, ast.Constant)]
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            one.value = ""


def _declares(node: ast.Call) -> bool:
    """Whether a call declares a field of a system, whose description comes first."""
    first = node.args[0] if node.args else None
    return (
        isinstance(node.func, ast.Name)
        and node.func.id in ("parameter", "part", "structure")
        and isinstance(first, ast.Constant)
        and isinstance(first.value, str)
    )
