"""Conditional moments given the label, for one hidden index."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from orderparam.core.late import ndtr
from orderparam.gaussian.target import Target, sign_changes
from orderparam.systems.multi_index.label import LabelMoments
from orderparam.systems.multi_index.model import (
    REACH,
    double_exponential_panels,
    hermite_values,
)

# E[h_k(z) | y] for one hidden index is computed from all preimages of y.

_CHUNK = 4096  # points whose slopes are computed together: one shape, one compilation
_PIECES = 128
# fineness and bluntness (see `double_exponential_panels`) of two rules; the difference of the two
# rules estimates the error of the first
_RULES = ((16, 1e-6), (12, 2e-6))

Slope = Callable[[np.ndarray], np.ndarray]


def one_index(target: Target, orders: int) -> LabelMoments:
    """Moments for one hidden index: E[h_k | y] is the sum over the preimages of y of phi h_k / |g'|
    divided by the sum without h_k; flat pieces of g are atoms of y.

    The average over y is an integral over z, divided wherever the number of preimages changes:
    towards the image of an extremum of g the integrand has a square-root singularity. Raises
    `ValueError` for a target of more than 128 monotone pieces.
    """
    slope = _slope(target)
    points = np.linspace(-REACH, REACH, 24013)
    inner = (points[1:] + points[:-1]) / 2
    flat_edges = sign_changes(lambda z: np.where(slope(z) == 0, 1.0, -1.0), inner)
    kinks = target.kinks if target.kinks_known else _hidden_breaks(target, slope, points)
    breaks = np.unique(
        np.round([-REACH, *kinks, *sign_changes(slope, inner), *flat_edges, REACH], 13)
    )
    if len(breaks) > _PIECES + 1:
        raise ValueError(
            f"target {target.name!r}: rises and falls {len(breaks) - 1} times within |z| < "
            f"{REACH:g}; at most {_PIECES} monotone pieces are followed"
        )
    pieces = np.stack([breaks[:-1], breaks[1:]], axis=1)
    flat = np.array([bool(np.all(slope(np.linspace(a, b, 9)[1:-1]) == 0)) for a, b in pieces])
    levels = np.round(_at(target, pieces.mean(axis=1)), 10)
    atoms = np.zeros(orders - 1)
    for level in np.unique(levels[flat]):
        here = pieces[flat & (levels == level)]
        moments = np.sum([_hermite_integrals(orders, a, b) for a, b in here], axis=0)
        atoms += moments[1:] ** 2 / np.sum(ndtr(here[:, 1]) - ndtr(here[:, 0]))
    fine, coarse = (
        atoms + _over_pieces(target, slope, pieces[~flat], orders, *rule) for rule in _RULES
    )
    even = np.allclose(_at(target, points), _at(target, -points), rtol=1e-12, atol=1e-12)
    fine, coarse = (
        np.where(even & (np.arange(1, orders) % 2 == 1), 0.0, found) for found in (fine, coarse)
    )
    grams = tuple(np.full((1, 1), k * power) for k, power in enumerate(fine, 1))
    tolerance = max(10 * float(np.max(np.abs(fine - coarse))), 1e-11)
    # E G^2 with G = E[z^2 - 1 | y] = sqrt(2) E[h_2 | y]
    return LabelMoments(
        grams, np.full((1, 1), 2 * fine[1]), tuple(fine.tolist()), tolerance, "preimages"
    )


def _over_pieces(
    target: Target, slope: Slope, pieces: np.ndarray, orders: int, fineness: int, blunt: float
) -> np.ndarray:
    """The integral over all monotone pieces of phi(z) E[h_k | y = g(z)]^2, k = 1 .. orders - 1.

    If two extrema have the same value y0, preimages at a distance x from them have the relative
    error 1e-16 / x^2 from rounding of y. Therefore nodes are kept away from the ends ("blunt").
    """
    if not len(pieces):
        return np.zeros(orders - 1)
    # Evaluate just inside the pieces, because of jumps; much closer at 0, where floating-point
    # numbers are dense.
    inset = np.where(pieces == 0, 1e-150, 1e-13 * np.diff(pieces)) * [1, -1]
    ends = _at(target, pieces + inset)
    total = np.zeros(orders - 1)
    for own in range(len(pieces)):
        z, w = double_exponential_panels(_cuts(target, pieces, ends, own), fineness, blunt)
        y = _at(target, z)
        inside = (y > ends.min(axis=1)[:, None]) & (y < ends.max(axis=1)[:, None])
        inside[own] = False
        piece, node = np.nonzero(inside)
        back = np.concatenate([z, _invert(target, pieces[piece], ends[piece], y[node])])
        node = np.concatenate([np.arange(z.size), node])
        gradient = np.abs(slope(back))
        share = np.where(
            gradient > 0, np.exp((z[node] ** 2 - back**2) / 2) / np.maximum(gradient, 1e-300), 0.0
        )
        density, *moments = (
            np.bincount(node, weights=share * h, minlength=z.size)
            for h in hermite_values(orders, back)
        )
        ratio = np.divide(moments, density, out=np.zeros((orders - 1, z.size)), where=density > 0)
        total += ratio**2 @ (w * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi))
    return total


def _cuts(target: Target, pieces: np.ndarray, ends: np.ndarray, own: int) -> np.ndarray:
    """The ends of a piece, and the points in it at which g takes the value that it has at the end
    of another piece."""
    low, high = ends[own].min(), ends[own].max()
    margin = 1e-12 * (high - low)
    critical = np.unique(ends[(ends > low + margin) & (ends < high - margin)])
    critical = critical[np.diff(critical, prepend=-np.inf) > margin]
    where = np.full(critical.size, own)
    return np.concatenate(
        [
            pieces[own, :1],
            np.sort(_invert(target, pieces[where], ends[where], critical)),
            pieces[own, 1:],
        ]
    )


def _slope(target: Target) -> Slope:
    """g' along the line, exactly (forward-mode derivative)."""

    @jax.jit
    def chunk(z: jax.Array) -> jax.Array:
        return jax.jvp(lambda x: target(x[..., None]) + 0.0 * x, (z,), (jnp.ones_like(z),))[1]

    def along(z: np.ndarray) -> np.ndarray:
        flat = np.ravel(np.asarray(z, float))
        padded = np.pad(flat, (0, -flat.size % _CHUNK)).reshape(-1, _CHUNK)
        return np.concatenate([np.asarray(chunk(jnp.asarray(part))) for part in padded])[
            : flat.size
        ].reshape(np.shape(z))

    return along


