"""Anderson's acceleration of a fixed-point iteration.

At the iterates x_i the iteration makes the steps f_i. A combination of the last iterates whose
steps nearly cancel is close to the fixed point if the steps are nearly linear in x there: with the
differences of successive iterates and of successive steps in the rows of X and F, and f the last
step,

    x <- x + f - w (X + F),  w = argmin |f - w F|.

Differences of late steps are nearly parallel, so that the least squares must be regularised; the
two ways below suit NumPy and a compiled loop. Optimistix has no such method.

Source: Anderson (1965); Walker, Ni (2011) for this form.
"""

from collections.abc import Callable
from typing import TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Values = TypeVar("Values", np.ndarray, Array)

_CUT = 1e-6  # singular values below this share of the largest count as zero
_RIDGE = 1e-14  # ridge in units of the trace of the Gram matrix


def anderson_correction(
    moves: Values, changes: Values, step: Values, weights: Callable[[Values, Values], Values]
) -> Values:
    """w (X + F), which is subtracted from the last step f.

    Args:
        moves: X, differences of successive iterates (memory, entry); rows of zeros are ignored.
        changes: F, differences of the steps of the iteration there, in the same order and with the
            same sign.
        step: f, the last step (entry).
        weights: `truncated_weights` or `ridge_weights`, a function of F and f.

    >>> x = np.array([1.0, 0.5])  # two iterates of x <- x/2
    >>> moves, changes, step = np.array([[-0.5]]), np.array([[0.25]]), np.array([-0.25])
    >>> (x[-1] + step - anderson_correction(moves, changes, step, truncated_weights)).tolist()
    [0.0]
    """
    return weights(changes, step) @ (moves + changes)


def truncated_weights(
    changes: Float[np.ndarray, "memory entry"], step: Float[np.ndarray, "entry"]
) -> Float[np.ndarray, "memory"]:
    """The least-squares weights w without the nearly parallel directions, by NumPy.

    >>> truncated_weights(np.eye(2), np.array([3.0, 4.0])).round(12).tolist()
    [3.0, 4.0]
    """
    return np.linalg.lstsq(changes.T, step, rcond=_CUT)[0]


def ridge_weights(
    changes: Float[Array, "memory entry"], step: Float[Array, "entry"]
) -> Float[Array, "memory"]:
    """The least-squares weights w with a ridge so small that it only matters for nearly parallel
    directions: a fixed number of rows, of which some may be zero, for compiled loops.

    >>> ridge_weights(jnp.eye(2), jnp.array([3.0, 4.0])).round(12).tolist()
    [3.0, 4.0]
    """
    gram = changes @ changes.T
    ridge = _RIDGE * jnp.trace(gram) + 1e-300
    return jnp.linalg.solve(gram + ridge * jnp.eye(len(changes)), changes @ step)
