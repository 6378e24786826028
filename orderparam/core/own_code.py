"""The state of a person's own code, so that numbers of older code are not taken for those of
today's."""

import ast
import functools
import hashlib
import inspect
import sys
from collections.abc import Callable


def state_of_own_code(function: Callable) -> str:
    """A digest of the code of a function of a person's own file, notebook or script, and of what it
    uses there; empty for functions of this package, and where Python has no source.

    Comments, docstrings and definitions that the function does not reach, such as studies with
    their captions, do not enter. What the function imports from other files does not enter either.
    """
    while isinstance(function, functools.partial):
        function = function.func
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not module or not name or module.partition(".")[0] == __name__.partition(".")[0]:
        return ""
    try:
        source = inspect.getsource(sys.modules[module])
    except (OSError, TypeError, KeyError):  # a notebook, whose cells have a source each
        try:
            source = inspect.cleandoc(inspect.getsource(function))
        except (OSError, TypeError):
            return ""
    try:
        return _state(source, name.partition(".")[0])
    except SyntaxError:  # a cell that is not Python alone
        return ""


@functools.lru_cache(maxsize=64)
def _state(source: str, name: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:] or [ast.Pass()]
    statements: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for bound in _bound(statement):
            statements.setdefault(bound, []).append(statement)
    reached, waiting = set[str](), [name]
    while waiting:
        current = waiting.pop()
        if current in reached or current not in statements:
            continue
        reached.add(current)
        for statement in statements[current]:
            waiting += [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]
    # the text that Python writes is the same in all versions, unlike a dump of the tree
    code = [ast.unparse(part) for one in sorted(reached) for part in statements[one]]
    return hashlib.sha256("\0".join(code).encode()).hexdigest()[:16]


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement at the top of a file binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(one.asname or one.name).partition(".")[0] for one in statement.names}
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