def _hidden_breaks(target: Target, slope: Slope, points: np.ndarray) -> list[float]:
    """Jumps and kinks of a function without a formula: points where the trapezoidal rule for g'
    does not give the change of g.
    """

    def defect(low: np.ndarray, high: np.ndarray) -> np.ndarray:
        middle = (slope(low) + slope(high)) / 2
        return np.abs(_at(target, high) - _at(target, low) - (high - low) * middle)

    size = np.std(_at(target, points)) + 1e-12
    low, high = points[:-1], points[1:]
    found = defect(low, high) > 1e-6 * size
    low, high = low[found], high[found]
    for _ in range(34 if low.size else 0):
        middle = (low + high) / 2
        left = defect(low, middle) >= defect(middle, high)
        low, high = np.where(left, low, middle), np.where(left, middle, high)
    return list((low + high) / 2)


def _at(target: Target, z: Any) -> np.ndarray:
    return np.asarray(target(np.asarray(z, float)[..., None]), float)


def _invert(target: Target, pieces: np.ndarray, ends: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The preimage of every y in its monotone piece, by bisection."""
    low, high = pieces[:, 0], pieces[:, 1]
    rising = ends[:, 1] > ends[:, 0]
    for _ in range(56):
        middle = (low + high) / 2
        below = (_at(target, middle) < y) == rising
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def _hermite_integrals(orders: int, a: float, b: float) -> np.ndarray:
    """The integrals of phi h_k from a to b: -[phi h_{k-1}] / sqrt(k)."""
    ends = np.array([a, b])
    phi = np.exp(-(ends**2) / 2) / np.sqrt(2 * np.pi)
    h = hermite_values(orders, ends) * phi
    inner = -(h[:-1, 1] - h[:-1, 0]) / np.sqrt(np.arange(1, orders))
    return np.concatenate([[ndtr(b) - ndtr(a)], inner])
