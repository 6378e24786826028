"""Dynamical mean-field theory of re-used data as scripts of papers solve it: guess all kernels,
sample the process of one example, average, mix, and repeat until nothing changes.

The process of one example, its response by a second process for each example, and the kernels of
all pairs of times are NumPy arrays over all samples, so that no loop runs over samples.
"""

import numpy as np

MIXING, TOLERANCE, MOST = 0.7, 2e-3, 400


def logistic(
    ratio: float, rate: float, ridge: float, steps: int, samples: int, seed: int = 0
) -> tuple[np.ndarray, int]:
    """Overlap with the teacher along full-batch logistic regression, and the number of sweeps."""
    rng = np.random.default_rng(seed)
    count = steps + 1
    teacher = rng.standard_normal(samples)
    label = np.sign(teacher)
    normals = rng.standard_normal((count, samples))
    overlap, own = np.zeros(count), np.ones((count, count))
    response = np.zeros((count, count))
    for sweep in range(1, MOST + 1):
        slopes, gamma = _example(overlap, own, response, teacher, label, normals, ratio)
        power = ratio * slopes @ slopes.T / samples
        pull = ratio * slopes @ teacher / samples - gamma @ overlap
        found = _weight(gamma, power, pull, rate, ridge)
        moved = max(np.abs(new - old).max() for new, old in zip(found, (overlap, own, response)))
        overlap, own, response = (
            old + MIXING * (new - old) for new, old in zip(found, (overlap, own, response))
        )
        if moved < TOLERANCE:
            return overlap, sweep
    return overlap, MOST


def _example(overlap, own, response, teacher, label, normals, ratio):  # type: ignore[no-untyped-def]
    """Slopes (time, sample) and Gamma of the process with given kernels."""
    count, samples = normals.shape
    across = own - np.outer(overlap, overlap)
    values, vectors = np.linalg.eigh((across + across.T) / 2)
    noise = (vectors * np.sqrt(np.maximum(values, 0.0))) @ normals
    slopes, bends = np.zeros((count, samples)), np.zeros((count, samples))
    change = np.zeros((count, count, samples))  # dh_t / dzeta_s of every sample
    gamma = np.zeros((count, count))
    for t in range(count):
        field = overlap[t] * teacher + noise[t] + response[t, :t] @ slopes[:t]
        p = 1 / (1 + np.exp(label * field))
        slopes[t], bends[t] = -label * p, p * (1 - p)
        change[t, t] = 1.0
        weights = response[t, :t, None] * bends[:t]
        change[t, :t] = np.einsum("rn,rsn->sn", weights, change[:t, :t])
        gamma[t, : t + 1] = ratio * (change[t, : t + 1] @ bends[t]) / samples
    return slopes, gamma


def _weight(gamma, power, pull, rate, ridge):  # type: ignore[no-untyped-def]
    """Overlaps, correlation and response of the linear process of one weight."""
    count = len(gamma)
    propagator = np.zeros((count, count))
    propagator[0, 0] = 1.0
    for t in range(count - 1):
        propagator[t + 1] = (1 - rate * ridge) * propagator[t] - rate * gamma[t] @ propagator
        propagator[t + 1, t + 1] += 1.0
    later, kept = np.zeros(count), np.zeros((count, count))
    later[1:] = -rate * pull[:-1]
    kept[1:, 1:] = rate**2 * power[:-1, :-1]
    kept[0, 0] = 1.0
    overlap = propagator @ later
    own = propagator @ kept @ propagator.T + np.outer(overlap, overlap)
    response = np.zeros((count, count))
    response[:, :-1] = -rate * propagator[:, 1:]
    return overlap, own, response
