"""Quadrature over independent standard normals for integrands with the symmetries of a
committee."""

import itertools
import math
from functools import cache
from typing import NamedTuple

import numpy as np

Rule = tuple[np.ndarray, np.ndarray]  # nodes and weights


class Spacing(NamedTuple):
    """Spacing of the nodes x = scale sinh(t) of a field.

    steps: steps of t, for smooth integrands and for integrands with kinks. least: smallest weight
    of a node that is kept, for each of the two. The integrand varies at x = 0 on the scale sqrt(1/q
    - 1) if units are known with overlap q, so that nodes are denser there.
    """

    scale: float
    steps: tuple[float, float]
    least: tuple[float, float]


_SPACING = {
    1: Spacing(0.5, (0.02, 0.01), (1e-17, 1e-17)),
    2: Spacing(0.3, (0.1, 0.04), (1e-17, 1e-10)),
    3: Spacing(0.4, (0.22, 0.15), (1e-12, 1e-8)),
    4: Spacing(0.5, (0.35, 0.35), (1e-8, 1e-8)),
    5: Spacing(0.5, (0.45, 0.45), (1e-7, 1e-7)),
    6: Spacing(0.7, (0.5, 0.5), (1e-6, 1e-6)),
    7: Spacing(0.7, (0.55, 0.55), (1e-6, 1e-6)),
}
_EXACT = 2  # most units for which the error of the quadrature is negligible
_LONGER = 1.25  # factor of the steps of the second rule, by which the first is judged


@cache
def field_rule(hidden: int, kinks: bool = False) -> list[Rule]:
    """Quadrature nodes (node, hidden) and weights for K independent standard normals.

    The integrand must be symmetric under exchange of the units and under a change of all signs.
    Only one node of each orbit of these symmetries is kept, with the weight of the whole orbit. For
    K > 2 a second rule with longer steps follows, by which the first is judged.

    Args:
        hidden: number K of hidden units.
        kinks: whether the integrand has kinks, which need shorter steps.
    """
    spacing = _SPACING[hidden]
    step, least = spacing.steps[kinks], spacing.least[kinks]
    lengths = (1.0,) if hidden <= _EXACT else (1.0, _LONGER)
    return [_products(hidden, spacing.scale, length * step, least) for length in lengths]


@cache
def equal_rule(hidden: int, kinks: bool = False) -> list[Rule]:
    """Quadrature nodes and weights for fields that are equal in all units, x/sqrt(K) with one
    standard normal x.

    Args:
        hidden: number K of hidden units.
        kinks: whether the integrand has kinks, which need shorter steps.
    """
    x, w = field_rule(1, kinks)[0]
    return [(np.repeat(x / math.sqrt(hidden), hidden, axis=1), w)]


def _products(hidden: int, scale: float, step: float, least: float) -> Rule:
    half = int(math.asinh(math.sqrt(-2 * math.log(least)) / scale) / step) + 1
    t = step * np.arange(-half, half + 1)
    x = scale * np.sinh(t)
    density = step * scale * np.cosh(t) * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    chosen = np.array(list(itertools.combinations_with_replacement(range(len(x)), hidden)))
    mirrored = (len(x) - 1 - chosen)[:, ::-1]
    first = np.argmax(chosen != mirrored, axis=1)[:, None]
    # 0 for its own mirror image
    order = np.sign(np.take_along_axis(chosen - mirrored, first, axis=1)[:, 0])
    copies, run = np.full(len(chosen), float(math.factorial(hidden))), np.ones(len(chosen))
    for i in range(1, hidden):
        run = np.where(chosen[:, i] == chosen[:, i - 1], run + 1, 1.0)
        copies /= run
    weights = np.where(order == 0, 1, 2) * copies * np.prod(density[chosen], axis=1)
    kept = (order <= 0) & (weights > least)
    return x[chosen[kept]], weights[kept] / np.sum(weights[kept])
