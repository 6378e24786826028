"""The matrix S = sum_a v_a w_a w_a^T / sqrt(k d) observed in symmetric Gaussian noise: its overlap with a posterior sample.

Y = sqrt(l) S + Z with Z from the Gaussian orthogonal ensemble, spectrum on [-2, 2], k/d = gamma and E v^2 = 1. The overlap of
the fluctuating part is

    m_S(l) = 1 - (1/l)(1 - (4 pi^2 / 3) int rho_l(x)^3 dx),

rho_l the spectral density of Y (Maillard, Krzakala, Mezard and Zdeborova 2022; Barbier, Camilli, Nguyen, Pastore and Skerk
2025). Its Stieltjes transform h solves  E_v[c v gamma / (gamma - c v h)] + h + 1/h = x,  c = sqrt(gamma l): a free sum of a
Wishart matrix with weights v and a semicircle.

In the variable p = 1/h this is x = p + sum_j nu_j / (p - s_j) up to a constant, with positive masses: 1 at s = 0 and
E c^2 v^2 / gamma at s = c v / gamma. So the spectrum is a curve p = a + i b(a) over those real a for which
sum_j nu_j / (a - s_j)^2 > 1, and b > 0 is the only root of sum_j nu_j / ((a - s_j)^2 + b^2) = 1; one monotone equation,
whatever the number of read-out values. This parametrisation is derived for this package.
"""

import math
from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.interpolate import BSpline, make_interp_spline
from scipy.optimize import brentq

_CELLS = 640
_BEND = 0.1  # the tables are uniform in ln(1 + l/_BEND)
_LARGEST = 18.0  # l = 6.6e6
_DEGREE = 5
_NODES = 48  # per interval of the spectrum, and more for each read-out value behind it
_NODES_PER_VALUE = 6


