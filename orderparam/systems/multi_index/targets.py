"""Targets as fields of systems, and quadrature for targets that need not be smooth."""

import functools
import itertools
from typing import Any

import numpy as np
from jaxtyping import Float

from orderparam.gaussian.rules import double_exponential, half_line_rule
from orderparam.gaussian.target import Target, target

# ------------------------------------------------------------------------------------------------
# Targets as fields of systems: equal texts are equal fields, so that a target is compiled once.

read = functools.cache(target)


def formula(what: Any) -> str | Target:
    """The form in which a field keeps a target: its text, or a `Target` for a Python function.
    Raises `ValueError` for anything else.
    """
    return read(what.strip()).name if isinstance(what, str) else target(what)


# ------------------------------------------------------------------------------------------------
# Quadrature for targets that need not be smooth: kinks on coordinate planes, square-root
# singularities at extrema.
#
# This part uses NumPy: a target is analysed only once, and compilation would take longer than the
# computation.

REACH = 12.0  # the standard normal density beyond is 2e-32
NODES = {1: 40, 2: 40, 3: 20, 4: 12}  # Gauss nodes on each half line, by dimension


def hermite_values(
    count: int, z: Float[np.ndarray, "*batch"]
) -> Float[np.ndarray, "{count} *batch"]:
    """The values h_0(z) .. h_{count-1}(z)."""
    rows = [np.ones_like(z), np.asarray(z, float)]
    for n in range(1, count - 1):
        rows.append((z * rows[-1] - np.sqrt(n) * rows[-2]) / np.sqrt(n + 1))
    return np.stack(rows[:count])


def grid(
    dimension: int, nodes: int
) -> tuple[Float[np.ndarray, "*node index"], Float[np.ndarray, "*node"]]:
    """Tensor grid of the half-line rule and its weights."""
    z, w = half_line_rule(nodes)
    weights = np.ones(())
    for _ in range(dimension):
        weights = np.multiply.outer(weights, w)
    return np.stack(np.meshgrid(*[z] * dimension, indexing="ij"), axis=-1), weights


def double_exponential_panels(
    cuts: np.ndarray, fineness: int = 16, blunt: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on the intervals between the cuts; long intervals are split so that the
    Gaussian is resolved.

    blunt: nodes that are closer to an end than this fraction of the interval are moved to 4/9 of
        it, which is exact for integrands a + b sqrt(distance). This is for integrands that are lost
        in rounding near the ends. No node is at an end.
    """
    edges = np.unique(
        np.concatenate(
            [
                np.linspace(a, b, max(2, int(np.ceil((b - a) / 2)) + 1))
                for a, b in itertools.pairwise(cuts)
            ]
        )
    )
    t = np.arange(-3 * fineness, 3 * fineness + 1) / fineness
    x, w = double_exponential(t, 1 / fineness)
    x = np.where(x < blunt, 4 / 9 * blunt, np.where(x > 1 - blunt, 1 - 4 / 9 * blunt, x))
    low, high = edges[:-1, None], edges[1:, None]
    z, w = low + (high - low) * x, (high - low) * w
    margin = 4 * np.spacing(np.maximum(np.abs(low), np.abs(high)))
    inside = (z > low + margin) & (z < high - margin)
    return z[inside], w[inside]
