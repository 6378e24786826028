r"""The unbiased estimator of the dependence of two kernels, with each example or neuron left out.

Song, Smola, Gretton, Bedo and Borgwardt (2012): with zero diagonals, row sums $k, l$ and totals
$S_K, S_L$,

$$ h(K, L) = \frac{1}{n(n-3)} \left[ \sum_{ij} K_{ij} L_{ij} + \frac{S_K S_L}{(n-1)(n-2)}
   - \frac{2\, k \cdot l}{n-2} \right] . $$

Kernels of activations are $K = X X^\top$ and never formed: all sums cost n d d' operations. A row
of X is an example; a neuron has one column, or several where it is a channel with its positions.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

ROWS_AT_A_TIME = 2**22  # number of entries of a block when rows are left out of every neuron's term


@dataclass(frozen=True)
class Activations:
    """Activations with centred columns: (examples, neurons, positions), in units of their root mean
    square, on which no ratio depends."""

    values: Float[np.ndarray, "example neuron position"]

    @classmethod
    def of(cls, activations: np.ndarray) -> "Activations":
        """Activations from an array (examples, neurons) or (examples, neurons, positions ..)."""
        x = np.asarray(activations, np.float64)
        x = x.reshape(x.shape[0], x.shape[1] if x.ndim > 1 else 1, -1)
        x = x - x.mean(axis=0)
        scale = np.sqrt(np.mean(x**2))
        return cls(x / scale if scale > 0 else x)

    @property
    def neurons(self) -> int:
        return self.values.shape[1]

    @cached_property
    def columns(self) -> Float[np.ndarray, "example column"]:
        return self.values.reshape(len(self.values), -1)

    @cached_property
    def narrow(self) -> Float[np.ndarray, "example column"]:
        """At most n columns with the same kernel."""
        x = self.columns
        return np.asarray(np.linalg.qr(x.T, mode="r")).T if x.shape[1] > x.shape[0] else x


@dataclass(frozen=True)
class Sums:
    """The sums of h(K, L) over all examples, and h itself with and without each example.

    cross: sum of K L over pairs. row: its part with example i. k, l: row sums. kl: k . l. crossed:
    (K l)_i + (L k)_i.
    """

    n: int
    cross: float
    row: Float[np.ndarray, "example"]
    k: Float[np.ndarray, "example"]
    l: Float[np.ndarray, "example"]
    crossed: Float[np.ndarray, "example"]

    @property
    def value(self) -> float:
        return combined(self.n, self.cross, self.k.sum(), self.l.sum(), self.k @ self.l)

    @property
    def without(self) -> Float[np.ndarray, "example"]:
        """h without each of the examples in turn."""
        k, l, row = self.k, self.l, self.row
        kl = self.k @ self.l - k * l - self.crossed + row
        return combined(self.n - 1, self.cross - 2 * row, k.sum() - 2 * k, l.sum() - 2 * l, kl)


def combined(n: Any, cross: Any, total_k: Any, total_l: Any, kl: Any) -> Any:
    """h from its sums, elementwise."""
    value = cross + total_k * total_l / ((n - 1) * (n - 2)) - 2 * kl / (n - 2)
    return value / (n * (n - 3))


def sums(x: Float[np.ndarray, "example column"], y: Float[np.ndarray, "example column"]) -> Sums:
    """The sums of h(X X^T, Y Y^T)."""
    cross = x.T @ y
    x2, y2 = np.sum(x**2, axis=1), np.sum(y**2, axis=1)
    row = np.sum((x @ cross) * y, axis=1) - x2 * y2
    k, l = x @ x.sum(axis=0) - x2, y @ y.sum(axis=0) - y2
    crossed = x @ (x.T @ l) - x2 * l + y @ (y.T @ k) - y2 * k
    return Sums(len(x), float(np.sum(cross**2) - x2 @ y2), row, k, l, crossed)


def of_kernels(k: Any, l: Any) -> Any:
    """h(K, L) of two kernels that are given as matrices (examples, examples), in NumPy or in
    JAX."""
    own, other = k.diagonal(), l.diagonal()
    rows, columns = k.sum(axis=1) - own, l.sum(axis=1) - other
    cross = (k * l).sum() - own @ other
    return combined(len(k), cross, rows.sum(), columns.sum(), rows @ columns)


def of_neurons(x: Activations, y: Activations) -> Float[np.ndarray, "neuron"]:
    """h(k_a, L) for each neuron a of x; they sum to h(K, L)."""
    u, v = x.columns, y.narrow
    n = len(u)
    v2 = np.sum(v**2, axis=1)
    l = v @ v.sum(axis=0) - v2
    flat = l.sum() / ((n - 1) * (n - 2))
    centred = v @ (v.T @ u) - v2[:, None] * u  # L without its diagonal
    centred -= (np.outer(l, u.sum(axis=0)) + l @ u) / (n - 2) - flat * u.sum(axis=0)
    centred += (2 * l / (n - 2) - flat)[:, None] * u  # the diagonal is zero
    return np.sum((u * centred).reshape(x.values.shape), axis=(0, 2)) / (n * (n - 3))


def own_terms(x: Activations, y: Activations) -> Float[np.ndarray, "neuron"]:
    """h(k_a, l_a) for each neuron a of x and the same neuron of y; x and y may be the same."""
    if x.values.shape[2] == y.values.shape[2] == 1:
        return _own(len(x.values), *_moments(x.values[..., 0], y.values[..., 0]))
    pairs = zip(np.moveaxis(x.values, 1, 0), np.moveaxis(y.values, 1, 0))
    return np.array([sums(one, other).value for one, other in pairs])


def own_terms_without(x: Activations, y: Activations) -> Float[np.ndarray, "example"]:
    """The sum over neurons of h(k_a, l_a), with each example left out."""
    n = len(x.values)
    if x.values.shape[2] == y.values.shape[2] == 1:
        u, v = x.values[..., 0], y.values[..., 0]
        moments = _moments(u, v)
        left = np.empty(n)
        step = max(1, ROWS_AT_A_TIME // u.shape[1])
        for start in range(0, n, step):
            a, b = u[start : start + step], v[start : start + step]
            rest = [whole - part for whole, part in zip(moments, _products(a, b))]
            left[start : start + step] = _own(n - 1, *rest).sum(axis=1)
        return left
    pairs = zip(np.moveaxis(x.values, 1, 0), np.moveaxis(y.values, 1, 0))
    return np.sum([sums(one, other).without for one, other in pairs], axis=0)


def _products(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
    return a, b, a * b, a**2, b**2, a * b**2, a**2 * b, a**2 * b**2


def _moments(a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    return [product.sum(axis=0) for product in _products(a, b)]


def _own(n: int, *moments: np.ndarray) -> np.ndarray:
    """h of two kernels of rank one, from moments: k_i = a_i a1 - a_i^2, l_i = b_i b1 - b_i^2."""
    a1, b1, ab, a2, b2, abb, aab, aabb = moments
    kl = a1 * b1 * ab - a1 * abb - b1 * aab + aabb
    return combined(n, ab**2 - aabb, a1**2 - a2, b1**2 - b2, kl)
