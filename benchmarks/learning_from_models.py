"""Learning from models: the recursion over modes, beside NumPy and beside drawn chains.

    python benchmarks/learning_from_models.py

Ten generations of ridge regressions on 500 modes. The rival in NumPy is the recursion written with
care: one root of a decreasing function, and vectors. The drawn chain is what a person without a
theory would simulate. All rows come from one run on one machine; read the ratios.
"""

import jax
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import brentq
from timing import best_of

from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.learning_from_models import (
    ModelChain,
    drawn_generations,
    generation_errors,
)

N, RIDGE, NOISE, GENERATIONS = 200, 0.1, 0.05, 10
K = np.arange(1, 501)
LEVELS, POWER = K**-2.0, K**-1.5
CHAIN = ModelChain(
    Spectrum(LEVELS, POWER), n_train=N, ridge=RIDGE, noise=NOISE, generations=GENERATIONS
)


def in_numpy() -> np.ndarray:
    """Errors of all generations."""

    def excess(log_kappa: float) -> float:
        kappa = np.exp(log_kappa)
        return RIDGE / kappa + np.sum(LEVELS / (LEVELS + kappa)) - N

    learned = LEVELS / (LEVELS + np.exp(brentq(excess, -20.0, 5.0, xtol=1e-14)))
    complement = 1 - np.sum(learned**2) / N
    mean, scatter, errors = np.ones_like(LEVELS), np.zeros_like(LEVELS), []
    for _ in range(GENERATIONS):
        error = (np.sum((1 - learned) ** 2 * (POWER * mean**2 + scatter)) + NOISE) / complement
        mean, scatter = learned * mean, learned**2 * (scatter + error / N)
        errors.append(np.sum(POWER * (1 - mean) ** 2 + scatter))
    return np.array(errors)


def main() -> None:
    ours, rival = best_of(lambda: generation_errors(CHAIN)), best_of(in_numpy)
    deviation = np.max(np.abs(in_numpy() / np.asarray(generation_errors(CHAIN).test_error) - 1))
    drawn = best_of(lambda: drawn_generations(CHAIN, jax.random.key(0)))
    table = Table("work", "seconds", "over the first")
    table.add_row("recursion over modes", f"{ours:.5f}", "1")
    table.add_row(f"NumPy (within {deviation:.0e})", f"{rival:.5f}", f"{rival / ours:.2g}")
    table.add_row("one drawn chain", f"{drawn:.3f}", f"{drawn / ours:.2g}")
    Console().print(table)


if __name__ == "__main__":
    main()
