"""The staircases on which SGD and the best algorithm find the directions of a target."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from orderparam.core.late import ndtri
from orderparam.gaussian.rules import half_line_rule
from orderparam.gaussian.target import Target
from orderparam.systems.multi_index.label import (
    DISCRETE,
    LabelMoments,
    binned,
    discrete,
    operator_of,
    power_product,
    powers_of_product,
)
from orderparam.systems.multi_index.model import (
    NODES,
    REACH,
    double_exponential_panels,
    grid,
    hermite_values,
)
from orderparam.systems.multi_index.one_index import one_index

# ------------------------------------------------------------------------------------------------
# Hermite coefficients of a target of several variables, and the staircase of SGD that follows from
# them.
#
# The coefficients are c_a = E[g(z) h_a1(z1) ... h_ar(zr)] with normalised h_n. The sum of the
# squares of all c_a with |a| = k is the part of the variance of g that has degree k.

_ROUNDING = 1e-13  # fraction of the norm


def project(
    values: Float[np.ndarray, "*node"], nodes: int, orders: int
) -> Float[np.ndarray, "*order"]:
    """Hermite coefficients c_a, with every a_i < orders, of a function that is tabulated on
    `grid`."""
    z, w = half_line_rule(nodes)
    basis = w * hermite_values(orders, z)
    for _ in range(values.ndim):
        values = np.moveaxis(np.tensordot(basis, values, axes=(1, 0)), 0, -1)
    return values


def coefficients(
    target: Target, orders: int, rotation: Float[np.ndarray, "index new_index"] | None = None
) -> tuple[Float[np.ndarray, "*order"], float]:
    """All c_a with |a| < orders of a target of spread 1, in the coordinates z = rotation u, and
    their absolute accuracy (from a coarser rule, and rounding).

    Coefficients that vanish exactly, because g minus its mean is even or odd under sign changes,
    are set to zero.
    """
    dimension = target.dimension
    turn = np.eye(dimension) if rotation is None else rotation
    if dimension == 1:
        cuts = {-REACH, 0.0, REACH, *(turn[0, 0] * kink for kink in target.kinks)}
        # A jump or kink that is not in `kinks` is noticed when the line is divided at arbitrary
        # points.
        found, other = (
            _on_the_line(target, turn[0, 0], orders, np.array(sorted(cuts | more)))
            for more in (set(), {-0.83, 0.3717})
        )
    else:
        rules = (NODES[dimension], NODES[dimension] - 4)
        found, other = (project(_tabulate(target, nodes, turn), nodes, orders) for nodes in rules)
    mean = float(found[(0,) * dimension])
    error = max(10 * float(np.max(np.abs(found - other))), _ROUNDING * (1 + abs(mean)))
    allowed = _allowed(target, turn, found.shape, mean)
    return np.where((sum(np.indices(found.shape)) < orders) & allowed, found, 0.0), error


def _on_the_line(target: Target, sign: float, orders: int, cuts: np.ndarray) -> np.ndarray:
    z, w = double_exponential_panels(cuts)
    phi = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return hermite_values(orders, z) @ (w * phi * np.asarray(target(sign * z[:, None]), float))


def _tabulate(target: Target, nodes: int, turn: np.ndarray) -> np.ndarray:
    z, _ = grid(target.dimension, nodes)
    return np.asarray(target(z @ turn.T), float)


def _allowed(target: Target, turn: np.ndarray, shape: tuple[int, ...], mean: float) -> np.ndarray:
    """Mask of the c_a, a != 0, that the symmetries g(S u) - mean = ± (g(u) - mean) allow, with S a
    change of signs of coordinates.
    """
    u = np.random.default_rng(1).standard_normal((64, target.dimension))
    value = np.asarray(target(u @ turn.T)) - mean
    allowed = np.ones(shape, bool)
    powers = np.indices(shape)
    for flip in itertools.product((1, -1), repeat=target.dimension):
        other = np.asarray(target((u * flip) @ turn.T)) - mean
        parity = np.prod(
            np.stack([np.where(s < 0, (-1) ** p, 1) for s, p in zip(flip, powers)]), axis=0
        )
        for sign in (1, -1):
            if np.all(np.abs(other - sign * value) <= _ROUNDING * (1 + abs(mean) + np.abs(value))):
                allowed &= parity == sign
    allowed[(0,) * target.dimension] = True
    return allowed


def staircase(
    target: Target, orders: int
) -> tuple[list[tuple[int, Float[np.ndarray, "direction index"]]], bool]:
    """The stages in which one-pass SGD finds directions: (degree, new orthonormal directions), and
    whether all were found.

    Let V be the directions that are already learned. Let l be the lowest degree in the remaining
    directions at which some coefficient, of any degree along V, does not vanish. The next
    directions are the span of the unfolded tensors of this degree l (Abbe, Boix-Adsera,
    Misiakiewicz 2023; Dandi et al. 2023). The largest l is the leap exponent.
    """
    size = target.dimension
    learned = np.zeros((0, size))
    stages: list[tuple[int, np.ndarray]] = []
    while len(learned) < size:
        rest = complement(learned)
        c, error = coefficients(target, orders, np.concatenate([learned, rest]).T)
        step = _lowest(c, len(learned), error)
        if step is None:
            return stages, not depends(target, rest)
        degree, unfolded = step
        _, singular, directions = np.linalg.svd(unfolded, full_matrices=False)
        new = (
            directions[singular > max(min(10 * error, singular[0] / 2), 1e-9 * singular[0])] @ rest
        )
        new = in_axes(new)
        stages.append((degree, new))
        learned = np.concatenate([learned, new])
    return stages, True


def _lowest(c: np.ndarray, learned: int, error: float) -> tuple[int, np.ndarray] | None:
    """The lowest degree in the unknown coordinates with a non-zero coefficient, and the directions
    (rows over those coordinates) that its coefficients span."""
    powers = np.indices(c.shape)
    outside = powers[learned:].sum(axis=0)
    for degree in range(1, c.shape[0]):
        if np.max(np.abs(np.where(outside == degree, c, 0.0))) > error:
            rows: dict[Any, np.ndarray] = {}
            for index in zip(*np.nonzero((outside == degree) & (np.abs(c) > error))):
                for i in range(learned, c.ndim):
                    if index[i]:
                        lowered = (*index[:i], index[i] - 1, *index[i + 1 :])
                        row = rows.setdefault(lowered, np.zeros(c.ndim - learned))
                        row[i - learned] += np.sqrt(index[i]) * c[index]
            return degree, np.stack(list(rows.values()))
    return None


def complement(learned: np.ndarray) -> np.ndarray:
    """Orthonormal basis of the directions orthogonal to the learned ones, with coordinate axes as
    far as these are orthogonal to them."""
    projector = np.eye(learned.shape[1]) - learned.T @ learned
    values, vectors = np.linalg.eigh(projector)
    return in_axes(vectors[:, values > 0.5].T)


def in_axes(directions: np.ndarray) -> np.ndarray:
    """The directions rewritten in coordinate axes where these span the same space: this keeps kinks
    of the target on the edges of the grid.
    """
    diagonal = np.diagonal(directions.T @ directions)
    axes = np.flatnonzero(diagonal > 1 - 1e-8)
    return np.eye(directions.shape[1])[axes] if len(axes) == len(directions) else directions


def depends(target: Target, directions: np.ndarray) -> bool:
    """True if the target changes along the given directions."""
    rng = np.random.default_rng(2)
    z, other = rng.standard_normal((2, 256, target.dimension))
    swapped = z + (other - z) @ directions.T @ directions
    return not np.allclose(target(z), target(swapped), rtol=1e-9, atol=1e-9)


# ------------------------------------------------------------------------------------------------
# The moments of the label of any target, by the most exact method that applies, and the staircase
# of the best algorithm.
#
# For one index, lambda_k^2 = E_y E[h_k(z) | y]^2 (Damian, Pillaud-Vivien, Lee and Bruna 2024); for
# several, the second moments of E[z | y] (order 1), the operator X -> E_y[G X G] with G(y) = E[z
# z^T - 1 | y] (order 2; Troiani et al. 2024) and the squared norm of the third and higher tensors.

_LEARNED_NODES = {1: 3, 2: 2, 3: 1}  # Gauss nodes on each half line of the known directions


def label_moments(target: Target, orders: int, *, quick: bool = False) -> LabelMoments:
    """Label moments of orders 1 .. orders - 1. `quick` says whether fewer points are used where the
    only applicable method is that of quantile bins."""
    if target.dimension == 1:
        return one_index(target, orders)
    if powers := powers_of_product(target):
        return power_product(powers, orders)
    probe = np.random.default_rng(3).standard_normal((4096, target.dimension))
    if len(np.unique(np.round(np.asarray(target(probe), float), 10))) <= DISCRETE:
        return discrete(target, orders)
    return (
        binned(target, orders, log2_points=16, pairs=2, bins=256)
        if quick
        else binned(target, orders)
    )


@dataclass(frozen=True)
class Stair:
    """Directions that are found together: the order k of the moments that reveal them, an
    orthonormal basis (direction, index), and the n/d above which the best algorithm finds them (0
    for order 1, finite for order 2, infinite beyond)."""

    order: int
    directions: Float[np.ndarray, "direction index"]
    threshold: float


def lowest_stair(moments: LabelMoments, rest: Float[np.ndarray, "direction index"]) -> Stair | None:
    """The first stair that the moments of the directions `rest` reveal, or None."""
    order = next((k for k, signal in enumerate(moments.signal, 1) if signal), None)
    if order is None:
        return None
    values, vectors = np.linalg.eigh(moments.grams[order - 1])
    # If moments of order 2 reveal directions, these are the directions whose moments exceed the
    # accuracy; the noise of quantile bins is below 1 %.
    new = in_axes(
        vectors[:, values > max(min(moments.tolerance, values[-1] / 2), 1e-9 * values[-1])].T @ rest
    )
    threshold = 0.0 if order == 1 else 1 / moments.eigenvalues[1] if order == 2 else np.inf
    return Stair(order, new, float(threshold))


def generative_staircase(
    target: Target, orders: int, first: LabelMoments
) -> tuple[list[Stair], bool]:
    """The stairs of the best algorithm, and whether they lead to all directions. `first`: the
    moments of the target.

    Let V be the directions that are already known. The next directions are those revealed at the
    lowest order k at which E[h_a(z_rest) | y, z_V], |a| = k, does not vanish. These are the label
    moments of the target at fixed z_V, averaged over z_V (Troiani et al. 2024, "grand staircase").
    The highest order k is the generative leap of Damian, Lee and Bruna (2025). Thresholds after the
    first stair assume that V is perfectly known and average over a few values of z_V; they are
    accurate to a few per cent if the moments depend on z_V.
    """
    size = target.dimension
    learned = np.zeros((0, size))
    stairs: list[Stair] = []
    moments = first
    while True:
        rest = complement(learned)
        stair = lowest_stair(moments, rest)
        if stair is None:
            return stairs, not depends(target, rest)
        stairs.append(stair)
        learned = np.concatenate([learned, stair.directions])
        if len(learned) == size or not depends(target, complement(learned)):
            return stairs, True
        moments = _given(target, learned, orders)


def _given(target: Target, learned: np.ndarray, orders: int) -> LabelMoments:
    """The moments of the remaining directions, averaged over the known ones."""
    points, weights = grid(len(learned), _LEARNED_NODES[len(learned)])
    rest = complement(learned)
    slices = [target.slice(point @ learned, rest) for point in points.reshape(-1, len(learned))]
    return LabelMoments.average(
        weights.ravel(), [label_moments(part, orders, quick=True) for part in slices]
    )


# ------------------------------------------------------------------------------------------------
# The information of the label about hidden fields that are partly known from an estimate: the
# moments of Troiani et al. 2024 (arXiv:2405.15480) between the first stair and perfect knowledge.
# An estimate of overlap Q (index, index), 0 <= Q <= 1, determines the part omega ~ N(0, Q) of the
# fields z = omega + sqrt(1 - Q) t, t ~ N(0, 1). With m = E[t | y, omega] the labels measure the
# weights with the precision qh = (n/d) (1 - Q)^(-1/2) E[m m^T] (1 - Q)^(-1/2). Among the directions
# with Q = 0, of which nothing is known, the labels reveal those of m at any n/d, and those of G =
# E[t t^T - 1 | y, omega] if n/d > 1 / lambda_max(X -> E[G X G]). The averages are sampled. At each
# omega of a Sobol sequence many t are drawn, and functions of two different t with equal or
# neighbouring labels are multiplied, so that the estimates of squared conditional averages have no
# bias.

# resolution of labels in units of their spread: labels that are determined by the known fields
# alone must count as equal, although they differ by rounding
_DIGITS = 10
_LOG2_LEARNED, _POINTS, _NEIGHBOURS, _GROUPS = 8, 4096, 32, 16
# a direction counts as unknown if its eigenvalue of the overlap is smaller than this value
NOTHING = 1e-9

Matrix = Float[np.ndarray, "index index"]
Directions = Float[np.ndarray, "direction index"]


def split(overlap: Matrix) -> tuple[Directions, Directions]:
    """Orthonormal directions that are partly known, and those about which nothing is known."""
    values, vectors = np.linalg.eigh(overlap)
    learned = in_axes(vectors[:, values > NOTHING].T)
    return in_axes(vectors[:, (values > NOTHING) & (values < 1 - NOTHING)].T), complement(learned)


def moments_given(target: Target, overlap: Matrix, directions: Directions) -> LabelMoments:
    """Moments of orders 1 and 2 of the fields t along orthonormal `directions`, given the label and
    omega, averaged over both.

    directions: spanned by eigenvectors of `overlap`. The tolerance is four standard errors: a few
    parts in a thousand.
    """
    count = len(directions)

    def features(t: np.ndarray) -> np.ndarray:
        x = directions @ t
        pairs = x[:, None] * x - np.eye(count)[..., None]
        return np.concatenate([x, pairs.reshape(-1, x.shape[1])])

    products = _products(target, overlap, features)
    firsts, seconds = (
        products[:, :count, :count],
        products[:, count:, count:].reshape(_GROUPS, *(count,) * 4),
    )
    gram, tensor = firsts.mean(axis=0), seconds.mean(axis=0)
    operator = operator_of(tensor)
    leading = np.linalg.eigh(operator)[1][:, -1]
    powers = [np.trace(firsts, axis1=1, axis2=2), np.einsum("gijij->g", seconds) / 2]
    samples = [*powers, np.stack([leading @ operator_of(part) @ leading for part in seconds])]
    error = max(float(np.std(sample, ddof=1)) / np.sqrt(_GROUPS) for sample in samples)
    grams = gram, np.einsum("ikkj->ij", tensor)
    return LabelMoments(
        grams,
        operator,
        tuple(float(power.mean()) for power in powers),
        4 * error,
        "neighbours in the label",
    )


def information(
    target: Target, overlap: Matrix, directions: Directions
) -> Float[np.ndarray, "direction direction"]:
    """The precision qh in units of n/d, along the known directions."""
    root = _root(np.linalg.inv(np.eye(len(directions)) - directions @ overlap @ directions.T))
    return root @ _products(target, overlap, lambda t: directions @ t).mean(axis=0) @ root


def _products(
    target: Target, overlap: Matrix, features: Callable[[np.ndarray], np.ndarray]
) -> Float[np.ndarray, "group feature feature"]:
    """Averages of products of E[feature | y, omega], for groups of values of omega, each of which
    is spread over its whole law.

    features: function of t, of shape (index, sample), that returns features of shape (feature,
    sample).
    """
    from scipy.stats import qmc  # slow to import, and used only here

    size = target.dimension
    learned, rest = (_root(part) for part in (overlap, np.eye(size) - overlap))
    points = ndtri(qmc.Sobol(size, seed=0).random_base2(_LOG2_LEARNED)) @ learned
    rng = np.random.default_rng(0)
    found = []
    for omega in points:
        t = rng.standard_normal((_POINTS, size))
        labels = np.round(np.asarray(target(omega + t @ rest), float), _DIGITS)
        order = np.argsort(labels)
        f, y = features(t[order].T), labels[order]
        starts = np.concatenate([[0], 1 + np.flatnonzero(y[1:] != y[:-1])])
        if len(starts) > DISCRETE:  # the bias of neighbours grows with their number
            found.append(2 * _neighbours(f, _NEIGHBOURS) - _neighbours(f, 2 * _NEIGHBOURS))
        else:
            found.append(_paired(f, starts))
    return np.stack(found).reshape(_GROUPS, -1, *found[0].shape).mean(axis=1)


def _paired(features: np.ndarray, starts: np.ndarray) -> Float[np.ndarray, "feature feature"]:
    """The mean over groups, which begin at `starts`, of the products of two different members of
    each."""
    samples = features.shape[1]
    counts = np.diff(starts, append=samples)
    others = np.maximum(counts - 1, 1)
    sums = np.add.reduceat(features, starts, axis=1)
    return (sums / others @ sums.T - features / np.repeat(others, counts) @ features.T) / samples


def _neighbours(features: np.ndarray, count: int) -> Float[np.ndarray, "feature feature"]:
    """Result of `_paired` for groups that all have `count` members."""
    sums = features.reshape(len(features), -1, count).sum(axis=2)
    return (sums @ sums.T - features @ features.T) / (count - 1) / features.shape[1]


def _root(matrix: Matrix) -> Matrix:
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.where(values > NOTHING, values, 0.0))) @ vectors.T
