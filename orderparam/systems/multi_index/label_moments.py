"""What the label tells about the hidden fields: E[h_k(z) | y], the quantities that no transformation of the labels can
hide.

For one index, lambda_k^2 = E_y E[h_k(z) | y]^2 <= 1 (Damian, Pillaud-Vivien, Lee and Bruna 2024); for several, the
second moments of E[z | y] (order 1), the operator X -> E_y[G X G] with G(y) = E[z z^T - 1 | y] (order 2; Troiani et al.
2024) and the squared norm of the third and higher tensors. Four ways to compute them, the most exact that fits is
taken.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from orderparam.systems.multi_index.hermite_tensors import NODES
from orderparam.systems.multi_index.rules import REACH, double_exponential, grid, half_line_rule, hermite_values
from orderparam.systems.multi_index.target import Target, sign_changes

_CHUNK = 4096  # points whose slope is taken together: one shape, one compilation
_DISCRETE = 64  # a function with no more values than this on 4096 random points is a classification


Slope = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class LabelMoments:
    """signal: for k = 1, 2, ..., the largest eigenvalue of order k (one index: lambda_k^2; order 2 of several indices:
    that of X -> E[G X G], which is 2 lambda_2^2 for one). tolerance: their absolute accuracy. method: how they were
    computed."""

    signal: tuple[float, ...]
    tolerance: float
    method: str


def label_moments(target: Target, orders: int) -> LabelMoments:
    """The signal of orders 1 .. orders - 1."""
    if target.dimension == 1:
        return _one_index(target, orders)
    if target.coordinate_product:
        return _coordinate_product(target.dimension, orders)
    probe = np.random.default_rng(3).standard_normal((4096, target.dimension))
    if len(np.unique(np.round(np.asarray(target(probe), float), 10))) <= _DISCRETE:
        return _discrete(target, orders)
    return _binned(target, orders)


# One index: every preimage of y


def _one_index(target: Target, orders: int) -> LabelMoments:
    """E[h_k | y] = sum over the preimages of y of phi h_k / |g'|, over the same sum without h_k; flat pieces of g are
    atoms of y.

    The average over y is an integral over z, cut wherever the number of preimages changes, with double-exponential
    nodes: towards the image of an extremum of g the integrand has a square-root singularity.
    """
    slope = _slope(target)
    points = np.linspace(-REACH, REACH, 24013)
    inner = (points[1:] + points[:-1]) / 2
    flat_edges = sign_changes(lambda z: np.where(slope(z) == 0, 1.0, -1.0), inner)
    breaks = np.unique(np.round([-REACH, *target.kinks, *sign_changes(slope, inner), *flat_edges, REACH], 13))
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
    if orders > 2:
        signal[1] *= 2.0  # E G^2 with G = E[z^2 - 1 | y] = sqrt(2) E[h_2 | y]
    even = np.allclose(_at(target, points), _at(target, -points), rtol=1e-12, atol=1e-12)
    signal = np.where(even & (np.arange(1, orders) % 2 == 1), 0.0, signal)
    return LabelMoments(tuple(float(x) for x in signal), 1e-8, "preimages")


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


# Several indices


def _order_signals(shares: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Orders 1 and 2 from P(y), two independent estimates of all E[h_a | y], each (label, *order)."""
    dimension = first.ndim - 1
    unit = [tuple(int(i == j) for j in range(dimension)) for i in range(dimension)]
    means = [np.stack([np.moveaxis(x, 0, -1)[u] for u in unit], axis=1) for x in (first, second)]
    order_one = np.einsum("y,yi,yj->ij", shares, *means)
    matrices = [_second_moments(x, unit) for x in (first, second)]
    pairs = [(i, j) for i in range(dimension) for j in range(i, dimension)]
    basis = []
    for i, j in pairs:
        e = np.zeros((dimension, dimension))
        e[i, j] = e[j, i] = 1.0 if i == j else np.sqrt(0.5)
        basis.append(e)
    stacked = np.stack(basis)
    operator = np.einsum("y,aij,yjk,bkl,yli->ab", shares, stacked, matrices[0], stacked, matrices[1])
    eigenvalues = [np.linalg.eigvalsh((m + m.T) / 2)[-1] for m in (order_one, operator)]
    return float(eigenvalues[0]), float(eigenvalues[1])


def _second_moments(conditional: np.ndarray, unit: list) -> np.ndarray:
    """G(y) = E[z z^T - 1 | y] from E[h_a | y]: He2 = sqrt(2) h_2 on the diagonal, z_i z_j off it."""
    dimension = conditional.ndim - 1
    out = np.zeros((len(conditional), dimension, dimension))
    for i in range(dimension):
        for j in range(dimension):
            index = tuple(a + b for a, b in zip(unit[i], unit[j]))
            out[:, i, j] = np.moveaxis(conditional, 0, -1)[index] * (np.sqrt(2) if i == j else 1.0)
    return out


def _norms(shares: np.ndarray, first: np.ndarray, second: np.ndarray, orders: int) -> list[float]:
    """E_y |E[h_a | y]|^2 over all |a| = k, for k = 3, 4, ..."""
    total = np.indices(first.shape[1:]).sum(axis=0)
    product = np.tensordot(shares, first * second, axes=(0, 0))
    return [float(np.sum(product[total == k])) for k in range(3, orders)]


