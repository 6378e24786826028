"""Hermite coefficients of a target of several variables, and the staircase by which SGD climbs them.

c_a = E[g(z) h_a1(z1) ... h_ar(zr)], h_n normalised: the squares of all c_a with |a| = k sum to the variance of g in
degree k.
"""

import itertools
from typing import Any

import numpy as np
from jaxtyping import Float

from orderparam.gaussian.target import Target
from orderparam.systems.multi_index.rules import NODES, REACH, double_exponential, grid, half_line_rule, hermite_values

_ROUNDING = 1e-13  # of the norm


def project(values: Float[np.ndarray, "*node"], nodes: int, orders: int) -> Float[np.ndarray, "*order"]:
    """All c_a with every a_i < orders of a function tabulated on `grid`."""
    z, w = half_line_rule(nodes)
    basis = w * hermite_values(orders, z)
    for _ in range(values.ndim):
        values = np.moveaxis(np.tensordot(basis, values, axes=(1, 0)), 0, -1)
    return values


def coefficients(
    target: Target, orders: int, rotation: Float[np.ndarray, "index new_index"] | None = None
) -> tuple[Float[np.ndarray, "*order"], float]:
    """All c_a with |a| < orders of a target of spread 1, in the coordinates z = rotation u, and their absolute accuracy (from
    a coarser rule, and rounding).

    Signs under which g less its mean is even or odd make coefficients vanish exactly; these are set to zero.
    """
    dimension = target.dimension
    turn = np.eye(dimension) if rotation is None else rotation
    if dimension == 1:
        cuts = {-REACH, 0.0, REACH, *(turn[0, 0] * kink for kink in target.kinks)}
        # A jump or kink that is not in `kinks` shows when the line is cut at places of no meaning.
        found, other = (
            _on_the_line(target, turn[0, 0], orders, np.array(sorted(cuts | more))) for more in (set(), {-0.83, 0.3717})
        )
    else:
        rules = (NODES[dimension], NODES[dimension] - 4)
        found, other = (project(_tabulate(target, nodes, turn), nodes, orders) for nodes in rules)
    mean = float(found[(0,) * dimension])
    error = max(10 * float(np.max(np.abs(found - other))), _ROUNDING * (1 + abs(mean)))
    allowed = _allowed(target, turn, found.shape, mean)
    return np.where((sum(np.indices(found.shape)) < orders) & allowed, found, 0.0), error


def _on_the_line(target: Target, sign: float, orders: int, cuts: np.ndarray) -> np.ndarray:
    z, w = double_exponential(cuts)
    phi = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return hermite_values(orders, z) @ (w * phi * np.asarray(target(sign * z[:, None]), float))


def _tabulate(target: Target, nodes: int, turn: np.ndarray) -> np.ndarray:
    z, _ = grid(target.dimension, nodes)
    return np.asarray(target(z @ turn.T), float)


def _allowed(target: Target, turn: np.ndarray, shape: tuple[int, ...], mean: float) -> np.ndarray:
    """Which c_a, a != 0, the symmetries g(S u) - mean = ± (g(u) - mean) leave, S flipping signs of coordinates."""
    u = np.random.default_rng(1).standard_normal((64, target.dimension))
    value = np.asarray(target(u @ turn.T)) - mean
    allowed = np.ones(shape, bool)
    powers = np.indices(shape)
    for flip in itertools.product((1, -1), repeat=target.dimension):
        other = np.asarray(target((u * flip) @ turn.T)) - mean
        parity = np.prod(np.stack([np.where(s < 0, (-1) ** p, 1) for s, p in zip(flip, powers)]), axis=0)
        for sign in (1, -1):
            if np.all(np.abs(other - sign * value) <= _ROUNDING * (1 + abs(mean) + np.abs(value))):
                allowed &= parity == sign
    allowed[(0,) * target.dimension] = True
    return allowed


def staircase(target: Target, orders: int) -> tuple[list[tuple[int, Float[np.ndarray, "direction index"]]], bool]:
    """The stages by which one-pass SGD finds directions: (degree climbed, new orthonormal directions), and whether all
    were found.

    With the learned directions V known, the next ones are those of the lowest degree l in the remaining directions at
    which the coefficients, of any degree along V, do not vanish (Abbe, Boix-Adsera, Misiakiewicz 2023; Dandi et al.
    2023): the span of the unfolded tensors. The largest l is the leap exponent.
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
        new = directions[singular > max(min(10 * error, singular[0] / 2), 1e-9 * singular[0])] @ rest
        new = in_axes(new)
        stages.append((degree, new))
        learned = np.concatenate([learned, new])
    return stages, True


def _lowest(c: np.ndarray, known: int, error: float) -> tuple[int, np.ndarray] | None:
    """The lowest degree in the unknown coordinates with a coefficient, and the rows (over those coordinates) that it
    spans."""
    powers = np.indices(c.shape)
    outside = powers[known:].sum(axis=0)
    for degree in range(1, c.shape[0]):
        if np.max(np.abs(np.where(outside == degree, c, 0.0))) > error:
            rows: dict[Any, np.ndarray] = {}
            for index in zip(*np.nonzero((outside == degree) & (np.abs(c) > error))):
                for i in range(known, c.ndim):
                    if index[i]:
                        lowered = (*index[:i], index[i] - 1, *index[i + 1 :])
                        row = rows.setdefault(lowered, np.zeros(c.ndim - known))
                        row[i - known] += np.sqrt(index[i]) * c[index]
            return degree, np.stack(list(rows.values()))
    return None


def complement(learned: np.ndarray) -> np.ndarray:
    """Orthonormal directions orthogonal to the learned ones; coordinate axes where they are."""
    projector = np.eye(learned.shape[1]) - learned.T @ learned
    values, vectors = np.linalg.eigh(projector)
    return in_axes(vectors[:, values > 0.5].T)


def in_axes(directions: np.ndarray) -> np.ndarray:
    """The same span written in coordinate axes where it is one of them: keeps kinks of the target on the grid's
    edges."""
    diagonal = np.diagonal(directions.T @ directions)
    axes = np.flatnonzero(diagonal > 1 - 1e-8)
    return np.eye(directions.shape[1])[axes] if len(axes) == len(directions) else directions


def depends(target: Target, directions: np.ndarray) -> bool:
    """Whether the target changes along the given directions."""
    rng = np.random.default_rng(2)
    z, other = rng.standard_normal((2, 256, target.dimension))
    swapped = z + (other - z) @ directions.T @ directions
    return not np.allclose(target(z), target(swapped), rtol=1e-9, atol=1e-9)
