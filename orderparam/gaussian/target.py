"""Targets y = g(z1, ..., zr) that a user writes as text or as a Python function, z standard
normal."""

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from orderparam.core.formula import index, parse
from orderparam.gaussian import formula

_LINE = np.linspace(-12.0, 12.0, 12011)  # range along a line in which kinks are searched


@dataclass(frozen=True)
class Target:
    """A function g of r standard normal variables: `target(z)` with z of shape (..., r) gives y of
    shape (...).

    degree: of a polynomial; None for every other function, Python functions included. kinks: places
    on the line where g is not smooth (r = 1); the list is complete if kinks_known. switches:
    functions of z at whose zeros g is not smooth; poles: those at whose zeros it may be infinite
    (formulas only).
    """

    name: str
    dimension: int
    function: Callable[[Any], Any]
    degree: int | None = None
    kinks: tuple[float, ...] = ()
    kinks_known: bool = False
    switches: tuple[Callable[[Any], Any], ...] = ()
    poles: tuple[Callable[[Any], Any], ...] = ()

    def __call__(self, z: Float[ArrayLike, "*batch index"]) -> Any:
        return self.function(z)

    def __hash__(self) -> int:
        return hash((self.name, self.dimension, self.function))

    def slice(
        self, origin: Float[np.ndarray, "index"], axes: Float[np.ndarray, "axis index"]
    ) -> "Target":
        """x -> g(origin + x axes): the target on this subspace, with the orthogonal coordinates
        fixed."""

        def along(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
            return lambda x: function(x @ axes + origin)

        switches, poles = (
            tuple(along(one) for one in many) for many in (self.switches, self.poles)
        )
        kinks = _kinks(switches) if len(axes) == 1 else ()
        return Target(
            f"{self.name}, sliced", len(axes), along(self.function), kinks=kinks,
            kinks_known=self.kinks_known,
            switches=switches, poles=poles,
        )  # fmt: skip


def target(
    what: str | Callable[[Array], Array] | Target,
    dimension: int | None = None,
    kinks: tuple[float, ...] = (),
) -> Target:
    """The target that `what` describes.

    Text: variables z1 .. z4 (or z alone), numbers, pi and e, + - * / **, and the functions sign,
    abs, exp, log, sqrt, sin, cos, tan, tanh, erf, relu, step, maximum, minimum, He1 .. He9 (Hermite
    polynomials with leading coefficient 1). A Python function: takes an array of shape (...,
    dimension), JAX or NumPy, and gives one of shape (...); for dimension 1 give the places where it
    is not smooth in `kinks`.

    Raises `ValueError` naming the part that is not understood or not allowed.
    """
    if isinstance(what, Target):
        return what
    if callable(what):
        size = 1 if dimension is None else dimension
        if (
            isinstance(size, bool)
            or not isinstance(size, int)
            or not 1 <= size <= formula.LARGEST_DIMENSION
        ):
            raise ValueError(
                f"dimension = {dimension!r}: must be an integer from 1 to "
                f"{formula.LARGEST_DIMENSION}"
            )
        return Target(
            getattr(what, "__name__", "function"), size, what, kinks=tuple(float(x) for x in kinks)
        )
    if not isinstance(what, str):
        raise ValueError(
            f"target = {what!r}: give an expression such as 'z1*z2' or a function of an array"
        )
    tree = parse(what)
    names = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and index(node.id) is not None
    }
    if not names:
        raise ValueError(f"target {what!r}: depends on no variable; write it in z1, z2, ... (or z)")
    if "z" in names and len(names) > 1:
        raise ValueError(f"target {what!r}: write either z alone or z1, z2, ...")
    size = max(index(name) or 0 for name in names) + 1
    if dimension is not None and dimension != size:
        raise ValueError(f"dimension = {dimension}: target {what!r} has {size}")

    def function(z: Any) -> Any:
        return formula.value(tree, z, jnp if isinstance(z, jax.Array) else np)

    try:
        with np.errstate(all="ignore"):
            probe = np.asarray(function(np.random.default_rng(0).standard_normal((64, size))))
            degree = formula.degree(tree)
    except (
        ZeroDivisionError,
        OverflowError,
        TypeError,
    ):  # of numbers among themselves; complex ones are compared
        probe = np.full(64, np.nan)
    if not np.all(np.isfinite(probe)) or np.shape(probe) != (64,):
        raise ValueError(f"target {what!r}: must be a finite number for every z")
    switches = tuple(formula.switches(tree))
    return Target(
        what.strip(), size, function, degree, _kinks(switches) if size == 1 else (),
        kinks_known=True, switches=switches, poles=tuple(formula.poles(tree)),
    )  # fmt: skip


def _kinks(switches: tuple[Callable[[Any], Any], ...]) -> tuple[float, ...]:
    """The places where the switches of a target of one variable change sign."""
    lines = (lambda x, switch=switch: switch(x[..., None]) for switch in switches)
    return tuple(place for line in lines for place in sign_changes(line, _LINE))


def sign_changes(
    function: Callable[[np.ndarray], np.ndarray], grid: Float[np.ndarray, "point"]
) -> list[float]:
    """The places where a function on the line changes sign: bracketed on the grid, then found by
    bisection down to rounding."""
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
