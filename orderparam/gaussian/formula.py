"""Evaluates formulas in standard normal variables as array operations; they are never run as
Python."""

import ast
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from orderparam.core.formula import BINARY, CONSTANTS, LARGEST_DIMENSION, index
from orderparam.core.late import special

# functions that are not smooth where their argument vanishes
_KINKED = ("sign", "abs", "relu", "step")


def value(node: ast.expr, z: Any, xp: Any) -> Any:
    """The formula on arrays of numpy or jax.numpy."""
    match node:
        case ast.Constant(value=number):
            return float(number)  # type: ignore[arg-type]
        case ast.Name(id=name):
            place = index(name)
            return CONSTANTS[name] if place is None else z[..., place]
        case ast.UnaryOp(op=operation, operand=inner):
            return -value(inner, z, xp) if isinstance(operation, ast.USub) else value(inner, z, xp)
        case ast.BinOp(left=left, op=operation, right=right):
            a, b = value(left, z, xp), value(right, z, xp)
            if isinstance(operation, ast.Pow):
                whole = isinstance(b, float) and b.is_integer() and abs(b) <= 64
                return a ** int(b) if whole else xp.power(a, b)
            return BINARY[type(operation)](a, b)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _function(name, [value(argument, z, xp) for argument in arguments], xp)
    raise AssertionError(node)


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


def degree(node: ast.expr) -> int | None:
    """Degree of a polynomial, None for anything else."""
    match node:
        case ast.Constant():
            return 0
        case ast.Name(id=name):
            return 0 if index(name) is None else 1
        case ast.UnaryOp(operand=inner):
            return degree(inner)
        case ast.BinOp(left=left, op=operation, right=right):
            a, b = degree(left), degree(right)
            if a is None or b is None:
                return None
            if isinstance(operation, ast.Pow):
                power = value(right, np.zeros(LARGEST_DIMENSION), np)
                return (
                    int(a * power)
                    if power >= 0 and float(power).is_integer()
                    else (0 if a == 0 else None)
                )
            if isinstance(operation, ast.Mult):
                return a + b
            if isinstance(operation, ast.Div):
                return a if b == 0 else None
            return max(a, b)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            degrees = [degree(argument) for argument in arguments]
            if degrees[0] is not None and name.startswith("He"):
                return degrees[0] * int(name[2:])
            return 0 if all(one == 0 for one in degrees) else None
    return None


def switches(tree: ast.expr) -> Iterator[Callable[[np.ndarray], np.ndarray]]:
    """All expressions in the formula whose sign matters, as functions of z."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[argument]) if name in _KINKED:
                yield _function_of_z(argument)
            case ast.Call(func=ast.Name(id="maximum" | "minimum"), args=[first, second]):
                yield _function_of_z(ast.BinOp(left=first, op=ast.Sub(), right=second))


def poles(tree: ast.expr) -> Iterator[Callable[[np.ndarray], np.ndarray]]:
    """All expressions in the formula at whose zeros it may be infinite, as functions of z:
    denominators, bases of powers with exponents that are not positive whole numbers, arguments of
    logarithms, cosines below tangents."""
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(op=ast.Div(), right=below) if degree(below) != 0:
                yield _function_of_z(below)
            case ast.BinOp(left=base, op=ast.Pow()) if degree(base) != 0 and degree(node) is None:
                yield _function_of_z(base)
            case ast.Call(func=ast.Name(id="log"), args=[argument]):
                yield _function_of_z(argument)
            case ast.Call(func=ast.Name(id="tan"), args=[argument]):
                yield _function_of_z(
                    ast.Call(func=ast.Name(id="cos"), args=[argument], keywords=[])
                )


def _function_of_z(node: ast.expr) -> Callable[[np.ndarray], np.ndarray]:
    def function(z: np.ndarray) -> np.ndarray:
        return value(node, z, np) + 0 * z[..., 0]

    return function
