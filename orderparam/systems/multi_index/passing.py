"""Initial states of message passing for pairs of directions, and the assignment of estimates to
directions."""

import itertools

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.channels.outlier import best_weight, leading_vector
from orderparam.channels.passing import FIRST


def matched(overlaps: Float[np.ndarray, "direction direction"]) -> Float[np.ndarray, "direction"]:
    """Overlap of each direction with the estimate assigned to it, for the best assignment and up to
    signs.
    """
    size, units = np.abs(overlaps), np.arange(len(overlaps))
    return max((size[units, list(order)] for order in itertools.permutations(units)), key=np.sum)


def pair_of_eigenvectors(
    matrix: Float[Array, "sample input"], correlation: Float[Array, "sample"]
) -> tuple[Float[np.ndarray, "2"], Float[np.ndarray, "2 input"]]:
    """Leading eigenvalues and eigenvectors for two directions about which each example reveals only
    E[z2 z3 | y] = correlation.

    The matrices are sum T x x^T with the best T for (w2 + w3)/sqrt(2) and for (w2 - w3)/sqrt(2).
    """
    found = [leading_vector(matrix, best_weight(1 + sign * correlation)) for sign in (1, -1)]
    return np.stack([value for value, _ in found]), np.stack([vector for _, vector in found])


def first_pair(
    matrix: Float[Array, "sample input"], correlation: Float[Array, "sample"]
) -> Float[Array, "input 2"]:
    """Small estimates of both directions along `pair_of_eigenvectors`.

    From random starts both may become estimates of the sum of the directions. `passing` cannot
    leave this state, because it assumes that the two estimates have no overlap with one another.
    """
    values, vectors = pair_of_eigenvectors(matrix, correlation)
    total, difference = np.where(np.isfinite(values)[:, None], vectors, np.nan) * np.sqrt(
        matrix.shape[1] / 2
    )
    return FIRST * jnp.asarray(np.stack([total + difference, total - difference], axis=1))
