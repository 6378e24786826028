"""The volume of spherical perceptrons that store random patterns, in NumPy."""

import numpy as np
from scipy.special import log_ndtr

NODES, REACH, STEPS = 401, 9.0, 50

_T = np.linspace(-REACH, REACH, NODES)
_WEIGHT = np.exp(-(_T**2) / 2) * (_T[1] - _T[0]) / np.sqrt(2 * np.pi)


def volumes(loads: np.ndarray) -> np.ndarray:
    """Overlaps and entropies at margin 0: Newton's method in ln q/(1 - q), all loads at once, from
    a start that is right at small loads and diverges at the capacity 2."""
    x = np.log(2 / np.pi * loads / (1 - loads / 2) ** 2)
    for _ in range(STEPS):
        root = np.exp(x / 2)[:, None]
        minus = -root * _T
        hazard = np.exp(-(minus**2) / 2 - log_ndtr(minus)) / np.sqrt(2 * np.pi)
        mean = hazard**2 @ _WEIGHT
        # d minus / d x = minus / 2, and d hazard / d minus = -hazard (minus + hazard)
        slope = -(hazard**2 * (minus + hazard) * minus) @ _WEIGHT
        step = (np.log(loads * mean) - x) / (slope / mean - 1)
        x = x - step
        if np.max(np.abs(step)) < 1e-12:
            break
    ratio = np.exp(x)
    entropy = (ratio - np.log1p(ratio)) / 2 + loads * (
        log_ndtr(-np.exp(x / 2)[:, None] * _T) @ _WEIGHT
    )
    return np.stack([ratio / (1 + ratio), entropy], axis=-1)
