"""A share of samples with its error."""

import numpy as np


def fraction(successes: np.ndarray) -> tuple[float, float]:
    """The share of successes, and its standard error with half a success and half a failure added: never zero."""
    count, total = float(np.sum(successes)), len(successes)
    smoothed = (count + 0.5) / (total + 1)
    return count / total, float(np.sqrt(smoothed * (1 - smoothed) / total))


def mean(values: np.ndarray) -> tuple[float, float]:
    """The mean of what is known and its standard error; NaN of fewer than two."""
    known = values[np.isfinite(values)]
    if len(known) < 2:
        return float(known[0]) if len(known) else np.nan, np.nan
    return float(np.mean(known)), float(np.std(known, ddof=1) / np.sqrt(len(known)))