class MatrixChannel(eqx.Module):
    """m_S and iota(l) = (1/4) int_0^l (1 - m_S) as quintic splines in ln(1 + 10 l), up to l = 6.6e6; 1e-9 or better."""

    overlap_cells: Float[Array, "cell 6"]
    entropy_cells: Float[Array, "cell 6"]

    def overlap(self, signal: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """m_S(l)."""
        return _spline(self.overlap_cells, _position(signal))

    def slope(self, signal: Float[Array, ""]) -> Float[Array, ""]:
        """m_S'(l)."""
        return jax.grad(self.overlap)(signal)

    def entropy(self, signal: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """iota(l)."""
        return _spline(self.entropy_cells, _position(signal))

    def signal(self, overlap: Float[Array, ""]) -> Float[Array, ""]:
        """l with m_S(l) = overlap, by linear interpolation: to start a search from."""
        step = _LARGEST / _CELLS
        return _BEND * jnp.expm1(jnp.interp(overlap, self.overlap_cells[:, 0], step * jnp.arange(_CELLS)))


def _position(signal: Array) -> Array:
    return jnp.log1p(signal / _BEND)


def _spline(cells: Array, x: Array) -> Array:
    step = _LARGEST / _CELLS
    cell = jnp.clip((jax.lax.stop_gradient(x) / step).astype(int), 0, _CELLS - 1)
    offset = x - cell * step
    c = cells[cell]
    value = c[..., _DEGREE]
    for power in reversed(range(_DEGREE)):
        value = value * offset + c[..., power]
    return value


@lru_cache(maxsize=16)
def matrix_channel(width_ratio: float, values: tuple[float, ...] = (1.0,)) -> MatrixChannel:
    """The tables for one ratio gamma = k/d and one law of the read-outs: equally frequent values v, with mean square 1."""
    x = np.linspace(0.0, _LARGEST, _CELLS + 1)
    signals = _BEND * np.expm1(x)
    overlap = np.array([0.0, *(_overlap(width_ratio, np.asarray(values), signal) for signal in signals[1:])])
    spline = make_interp_spline(x, overlap, _DEGREE)
    # int (1 - m) dl = int (1 - m) (l + bend) dx
    entropy = make_interp_spline(x, (1 - overlap) * (signals + _BEND) / 4, _DEGREE).antiderivative()
    entropy = make_interp_spline(x, entropy(x), _DEGREE)
    with jax.ensure_compile_time_eval():
        return MatrixChannel(jnp.asarray(_taylor(spline, x[:-1])), jnp.asarray(_taylor(entropy, x[:-1])))


def _taylor(spline: BSpline, x: np.ndarray) -> np.ndarray:
    """Coefficients of the polynomial of each cell, in powers of the distance from its left end."""
    return np.stack([spline.derivative(m)(x) / math.factorial(m) if m else spline(x) for m in range(_DEGREE + 1)], axis=1)


def _overlap(gamma: float, v: np.ndarray, signal: float) -> float:
    """m_S(l) by quadrature over the spectrum, to 1e-13 / l."""
    c = np.sqrt(gamma * signal)
    s, merged = np.unique(np.append(c * v / gamma, 0.0), return_inverse=True)
    nu = np.bincount(merged, np.append((c * v) ** 2 / (gamma * len(v)), 1.0))
    s, nu = s[nu > 0], nu[nu > 0]
    a, weight = _nodes(s, nu)
    b = np.sqrt(_height(s, nu, a))
    gap = a[:, None] - s
    inverse = 1 / (gap**2 + (b**2)[:, None])
    second = inverse**2 @ nu
    stretch = 2 * b**2 * second + 2 * ((gap * inverse**2) @ nu) ** 2 / second  # dx/da = |x'(p)|^2 / Re x'(p)
    density = b / (a**2 + b**2) / np.pi
    return float(1 - (1 - 4 * np.pi**2 / 3 * np.sum(weight * density**3 * stretch)) / signal)


def _height(s: np.ndarray, nu: np.ndarray, a: np.ndarray) -> np.ndarray:
    """b^2 at each a: Newton steps on 1/sum = 1, which is concave and increasing in b^2."""
    squares = (a[:, None] - s) ** 2
    t = np.full_like(a, nu.sum())
    for _ in range(60):
        inverse = 1 / (squares + t[:, None])
        total = inverse @ nu
        step = (1 - 1 / total) * total**2 / (inverse**2 @ nu)
        new = np.maximum(t + step, 0.25 * t)
        if np.all(np.abs(new - t) <= 1e-15 * t):
            break
        t = new
    return t


def _nodes(s: np.ndarray, nu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights over all intervals of a, dense at their ends, where b is a square root."""

    def excess(a: float) -> float:
        with np.errstate(divide="ignore"):
            return float(np.sum(nu / (a - s) ** 2)) - 1

    radius, smallest = np.sqrt(nu.sum()) * (1 + 1e-9), np.sqrt(nu) / 2
    edges = [brentq(excess, s[0] - radius, s[0] - smallest[0], xtol=1e-14)]
    counts = [1]
    for j, lowest in enumerate(_lowest(s, nu)):
        if excess(lowest) < 0:
            edges.append(brentq(excess, s[j] + smallest[j], lowest, xtol=1e-14))
            edges.append(brentq(excess, lowest, s[j + 1] - smallest[j + 1], xtol=1e-14))
            counts.append(0)
        counts[-1] += 1
    edges.append(brentq(excess, s[-1] + smallest[-1], s[-1] + radius, xtol=1e-14))
    nodes, weights = [], []
    for low, high, values in zip(edges[::2], edges[1::2], counts):
        count = _NODES + _NODES_PER_VALUE * values
        theta = (np.arange(count) + 0.5) * np.pi / count
        nodes.append((low + high) / 2 - (high - low) / 2 * np.cos(theta))
        weights.append((high - low) / 2 * np.sin(theta) * np.pi / count)
    return np.concatenate(nodes), np.concatenate(weights)


def _lowest(s: np.ndarray, nu: np.ndarray) -> np.ndarray:
    """Between each two neighbouring masses, where the sum of nu / (a - s)^2, convex there, is smallest."""
    low, high = s[:-1].copy(), s[1:].copy()
    for _ in range(50):
        middle = (low + high) / 2
        falls = np.sum(nu / (middle[:, None] - s) ** 3, axis=1) > 0
        low, high = np.where(falls, middle, low), np.where(falls, high, middle)
    return (low + high) / 2
