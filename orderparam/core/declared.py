"""What a source file declares, read from its text: the functions under `@theory`, `@experiment`,
`@study` and `@tool`, with the words of their decorators.

Nothing is imported, so that a list costs no import: a study's name, title, source and times are
literals or constants of its file.
"""

import ast
import importlib.util
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orderparam.core.outline import Outline

SYSTEMS = Path(__file__).parents[1] / "systems"
_DECORATORS = ("theory", "experiment", "study", "tool")
_DECORATED = re.compile(rf"^@(\w+\.)*({'|'.join(_DECORATORS)})\b", re.MULTILINE)
_DOCSTRING = re.compile(r'\A\s*[rR]?"""[^"]*(?:"{1,2}[^"]+)*"""')  # that of the file
_STATEMENT = re.compile(r"^(?=[A-Za-z_@])", re.MULTILINE)
_ASSIGNMENT = re.compile(r"\w+ = ")
_SIGNATURE = re.compile(r'def .*?:\n    [rR]?"""[^"]*(?:"{1,2}[^"]+)*"""', re.DOTALL)


@dataclass(frozen=True)
class Entry:
    """One decorated function, as the source describes it: theory, experiment, study or tool.

    kind: theory, experiment, study or tool. name: `topic.function`, or the study's own. module:
    importing it registers the function. details: the decorator's literal keyword arguments;
    summary: the first sentence of the docstring. file: the source itself, for the outline of a
    study.
    """

    kind: str
    name: str
    module: str
    topic: str
    details: dict[str, Any]
    summary: str
    file: Path = field(repr=False)

    @property
    def outline(self) -> Outline | None:
        """The outline of a study; None where its source takes parts of it from another module."""
        call, function, constants = next(
            source for entry, source in _decorated(self.module, self.file) if entry == self
        )
        names = [argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)]
        given = {word.arg: word.value for word in (call.keywords if call else [])}
        try:
            defaults = [
                _evaluated(node, constants)
                for node in (*function.args.defaults, *function.args.kw_defaults)
                if node
            ]
            title, source, seconds = (
                _evaluated(given[name], constants) for name in ("title", "source", "seconds")
            )
            larger = [
                _evaluated(given[size], constants) if size in given else {}
                for size in ("gallery", "full")
            ]
        except Exception:  # an expression may need anything that is not in this file
            return None
        doc = ast.get_docstring(function) or ""
        return Outline(
            self.name,
            title,
            source,
            doc,
            self.module,
            seconds,
            dict(zip(names, defaults, strict=True)),
            *larger,
        )


def topic_of(module: str) -> str:
    """The topic to which a module belongs: below `systems` the folder's name, elsewhere the
    module's own name."""
    return package_of_topic(module).rpartition(".")[2]


def package_of_topic(module: str) -> str:
    """The package of the topic to which a module belongs; elsewhere the module itself."""
    parts = module.split(".")
    return ".".join(parts[: parts.index("systems") + 2]) if "systems" in parts[:-1] else module


def entries_of(module: str, path: Path) -> Iterator[Entry]:
    """The decorated functions of one file."""
    return (entry for entry, _ in _decorated(module, path))


def _decorated(
    module: str, path: Path
) -> Iterator[tuple[Entry, tuple[ast.Call | None, ast.FunctionDef, Mapping[str, Any]]]]:
    """The decorated functions of one file, each with its decorator, its source and the constants of
    the file."""
    source = importlib.util.decode_source(path.read_bytes())
    if not _DECORATED.search(source):
        return
    constants: dict[str, Any] = {}
    for node in (
        _parsed(source) if path.is_relative_to(SYSTEMS) else ast.parse(source, str(path)).body
    ):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            constants[node.targets[0].id] = _literal(node.value, constants)
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            function = call.func if call else decorator
            kind = (
                function.attr
                if isinstance(function, ast.Attribute)
                else getattr(function, "id", "")
            )
            if kind not in _DECORATORS:
                continue
            details = {
                word.arg: _literal(word.value, constants)
                for word in (call.keywords if call else [])
                if word.arg
            }
            given = _literal(call.args[0], constants) if call and call.args else None
            name = (
                given or details.get("name")
                if kind == "study"
                else f"{topic_of(module)}.{node.name}"
            )
            summary = (
                (ast.get_docstring(node) or "")
                .partition("\n\n")[0]
                .replace("\n", " ")
                .partition(". ")[0]
                .rstrip(".")
            )
            if isinstance(name, str):
                entry = Entry(kind, name, module, topic_of(module), details, summary, path)
                yield entry, (call, node, constants)


def _parsed(source: str) -> list[ast.stmt]:
    """The statements of a file of this package that an entry is made of: assignments, and decorated
    functions as far as their docstrings.

    The rest, which is nine tenths of the text, is skipped because parsing takes most of the time.
    """
    kept: list[str] = []
    decorators: list[str] = []
    for part in _STATEMENT.split(_DOCSTRING.sub("", source, count=1)):
        if part.startswith("@"):
            decorators.append(part)
            continue
        if part.startswith("def ") and decorators:
            signature = _SIGNATURE.match(part)
            kept += [*decorators, signature[0] if signature else part]
        elif _ASSIGNMENT.match(part):
            kept.append(part)
        decorators = []
    return ast.parse("".join(f"{part.rstrip()}\n" for part in kept)).body


def _literal(node: ast.expr, constants: Mapping[str, Any]) -> Any:
    """The value of a literal, of a constant of its file, or of a text that contains such constants;
    None where it is computed."""
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if isinstance(node, ast.JoinedStr):
        parts = [
            _literal(part.value if isinstance(part, ast.FormattedValue) else part, constants)
            for part in node.values
        ]
        return None if None in parts else "".join(map(str, parts))
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return None


def _evaluated(node: ast.expr, constants: Mapping[str, Any]) -> Any:
    """The value of an expression of constants, and of the grids that NumPy makes. Raises any
    exception of the expression."""
    if any(isinstance(part, ast.Name) and part.id == "np" for part in ast.walk(node)):
        import numpy as np

        constants = {**constants, "np": np}
    namespace = {
        "__builtins__": {},
        "tuple": tuple,
        "list": list,
        "range": range,
        "float": float,
        "int": int,
        **constants,
    }
    return eval(compile(ast.Expression(node), "<source>", "eval"), namespace)
