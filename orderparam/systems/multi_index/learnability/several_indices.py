"""E[h_a(z) | y] for several hidden indices: sums over discrete labels, products of coordinates, quantile bins for the rest."""

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from orderparam.gaussian.target import Target
from orderparam.systems.multi_index.learnability.conditional import LabelMoments
from orderparam.systems.multi_index.rules import NODES, grid, half_line_rule, hermite_values

Sample = tuple[Float[np.ndarray, "sample index"], Float[np.ndarray, "sample"]]
DISCRETE = 64  # a function with no more values than this is a classification


def _moments(
    shares: np.ndarray, first: np.ndarray, second: np.ndarray, orders: int
) -> tuple[list[np.ndarray], np.ndarray, list[float]]:
    """Gram matrices, operator and powers of `LabelMoments` from P(y) and two independent estimates of all E[h_a | y], each
    (label, *order)."""
    dimension = first.ndim - 1
    axes = np.eye(dimension, dtype=int)
    one, other = (dict(zip(np.ndindex(x.shape[1:]), x.reshape(len(x), -1).T)) for x in (first, second))
    grams = []
    for order in range(1, orders):
        gram = np.zeros((dimension, dimension))
        for lower in np.ndindex((order,) * dimension):
            if sum(lower) == order - 1:
                rows = [
                    np.stack([np.sqrt(lower[i] + 1) * x[tuple(lower + axes[i])] for i in range(dimension)]) for x in (one, other)
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


def operator_of(tensor: Float[np.ndarray, "index index index index"]) -> Float[np.ndarray, "pair pair"]:
    """X -> E[G X G] in the basis of `symmetric_pairs`, from E[G_ij G_kl]."""
    dimension = len(tensor)
    basis = np.stack([_symmetric_unit(dimension, i, j) for i, j in symmetric_pairs(dimension)])
    operator = np.einsum("aij,jkli,bkl->ab", basis, tensor, basis)
    return (operator + operator.T) / 2


def _symmetric_unit(dimension: int, i: int, j: int) -> np.ndarray:
    e = np.zeros((dimension, dimension))
    e[i, j] = e[j, i] = 1.0 if i == j else np.sqrt(0.5)
    return e


def _second_moments(conditional: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """G(y) = E[z z^T - 1 | y] from E[h_a | y]: He2 = sqrt(2) h_2 on the diagonal, z_i z_j off it."""
    dimension = conditional.ndim - 1
    out = np.zeros((len(conditional), dimension, dimension))
    for i in range(dimension):
        for j in range(dimension):
            out[:, i, j] = np.moveaxis(conditional, 0, -1)[tuple(axes[i] + axes[j])] * (np.sqrt(2) if i == j else 1.0)
    return out


def discrete(target: Target, orders: int) -> LabelMoments:
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
        conditional = np.stack(moments)
        found.append(_moments(np.array(shares), conditional, conditional, orders))
    (grams, operator, powers), (_, other, coarse) = found
    change = np.max(np.abs(np.subtract(powers, coarse))), np.max(np.abs(operator - other))
    return LabelMoments(tuple(grams), operator, tuple(powers), max(10 * float(max(change)), 1e-12), "sums over the labels")


def coordinate_product(dimension: int, orders: int) -> LabelMoments:
    """y = z1 ... zr: the law of ln|y| is a convolution of those of ln|z|, by Fourier transform.

    Signs leave zeta_a = 0 unless all a_i are even, or all odd; exchanges make every gram k powers[k - 1] / r times 1. By the same
    symmetries G(y) = a(y) 1 for r > 2, with a(y) = E[z1^2 | y] - 1, and [[a, y], [y, a]] for r = 2: the eigenvalue is E a^2, and
    1 + E a^2 for r = 2 (there a = |y| K1(|y|) / K0(|y|) - 1; Troiani et al. 2024).
    """
    powers, share = _product_powers(dimension, orders, 2**14, 1e-13)
    coarse, _ = _product_powers(dimension, orders, 2**13, 1e-12)
    if dimension == 2:
        operator = np.array([[share, 0.0, 1.0], [0.0, share + 1.0, 0.0], [1.0, 0.0, share]])
    else:
        operator = share * np.eye(dimension * (dimension + 1) // 2)
    grams = tuple(k * power / dimension * np.eye(dimension) for k, power in enumerate(powers, 1))
    tolerance = max(10 * float(np.max(np.abs(np.subtract(powers, coarse)))), 1e-12)
    return LabelMoments(grams, operator, powers, tolerance, "convolution of ln|z|")


def _product_powers(dimension: int, orders: int, count: int, smallest: float) -> tuple[tuple[float, ...], float]:
    """The powers of z1 ... zr, and E a^2; `count` points of ln|z|, where the density of ln|y| is above `smallest`."""
    low, high = -60.0, 20.0
    u = low + (high - low) * np.arange(count) / count
    step = u[1] - u[0]
    # Density of ln|z| times h_n; the convolution of r of them starts at r * low, so the grid is long enough to hold all of it.
    z = np.exp(u)
    density = 2 * z * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    transforms = np.fft.rfft(hermite_values(orders, z) * density, dimension * count)

    def label_density(powers: tuple[int, ...]) -> np.ndarray:
        """The density of ln|y| times E[h_a | y], up to the sign of y."""
        return np.fft.irfft(np.prod(transforms[list(powers)], axis=0), dimension * count) * step ** (dimension - 1)

    plain = label_density((0,) * dimension)
    # Where the density has sunk into the rounding of the transform (1e-16 of its maximum) the ratio means nothing.
    kept = plain > smallest * plain.max()

    def square(powers: tuple[int, ...]) -> float:
        """E_y[zeta_a^2]"""
        return float(np.sum(label_density(powers)[kept] ** 2 / plain[kept]) * step)

    found = np.zeros(orders)
    for powers in itertools.combinations_with_replacement(range(orders), dimension):
        if 0 < sum(powers) < orders and len({power % 2 for power in powers}) == 1:
            copies = math.factorial(dimension) / math.prod(math.factorial(powers.count(n)) for n in set(powers))
            found[sum(powers)] += copies * square(powers)
    return tuple(float(x) for x in found[1:]), 2 * square((0,) * (dimension - 1) + (2,))


def binned(target: Target, orders: int, log2_points: int = 18, pairs: int = 4, bins: int = 1024) -> LabelMoments:
    """Any target: conditional averages in quantile bins of y over scrambled Sobol points, see `in_bins`.

    Signs that leave y unchanged make the averages that are odd under them vanish exactly.
    """
    from scipy.stats import qmc  # slow to import, and here alone

    def points(seed: int) -> tuple[np.ndarray, np.ndarray]:
        engine = qmc.Sobol(target.dimension, scramble=True, seed=seed)
        z = ndtri(np.clip(engine.random_base2(log2_points), 1e-12, 1 - 1e-12))
        return z, np.asarray(target(z), float)

    orders = min(orders, 5)
    samples = ((points(2 * pair), points(2 * pair + 1)) for pair in range(pairs))
    return in_bins(samples, _invariant(target, orders), bins)


def in_bins(pairs: Iterable[tuple[Sample, Sample]], allowed: np.ndarray, bins: int) -> LabelMoments:
    """From pairs of independent samples (z, y): conditional averages in quantile bins of y, or of each value where there are few.

    allowed: which h_a may have a conditional average. Products of averages over two independent samples are free of the bias
    that the square of one has. The bias by the width of the bins is proportional to it, and removed by comparison with bins of
    twice the width; the tolerance is four standard errors over the pairs and that difference of orders 1 and 2 (of higher
    orders it is larger, but makes no moment out of none).
    """
    orders, found = allowed.shape[0], []
    for halves in pairs:
        values = np.unique(np.round(halves[0][1], 10))
        few = len(values) <= DISCRETE
        edges = (values[1:] + values[:-1]) / 2 if few else np.quantile(halves[0][1], np.arange(1, bins) / bins)
        shares, conditional = [], []
        for z, y in halves:
            label = np.searchsorted(edges, y, side="right")
            occupied = np.bincount(label, minlength=len(edges) + 1)
            basis = [hermite_values(orders, column) for column in z.T]
            averages = np.zeros((len(edges) + 1, *allowed.shape))
            for powers in zip(*np.nonzero(allowed)):
                feature = np.prod([h[n] for h, n in zip(basis, powers)], axis=0)
                averages[:, *powers] = np.bincount(label, weights=feature, minlength=len(occupied)) / np.maximum(occupied, 1)
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
    change = [np.mean([np.subtract(pair[0][k], pair[1][k]) for pair in found], axis=0) for k in range(4)]
    error = np.std(parts[3], axis=0, ddof=1) / np.sqrt(len(found))
    gram, operator, power = (part.mean(axis=0) + rest for part, rest in zip(parts[:3], change))
    tolerance = float(4 * error.max() + np.abs(change[3][[0, 1, -1]]).max())
    return LabelMoments(tuple(gram), operator, tuple(power.tolist()), tolerance, "quantile bins")


def _paired(shares: Sequence[np.ndarray], conditional: Sequence[np.ndarray], orders: int) -> tuple[np.ndarray, ...]:
    """`_moments` of two halves as arrays, and the powers with the largest eigenvalue of the operator."""
    grams, operator, powers = _moments((shares[0] + shares[1]) / 2, conditional[0], conditional[1], orders)
    return np.stack(grams), operator, np.array(powers), np.array([*powers, np.linalg.eigvalsh(operator)[-1]])


def _coarser(shares: np.ndarray, conditional: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bins joined in twos."""
    pairs = shares.reshape(-1, 2)
    total = pairs.sum(axis=1)
    share = np.divide(pairs, total[:, None], out=np.zeros_like(pairs), where=total[:, None] > 0)
    return total, np.einsum("bp,bp...->b...", share, conditional.reshape(-1, 2, *conditional.shape[1:]))


def _invariant(target: Target, orders: int) -> np.ndarray:
    """Which h_a, |a| < orders, may have a conditional average: those even under every flip of signs that leaves y as it is."""
    u = np.random.default_rng(1).standard_normal((64, target.dimension))
    value = np.asarray(target(u))
    shape = (orders,) * target.dimension
    powers = np.indices(shape)
    allowed = powers.sum(axis=0) < orders
    for flip in np.ndindex(*(2,) * target.dimension):
        if np.allclose(np.asarray(target(u * (1 - 2 * np.array(flip)))), value, rtol=1e-10, atol=1e-10):
            allowed &= np.tensordot(np.array(flip), powers, axes=(0, 0)) % 2 == 0
    return allowed
