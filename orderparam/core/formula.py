"""The grammar of formulas in standard normal variables, separate from the code that computes them,
so that a mistake in a formula is reported before anything heavy is imported."""

import ast
import math
import operator
import re

from orderparam.core.names import nearest

_LONGEST = 400  # characters of an expression
LARGEST_DIMENSION = 4
LARGEST_PRODUCT = 6  # variables of a product of powers, where that is all that is understood
CONSTANTS = {"pi": math.pi, "e": math.e}
_FUNCTIONS = (
    "sign",
    "abs",
    "exp",
    "log",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "tanh",
    "erf",
    "relu",
    "step",
    "maximum",
    "minimum",
)
BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def index(name: str) -> int | None:
    """The coordinate that a name means: z and z1 are the first."""
    match = re.fullmatch(r"z([1-9]?)", name)
    return None if match is None else int(match[1] or 1) - 1


def parse(text: str, variables: int = LARGEST_DIMENSION) -> ast.expr:
    """The syntax tree of a formula in at most so many variables. Raises `ValueError` for a text
    that is not a formula."""
    if len(text) > _LONGEST:
        raise ValueError(f"target of {len(text)} characters: must be at most {_LONGEST}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # ValueError: null bytes
        raise ValueError(
            f"target {text!r}: is not a formula; write for example 'z1*z2 + sign(z3)'"
        ) from None
    _check(tree, text, variables)
    return tree


def _check(node: ast.AST, text: str, variables: int) -> None:
    """Refuses everything outside the grammar."""
    match node:
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            return
        case ast.Name(id=name):
            place = index(name)
            if place is not None and place >= variables:
                raise ValueError(
                    f"target {text!r}: {name} is beyond z{variables}, the last variable"
                )
            if place is None and name not in CONSTANTS:
                raise ValueError(
                    f"target {text!r}: unknown name "
                    f"{name!r}{nearest(name, ['z', 'z1', 'z2', 'z3', 'z4', 'pi', 'e'])}"
                )
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=inner):
            _check(inner, text, variables)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in BINARY:
            if isinstance(operation, ast.Pow) and any(
                index(n.id) is not None for n in ast.walk(right) if isinstance(n, ast.Name)
            ):
                raise ValueError(f"target {text!r}: an exponent must be a number")
            _check(left, text, variables)
            _check(right, text, variables)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            if name not in _FUNCTIONS and not re.fullmatch(r"He[1-9]", name):
                raise ValueError(
                    f"target {text!r}: unknown function "
                    f"{name!r}{nearest(name, [*_FUNCTIONS, 'He2', 'He3'])}"
                )
            wanted = 2 if name in ("maximum", "minimum") else 1
            if len(arguments) != wanted:
                raise ValueError(
                    f"target {text!r}: {name} takes {wanted} argument{'s' * (wanted > 1)}, not "
                    f"{len(arguments)}"
                )
            for argument in arguments:
                _check(argument, text, variables)
        case _:
            raise ValueError(f"target {text!r}: {type(node).__name__} is not allowed in a formula")
