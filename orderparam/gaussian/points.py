"""Fixed points that represent Gaussian variables, for averages over more variables than a product
rule allows."""

from functools import cache

import numpy as np
from jaxtyping import Float

from orderparam.core.late import ndtri


@cache
def normal_points(count: int, log2_points: int) -> Float[np.ndarray, "point {count}"]:
    """2^(log2_points + 1) fixed points that represent N(0, 1_count): scrambled Sobol points and
    their mirror images, with exact mean and covariance.

    Fixed points make an average a deterministic function of its parameters. At 2^16 points averages
    of smooth functions of a few variables are good to a few parts in a thousand; those of
    polynomials up to degree 3 are exact.
    """
    from scipy.stats import qmc  # slow to import, and used only here

    uniform = qmc.Sobol(count, scramble=True, seed=0).random_base2(log2_points)
    points = ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))
    points = np.concatenate([points, -points])
    whiten = np.linalg.cholesky(np.linalg.inv(points.T @ points / len(points)))
    return points @ whiten
