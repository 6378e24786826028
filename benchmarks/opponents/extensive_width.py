"""All solutions of the equations of an extensive-width teacher, in numba for one activation.

The function W of a feature is a table in the logarithm of the signal, made once.
Between two thresholds W falls on the learned branch, so that F has one zero there if it rises.
"""

import numpy as np

CELLS, REACH = 200_000, 45.0
STEPS = 60


def _tables(activation):  # type: ignore[no-untyped-def]
    """ln of the threshold, g(1), and W on equal steps above the threshold."""
    from orderparam.systems.extensive_width import channel

    own = channel(activation)
    start = float(own.bayes.threshold)
    s = np.linspace(start, start + REACH, CELLS + 1)
    return start, float(own.total), np.asarray(own.unexplained(s, own.bayes))


def _excess(level, learned, log_power, tail, noise, samples, start, total, w):  # type: ignore[no-untyped-def]
    found = np.exp(level) * (noise + total * tail[learned]) - samples
    scale = (len(w) - 1) / REACH
    for i in range(learned):
        x = (level + log_power[i] - start) * scale
        x = min(max(x, 0.0), len(w) - 1.000001)
        cell = int(x)
        found += w[cell] + (x - cell) * (w[cell + 1] - w[cell])
    return found


def compiled_solutions(activation):  # type: ignore[no-untyped-def]
    """A function of the sorted powers v^2, the noise and n/d that returns the errors of all stable
    solutions, in increasing order of the level."""
    from numba import njit

    start, total, w = _tables(activation)
    excess = njit(_excess)

    def enumerate_all(power, noise, samples, w):  # type: ignore[no-untyped-def]
        count = len(power)
        log_power = np.log(power)
        tail = np.zeros(count + 1)
        for i in range(count - 1, -1, -1):
            tail[i] = tail[i + 1] + power[i]
        low, high = np.log(samples / (noise + total * tail[0])), np.log(samples / noise)
        errors = []
        for learned in range(count + 1):
            a = low - 1e-3 if learned == 0 else max(low - 1e-3, start - log_power[learned - 1])
            b = high + 1e-3 if learned == count else min(high + 1e-3, start - log_power[learned])
            if not a < b:
                continue
            args = (learned, log_power, tail, noise, samples, start, total, w)
            if excess(a, *args) >= 0 or excess(b, *args) < 0:
                continue
            for _ in range(STEPS):
                middle = (a + b) / 2
                if excess(middle, *args) < 0:
                    a = middle
                else:
                    b = middle
            errors.append(samples * np.exp(-a) - noise)
        return np.array(errors)

    loop = njit(enumerate_all)
    return lambda power, noise, samples: loop(power, noise, samples, w)
