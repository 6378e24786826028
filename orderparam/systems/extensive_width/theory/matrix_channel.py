"""The matrix S = sum_a w_a w_a^T / sqrt(k d) observed in symmetric Gaussian noise: its overlap with a posterior sample.

Y = sqrt(l) S + Z with Z from the Gaussian orthogonal ensemble, spectrum on [-2, 2], and k/d = gamma. The overlap of the
fluctuating part is

    m_S(l) = 1 - (1/l)(1 - (4 pi^2 / 3) int rho_l(x)^3 dx),

rho_l the spectral density of Y (Maillard, Krzakala, Mezard and Zdeborova 2022; Barbier, Camilli, Nguyen, Pastore and Skerk
2025). Its Stieltjes transform h solves  c gamma / (gamma - c h) + h + 1/h = x,  c = sqrt(gamma l): a free sum of a Wishart
matrix and a semicircle.
"""

from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.interpolate import CubicSpline

_CELLS = 1024
_LARGEST = 16.0  # ln(1 + l)
_THETA = (np.arange(256) + 0.5) * np.pi / 256


class MatrixChannel(eqx.Module):
    """m_S and iota(l) = (1/4) int_0^l (1 - m_S) as splines in ln(1 + l), up to l = 9e6; 1e-9 or better."""

    overlap_cells: Float[Array, "cell 4"]
    entropy_cells: Float[Array, "cell 4"]

    def overlap(self, signal: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """m_S(l)."""
        return _spline(self.overlap_cells, jnp.log1p(signal))

    def slope(self, signal: Float[Array, ""]) -> Float[Array, ""]:
        """m_S'(l)."""
        return jax.grad(self.overlap)(signal)

    def entropy(self, signal: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """iota(l)."""
        return _spline(self.entropy_cells, jnp.log1p(signal))


def _spline(cells: Array, x: Array) -> Array:
    step = _LARGEST / _CELLS
    cell = jnp.clip((jax.lax.stop_gradient(x) / step).astype(int), 0, _CELLS - 1)
    offset = x - cell * step
    a, b, c, d = (cells[cell, i] for i in range(4))
    return ((a * offset + b) * offset + c) * offset + d


@lru_cache(maxsize=16)
def matrix_channel(width_ratio: float) -> MatrixChannel:
    """The tables for one ratio gamma = k/d."""
    x = np.linspace(0.0, _LARGEST, _CELLS + 1)
    signal = np.expm1(x)
    overlap = np.concatenate([[0.0], _overlap(width_ratio, signal[1:])])
    spline = CubicSpline(x, overlap, bc_type=((1, 1.0), "not-a-knot"))
    # int (1 - m) dl = int (1 - m) e^x dx
    entropy = CubicSpline(x, (1 - overlap) * np.exp(x) / 4, bc_type="not-a-knot").antiderivative()
    entropy = CubicSpline(x, entropy(x), bc_type=((1, 0.25), "not-a-knot"))
    with jax.ensure_compile_time_eval():
        return MatrixChannel(jnp.asarray(spline.c.T), jnp.asarray(entropy.c.T))


def _overlap(gamma: float, signal: np.ndarray) -> np.ndarray:
    c = np.sqrt(gamma * signal)
    total = np.zeros_like(signal)
    for low, high in _supports(gamma, c):
        middle, half = (low + high) / 2, (high - low) / 2
        x = middle[:, None] - half[:, None] * np.cos(_THETA)
        cubed = _density(gamma, c[:, None], x) ** 3
        total += half * np.sum(cubed * np.sin(_THETA), axis=1) * np.pi / len(_THETA)
    return 1 - (1 - 4 * np.pi**2 / 3 * total) / signal


def _blue(gamma: float, c: np.ndarray, h: np.ndarray) -> np.ndarray:
    return c * gamma / (gamma - c * h) + h + 1 / h


def _supports(gamma: float, c: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The one or two intervals of the spectrum: their ends are extrema x(h) of the real transform, x'(h) = 0."""

    def slope(h: np.ndarray) -> np.ndarray:
        return c**2 * gamma / (gamma - c * h) ** 2 + 1 - 1 / h**2

    def zero(negative: np.ndarray, positive: np.ndarray) -> np.ndarray:
        for _ in range(200):
            middle = (negative + positive) / 2
            below = slope(middle) < 0
            negative, positive = np.where(below, middle, negative), np.where(below, positive, middle)
        return (negative + positive) / 2

    pole = gamma / c
    with np.errstate(all="ignore"):
        right = _blue(gamma, c, zero(pole * 1e-12, np.minimum(pole * (1 - 1e-13), 1.0)))
        left = _blue(gamma, c, zero(np.full_like(c, -1e-12), np.full_like(c, -1.0)))
        if gamma >= 1:
            return [(left, right)]
        # Between the null space of S and its other eigenvalues a gap opens where x'(h) dips below 0 beyond the pole.
        dip = pole / (1 - gamma ** (1 / 3))
        split = slope(dip) < 0
        upper = np.where(split, _blue(gamma, c, zero(dip, pole * (1 + 1e-13))), right)
        lower = np.where(split, _blue(gamma, c, zero(dip, np.ones_like(c))), right)
    # h falls with x in the gap: the larger h is the right end of the lower interval.
    return [(left, lower), (upper, right)]


def _density(gamma: float, c: np.ndarray, x: np.ndarray) -> np.ndarray:
    """|Im h| / pi from the cubic c h^3 - (gamma + c x) h^2 + (c - c gamma + x gamma) h - gamma = 0, by Cardano's formula."""
    b, d, e = -(gamma + c * x) / c, (c - c * gamma + x * gamma) / c, -gamma / c
    p, q = d - b**2 / 3, 2 * b**3 / 27 - b * d / 3 + e
    discriminant = np.maximum(q**2 / 4 + p**3 / 27, 0.0)
    root = np.sqrt(discriminant)
    first = np.cbrt(np.where(q < 0, -q / 2 + root, -q / 2 - root))
    second = np.where(first != 0, -p / (3 * np.where(first != 0, first, 1.0)), 0.0)
    return np.sqrt(3) / 2 * np.abs(first - second) / np.pi
