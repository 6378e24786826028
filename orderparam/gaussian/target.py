"""Targets y = g(z1, ..., zr) that a user writes as text or as a Python function, z standard normal.

Text is read by a small grammar and turned into array operations; it is never evaluated as Python.
"""

import ast
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float
from scipy import special

from orderparam.core.system import nearest

_LONGEST = 400  # characters of an expression
_LARGEST_DIMENSION = 4
_CONSTANTS = {"pi": math.pi, "e": math.e}
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
_KINKED = ("sign", "abs", "relu", "step")  # not smooth where their argument vanishes
_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
_LINE = np.linspace(-12.0, 12.0, 12011)  # where kinks along a line are looked for


@dataclass(frozen=True)
class Target:
    """A function g of r standard normal variables: `target(z)` with z of shape (..., r) gives y of shape (...).

    degree: of a polynomial; None for every other function (and for Python functions, which cannot be looked into).
    kinks: places on the line where g is not smooth (r = 1), all of them if kinks_known. switches: functions of z at whose zeros
    g is not smooth (formulas only). coordinate_product: g is z1 z2 ... zr up to a factor.
    """

    name: str
    dimension: int
    function: Callable[[Any], Any]
    degree: int | None = None
    kinks: tuple[float, ...] = ()
    coordinate_product: bool = False
    kinks_known: bool = False
    switches: tuple[Callable[[Any], Any], ...] = ()

    def __call__(self, z: Float[ArrayLike, "*batch index"]) -> Any:
        return self.function(z)

    def __hash__(self) -> int:
        return hash((self.name, self.dimension, self.function))

    def slice(self, origin: Float[np.ndarray, "index"], axes: Float[np.ndarray, "axis index"]) -> "Target":
        """x -> g(origin + x axes): the target with everything orthogonal to the axes held."""

        def function(x: Any) -> Any:
            return self.function(x @ axes + origin)

        kinks: tuple[float, ...] = ()
        if len(axes) == 1:
            lines = (lambda x, switch=switch: switch(x[..., None] @ axes + origin) for switch in self.switches)
            kinks = tuple(place for line in lines for place in sign_changes(line, _LINE))
        return Target(f"{self.name}, sliced", len(axes), function, kinks=kinks, kinks_known=self.kinks_known)


def target(
    what: str | Callable[[Array], Array] | Target, dimension: int | None = None, kinks: tuple[float, ...] = ()
) -> Target:
    """The target that `what` describes.

    Text: variables z1 .. z4 (or z alone), numbers, pi and e, + - * / **, and the functions sign, abs, exp, log, sqrt,
    sin, cos, tan, tanh, erf, relu, step, maximum, minimum, He1 .. He9 (Hermite polynomials with leading coefficient 1).
    A Python function: takes an array of shape (..., dimension), JAX or NumPy, and gives one of shape (...); for
    dimension 1 tell in `kinks` where it is not smooth.

    Raises `ValueError` that says what is not understood or not allowed.
    """
    if isinstance(what, Target):
        return what
    if callable(what):
        size = 1 if dimension is None else dimension
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= _LARGEST_DIMENSION:
            raise ValueError(f"dimension = {dimension!r}: must be an integer from 1 to {_LARGEST_DIMENSION}")
        return Target(getattr(what, "__name__", "function"), size, what, kinks=tuple(float(x) for x in kinks))
    if not isinstance(what, str):
        raise ValueError(f"target = {what!r}: give an expression such as 'z1*z2' or a function of an array")
    tree = _parse(what)
    names = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and _index(node.id) is not None})
    if not names:
        raise ValueError(f"target {what!r}: depends on no variable; write it in z1, z2, ... (or z)")
    if "z" in names and len(names) > 1:
        raise ValueError(f"target {what!r}: write either z alone or z1, z2, ...")
    size = max(_index(name) or 0 for name in names) + 1
    if dimension is not None and dimension != size:
        raise ValueError(f"dimension = {dimension}: target {what!r} has {size}")

    def function(z: Any) -> Any:
        return _value(tree, z, jnp if isinstance(z, jax.Array) else np)

    try:
        with np.errstate(all="ignore"):
            probe = np.asarray(function(np.random.default_rng(0).standard_normal((64, size))))
    except (ZeroDivisionError, OverflowError):
        probe = np.full(64, np.nan)
    if not np.all(np.isfinite(probe)) or np.shape(probe) != (64,):
        raise ValueError(f"target {what!r}: must be a finite number for every z")
    switches = tuple(_switches(tree))
    lines = (lambda x, switch=switch: switch(x[..., None]) for switch in switches if size == 1)
    kinks = tuple(place for line in lines for place in sign_changes(line, _LINE))
    return Target(what.strip(), size, function, _degree(tree), kinks, _is_product(tree, size), True, switches)


