"""Message passing for signs and Gaussian weights in NumPy, in the precision of the matrix.

One iteration reads the matrix once: a few rows at a time, which stay in the cache between the
product with the estimates and the one with what they say of the labels.
"""

import numpy as np
from scipy.special import log_ndtr

BYTES = 2**22  # of rows that are used twice in one go


def estimates(
    matrix: np.ndarray, labels: np.ndarray, start: np.ndarray, steps: int
) -> tuple[np.ndarray, float]:
    """The estimates of Gaussian weights of variance 1 and their mean variance after a number of
    steps without damping."""
    n, d = matrix.shape
    kind = matrix.dtype.type
    rows = max(1, BYTES // (d * matrix.itemsize))
    a, v, g = start.astype(kind), kind(1), np.zeros(n, kind)
    for _ in range(steps):
        forced, precision = np.zeros(d, kind), 0.0
        root = np.sqrt(v)
        for begin in range(0, n, rows):
            part = slice(begin, begin + rows)
            omega = matrix[part] @ a - v * g[part]
            z = labels[part] * omega / root
            mills = np.exp(-(z**2) / 2 - log_ndtr(z)) / kind(np.sqrt(2 * np.pi))
            g[part] = labels[part] * mills / root
            precision += np.sum(mills * (mills + z))
            forced += g[part] @ matrix[part]
        precision = kind(precision / (d * v))
        a = (precision * a + forced) / (precision + 1)
        v = 1 / (precision + 1)
    return a, float(v)
