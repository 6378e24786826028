"""The shortest vector with a given margin for every pattern."""

import numpy as np
from jaxtyping import Bool, Float

from orderparam.core.late import nnls

TOLERANCE = 1e-9  # tolerance of the conditions, relative to the largest demand


def shortest_vector(
    patterns: Float[np.ndarray, "pattern d"], demand: Float[np.ndarray, "pattern"]
) -> tuple[Float[np.ndarray, "d"], Bool[np.ndarray, ""]]:
    """The shortest w with w . z_mu >= demand_mu for all patterns z_mu, and True if it meets the
    demands to 1e-9.

    With z_mu = y_mu x_mu and demand 1 it is the student of largest margin, which is 1/|w|; w_0 + w
    with demand -w_0 . z_mu is the point nearest to w_0 of the cone of consistent students. Solved
    exactly, by an active set, as non-negative least squares (Lawson, Hanson 1974, chapter 23).
    The second result is False where no vector meets the demands.
    """
    scale = np.max(np.abs(demand))
    system = np.vstack([patterns.T, demand / scale])
    target = np.append(np.zeros(patterns.shape[1]), 1.0)
    multipliers, _ = nnls(system, target, maxiter=30 * system.shape[1])
    residual = system @ multipliers - target
    # the last entry is -|residual|^2, 0 where demands contradict
    w = scale * residual[:-1] / max(-residual[-1], 1e-300)
    return w, np.asarray(bool(np.min(patterns @ w - demand) >= -TOLERANCE * scale))