def _index(name: str) -> int | None:
    """Which coordinate a name means: z and z1 the first."""
    match = re.fullmatch(r"z([1-9]?)", name)
    return None if match is None else int(match[1] or 1) - 1


def _parse(text: str) -> ast.expr:
    if len(text) > _LONGEST:
        raise ValueError(f"target of {len(text)} characters: must be at most {_LONGEST}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        _check(tree, text)
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"target {text!r}: is not a formula; write for example 'z1*z2 + sign(z3)'") from None
    return tree


def _check(node: ast.AST, text: str) -> None:
    """Refuses everything outside the grammar."""
    match node:
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            return
        case ast.Name(id=name):
            index = _index(name)
            if index is not None and index >= _LARGEST_DIMENSION:
                raise ValueError(f"target {text!r}: {name} is beyond z{_LARGEST_DIMENSION}, the last variable")
            if index is None and name not in _CONSTANTS:
                raise ValueError(
                    f"target {text!r}: unknown name {name!r}{nearest(name, ['z', 'z1', 'z2', 'z3', 'z4', 'pi', 'e'])}"
                )
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=inner):
            _check(inner, text)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _BINARY:
            if isinstance(operation, ast.Pow) and any(
                _index(n.id) is not None for n in ast.walk(right) if isinstance(n, ast.Name)
            ):
                raise ValueError(f"target {text!r}: an exponent must be a number")
            _check(left, text)
            _check(right, text)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            if name not in _FUNCTIONS and not re.fullmatch(r"He[1-9]", name):
                raise ValueError(
                    f"target {text!r}: unknown function {name!r}{nearest(name, [*_FUNCTIONS, 'He2', 'He3'])}"
                )
            wanted = 2 if name in ("maximum", "minimum") else 1
            if len(arguments) != wanted:
                raise ValueError(
                    f"target {text!r}: {name} takes {wanted} argument{'s' * (wanted > 1)}, not {len(arguments)}"
                )
            for argument in arguments:
                _check(argument, text)
        case _:
            raise ValueError(f"target {text!r}: {type(node).__name__} is not allowed in a formula")


def _value(node: ast.expr, z: Any, xp: Any) -> Any:
    """The formula on arrays of numpy or jax.numpy."""
    match node:
        case ast.Constant(value=number):
            return float(number)  # type: ignore[arg-type]
        case ast.Name(id=name):
            index = _index(name)
            return _CONSTANTS[name] if index is None else z[..., index]
        case ast.UnaryOp(op=operation, operand=inner):
            return -_value(inner, z, xp) if isinstance(operation, ast.USub) else _value(inner, z, xp)
        case ast.BinOp(left=left, op=operation, right=right):
            a, b = _value(left, z, xp), _value(right, z, xp)
            if isinstance(operation, ast.Pow):
                whole = isinstance(b, float) and b == int(b) and abs(b) <= 64
                return a ** int(b) if whole else xp.power(a, b)
            return _arithmetic(operation, a, b)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _function(name, [_value(argument, z, xp) for argument in arguments], xp)
    raise AssertionError(node)


