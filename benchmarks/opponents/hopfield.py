"""Recall in a Hopfield network by one spin after the other, in numba with one byte for an entry."""

import numpy as np


def _sweeps(stored, spins, total, noise, temperature):  # type: ignore[no-untyped-def]
    n, patterns = stored.shape
    for sweep in range(noise.shape[0]):
        for i in range(n):
            field = 0
            for p in range(patterns):
                field += np.int32(stored[i, p]) * total[p]
            old = spins[i]
            value = (field - patterns * old) / n - temperature / 2 * noise[sweep, i]
            if value * old < 0:
                spins[i] = -old
                for p in range(patterns):
                    total[p] -= 2 * old * np.int32(stored[i, p])
    return total[0] / n


def compiled_recall():  # type: ignore[no-untyped-def]
    """A function of N, the number of patterns, the temperature, the sweeps and the start that
    returns the last overlap."""
    from numba import njit

    loop = njit(fastmath=True)(_sweeps)
    rng = np.random.default_rng(0)

    def recall(n: int, patterns: int, temperature: float, sweeps: int, start: float) -> float:
        packed = np.frombuffer(rng.bytes(n * patterns // 8), np.uint8)
        stored = (2 * np.unpackbits(packed).view(np.int8) - 1).reshape(n, patterns)
        spins = np.where(rng.permutation(n) < round((1 - start) / 2 * n), -1, 1).astype(np.int32)
        spins *= stored[:, 0]
        total = (spins.astype(np.float32) @ stored).astype(np.int32)
        return loop(stored, spins, total, rng.logistic(size=(sweeps, n)), temperature)

    return recall
