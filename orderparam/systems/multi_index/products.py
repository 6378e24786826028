"""Exponents of products of powers of more than four indices, y = c z1^p1 ... zr^pr.

A quadrature rule for an arbitrary function of r indices has 24^r nodes. For a product of powers
each average is a product of averages over one index, and the law of ln|y| is a convolution
(`label.power_product`).

With z^p = sum_k m_k h_k(z), m_k = p! / [((p - k)/2)! 2^((p - k)/2) sqrt(k!)] for k = p, p - 2, ...,
the coefficient of h_a1(z1) ... h_ar(zr) is the product of the m. Odd powers have no constant term;
the lowest degrees of even powers are 0 and 2. Let q be the number of indices with odd powers. SGD
therefore finds these q indices together, at degree q. It then finds all indices with even powers at
degree 2, because given the indices with odd powers the target has a component of degree 2 in each
of them. If some indices are known, the remaining target is the product of the others.
"""

import ast
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from orderparam.core.formula import LARGEST_DIMENSION, LARGEST_PRODUCT, index, parse
from orderparam.gaussian import formula
from orderparam.gaussian.target import Target
from orderparam.systems.multi_index.label import LabelMoments, power_product, powers_of_product
from orderparam.systems.multi_index.one_index import one_index
from orderparam.systems.multi_index.staircases import Stair, lowest_stair

_LARGEST_INDEX = 9  # the last variable that has a name
ROUNDING = 1e-13  # of the spread


def wide_product(what: Any, dimension: int | None) -> Target | None:
    """The product of powers of more than four indices that `what` describes; None if it has at most
    four indices.

    Raises `ValueError` for any other function of so many indices.
    """
    found = _wide_formula(what) if isinstance(what, str) else _wide_function(what, dimension)
    if found is not None and not powers_of_product(found):
        raise ValueError(
            f"target {found.name!r}: has {found.dimension} indices; more than {LARGEST_DIMENSION}, "
            f"up to {LARGEST_PRODUCT}, only in a product of powers such as 'z1*z2**2*z3*z4*z5', "
            "with powers from 1 to 6"
        )
    return found


def _wide_formula(text: str) -> Target | None:
    tree = parse(text, _LARGEST_INDEX)
    places = {index(node.id) for node in ast.walk(tree) if isinstance(node, ast.Name)} - {None}
    size = max((place for place in places if place is not None), default=-1) + 1
    if size <= LARGEST_DIMENSION:
        return None
    if size > LARGEST_PRODUCT:
        raise ValueError(
            f"target {text!r}: z{size} is beyond z{LARGEST_DIMENSION}, the last variable, and "
            f"beyond z{LARGEST_PRODUCT}, the last one in a product of powers"
        )

    def function(z: Any) -> Any:
        return formula.value(tree, z, np)

    return Target(text.strip(), size, function, formula.degree(tree), kinks_known=True)


def _wide_function(what: Callable[[Any], Any], dimension: int | None) -> Target | None:
    if (
        not callable(what)
        or isinstance(what, Target)
        or isinstance(dimension, bool)
        or not isinstance(dimension, int)
        or not LARGEST_DIMENSION < dimension <= LARGEST_PRODUCT
    ):
        return None
    return Target(getattr(what, "__name__", "function"), dimension, what)


def hermite_powers(powers: tuple[int, ...], highest: int) -> Float[np.ndarray, "order"]:
    """The sum of c_a^2 over |a| = k, k = 0 .. highest, of a product of these powers."""
    total = np.ones(1)
    for power in powers:
        squares = np.zeros(power + 1)
        for k in range(power % 2, power + 1, 2):
            half = (power - k) // 2
            squares[k] = (
                math.factorial(power) / math.factorial(half) / 2**half
            ) ** 2 / math.factorial(k)
        total = np.convolve(total, squares)
    return np.pad(total, (0, max(0, highest + 1 - len(total))))[: highest + 1]


def spread_of(powers: tuple[int, ...]) -> float:
    """The standard deviation of a product of these powers, by E z^(2p) = (2p - 1)!!."""
    mean, square = 1.0, 1.0
    for power in powers:
        mean *= _even_moment(power) if power % 2 == 0 else 0.0
        square *= _even_moment(2 * power)
    return math.sqrt(square - mean**2)


def _even_moment(order: int) -> float:
    return float(math.prod(range(1, order, 2)))


def stages_of(powers: tuple[int, ...]) -> list[tuple[int, int]]:
    """The staircase of SGD: (degree, number of indices that are found at this degree)."""
    odd = sum(power % 2 for power in powers)
    even = len(powers) - odd
    return [(degree, found) for degree, found in ((odd, odd), (2, even)) if found]


def label_staircase(
    powers: tuple[int, ...], orders: int, first: LabelMoments
) -> tuple[list[Stair], bool]:
    """Exact stairs of the best algorithm for a product of these powers, and whether they lead to
    all indices. `first` holds the label moments of the product."""
    rest, moments = list(range(len(powers))), first
    stairs: list[Stair] = []
    while rest:
        stair = lowest_stair(moments, np.eye(len(powers))[rest])
        if stair is None:
            return stairs, False
        stairs.append(stair)
        rest = [place for place in rest if not np.any(np.abs(stair.directions[:, place]) > 0.5)]
        if rest:
            moments = _moments(tuple(powers[place] for place in rest), orders)
    return stairs, True


def _moments(powers: tuple[int, ...], orders: int) -> LabelMoments:
    if len(powers) > 1:
        return power_product(powers, orders)
    power = powers[0]
    return one_index(
        Target(f"z**{power}", 1, lambda z: z[..., 0] ** power, kinks_known=True), orders
    )