def _arithmetic(operation: ast.operator, a: Any, b: Any) -> Any:
    match operation:
        case ast.Add():
            return a + b
        case ast.Sub():
            return a - b
        case ast.Mult():
            return a * b
    return a / b


def _function(name: str, values: list[Any], xp: Any) -> Any:
    if name.startswith("He"):
        previous, current = xp.ones_like(values[0]), values[0]
        for n in range(1, int(name[2:])):
            previous, current = current, values[0] * current - n * previous
        return current
    if name == "erf":
        return jax.scipy.special.erf(values[0]) if xp is jnp else special.erf(values[0])
    if name == "relu":
        return xp.maximum(values[0], 0.0)
    if name == "step":
        return xp.heaviside(values[0], 0.5)
    return getattr(xp, name)(*values)


def _degree(node: ast.expr) -> int | None:
    """Degree of a polynomial, None for anything else."""
    match node:
        case ast.Constant():
            return 0
        case ast.Name(id=name):
            return 0 if _index(name) is None else 1
        case ast.UnaryOp(operand=inner):
            return _degree(inner)
        case ast.BinOp(left=left, op=operation, right=right):
            a, b = _degree(left), _degree(right)
            if a is None or b is None:
                return None
            if isinstance(operation, ast.Pow):
                power = _value(right, np.zeros(_LARGEST_DIMENSION), np)
                return int(a * power) if power == int(power) and power >= 0 else (0 if a == 0 else None)
            if isinstance(operation, ast.Mult):
                return a + b
            if isinstance(operation, ast.Div):
                return a if b == 0 else None
            return max(a, b)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            first = _degree(arguments[0])
            if first is not None and name.startswith("He"):
                return first * int(name[2:])
            return 0 if all(_degree(argument) == 0 for argument in arguments) else None
    return None


def _is_product(node: ast.expr, dimension: int) -> bool:
    """Whether the formula is z1 * z2 * ... * zr, each once, times numbers."""
    factors, seen = [node], []
    while factors:
        factor = factors.pop()
        if isinstance(factor, ast.BinOp) and isinstance(factor.op, ast.Mult):
            factors += [factor.left, factor.right]
        elif isinstance(factor, ast.UnaryOp):
            factors.append(factor.operand)
        elif isinstance(factor, ast.Name) and _index(factor.id) is not None:
            seen.append(_index(factor.id))
        elif _degree(factor) != 0:
            return False
    return dimension > 1 and sorted(x for x in seen if x is not None) == list(range(dimension))


def _switches(tree: ast.expr) -> Iterator[Callable[[np.ndarray], np.ndarray]]:
    """Everything in the formula whose sign matters, as functions of z."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in _KINKED:
                argument = node.args[0]
            elif node.func.id in ("maximum", "minimum"):
                argument = ast.BinOp(left=node.args[0], op=ast.Sub(), right=node.args[1])
            else:
                continue

            def switch(z: np.ndarray, argument: ast.expr = argument) -> np.ndarray:
                return _value(argument, z, np) + 0 * z[..., 0]

            yield switch


def sign_changes(function: Callable[[np.ndarray], np.ndarray], grid: Float[np.ndarray, "point"]) -> list[float]:
    """Where a function of the line changes sign: bracketed on the grid, then halved down to rounding."""
    values = np.asarray(function(grid))
    kept = values != 0
    points, signs = grid[kept], np.sign(values[kept])
    change = np.flatnonzero(signs[1:] != signs[:-1])
    if change.size == 0:
        return []
    low, high, left = points[change], points[change + 1], signs[change]
    for _ in range(60):
        middle = (low + high) / 2
        same = np.sign(np.asarray(function(middle))) == left
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    roots = (low + high) / 2
    return [0.0 if abs(root) < 1e-12 else float(root) for root in roots]
