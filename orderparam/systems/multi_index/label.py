"""Conditional moments E[h_a(z) | y] of the hidden fields given the label. They contain all
information about the fields that any transformation of the label can reveal.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from orderparam.core.late import ndtri
from orderparam.gaussian.rules import half_line_rule
from orderparam.gaussian.target import Target
from orderparam.systems.multi_index.model import (
    NODES,
    grid,
    hermite_values,
)

# ------------------------------------------------------------------------------------------------
# The information that the label carries about the hidden fields: the conditional moments E[h_a(z) |
# y].


@dataclass(frozen=True)
class LabelMoments:
    """Averages over the label of products of zeta_a(y) = E[h_a(z) | y], for r hidden indices.

    Fields:
        grams: entry k - 1, of shape (r, r), is the sum over |b| = k - 1 of sqrt((b_i + 1) (b_j +
            1)) E_y[zeta_{b + e_i} zeta_{b + e_j}]; its range is spanned by the directions that
            moments of order k reveal. For k = 1 it is E[m m^T], m = E[z | y]; for k = 2 it is
            E[G^2], G = E[z z^T - 1 | y].
        operator: X -> E_y[G X G] on symmetric X (Troiani et al. 2024), in the orthonormal basis of
            `symmetric_pairs`.
        powers: entry k - 1 is the sum over |a| = k of E_y[zeta_a^2]; for one index lambda_k^2 <= 1
            (Damian et al. 2024).
        tolerance: absolute accuracy of all moments.
        method: how the moments were computed.
    """

    grams: tuple[np.ndarray, ...]
    operator: np.ndarray
    powers: tuple[float, ...]
    tolerance: float
    method: str

    @property
    def signal(self) -> tuple[float, ...]:
        """The powers, with values below the tolerance set to 0."""
        return tuple(power if abs(power) > self.tolerance else 0.0 for power in self.powers)

    @property
    def eigenvalues(self) -> tuple[float, float]:
        """The largest eigenvalues of E[m m^T] and of the operator, 0 below the tolerance; for one
        index lambda_1^2 and 2 lambda_2^2. The best algorithm finds directions of order 2 above n/d
        = 1 / (the second eigenvalue)."""
        first, second = (
            float(np.linalg.eigvalsh(matrix)[-1]) for matrix in (self.grams[0], self.operator)
        )
        return first if first > self.tolerance else 0.0, second if second > self.tolerance else 0.0

    @classmethod
    def average(cls, weights: np.ndarray, parts: "list[LabelMoments]") -> "LabelMoments":
        """Weighted average of the moments in `parts`, each of which belongs to one value of the
        known fields."""
        share = np.asarray(weights) / np.sum(weights)
        orders = min(len(part.powers) for part in parts)
        return cls(
            tuple(sum(w * part.grams[k] for w, part in zip(share, parts)) for k in range(orders)),
            sum(w * part.operator for w, part in zip(share, parts)),
            tuple(
                float(sum(w * part.powers[k] for w, part in zip(share, parts)))
                for k in range(orders)
            ),
            float(sum(w * part.tolerance for w, part in zip(share, parts))),
            parts[0].method,
        )


# ------------------------------------------------------------------------------------------------
# E[h_a(z) | y] for several hidden indices: sums over discrete labels, convolutions for products of
# coordinates, and quantile bins for all other targets.

Sample = tuple[Float[np.ndarray, "sample index"], Float[np.ndarray, "sample"]]
# number of points of ln|z| and smallest density of ln|y|, for two rules; the difference of the two
# rules estimates the error of the first
_PRODUCT_RULES = ((2**14, 1e-13), (2**13, 1e-12))
DISCRETE = 64  # a function with at most this many values is treated as a discrete label


def _moments(
    shares: np.ndarray, first: np.ndarray, second: np.ndarray, orders: int
) -> tuple[list[np.ndarray], np.ndarray, list[float]]:
    """Gram matrices, operator and powers of `LabelMoments` from P(y) and two independent estimates
    of all E[h_a | y], each (label, *order)."""
    dimension = first.ndim - 1
    axes = np.eye(dimension, dtype=int)
    one, other = (
        dict(zip(np.ndindex(x.shape[1:]), x.reshape(len(x), -1).T)) for x in (first, second)
    )
    grams = []
    for order in range(1, orders):
        gram = np.zeros((dimension, dimension))
        for lower in np.ndindex((order,) * dimension):
            if sum(lower) == order - 1:
                rows = [
                    np.stack(
                        [
                            np.sqrt(lower[i] + 1) * x[tuple(lower + axes[i])]
                            for i in range(dimension)
                        ]
                    )
                    for x in (one, other)
                ]
                gram += (rows[0] * shares) @ rows[1].T
        grams.append((gram + gram.T) / 2)
    matrices = [_second_moments(x, axes) for x in (first, second)]
    operator = operator_of(np.einsum("y,yij,ykl->ijkl", shares, *matrices))
    total = np.indices(first.shape[1:]).sum(axis=0)
    product = np.tensordot(shares, first * second, axes=(0, 0))
    powers = [float(np.sum(product[total == k])) for k in range(1, orders)]
    return grams, operator, powers


def symmetric_pairs(dimension: int) -> list[tuple[int, int]]:
    """The basis of symmetric matrices in which the operator of order 2 is written: i <= j."""
    return [(i, j) for i in range(dimension) for j in range(i, dimension)]


def operator_of(
    tensor: Float[np.ndarray, "index index index index"],
) -> Float[np.ndarray, "pair pair"]:
    """The operator X -> E[G X G] in the basis of `symmetric_pairs`, from E[G_ij G_kl]."""
    dimension = len(tensor)
    basis = np.stack([_symmetric_unit(dimension, i, j) for i, j in symmetric_pairs(dimension)])
    operator = np.einsum("aij,jkli,bkl->ab", basis, tensor, basis)
    return (operator + operator.T) / 2


def _symmetric_unit(dimension: int, i: int, j: int) -> np.ndarray:
    e = np.zeros((dimension, dimension))
    e[i, j] = e[j, i] = 1.0 if i == j else np.sqrt(0.5)
    return e


def _second_moments(conditional: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """The matrix G(y) = E[z z^T - 1 | y] from E[h_a | y]: He2 = sqrt(2) h_2 on the diagonal, z_i
    z_j off the diagonal."""
    dimension = conditional.ndim - 1
    out = np.zeros((len(conditional), dimension, dimension))
    for i in range(dimension):
        for j in range(dimension):
            out[:, i, j] = np.moveaxis(conditional, 0, -1)[tuple(axes[i] + axes[j])] * (
                np.sqrt(2) if i == j else 1.0
            )
    return out


def discrete(target: Target, orders: int) -> LabelMoments:
    """Moments for a label with few values, as sums over the grid; exact if the borders between the
    values are coordinate planes."""
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
        conditional = np.stack(moments)
        found.append(_moments(np.array(shares), conditional, conditional, orders))
    (grams, operator, powers), (_, other, coarse) = found
    change = np.max(np.abs(np.subtract(powers, coarse))), np.max(np.abs(operator - other))
    return LabelMoments(
        tuple(grams),
        operator,
        tuple(powers),
        max(10 * float(max(change)), 1e-12),
        "sums over the labels",
    )


def power_product(powers: tuple[int, ...], orders: int) -> LabelMoments:
    """Moments for y = z1^p1 ... zr^pr, where the law of ln|y| is a convolution of the laws of
    p_i ln|z_i|, computed by Fourier transform.

    Because some flips of signs leave y unchanged, zeta_a vanishes unless all a_i with even p_i are
    even and the other a_i are all even or all odd. In these two cases zeta_a is even or odd in y.
    The mean of zeta_a zeta_b is therefore non-zero only if both have the same parity, and the law
    of |y| suffices to compute it. For z1 z2 the matrix G(y) is [[a, y], [y, a]], a = |y| K1(|y|) /
    K0(|y|) - 1 (Troiani et al. 2024).
    """
    fine, coarse = (_product_moments(powers, orders, *rule) for rule in _PRODUCT_RULES)
    change = np.max(np.abs(np.subtract(fine[2], coarse[2])))
    tolerance = max(10 * float(change), 1e-12)
    return LabelMoments(fine[0], fine[1], fine[2], tolerance, "convolution of ln|z|")


def _product_moments(
    powers: tuple[int, ...], orders: int, count: int, smallest: float
) -> tuple[tuple[np.ndarray, ...], np.ndarray, tuple[float, ...]]:
    """Gram matrices, operator and powers of `LabelMoments`, with `count` points of ln|z| and where
    the density of ln|y| is above `smallest`. Logarithms are in units of the largest power, which
    does not change any moment."""
    size, largest = len(powers), max(powers)
    low, high = -60.0, 20.0
    u = low + (high - low) * np.arange(count) / count
    step = u[1] - u[0]

    def transforms(power: int) -> np.ndarray:
        """The Fourier transforms of the density of (power/largest) ln|z| times h_n. Their
        convolution starts at size * low, so that the grid is long enough to contain it."""
        z = np.exp(np.minimum(u * largest / power, high))
        density = 2 * z * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * largest / power
        return np.fft.rfft(hermite_values(orders, z) * density, size * count)

    own = {power: transforms(power) for power in set(powers)}

    def label_density(order: tuple[int, ...]) -> np.ndarray:
        """The density of ln|y| times E[h_a | y], up to the sign of y."""
        parts = [own[power][n] for power, n in zip(powers, order)]
        return np.fft.irfft(np.prod(parts, axis=0), size * count) * step ** (size - 1)

    plain = label_density((0,) * size)
    # Where the density is below the rounding of the transform (1e-16 of its maximum) the ratio is
    # meaningless.
    kept = plain > smallest * plain.max()
    root = np.sqrt(plain[kept] / step)

    def kind(order: tuple[int, ...]) -> int | None:
        """Parity of zeta_a as a function of y: 0 for even, 1 for odd, None if zeta_a vanishes."""
        even = all(n % 2 == 0 for n, power in zip(order, powers) if power % 2 == 0)
        rest = {n % 2 for n, power in zip(order, powers) if power % 2}
        return None if not even or len(rest) > 1 else next(iter(rest), 0)

    zeta = {
        order: label_density(order)[kept] / root
        for order in np.ndindex((orders,) * size)
        if 0 < sum(order) < orders and kind(order) is not None
    }

    def mean(one: tuple[int, ...], other: tuple[int, ...]) -> float:
        """E_y[zeta_a zeta_b]"""
        if one not in zeta or other not in zeta or kind(one) != kind(other):
            return 0.0
        return float(zeta[one] @ zeta[other])

    axes = np.eye(size, dtype=int)
    grams = tuple(np.zeros((size, size)) for _ in range(1, orders))
    for lower in np.ndindex((orders - 1,) * size):
        if sum(lower) < orders - 1:
            above = [tuple(map(int, lower + axis)) for axis in axes]
            for i, j in itertools.product(range(size), repeat=2):
                weight = np.sqrt((lower[i] + 1) * (lower[j] + 1))
                grams[sum(lower)][i, j] += weight * mean(above[i], above[j])
    tensor = np.zeros((size,) * 4)
    for i, j, k, m in np.ndindex(tensor.shape):
        one, other = (tuple(map(int, axes[a] + axes[b])) for a, b in ((i, j), (k, m)))
        doubled = np.sqrt(2.0) ** ((i == j) + (k == m))  # He2 = sqrt(2) h_2
        tensor[i, j, k, m] = doubled * mean(one, other)
    squares = [0.0] * orders
    for order in zeta:
        squares[sum(order)] += mean(order, order)
    return grams, operator_of(tensor), tuple(squares[1:])


def powers_of_product(target: Target) -> tuple[int, ...]:
    """The powers p_i, from 1 to 6, of a target that is z1^p1 ... zr^pr up to a factor; an empty
    tuple for any other target. They are found from values at random points, so that functions are
    recognised in the same way as formulas."""
    z = np.random.default_rng(8).standard_normal((64, target.dimension))
    value = np.asarray(target(z), float)
    if not np.all(np.isfinite(value)) or np.any(value == 0):
        return ()
    powers = []
    for axis in np.eye(target.dimension):
        ratio = np.asarray(target(z * (1 + axis)), float) / value
        power = int(np.clip(np.round(np.log2(np.abs(np.median(ratio)) + 1e-300)), 0, 7))
        if not 1 <= power <= 6 or not np.allclose(ratio, 2.0**power, rtol=1e-13):
            return ()
        powers.append(power)
    factor = value / np.prod(z ** np.array(powers), axis=1)
    return tuple(powers) if np.allclose(factor, factor[0], rtol=1e-12) else ()


def binned(
    target: Target, orders: int, log2_points: int = 18, pairs: int = 4, bins: int = 1024
) -> LabelMoments:
    """Moments for any target: conditional averages in quantile bins of y over scrambled Sobol
    points, see `in_bins`.

    Averages that are odd under sign changes that leave y unchanged are set to zero exactly.
    """
    from scipy.stats import qmc  # slow to import, and used only here

    def points(seed: int) -> tuple[np.ndarray, np.ndarray]:
        engine = qmc.Sobol(target.dimension, scramble=True, seed=seed)
        z = ndtri(np.clip(engine.random_base2(log2_points), 1e-12, 1 - 1e-12))
        return z, np.asarray(target(z), float)

    orders = min(orders, 5)
    samples = ((points(2 * pair), points(2 * pair + 1)) for pair in range(pairs))
    return in_bins(samples, _invariant(target, orders), bins)


def in_bins(pairs: Iterable[tuple[Sample, Sample]], allowed: np.ndarray, bins: int) -> LabelMoments:
    """Moments from conditional averages in quantile bins of y, or for each value of y if there are
    few, over pairs of independent samples (z, y).

    allowed: mask of the h_a that may have a conditional average. Products of averages over two
        independent samples do not have the bias of the square of one average. The bias due to the
        width of the bins is proportional to the width and is removed by comparison with bins of
        twice the width. The tolerance is four standard errors over the pairs plus that difference
        for orders 1 and 2 (for higher orders the difference is larger, but cannot make a vanishing
        moment non-zero).
    """
    orders, found = allowed.shape[0], []
    for halves in pairs:
        values = np.unique(np.round(halves[0][1], 10))
        few = len(values) <= DISCRETE
        edges = (
            (values[1:] + values[:-1]) / 2
            if few
            else np.quantile(halves[0][1], np.arange(1, bins) / bins)
        )
        shares, conditional = [], []
        for z, y in halves:
            label = np.searchsorted(edges, y, side="right")
            occupied = np.bincount(label, minlength=len(edges) + 1)
            basis = [hermite_values(orders, column) for column in z.T]
            averages = np.zeros((len(edges) + 1, *allowed.shape))
            for powers in zip(*np.nonzero(allowed)):
                feature = np.prod([h[n] for h, n in zip(basis, powers)], axis=0)
                averages[:, *powers] = np.bincount(
                    label, weights=feature, minlength=len(occupied)
                ) / np.maximum(occupied, 1)
            shares.append(occupied / len(y))
            conditional.append(averages)
        fine = _paired(shares, conditional, orders)
        if few:
            coarse = fine
        else:
            wide, averages_of_wide = zip(*map(_coarser, shares, conditional))
            coarse = _paired(wide, averages_of_wide, orders)
        found.append((fine, coarse))
    parts = [np.stack([pair[0][k] for pair in found]) for k in range(4)]
    change = [
        np.mean([np.subtract(pair[0][k], pair[1][k]) for pair in found], axis=0) for k in range(4)
    ]
    error = np.std(parts[3], axis=0, ddof=1) / np.sqrt(len(found))
    gram, operator, power = (part.mean(axis=0) + rest for part, rest in zip(parts[:3], change))
    tolerance = float(4 * error.max() + np.abs(change[3][[0, 1, -1]]).max())
    return LabelMoments(tuple(gram), operator, tuple(power.tolist()), tolerance, "quantile bins")


def _paired(
    shares: Sequence[np.ndarray], conditional: Sequence[np.ndarray], orders: int
) -> tuple[np.ndarray, ...]:
    """The `_moments` of two halves as arrays, and the powers together with the largest eigenvalue
    of the operator."""
    grams, operator, powers = _moments(
        (shares[0] + shares[1]) / 2, conditional[0], conditional[1], orders
    )
    return (
        np.stack(grams),
        operator,
        np.array(powers),
        np.array([*powers, np.linalg.eigvalsh(operator)[-1]]),
    )


def _coarser(shares: np.ndarray, conditional: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and conditional averages after neighbouring bins are joined in pairs."""
    pairs = shares.reshape(-1, 2)
    total = pairs.sum(axis=1)
    share = np.divide(pairs, total[:, None], out=np.zeros_like(pairs), where=total[:, None] > 0)
    return total, np.einsum(
        "bp,bp...->b...", share, conditional.reshape(-1, 2, *conditional.shape[1:])
    )


def _invariant(target: Target, orders: int) -> np.ndarray:
    """Mask of the h_a, |a| < orders, that may have a conditional average: those even under every
    change of signs that leaves y unchanged.
    """
    u = np.random.default_rng(1).standard_normal((64, target.dimension))
    value = np.asarray(target(u))
    shape = (orders,) * target.dimension
    powers = np.indices(shape)
    allowed = powers.sum(axis=0) < orders
    for flip in np.ndindex(*(2,) * target.dimension):
        if np.allclose(
            np.asarray(target(u * (1 - 2 * np.array(flip)))), value, rtol=1e-10, atol=1e-10
        ):
            allowed &= np.tensordot(np.array(flip), powers, axes=(0, 0)) % 2 == 0
    return allowed
