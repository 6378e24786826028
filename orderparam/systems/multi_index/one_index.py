"""E[h_k(z) | y] for one hidden index, from every preimage of y."""

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr

from orderparam.gaussian.target import Target, sign_changes
from orderparam.systems.multi_index.conditional import LabelMoments
from orderparam.systems.multi_index.rules import REACH, double_exponential, hermite_values

_CHUNK = 4096  # points whose slope is taken together: one shape, one compilation

Slope = Callable[[np.ndarray], np.ndarray]


def one_index(target: Target, orders: int) -> LabelMoments:
    """E[h_k | y] = sum over the preimages of y of phi h_k / |g'|, over the same sum without h_k; flat pieces of g are
    atoms of y.

    The average over y is an integral over z, cut wherever the number of preimages changes, with double-exponential
    nodes: towards the image of an extremum of g the integrand has a square-root singularity.
    """
    slope = _slope(target)
    points = np.linspace(-REACH, REACH, 24013)
    inner = (points[1:] + points[:-1]) / 2
    flat_edges = sign_changes(lambda z: np.where(slope(z) == 0, 1.0, -1.0), inner)
    kinks = target.kinks if target.kinks_known else _hidden_breaks(target, slope, points)
    breaks = np.unique(np.round([-REACH, *kinks, *sign_changes(slope, inner), *flat_edges, REACH], 13))
    pieces = list(itertools.pairwise(breaks))
    flat = [bool(np.all(slope(np.linspace(a, b, 9)[1:-1]) == 0)) for a, b in pieces]
    signal = np.zeros(orders - 1)
    for value in {_round(_at(target, (a + b) / 2)) for (a, b), level in zip(pieces, flat) if level}:
        here = [(a, b) for (a, b), level in zip(pieces, flat) if level and _round(_at(target, (a + b) / 2)) == value]
        mass = sum(ndtr(b) - ndtr(a) for a, b in here)
        moments = np.sum([_hermite_integrals(orders, a, b) for a, b in here], axis=0)
        signal += moments[1:] ** 2 / mass
    monotone = [piece for piece, level in zip(pieces, flat) if not level]
    for a, b in monotone:
        signal += _over_piece(target, slope, monotone, a, b, orders)
    even = np.allclose(_at(target, points), _at(target, -points), rtol=1e-12, atol=1e-12)
    signal = np.where(even & (np.arange(1, orders) % 2 == 1), 0.0, signal)
    powers = [np.full((1, 1), k * power) for k, power in enumerate(signal, 1)]
    # E G^2 with G = E[z^2 - 1 | y] = sqrt(2) E[h_2 | y]
    return LabelMoments(tuple(powers), np.full((1, 1), 2 * signal[1]), tuple(signal), 1e-8, "preimages")


def _over_piece(target: Target, slope: Slope, pieces: list, a: float, b: float, orders: int) -> np.ndarray:
    """The integral over one monotone piece of phi(z) E[h_k | y = g(z)]^2."""
    ends = [_ends(target, piece) for piece in pieces]
    own = _ends(target, (a, b))
    critical = [y for pair in ends for y in pair if min(own) < y < max(own)]
    cuts = np.unique([a, *(_invert(target, (a, b), own, np.array([y]))[0] for y in critical), b])
    z, w = double_exponential(cuts)
    y = _at(target, z)
    density, moments = np.zeros_like(z), np.zeros((orders, z.size))
    for piece, (low, high) in zip(pieces, ends):
        inside = (y > min(low, high)) & (y < max(low, high)) if piece != (a, b) else np.ones(z.shape, bool)
        if inside.any():
            back = z[inside] if piece == (a, b) else _invert(target, piece, (low, high), y[inside])
            gradient = np.abs(slope(back))
            safe = np.maximum(gradient, 1e-300)
            share = np.where(gradient > 0, np.exp(-(back**2) / 2 + z[inside] ** 2 / 2) / safe, 0.0)
            density[inside] += share
            moments[:, inside] += share * hermite_values(orders, back)
    phi = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    ratio = np.divide(moments[1:], density, out=np.zeros_like(moments[1:]), where=density > 0)
    return (ratio**2) @ (w * phi)


def _slope(target: Target) -> Slope:
    """g' along the line, exactly (forward-mode derivative)."""

    @jax.jit
    def chunk(z: jax.Array) -> jax.Array:
        return jax.jvp(lambda x: target(x[..., None]) + 0.0 * x, (z,), (jnp.ones_like(z),))[1]

    def along(z: np.ndarray) -> np.ndarray:
        flat = np.ravel(np.asarray(z, float))
        padded = np.pad(flat, (0, -flat.size % _CHUNK)).reshape(-1, _CHUNK)
        return np.concatenate([np.asarray(chunk(jnp.asarray(part))) for part in padded])[: flat.size].reshape(
            np.shape(z)
        )

    return along


def _hidden_breaks(target: Target, slope: Slope, points: np.ndarray) -> list[float]:
    """Jumps and kinks of a function that cannot be looked into: where the trapezoidal rule for g' misses the change of g."""

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


def _round(value: np.ndarray) -> float:
    return float(np.round(value, 10))


def _ends(target: Target, piece: tuple[float, float]) -> tuple[float, float]:
    """The limits of g at both ends of a piece, from inside."""
    a, b = piece
    inset = 1e-13 * (b - a)
    return float(_at(target, a + inset)), float(_at(target, b - inset))


def _invert(target: Target, piece: tuple, ends: tuple, y: np.ndarray) -> np.ndarray:
    """The preimages in a monotone piece, by halving."""
    low, high = np.full(y.shape, piece[0]), np.full(y.shape, piece[1])
    rising = ends[1] > ends[0]
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
