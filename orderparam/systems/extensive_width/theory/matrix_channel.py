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
from collections.abc import Callable
from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.interpolate import BSpline, make_interp_spline

_CELLS = 2048
_BEND = 0.1  # the tables are uniform in ln(1 + l/_BEND)
_LARGEST = 18.0  # l = 6.6e6
_DEGREE = 5
_HALVINGS = 60
_CHUNK = 60_000  # numbers in a temporary array: what fits into the cache

# Double-exponential rule on (-1, 1): distance of the nodes from the nearer end, side of that end, weights.
_T = np.linspace(-3.1, 3.1, 63)
_GAP = 2 / (np.exp(np.pi * np.sinh(np.abs(_T))) + 1)
_WEIGHT = (_T[1] - _T[0]) * np.pi / 2 * np.cosh(_T) / np.cosh(np.pi / 2 * np.sinh(_T)) ** 2


class MatrixChannel(eqx.Module):
    """m_S and iota(l) = (1/4) int_0^l (1 - m_S) as quintic splines in ln(1 + 10 l), up to l = 6.6e6.

    Absolute errors are below 1e-9, and mostly 1e-11: m_S has a weak singularity where a gap opens in the spectrum.
    """

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
    overlap = np.concatenate([[0.0], quadrature(width_ratio, np.asarray(values), signals[1:])])
    spline = make_interp_spline(x, overlap, _DEGREE)
    # int (1 - m) dl = int (1 - m) (l + bend) dx
    entropy = make_interp_spline(x, (1 - overlap) * (signals + _BEND) / 4, _DEGREE).antiderivative()
    entropy = make_interp_spline(x, entropy(x), _DEGREE)
    with jax.ensure_compile_time_eval():
        return MatrixChannel(jnp.asarray(_taylor(spline, x[:-1])), jnp.asarray(_taylor(entropy, x[:-1])))


def _taylor(spline: BSpline, x: np.ndarray) -> np.ndarray:
    """Coefficients of the polynomial of each cell, in powers of the distance from its left end."""
    return np.stack([spline.derivative(m)(x) / math.factorial(m) if m else spline(x) for m in range(_DEGREE + 1)], axis=1)


def quadrature(width_ratio: float, values: np.ndarray, signals: np.ndarray) -> np.ndarray:
    """m_S at each signal l > 0 by quadrature over the spectrum, to 1e-13 / l.

    Every mass has a stretch of the curve of its own: up to where the sum of nu / (a - s)^2 is smallest, or to the end of the
    spectrum before. There b is a square root, or nearly one, and the nodes are dense.
    """
    v, count = np.unique(np.append(values, 0.0), return_counts=True)
    share = (count - (v == 0)) / len(values)
    step = max(1, _CHUNK // (len(v) ** 2 * len(_T)))
    parts = [_quadrature(width_ratio, v, share, signals[i : i + step]) for i in range(0, len(signals), step)]
    return np.concatenate(parts)


def _quadrature(gamma: float, v: np.ndarray, share: np.ndarray, signals: np.ndarray) -> np.ndarray:
    c = np.sqrt(gamma * signals)[:, None]
    s = c * v / gamma
    nu = (c * v) ** 2 / gamma * share + (v == 0)
    low, high = _stretches(s, nu)
    half = ((high - low) / 2)[..., None]
    a = np.where(_T < 0, low[..., None] + half * _GAP, high[..., None] - half * _GAP)
    gap = a[..., None] - s[:, None, None, :]
    t = _height(gap**2, nu)
    inverse = 1 / (gap**2 + t[..., None])
    second = _total(inverse**2, nu)
    stretch = 2 * t * second + 2 * _total(gap * inverse**2, nu) ** 2 / second  # dx/da = |x'(p)|^2 / Re x'(p)
    density = np.sqrt(t) / (a**2 + t) / np.pi
    cubes = np.sum(half * _WEIGHT * density**3 * stretch, axis=(1, 2))
    return 1 - (1 - 4 * np.pi**2 / 3 * cubes) / signals


def _height(squares: np.ndarray, nu: np.ndarray) -> np.ndarray:
    """b^2 at each a: Newton steps on 1/sum = 1, which is concave and increasing in b^2."""
    t = np.broadcast_to(nu.sum(axis=-1)[:, None, None], squares.shape[:-1])
    for _ in range(60):
        inverse = 1 / (squares + t[..., None])
        total = _total(inverse, nu)
        step = (1 - 1 / total) * total**2 / _total(inverse**2, nu)
        new = np.maximum(t + step, 0.25 * t)
        if np.all(np.abs(new - t) <= 1e-15 * t):
            break
        t = new
    return t


def _total(values: np.ndarray, nu: np.ndarray) -> np.ndarray:
    """Sum over the masses, (signal, stretch, node, mass) and (signal, mass)."""
    return (values @ nu[:, None, :, None])[..., 0]


def _stretches(s: np.ndarray, nu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper end of the part of the curve that belongs to each mass."""

    def powers(a: np.ndarray, power: int) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.sum(nu[:, None, :] / (a[..., None] - s[:, None, :]) ** power, axis=-1)

    def halved(low: np.ndarray, high: np.ndarray, above: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """The point between `low` and `high` from which on `above` holds."""
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            yes = above(middle)
            low, high = np.where(yes, low, middle), np.where(yes, middle, high)
        return (low + high) / 2

    lowest = halved(s[:, :-1], s[:, 1:], lambda a: powers(a, 3) < 0)  # the sum is convex between two masses
    radius = np.sqrt(nu.sum(axis=-1, keepdims=True)) * (1 + 1e-9)
    left = np.concatenate([s[:, :1] - radius, lowest], axis=1)
    right = np.concatenate([lowest, s[:, -1:] + radius], axis=1)
    return halved(left, s, lambda a: powers(a, 2) > 1), halved(right, s, lambda a: powers(a, 2) > 1)
