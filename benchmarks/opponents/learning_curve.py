"""Self-consistent learning curves of kernel regression in NumPy."""

import numpy as np


def errors(
    eigenvalues: np.ndarray, power: np.ndarray, temperature: float, grid: np.ndarray
) -> np.ndarray:
    """Test errors at increasing sizes: Newton's method in ln kappa for ln of the samples, from a
    straight line through the two sizes before."""
    found = np.empty(len(grid))
    places: list[tuple[float, float]] = []
    u = float(np.log((eigenvalues.sum() + temperature) / grid[0]))
    for i, n in enumerate(grid):
        if len(places) > 1:
            (x, a), (y, b) = places[-2:]
            u = b + (b - a) / (y - x) * (np.log(n) - y)
        for _ in range(100):
            kappa = np.exp(u)
            learned = eigenvalues / (eigenvalues + kappa)
            ridge = temperature / kappa
            count, square = learned.sum(), learned @ learned
            samples = ridge + count
            step = np.log(samples / n) * samples / (ridge + count - square)
            u += step
            if abs(step) < 1e-13 * max(1.0, abs(u)) or abs(step) < 1e-7:
                break  # what is left after a step so short is its square
        places.append((np.log(n), u))
        learned = eigenvalues / (eigenvalues + np.exp(u))
        found[i] = (1 - learned) ** 2 @ power / (1 - learned @ learned / n)
    return found
