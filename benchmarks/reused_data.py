"""Training on re-used data: the closed and the sampled theory, beside NumPy and beside drawn data.

    python benchmarks/reused_data.py

One path is 100 steps of full-batch descent. The rival in NumPy is the sampled theory written with
care: growing arrays, so that no sum runs over steps to come, and every sum over steps one product
of a matrix. The drawn student is what a person without a theory would simulate. All rows come from
one run on one machine; read the ratios.
"""

from functools import partial

import jax
import numpy as np
from rich.console import Console
from rich.table import Table
from timing import best_of

from orderparam.systems.reused_data import (
    ReusedData,
    closed_dynamics,
    sampled_dynamics,
    trained_student,
)

ALPHA, RATE, RIDGE, STEPS, SAMPLES = 3.0, 0.5, 0.1, 100, 4000
SIGNS = ReusedData(ALPHA, RATE, 0.0, RIDGE, task="logistic", steps=STEPS, input_dim=2000)
RIDGE_REGRESSION = ReusedData(ALPHA, 0.1, 0.1, RIDGE, steps=STEPS)


def in_numpy() -> np.ndarray:
    """Overlap with the teacher along full-batch logistic regression, from one set of samples."""
    rng, n = np.random.default_rng(0), SAMPLES
    basis = rng.standard_normal((n, STEPS + 3))  # teacher, start, one for each slope
    y = np.sign(basis[:, 0])
    weights, slopes = np.zeros((STEPS + 1, STEPS + 3)), np.zeros((STEPS, n))
    weights[0, 1] = 1.0
    bends, frame = np.zeros((STEPS, n)), np.zeros((STEPS, n))
    response, kept = np.zeros((STEPS + 1, STEPS + 1)), 1 - RATE * RIDGE
    for t in range(STEPS):
        h = basis @ weights[t] + response[t, :t] @ slopes[:t]
        p = 1 / (1 + np.exp(y * h))
        slopes[t], bends[t] = -y * p, p * (1 - p)
        chain, gamma = np.zeros((t + 1, n)), np.zeros(t + 1)
        chain[t] = bends[t]
        for r in range(t - 1, -1, -1):
            chain[r] = (response[r + 1 : t + 1, r] @ chain[r + 1 :]) * bends[r]
        gamma[:] = ALPHA * chain.mean(axis=1)
        rest, coefficient = slopes[t].copy(), np.zeros(STEPS)
        for _ in range(2):
            part = frame[:t] @ rest / n
            rest -= part @ frame[:t]
            coefficient[:t] += part
        coefficient[t] = np.sqrt(np.mean(rest**2))
        frame[t] = rest / coefficient[t]
        v = gamma @ weights[: t + 1]
        v[0] += ALPHA * slopes[t] @ basis[:, 0] / n - gamma @ weights[: t + 1, 0]
        v[2 : STEPS + 2] += np.sqrt(ALPHA) * coefficient
        weights[t + 1] = kept * weights[t] - RATE * v
        response[t + 1] = kept * response[t] - RATE * gamma @ response[: t + 1]
        response[t + 1, t] -= RATE
    return weights[:, 0]


def main() -> None:
    sampled = partial(sampled_dynamics, SIGNS, samples=SAMPLES // 4, runs=4)
    ours, rival = best_of(sampled), best_of(in_numpy)
    deviation = np.max(np.abs(in_numpy() - np.asarray(sampled().overlap)))
    closed = best_of(lambda: closed_dynamics(RIDGE_REGRESSION))
    drawn = best_of(lambda: trained_student(SIGNS, jax.random.key(0)))
    table = Table("work", "seconds", "over the first")
    table.add_row(f"sampled theory, {SAMPLES} samples in 4 runs", f"{ours:.3f}", "1")
    table.add_row(
        f"NumPy, {SAMPLES} samples (overlaps within {deviation:.0e})",
        f"{rival:.3f}",
        f"{rival / ours:.2g}",
    )
    table.add_row("closed theory of ridge regression", f"{closed:.4f}", f"{closed / ours:.2g}")
    table.add_row("one drawn student, d = 2,000", f"{drawn:.3f}", f"{drawn / ours:.2g}")
    Console().print(table)


if __name__ == "__main__":
    main()