def _discrete(target: Target, orders: int) -> LabelMoments:
    """A label with few values: sums over the grid, exact when the borders between the values are coordinate planes."""
    found = []
    for count in (NODES[target.dimension], NODES[target.dimension] - 4):
        z, w = grid(target.dimension, count)
        labels = np.round(np.asarray(target(z), float), 10)
        basis = half_line_rule(count)[1] * hermite_values(orders, half_line_rule(count)[0])
        shares, moments = [], []
        for label in np.unique(labels):
            indicator = (labels == label).astype(float)
            shares.append(np.sum(w * indicator))
            for _ in range(target.dimension):
                indicator = np.moveaxis(np.tensordot(basis, indicator, axes=(1, 0)), 0, -1)
            moments.append(indicator / shares[-1])
        conditional, share = np.stack(moments), np.array(shares)
        signal = (*_order_signals(share, conditional, conditional), *_norms(share, conditional, conditional, orders))
        found.append(np.array(signal[: orders - 1]))
    error = max(10 * float(np.max(np.abs(found[0] - found[1]))), 1e-12)
    return LabelMoments(
        tuple(np.where(np.abs(found[0]) < error, 0.0, found[0]).tolist()), error, "sums over the labels"
    )


def _coordinate_product(dimension: int, orders: int) -> LabelMoments:
    """y = z1 ... zr: the law of ln|y| is a convolution of those of ln|z|, by Fourier transform.

    By symmetry G(y) = a(y) 1 for r > 2, with a(y) = E[z1^2 | y] - 1, and [[a, y], [y, a]] for r = 2: the eigenvalue is
    E a^2, and 1 + E a^2 for r = 2 (there a = |y| K1(|y|) / K0(|y|) - 1; Troiani et al. 2024). E[z | y] = 0. Higher
    orders are not needed: left at 0.
    """
    count, low, high = 2**14, -60.0, 20.0
    u = low + (high - low) * np.arange(count) / count
    step = u[1] - u[0]
    # Density of ln|z|; the convolution of r of them starts at r * low, so the grid is long enough to hold all of it.
    z = np.exp(u)
    plain = 2 * z * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    size = dimension * count
    transforms = [np.fft.rfft(f, size) for f in (plain, z**2 * plain)]
    density = np.fft.irfft(transforms[0] ** dimension, size) * step ** (dimension - 1)
    weighted = np.fft.irfft(transforms[1] * transforms[0] ** (dimension - 1), size) * step ** (dimension - 1)
    # Where the density has sunk into the rounding of the transform (1e-16 of its maximum) the ratio means nothing.
    kept = density > 1e-13 * density.max()
    excess = np.divide(weighted, density, out=np.ones_like(weighted), where=kept) - 1
    signal = float(np.sum(np.where(kept, density * excess**2, 0.0)) * step) + (1.0 if dimension == 2 else 0.0)
    return LabelMoments((0.0, signal) + (0.0,) * (orders - 3), 1e-6, "convolution of ln|z|")


def _binned(target: Target, orders: int, log2_points: int = 18, pairs: int = 4, bins: int = 1024) -> LabelMoments:
    """Any target: conditional averages in quantile bins of y over scrambled Sobol points.

    Products of averages over two independent sets of points are free of the bias that the square of one has. What
    remains is the width of the bins; the tolerance is four standard errors over the pairs and 1% of the largest signal.
    Signs that leave y unchanged make the averages that are odd under them vanish exactly.
    """
    orders = min(orders, 5)
    allowed = _invariant(target, orders)
    signals = []
    for pair in range(pairs):
        halves = []
        for half in range(2):
            engine = qmc.Sobol(target.dimension, scramble=True, seed=2 * pair + half)
            z = ndtri(np.clip(engine.random_base2(log2_points), 1e-12, 1 - 1e-12))
            halves.append((z, np.asarray(target(z), float)))
        edges = np.quantile(halves[0][1], np.arange(1, bins) / bins)
        shares, conditional = [], []
        for z, y in halves:
            label = np.searchsorted(edges, y, side="right")
            features = np.ones((1, len(y)))
            for i in range(target.dimension):
                h = hermite_values(orders, z[:, i])
                features = (features[:, None] * h[None]).reshape(-1, len(y))
            occupied = np.bincount(label, minlength=bins)
            sums = np.stack([np.bincount(label, weights=f, minlength=bins) for f in features])
            averages = (sums / np.maximum(occupied, 1)).T.reshape(bins, *(orders,) * target.dimension)
            shares.append(occupied / len(y))
            conditional.append(np.where(allowed, averages, 0.0))
        mean_share = (shares[0] + shares[1]) / 2
        first, second = conditional
        signals.append([*_order_signals(mean_share, first, second), *_norms(mean_share, first, second, orders)])
    table = np.array(signals)
    mean, error = table.mean(axis=0), table.std(axis=0, ddof=1) / np.sqrt(pairs)
    tolerance = float(4 * error.max() + 0.01 * np.abs(mean).max())
    return LabelMoments(tuple(np.where(np.abs(mean) < tolerance, 0.0, mean).tolist()), tolerance, "quantile bins")


def _invariant(target: Target, orders: int) -> np.ndarray:
    """Which h_a may have a conditional average: those even under every flip of signs that leaves y as it is."""
    u = np.random.default_rng(1).standard_normal((64, target.dimension))
    value = np.asarray(target(u))
    shape = (orders,) * target.dimension
    powers, allowed = np.indices(shape), np.ones(shape, bool)
    for flip in np.ndindex(*(2,) * target.dimension):
        if np.allclose(np.asarray(target(u * (1 - 2 * np.array(flip)))), value, rtol=1e-10, atol=1e-10):
            allowed &= np.tensordot(np.array(flip), powers, axes=(0, 0)) % 2 == 0
    return allowed
